"""`opsmith compare` as a user types it: a function of run folders, which may be trained at the same time."""

import itertools
import json
import os
import re
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from unittest.mock import Mock

import forked
import launches
import numpy as np
import pytest
from runs_of_train import TINY, Run
from safetensors.numpy import load_file

from app.__main__ import main
from app.custom import lookup
from app.experiment import comparing
from app.experiment.train_command import main as train
from app.run import yaml_text
from app.run.config import load_compare_config
from app.run.console import Console
from app.run.workers import Processes, WorkerError

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
QUICK = (
    *("engine=reference", "model.hidden=[12]", "costs=false", "report=false", "output=run", "data.validation=0"),
    *("train.epochs=1", "train.batch_size=8", "train.learning_rate=0.1"),
)


@pytest.fixture
def compare(images, tmp_path, monkeypatch, capsys):
    """The command, in this process and a folder of its own, with an `ops.py`."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(Path(__file__).with_name("misbehaving_operators.py"), "ops.py")

    def run(operators, *words):
        named = () if operators is None else ("--with", operators)
        typed = words if words[0] == "--resume" else (f"data.source={images}", *QUICK, *named, *words)
        status = main(["compare", *typed])
        printed = capsys.readouterr()
        assert "Traceback" not in printed.err
        return Run(status, printed.out, printed.err, tmp_path / "run")

    return run


def data(run):
    return json.loads((run.folder / "comparison.json").read_text())


def of_seed_folder(run, seed):
    return Run(0, "", "", run.folder / f"seed-{seed}")


def test_a_comparison_prints_tables_and_verdicts_and_keeps_a_run_for_each_seed(compare):
    names = ["relu", "tanh", "custom.relu"]
    done = compare(",".join(names), "--seeds", "2", "seed=3", "model.hidden=[4]", "costs=true", "report=true")
    assert (done.status, done.err) == (0, "")
    accuracy = r"0\.\d{4}"
    of_seed = [rf"  {name:11}  test accuracy {accuracy}  \d\.\d+ s per epoch" for name in names]
    expected = [
        r"Data: 60 training and 20 test images, the folder .* \(not verified\)",
        r"Network 12-4-10 with relu against tanh and custom\.relu; engine reference, seed 3",
        r"custom\.relu: gradient agrees with finite differences",
        r"3 operators, each trained for 1 epoch with 2 seeds: 6 epochs in total",
        r"",
        r"Seed 3 \(1 of 2\)",
        *of_seed,
        r"Seed 4 \(2 of 2\)",
        *of_seed,
        r"",
        r"operator       test accuracy  seconds per epoch +ratio to relu",
        rf"relu         {accuracy} ± {accuracy} +\d\.\d+ +1\.00",
        *(
            rf"{name:11}  {accuracy} ± {accuracy} +\d\.\d+ +\d+\.\d\d \(\d+\.\d\d to (\d+\.\d\d|over 1000)\)"
            for name in names[1:]
        ),
        r"",
        r"Time of one call alone, as large as in the network, on one thread, in µs",
        r"operator +forward  backward",
        *(rf"{name:11} +[\d,.]+ +[\d,.]+" for name in names),
        r"",
        *[r"(cannot tell|differs    )  .*tanh.*"] * 2,
        r"same         custom\.relu has the same weights as relu, bit for bit",
        r"(cannot tell|differs    )  .*custom\.relu.*",
        r"Tested over seeds \(paired t-tests\)\. .*",
        r"",
        r"The comparison is in run/",
        r"The report is run/report\.html",
    ]
    for shown, pattern in zip(done.out.splitlines(), expected, strict=True):
        assert re.fullmatch(pattern, shown), f"{shown!r} is not like {pattern!r}"
    assert (done.folder / "summary.txt").read_text() in done.out

    for seed, turns in ((3, names), (4, [*names[1:], names[0]])):
        run = of_seed_folder(done, seed)
        assert [m["operator"] for m in run.metrics if m["event"] == "epoch"] == turns
        assert {m["operator"] for m in run.metrics if m["event"] == "cost"} == (set(names) if seed == 3 else set())
        resolved = yaml_text.parse((run.folder / "config.yaml").read_text(), "").data
        assert (resolved["operators"], resolved["seed"]) == (names, seed)
        weights = {file.name for file in run.folder.glob("weights-*")}
        assert weights == {f"weights-{name}.safetensors" for name in names}
    assert (data(done)["seeds"], data(done)["operators"]) == ([3, 4], names)


def test_a_seed_gives_the_results_of_a_run_with_it(compare, images, tmp_path):
    done = compare("relu,tanh", "--seeds", "2")
    assert (
        train([f"data.source={images}", *QUICK, "model.activation=tanh", "baseline=null", "seed=1", "output=alone"])
        == 0
    )
    (expected,) = Run(0, "", "", tmp_path / "alone").column("tanh", "epoch", "test_accuracy")
    assert data(done)["results"]["tanh"]["test_accuracies"][1] == expected


def test_without_names_the_operators_are_those_of_the_configuration(compare):
    done = compare(None, "baseline=tanh", "model.activation=relu", "--seeds", "1")
    assert data(done)["operators"] == ["tanh", "relu"]


@pytest.mark.parametrize(
    ("operators", "word", "told"),
    [
        ("relu", "seed=0", "only relu is named; a comparison needs two or more operators: --with relu,custom.relu"),
        (None, "baseline=custom.relu", "only custom.relu is named; a comparison needs two or more"),
        (None, "baseline=null", "only custom.relu is named; a comparison needs two or more"),
        ("", "seed=0", "the command line, operators=[]: operators: found [], expected a list of at least one "),
        ("relu,tanh,relu", "seed=0", "the command line, operators=[relu, tanh, relu]: operators: relu is named twice"),
        ("relu,rulu", "seed=0", "there is no operator 'rulu'; did you mean 'relu'?"),
        ("relu,no.py:swish", "seed=0", "there is no file "),
        ("relu,ops.py:swish", "seed=0", "ops.py has no 'swish'"),
        ("relu,tanh", "dist.shape=allreduce", "a comparison runs in one process, but dist.shape=allreduce is for sev"),
    ],
)
def test_wrong_arguments_are_errors_before_data_is_read(compare, operators, word, told):
    done = compare(operators, word, "data.source=/no/such/folder")
    assert (done.status, done.out) == (2, "")
    assert done.err.startswith(f"error: {told}")
    assert not done.folder.exists()


@pytest.mark.parametrize("option", ["--seeds", "--workers"])
@pytest.mark.parametrize("count", ["0", "-1", "many", "1.5", ""])
def test_a_number_of_seeds_or_workers_is_at_least_one(option, count, capsys):
    with pytest.raises(SystemExit) as caught:
        main(["compare", "--with", "relu,tanh", f"{option}={count}"])
    assert caught.value.code == 2
    assert f"argument {option}: expected a whole number of at least 1, found {count!r}" in capsys.readouterr().err


def test_an_operator_that_raises_in_training_is_named_and_its_run_stays(compare):
    done = compare("relu,ops.py:raises_later", "--seeds", "2", "train.epochs=50")
    assert done.status == 1
    assert all(words in done.err for words in ("ops.py", "raises_later", "RuntimeError: enough of it"))
    assert not (done.folder / "comparison.json").exists()
    turns = [m["operator"] for m in of_seed_folder(done, 0).metrics if m["event"] == "epoch"]
    assert turns == (["relu", "ops.py:raises_later", "ops.py:raises_later", "relu"] * len(turns))[: len(turns)] != []


@pytest.fixture
def stopped(monkeypatch):
    """Presses Ctrl-C when a seed's training begins."""

    def stop(seed):
        start_training, numbers = Console.start_training, itertools.count()

        def stopping(self, *words):
            if next(numbers) == seed:
                raise KeyboardInterrupt
            start_training(self, *words)

        monkeypatch.setattr(Console, "start_training", stopping)
        return lambda: monkeypatch.setattr(Console, "start_training", start_training)

    return stop


