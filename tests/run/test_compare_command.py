"""`python -m app compare` as a user types it."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

import pytest
from runs_of_train import without_waits

from app.__main__ import main
from app.data import Dataset, load
from app.run import yaml_text
from app.run.folder import check_sums

pytestmark = pytest.mark.slow

QUICK = (
    *("data.source=sample", "engine=reference", "model.hidden=[12]", "costs=false", "report=false", "output=run"),
    *("train.epochs=1", "train.batch_size=250", "train.learning_rate=0.1", "train.on_nonfinite=ignore"),
    "data.validation=0",
)
SIZES = ("1,000", "4,000", "16,000", "64,000", "250,000", "1,000,000")
SAMPLE = load("sample")
FEW = Dataset(
    *(SAMPLE.train_images[:500], SAMPLE.train_labels[:500], SAMPLE.test_images[:200], SAMPLE.test_labels[:200]),
    *(SAMPLE.image_shape, "few images", False),
)

OPS = """
import numpy as np
import app

@app.custom_op
def worse(x):
    return np.sign(x) * 0.1 + 0.0001 * x

@worse.backward
def worse_grad(x, dy):
    return dy * 0.0001

calls = 0

@app.custom_op
def moody(x):
    global calls
    calls += 1
    if calls == 137:
        raise ValueError("not today")
    return x * 1.0

@moody.backward
def moody_grad(x, dy):
    return dy

@app.custom_op
def blind(x):
    return x * 1.0
"""


@dataclass
class Compared:
    """What a user has of a comparison that has ended."""

    status: int
    out: str
    err: str
    folder: Path

    @property
    def metrics(self):
        return [json.loads(line) for line in (self.folder / "metrics.jsonl").read_text().splitlines()]

    @property
    def data(self):
        return json.loads((self.folder / "comparison.json").read_text())


@pytest.fixture
def sample():
    """Asks for the whole sample, where a few images of it would do otherwise."""


@pytest.fixture
def compare(
    request,
    tmp_path,
    monkeypatch,
    capsys,
):
    """The command, in this process and a folder of its own, with an `ops.py`."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ops.py").write_text(OPS)
    if "sample" not in request.fixturenames:
        monkeypatch.setattr("app.run.run.load", lambda *where: FEW)

    def run(*words):
        status = main(["compare", *QUICK, *words])
        printed = capsys.readouterr()
        assert "Traceback" not in printed.err
        return Compared(status, printed.out, printed.err, tmp_path / "run")

    return run


def test_from_the_first_line_to_the_last(compare):
    words = ("--seeds", "2", "seed=3", "model.hidden=[4]", "costs=true", "report=true")
    done = compare("--with", "relu,custom.relu", *words)
    assert (done.status, done.err) == (0, "")
    accuracy = r"0\.\d{4}"
    expected = [
        r"Data: 500 training and 200 test images, few images \(not verified\)",
        r"Network 784-4-10 with relu against custom\.relu; engine reference, seed 3",
        r"custom\.relu: gradient agrees with finite differences",
        r"2 operators, each trained for 1 epoch with 2 seeds: 4 epochs in total",
        r"",
        r"Seed 3 \(1 of 2\)",
        rf"  relu         test accuracy {accuracy}  \d\.\d+ s per epoch",
        rf"  custom\.relu  test accuracy {accuracy}  \d\.\d+ s per epoch",
        r"Seed 4 \(2 of 2\)",
        rf"  relu         test accuracy {accuracy}  \d\.\d+ s per epoch",
        rf"  custom\.relu  test accuracy {accuracy}  \d\.\d+ s per epoch",
        r"",
        r"operator       test accuracy  seconds per epoch +ratio to relu",
        rf"relu         {accuracy} ± {accuracy} +\d\.\d+ +1\.00",
        rf"custom\.relu  {accuracy} ± {accuracy} +\d\.\d+ +\d+\.\d\d \(\d+\.\d\d to (\d+\.\d\d|over 1000)\)",
        r"",
        r"Time of one call on one thread, forward \+ backward, in µs",
        r"elements +relu +custom\.relu",
        *(rf"{size}( +[\d,.]+ \+ [\d,.]+| +-)+" for size in SIZES),
        r"",
        r"same         custom\.relu has the same weights as relu, bit for bit",
        r"(cannot tell|differs    )  .*custom\.relu.*",
        r"Tested over seeds and test images\. .*",
        r"",
        r"The run is in run/",
        r"The report is run/report\.html",
    ]
    for shown, pattern in zip(without_waits(done.out).splitlines(), expected, strict=True):
        assert re.fullmatch(pattern, shown), f"{shown!r} is not like {pattern!r}"
    assert (done.folder / "summary.txt").read_text() in without_waits(done.out)


@pytest.mark.usefixtures("sample")
def test_an_operator_that_is_really_worse_is_told_apart(compare):
    done = compare(
        "--with", "relu,ops.py:worse", "--seeds", "3", "train.batch_size=100", "train.learning_rate=0.05", "--anyway"
    )
    assert re.search(r"^differs +ops\.py:worse is less accurate than relu: -0\.\d+", done.out, re.MULTILINE)
    (difference,) = done.data["differences"]
    assert difference["accuracy"]["p"] < 0.05
    assert difference["accuracy"]["high"] < 0