def test_an_interrupted_comparison_goes_on_with_the_same_results(compare, stopped, tmp_path):
    whole = compare("relu,tanh", "--seeds", "3", "train.epochs=2")
    expected = figures(whole.folder)
    whole.folder.rename(tmp_path / "whole")
    go_on = stopped(1)
    done = compare("relu,tanh", "--seeds", "3", "train.epochs=2")
    assert (done.status, done.err) == (130, "interrupted. Resume with:\nopsmith compare --resume run\n")
    assert len(list(done.folder.glob("seed-*/summary.txt"))) == 1
    go_on()
    again = compare(None, "--resume", "run")
    assert (again.status, again.err) == (0, "")
    assert "1 of 3 seeds were trained before" in again.out
    assert figures(again.folder) == expected
    assert "Seed " not in compare("relu,tanh", "--seeds", "3", "train.epochs=2").out  # the same command goes on
    other = compare("relu,tanh", "--seeds", "2", "train.epochs=2")
    assert other.status == 1
    assert "error: run is not empty, and not the folder of a run with these settings: it has comp" in other.err


def test_a_comparison_gets_more_seeds_with_the_results_of_one_that_began_with_them(compare, tmp_path):
    whole = compare("relu,tanh", "--seeds", "3")
    expected = figures(whole.folder)
    whole.folder.rename(tmp_path / "whole")
    assert compare("relu,tanh", "--seeds", "2").status == 0
    more = compare(None, "--resume", "run", "--seeds", "3")
    assert (more.status, more.err) == (0, "")
    assert "2 of 3 seeds were trained before" in more.out
    assert figures(more.folder) == expected
    assert (more.folder / "config.yaml").read_text() == (tmp_path / "whole" / "config.yaml").read_text()
    fewer = compare(None, "--resume", "run", "--seeds", "2")
    assert fewer.status == 2
    assert fewer.err == (
        "error: run has 3 seeds, and --seeds 2 would leave out some; to compare fewer, name their folders: "
        "opsmith compare run/seed-0 run/seed-1\n"
    )


@pytest.mark.parametrize(
    "words", [["report", "run"], ["compare", "run"], ["demo", "run"], ["predict", "run", "digit.png"]], ids=" ".join
)
def test_a_comparison_without_a_finished_run_says_how_to_continue_it(compare, stopped, capsys, words):
    stopped(0)
    assert compare("relu,tanh", "--seeds", "2").status == 130
    assert main(words) == 1
    assert capsys.readouterr().err == "error: run has no finished run: opsmith compare --resume run\n"


def test_only_a_comparison_is_continued(compare, stopped, capsys):
    stopped(0)
    assert compare("relu,tanh", "--seeds", "2").status == 130
    for words, status, told in [
        (["train", "--resume", "run"], 2, "run holds a comparison; it is continued with opsmith compare --resume run"),
        (["compare", "--resume", "nowhere"], 1, "no such folder: nowhere; name the folder of a run, such as those in"),
    ]:
        assert main(words) == status
        assert capsys.readouterr().err.startswith(f"error: {told}")


def test_an_operator_that_was_edited_after_some_seeds_is_refused(compare, stopped, tmp_path, monkeypatch):
    file = tmp_path / "mine.py"
    file.write_text("def scaled(x):\n    return x * 2.0\n")
    go_on = stopped(1)
    assert compare("relu,mine.py:scaled", "--seeds", "2").status == 130
    go_on()
    assert "is executed only if you name it" in compare(None, "--resume", "run").err
    monkeypatch.setattr(lookup, "_ran", {})  # as in another process
    file.write_text("def scaled(x):\n    return x * 3.0\n")
    refused = compare(None, "--resume", "run", "--custom-op", "mine.py")
    assert refused.status == 1
    assert "the source of mine.py:scaled, or of a function that it calls, has changed since the run in" in refused.err


def test_runs_that_are_there_are_compared(compare, images, tmp_path, capsys):
    for seed in (0, 1, 2):
        words = [f"data.source={images}", *QUICK, "model.activation=tanh", f"seed={seed}", f"output=alone/{seed}"]
        assert train(words) == 0
    capsys.readouterr()
    assert main(["compare", "alone/0", "alone/1", "alone/2", "output=of-three"]) == 0
    assert "Tested over seeds (paired t-tests)" in capsys.readouterr().out
    expected = compare("relu,tanh", "--seeds", "3")
    found = json.loads((tmp_path / "of-three" / "comparison.json").read_text())
    assert found["results"]["tanh"]["test_accuracies"] == data(expected)["results"]["tanh"]["test_accuracies"]
    assert (found["first"], found["operators"], found["seeds"]) == ("relu", ["relu", "tanh"], [0, 1, 2])
    assert (tmp_path / "of-three" / "report.html").exists()
    assert main(["compare", "run", "output=again"]) == 0  # the folder of a comparison stands for its runs
    assert "not trained" not in capsys.readouterr().out
    shutil.rmtree(tmp_path / "run" / "seed-2")
    assert main(["compare", "run", "output=of-two"]) == 0
    assert "note: 1 seed of run not trained: opsmith compare --resume run\n" in capsys.readouterr().out
    assert "Only 2 of 3 seeds are trained." in (tmp_path / "of-two" / "summary.txt").read_text()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "summary.txt").write_text("of my own")
    before = {file: file.read_bytes() for file in (tmp_path / "alone" / "0").iterdir()}
    capsys.readouterr()
    for taken, told in (("mine", "mine is not empty"), ("alone/0", "alone/0 already holds a run")):
        assert main(["compare", "alone/0", "alone/1", f"output={taken}"]) == 1
        assert capsys.readouterr().err.startswith(f"error: {told}")
    assert (tmp_path / "mine" / "summary.txt").read_text() == "of my own"
    assert before == {file: file.read_bytes() for file in (tmp_path / "alone" / "0").iterdir()}