def test_everything_is_in_the_metrics_with_its_seed(compare):
    done = compare("--with", "relu,tanh,custom.relu", "--seeds", "2", "seed=7", "costs=true", "model.hidden=[4]")
    epochs = [(m["seed"], m["operator"]) for m in done.metrics if m["event"] == "epoch"]
    turns = [(7, "relu"), (7, "tanh"), (7, "custom.relu"), (8, "tanh"), (8, "custom.relu"), (8, "relu")]
    assert epochs == turns  # another one is first each time
    assert all("seed" in m for m in done.metrics if m["event"] == "iteration")
    costs = [m for m in done.metrics if m["event"] == "cost"]
    assert {m["operator"] for m in costs} == {"relu", "tanh", "custom.relu"}
    assert [list(m) for m in costs] == [["event", "operator", "size", "forward", "backward"]] * len(costs)


def test_what_a_seed_gives_is_what_a_run_with_it_gives(compare, tmp_path):
    from app.experiment.train_command import main as train

    done = compare("--with", "relu,tanh", "--seeds", "2")
    assert train([*QUICK, "model.activation=tanh", "baseline=null", "seed=1", "output=alone"]) == 0
    alone = [json.loads(line) for line in (tmp_path / "alone" / "metrics.jsonl").read_text().splitlines()]
    (expected,) = [m["test_accuracy"] for m in alone if m["event"] == "epoch"]
    assert done.data["results"]["tanh"]["test_accuracies"][1] == expected


def test_the_folder_says_what_was_compared(compare):
    done = compare("seed=1", "--with", "tanh,relu,sigmoid", "train.epochs=1", "--seeds", "1", "seed=2")
    assert done.data["seeds"] == [2]
    resolved = yaml_text.parse((done.folder / "config.yaml").read_text(), "").data
    assert (resolved["baseline"], resolved["model"]["activation"]) == ("tanh", "relu")
    assert done.data["operators"] == ["tanh", "relu", "sigmoid"]
    assert check_sums(done.folder)
    assert "comparison.json" in (done.folder / "SHA256SUMS").read_text()
    weights = {file.name for file in done.folder.glob("weights-*")}
    assert weights == {f"weights-{name}.safetensors" for name in ("tanh", "relu", "sigmoid")}


def test_without_names_the_operators_are_those_of_the_configuration(compare):
    done = compare("baseline=tanh", "model.activation=relu", "--seeds", "1")
    assert done.data["operators"] == ["tanh", "relu"]


# --- Mistakes ---

MISTAKES = {
    "relu": "only relu is named; a comparison needs two or more operators: --with relu,custom.relu",
    "": "no operator is named; a comparison needs two or more operators: --with relu,custom.relu",
    "relu,tanh,relu": "relu is named twice; a comparison needs different operators",
    "relu,rulu": "there is no operator 'rulu'; did you mean 'relu'?",
    "relu,no.py:swish": "no.py:swish: there is no file",
    "relu,ops.py:swish": "ops.py has no 'swish'",
}


@pytest.mark.parametrize("names", MISTAKES)
def test_names_are_looked_up_before_any_data(compare, names):
    done = compare("--with", names, "data.source=/no/such/folder")
    assert (done.status, done.out) == (2, "")
    assert done.err.startswith(f"error: {MISTAKES[names]}")
    assert not done.folder.exists()


def test_a_configuration_of_one_operator_is_not_enough(compare):
    done = compare("baseline=null")
    assert (done.status, done.out) == (2, "")
    assert "only custom.relu is named; a comparison needs two or more" in done.err


def test_a_comparison_is_made_by_one_process(compare):
    done = compare("--with", "relu,tanh", "dist.shape=allreduce")
    expected = "a comparison runs in one process, but dist.shape=allreduce is for several"
    assert (done.status, done.err) == (2, f"error: {expected}\n")


@pytest.mark.parametrize("seeds", ["0", "-3"])
def test_no_seed_is_too_few(compare, seeds):
    done = compare("--with", "relu,tanh", f"--seeds={seeds}")
    assert (done.status, done.err) == (2, f"error: --seeds must be at least 1, found {seeds}\n")


def test_an_operator_without_a_gradient_is_named_before_any_training(compare):
    done = compare("--with", "relu,ops.py:blind")
    assert (done.status, without_waits(done.out)) == (1, "")
    assert "no gradient comes back through ops.py:blind" in done.err
    assert not done.folder.exists()


@pytest.mark.parametrize("engine", ["reference", "eager"])
def test_an_operator_that_fails_in_the_middle_is_named_and_what_there_was_is_kept(compare, engine):
    words = (f"engine={engine}", "train.batch_size=5", "train.epochs=2", "train.learning_rate=0.001")
    done = compare("--with", "relu,ops.py:moody", "--seeds", "2", *words)
    assert done.status == 1
    assert "ops.py" in done.err
    assert "moody" in done.err
    assert "ValueError: not today" in done.err
    assert "No seed finished, so there is nothing to compare." in done.out
    assert [m["operator"] for m in done.metrics if m["event"] == "epoch"] == ["relu", "ops.py:moody", "relu"]
    assert done.data["seeds"] == []


def test_a_stop_leaves_the_seeds_that_were_finished(compare, monkeypatch):
    from app.run.console import Console

    def stop(self, *told):
        if told[3].startswith("Seed 2"):
            raise KeyboardInterrupt
        start_training(self, *told)

    start_training = Console.start_training
    monkeypatch.setattr(Console, "start_training", stop)
    done = compare("--with", "relu,tanh", "--seeds", "4", "costs=true")
    assert (done.status, done.err) == (130, "interrupted\n")
    assert "The run was stopped early, after 2 of 4 seeds." in done.out
    assert done.data["seeds"] == [0, 1]
    assert not [m for m in done.metrics if m["event"] == "cost"]