def test_runs_that_differ_in_more_than_the_seed_are_not_compared(compare, images, capsys):
    labels = shutil.copytree(images, "others") / Path("t10k-labels-idx1-ubyte")
    labels.write_bytes(labels.read_bytes()[:-1] + bytes([(labels.read_bytes()[-1] + 1) % 10]))
    others = {
        "first": [],
        "wide": ["seed=1", "model.hidden=[13]"],
        "same": ["seed=0"],
        "images": ["seed=1", "data.source=others"],
        "early": ["seed=1"],
        "ended": ["seed=1"],
        "cut": ["seed=1"],
    }
    for name, more in others.items():
        words = [f"data.source={images}", *QUICK, "model.activation=tanh", *more, f"output={name}"]
        assert train(words) == 0
    Path("early/summary.txt").unlink()
    metrics = Path("ended/metrics.jsonl")  # as after an error in training
    metrics.write_text("".join(line for line in metrics.open() if '"epoch"' not in line))
    cut = Path("cut/metrics.jsonl")
    cut.write_text("".join(cut.read_text().splitlines(keepends=True)[:-1]))
    capsys.readouterr()
    for name, told in {
        "wide": "first and wide differ in more than the seed: model.hidden; compare runs that do not",
        "same": "first and same have the same seed; a comparison needs runs with different ones",
        "images": "first and images were trained on different images, so they cannot be compared",
        "early": "the run in early is not finished: opsmith train --resume early",
        "ended": "the run in ended ended before its last epoch, by an error of an operator. Remove the folder to train "
        "it again, and to see the error",
        "cut": "cut/metrics.jsonl is damaged: it has no hashes of the data and the weights",
        "nothing": "no such folder: nothing; name the folder of a run, such as those in runs/",
    }.items():
        assert main(["compare", "first", name]) != 0
        assert capsys.readouterr().err == f"error: {told}\n"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (
            ["--with", "relu,", "my.py:swish"],
            "my.py:swish is neither the folder of a run nor a setting; operators are li",
        ),
        (["run", "train.epochs=3"], "finished runs are compared as they are, but train.epochs=3 is to change"),
        (
            ["--resume", "run", "seeds=3"],
            "a comparison is continued with its own settings, but seeds=3 is to change",
        ),
        (["--resume", "run", "other"], "--resume continues one comparison, and other is another folder: leave out one"),
    ],
)
def test_words_without_effect_are_refused(words, told, capsys):
    assert main(["compare", *words]) == 2
    assert capsys.readouterr().err.startswith(f"error: {told}")


def test_a_folder_that_is_taken_is_refused_before_data_are_read_or_networks_compiled(compare, tmp_path, monkeypatch):
    monkeypatch.setattr("app.run.run.load", Mock(side_effect=AssertionError("data are read")))
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "notes").touch()
    done = compare("relu,tanh", "seed=1")
    assert (done.status, done.out) == (1, "")
    assert done.err.startswith("error: run is not empty, and not the folder of a run with these settings: it has note")


def test_an_operator_of_a_layer_that_was_typed_is_run_beside_those_to_compare(compare, tmp_path):
    (tmp_path / "mine.py").write_text("def double(x):\n    return x * 2.0\n")
    layers = "model.layers=[{type: dense, units: 4, activation: 'mine.py:double'}, {type: dense, units: 4}]"
    done = compare("relu,tanh", "--seeds", "1", layers)
    assert (done.status, done.err) == (0, "")


# --- Trainings at the same time ---


def figures(folder):
    """All of a comparison that is not a time."""
    found = json.loads((folder / "comparison.json").read_text())
    for result in found["results"].values():
        del result["seconds_per_epoch"]
    found["differences"] = [{key: d[key] for key in ("operator", "identical")} for d in found["differences"]]
    del found["verdicts"], found["runs"]
    runs = sorted(folder.glob("seed-*"))
    events = [m for run in runs for m in Run(0, "", "", run).metrics if m["event"] != "start"]
    found["events"] = [{k: v for k, v in m.items() if k not in ("seconds", "alone")} for m in events]
    found["weights"] = {str(f.relative_to(folder)): f.read_bytes() for f in sorted(folder.glob("*/weights-*"))}
    return found


@pytest.fixture(scope="module")
def words(images):
    """A comparison of two operators with two seeds."""
    settings = ("operators=[custom.tap, tanh]", "seeds=2", "data.validation=10", "train.epochs=3", "costs=true")
    return [f"data.source={images}", *QUICK, *settings, "check=false"]


def compared(words, folder, executor):
    config = load_compare_config(ROOT / "configs" / "quick.yaml", [*words, f"output={folder}"])
    comparing.compare(config, Console(lines=False), executor=executor)
    return figures(folder)


@pytest.fixture(scope="module")
def expected(words, tmp_path_factory):
    """The figures of one worker, in this process."""
    with ThreadPoolExecutor(1) as executor:
        return compared(words, tmp_path_factory.mktemp("one") / "run", executor)


def test_processes_give_the_same_figures_and_their_speeds_are_not_compared(words, expected, tmp_path):
    with Processes(2) as executor:
        assert compared(words, tmp_path / "run", executor) == expected
    assert expected["seeds"] == [0, 1]
    assert len(expected["weights"]) == 4
    assert len(expected["results"]["tanh"]["test_accuracies"]) == 2
    found = json.loads((tmp_path / "run" / "comparison.json").read_text())
    assert found["costs"] == []
    assert [result["seconds_per_epoch"] for result in found["results"].values()] == [None, None]
    assert [difference["speed"] for difference in found["differences"]] == [None]
    assert not [sentence for sentence in found["verdicts"] if "faster" in sentence or "differ in speed" in sentence]
    assert "Speeds are not compared, because trainings ran at the same time." in found["verdicts"]
    assert (tmp_path / "run" / "summary.txt").read_text().count("not compared") == 5  # a table and a sentence


def test_workers_train_networks_with_image_layers(words, tmp_path):
    layers = "model.layers=[{type: conv, channels: 2, kernel: 2}, {type: max_pool, size: 2, stride: 1}]"
    words = [*words, layers, "seeds=1", "train.epochs=1"]
    with ThreadPoolExecutor(1) as executor:
        kept = compared(words, tmp_path / "workers", executor)["weights"]
        assert compared(words, tmp_path / "alone", None)["weights"].keys() == kept.keys()
    for name in kept:
        alone, other = (load_file(tmp_path / folder / name) for folder in ("alone", "workers"))
        for path, array in alone.items():
            np.testing.assert_allclose(other[path], array, rtol=1e-4, atol=1e-5)


def test_workers_that_remain_read_a_data_set_again_that_has_changed(words, images, tmp_path):
    shutil.copytree(images, tmp_path / "data")
    words = [*words, f"data.source={tmp_path / 'data'}", "seeds=1", "train.epochs=1"]
    with ThreadPoolExecutor(1) as executor:
        before = compared(words, tmp_path / "before", executor)
        file = next((tmp_path / "data").glob("train-images*"))
        content = bytearray(file.read_bytes())
        content[-100:] = bytes(100)
        file.write_bytes(content)
        assert compared(words, tmp_path / "after", executor)["weights"] != before["weights"]


ON_RANKS = """
import sys
from mpi4py.futures import MPIPoolExecutor
from app.experiment.comparing import compare
from app.run.config import load_compare_config
from app.run.console import Console

if __name__ == "__main__":
    with MPIPoolExecutor() as executor:
        compare(load_compare_config(sys.argv[1], sys.argv[2:]), Console(), executor)
"""


@pytest.mark.soak
def test_ranks_of_mpi_give_the_same_figures(words, expected, tmp_path):
    file = launches.program(tmp_path, ON_RANKS)
    words = [str(ROOT / "configs" / "quick.yaml"), *words, "output=run"]
    ended = launches.run(2, "-m", "mpi4py.futures", file, *words, folder=tmp_path)
    assert ended.status == 0, ended.err
    assert figures(tmp_path / "run") == expected


@pytest.mark.soak
def test_a_cluster_of_dask_gives_the_same_figures(words, expected, tmp_path):
    distributed = pytest.importorskip("distributed", reason="Dask is a development dependency")
    cluster = distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None)
    with cluster, distributed.Client(cluster) as client:
        assert compared(words, tmp_path / "run", client.get_executor()) == expected


# --- Workers that are lost ---


def test_a_process_that_dies_loses_its_own_call():
    with Processes(2) as executor:
        calls = [executor.submit(eval, text) for text in ("'a'", "__import__('os')._exit(3)", "'b'")]
        with pytest.raises(WorkerError, match="its worker died"):
            calls[1].result()
        assert (calls[0].result(), calls[2].result()) == ("a", "b")


def test_processes_end_at_once_after_an_error():
    begun, executor = time.monotonic(), Processes(1)
    calls = [executor.submit(eval, "__import__('time').sleep(60)") for _ in range(2)]
    while not executor._running:
        time.sleep(0.01)
    executor.__exit__(KeyboardInterrupt, KeyboardInterrupt(), None)
    assert time.monotonic() - begun < 30
    assert calls[1].cancelled()


def test_a_run_that_was_lost_is_left_out_and_trained_when_the_comparison_goes_on(words, tmp_path, monkeypatch, capsys):
    real = comparing.train_in_worker

    def sometimes(run, config, homes):
        if config.seed == 0:
            raise RuntimeError("the machine is gone")
        return real(run, config, homes)

    monkeypatch.chdir(tmp_path)
    with ThreadPoolExecutor(1) as executor:
        with monkeypatch.context() as patch:
            patch.setattr(comparing, "train_in_worker", sometimes)
            assert compared(words, Path("run"), executor)["seeds"] == [1]
        assert "Only 1 of 2 seeds are trained." in Path("run/summary.txt").read_text()
        out, err = capsys.readouterr()
        assert "note: the training in run/seed-0 ended early (RuntimeError: the machine is gone)\n" in err
        assert "note: 1 seed not trained. Resume with:\nopsmith compare --resume run\n" in out
        assert compared(words, Path("run"), executor)["seeds"] == [0, 1]


FAILING = """
import ctypes
import app

calls = 0

@app.custom_op
def failing(x):
    global calls
    calls += x.shape[0] == 8  # in each worker anew
    ctypes.CDLL(None).puts(b"native")  # into the buffer of the C library
    print("python", flush=True)
    if FAIL and calls == 10:
        raise ValueError("enough of it")
    return x

@failing.backward
def _(dy):
    return dy
"""


@pytest.fixture
def typed(images, tmp_path):
    """Types a comparison with `ops.py:failing`."""

    def run(fails, *words):
        (tmp_path / "ops.py").write_text(f"FAIL = {fails}\n{FAILING}")
        of_all = ("--with", "relu,ops.py:failing", *TINY, f"data.source={images}", "report=false", "check=false")
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        return forked.run(["-m", "app", "compare", *of_all, *words], cwd=tmp_path, env=environment)

    return run


def test_an_error_of_an_operator_in_a_worker_ends_the_comparison_and_is_printed_as_itself(typed):
    done = typed(True, "--seeds", "1", "--workers", "2", "--json", "costs=false")
    assert done.returncode == 1
    assert done.stdout == ""  # nothing that operators print
    assert {"native", "python"} <= {*done.stderr.splitlines()}
    assert "its function failing raised ValueError: enough of it (ops.py:15)" in done.stderr
    assert "PicklingError" not in done.stdout + done.stderr
    assert "trying again" not in done.stdout + done.stderr


@pytest.mark.parametrize("workers", ["1", pytest.param("2", marks=pytest.mark.soak)])
def test_json_holds_nothing_that_operators_print(typed, workers):
    done = typed(False, "--seeds", "1", "--workers", workers, "--json", "costs=false")
    assert done.returncode == 0, done.stderr
    assert [json.loads(line)["event"] for line in done.stdout.splitlines()][-1] == "comparison"
    assert {"native", "python"} <= {*done.stderr.splitlines()}
    assert "ended early" not in done.stderr  # as if what is printed were the result of a worker


def test_a_comparison_that_compared_nothing_ends_with_status_1(compare, monkeypatch):
    def lost(*words):
        raise RuntimeError("the machine is gone")

    monkeypatch.setattr(comparing, "train_in_worker", lost)
    monkeypatch.setattr("app.run.workers.Processes", lambda count: ThreadPoolExecutor(count))
    done = compare("relu,tanh", "--seeds", "1", "--workers", "2")
    assert "error: no seed was trained, so there is nothing to compare. Resume with:\nopsmith compare" in done.err
    assert done.status == 1
