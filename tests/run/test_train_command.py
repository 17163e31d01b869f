"""`python train.py` as a user types it."""

import re
import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock

import pytest

from app.experiment.train_command import main
from app.run import config as config_module

pytestmark = pytest.mark.slow

ROOT = Path(config_module.__file__).parents[2]


# --- A run from its first line to its last ---


def test_quick_yaml_prints_its_progress_and_fills_a_folder_named_after_the_operators_and_the_time(type_it, tmp_path):
    words = ("train.epochs=1", "train.batch_size=1000", "train.log_every=5", "engine=reference")
    run = type_it("--config", str(ROOT / "configs" / "quick.yaml"), *words)
    assert (run.status, run.err) == (0, "")
    (folder,) = (tmp_path / "runs").iterdir()
    assert re.fullmatch(r"custom.relu-relu-\d{8}-\d{6}", folder.name)
    note = "This is a small sample of MNIST; accuracies are lower than with the full data set."
    shown = [
        "Data: 10,000 training and 2,000 test images, the committed sample (verified)",
        note,
        "Network 784-100-10 with custom.relu against relu; engine reference, seed 0",
        "custom.relu: gradient agrees with finite differences",
        "",
        "custom.relu  epoch 1/1  iteration  0/10  loss 0.0000  accuracy 0.0000",
        "custom.relu  epoch 1/1  iteration  5/10  loss 0.0000  accuracy 0.0000",
        "custom.relu  epoch 1/1  test accuracy 0.0000  loss 0.0000  0.000 s",
        "relu         epoch 1/1  iteration  0/10  loss 0.0000  accuracy 0.0000",
        "relu         epoch 1/1  iteration  5/10  loss 0.0000  accuracy 0.0000",
        "relu         epoch 1/1  test accuracy 0.0000  loss 0.0000  0.000 s",
        "",
        "operator     test accuracy  seconds per epoch (median)             ratio",
        "custom.relu         0.0000                       0.000  0.00",
        "relu                0.0000                       0.000              0.00",
        note,
        "",
        f"The run is in runs/{folder.name}/",
        f"The report is runs/{folder.name}/report.html",
    ]
    masked = re.sub(r"\d+\.(\d+)", lambda number: f"0.{'0' * len(number[1])}", run.out)
    assert [line.split() for line in masked.splitlines()] == [line.split() for line in shown]
    assert (folder / "summary.txt").read_text() in run.out
    assert sorted(file.name for file in folder.iterdir()) == [
        *("config.yaml", "metrics.jsonl", "operators.json"),
        *("predictions.safetensors", "report.html", "summary.txt"),
        *("weights-custom.relu.safetensors", "weights-relu.safetensors"),
    ]


def test_a_python_without_the_packages_names_the_one_that_has_them():
    words = [sys.executable, "-I", "-S", str(ROOT / "train.py")]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    message = r"error: .* has no package \w+: run `make train`, or \.venv/bin/python after `make`\n"
    assert re.fullmatch(message, done.stderr)


def test_metrics_are_the_documented_ones_and_the_resolved_configuration_repeats_them(train, images):
    first = train("seed=3", "report=true", "check=true", "costs=true")
    assert f"Data: 60 training and 20 test images, the folder {images} (not verified)" in first.out
    assert "Network 12-5-10 with" in first.out
    of_event = {}
    for m in first.metrics[1:]:
        of_event.setdefault(m["event"], []).append(m)
    costs = of_event.pop("cost")
    assert first.metrics[0].keys() == {"event", "at", "machine", "data", "engines", "sources"}
    assert {event: (list(events[0]), len(events)) for event, events in of_event.items() if event != "checked"} == {
        "end": (["event", "weights"], 1),
        "iteration": (["event", "operator", "epoch", "iteration", "loss", "accuracy"], 12),
        "epoch": (["event", "operator", "epoch", "seconds", "test_accuracy", "test_loss"], 4),
        "parameters": (["event", "operator", "epoch", "steps"], 4),
    }
    assert len(of_event["checked"]) == 1
    operators = ("custom.relu", "relu")
    turns = [(0, "relu"), (0, "custom.relu"), (1, "custom.relu"), (1, "relu")]  # with seed 3
    assert [(m["epoch"], m["operator"], m["iteration"]) for m in of_event["iteration"]] == [
        (*turn, iteration) for turn in turns for iteration in (0, 3, 6)
    ]
    assert all(m["seconds"] > 0 and m["test_accuracy"] * 20 % 1 == 0 for m in of_event["epoch"])
    assert first.metrics[-len(costs) - 1 : -1] == costs
    assert [m["operator"] for m in costs] == list(operators)
    assert {tuple(m) for m in costs} == {("event", "operator", "forward", "backward")}
    again = train("--config", str(first.folder / "config.yaml"), "costs=false", folder="again")
    figures = [[run.column(name, "epoch", "test_loss") for name in operators] for run in (first, again)]
    assert figures[0] == figures[1]
    assert again.column("relu", "cost", "forward") == []


@pytest.mark.parametrize(
    "words",
    [["report=true", "--no-baseline", "train.epochs=1", "train.batch_size=60"], ["baseline=custom.relu"]],
    ids=["no baseline", "baseline"],
)
def test_a_run_without_a_baseline_trains_one_network(train, words):
    run = train(*words)
    assert run.status == 0
    assert {m["operator"] for m in run.metrics[1:-1]} == {"custom.relu"}
    assert run.column("custom.relu", "iteration", "iteration")[0] == 0
    assert "  ratio" not in run.out
    assert " against " not in run.out


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["model.hidden=[]"], "no layer applies custom.relu, because the network has no hidden layers: write"),
        (
            ["model.layers=[{type: dense, units: 5, activation: tanh}]"],
            "no layer applies custom.relu, because each names its own operator: write activation: true in a layer",
        ),
        (
            ["model.layers=[{type: dense, units: 5}]", "model.hidden=[9]"],
            "model.hidden has no effect beside model.layers, the whole network: remove one",
        ),
        (["train.batch_size=61"], "train.batch_size=61 exceeds the number of training images, 60: set a smaller one"),
    ],
)
def test_settings_that_contradict_each_other_or_the_data_are_errors(train, settings, message):
    run = train(*settings)
    assert (run.status, run.folder.exists()) == (2, False)
    assert message in run.err


# --- Errors ---


@pytest.mark.parametrize(
    ("word", "status", "message"),
    [
        ("nonsense", 2, "expected key=value, such as train.epochs=3"),
        ("tran.epochs=3", 2, "did you mean 'train'?"),
        ("model.activation=rulu", 2, "there is no operator 'rulu'"),
        ("model.activation=custom.rulu", 2, "there is no operator 'custom.rulu'"),
        ("baseline=rulu", 2, "there is no operator 'rulu'"),
        ("model.activation=no_such_file.py:swish", 2, "there is no file"),
        ("--config=no-such.yaml", 2, "no-such.yaml: no such file"),
        ("seed=0", 1, "there is no data folder '/no/such/folder'"),
    ],
)
def test_an_error_is_one_line_and_found_before_data_is_read(train, word, status, message):
    run = train("data.source=/no/such/folder", word)
    assert (run.status, run.out) == (status, "")
    assert re.fullmatch(rf"error: .*{re.escape(message)}.*\n", run.err)
    assert not run.folder.exists()


def test_help_names_the_options_and_an_example(capsys):
    with pytest.raises(SystemExit):
        main(["--help"])
    printed = capsys.readouterr().out
    assert all(word in printed for word in ("--config", "--no-baseline", "key=value", "example: python train.py"))


def test_a_run_begins_in_an_empty_folder_and_is_not_written_over(train, tmp_path):
    (tmp_path / "run").mkdir()
    first = train()
    before, again = first.metrics, train("seed=1")
    assert (first.status, again.status) == (0, 1)
    message = "error: run already holds a run; choose another output=, resume it (--resume) or remove it first\n"
    assert again.err == message
    assert again.metrics == before


def test_a_folder_that_is_taken_is_refused_before_data_are_read_or_networks_compiled(train, tmp_path, monkeypatch):
    monkeypatch.setattr("app.run.run.load", Mock(side_effect=AssertionError("data are read")))
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "notes").touch()
    run = train()
    assert (run.status, run.out) == (1, "")
    assert run.err.startswith("error: run is not empty, and not the folder of a run with these settings: it has notes.")


@pytest.mark.parametrize(
    ("folder", "message"),
    [
        ("file", "file is a file, and output= names a folder"),
        ("file/inside", "file/inside cannot be written: Not a directory"),
        ("/proc/inside", "/proc/inside cannot be written: "),
    ],
)
def test_a_folder_that_cannot_be_written_is_an_error_before_training(train, tmp_path, folder, message):
    (tmp_path / "file").touch()
    run = train(folder=folder)
    assert run.status == 1
    assert "epoch 1/2" not in run.out
    assert run.err.startswith(f"error: {message}")


def test_files_of_the_users_own_in_data_folder_are_left_and_named(train, images):
    before = {file: file.read_bytes() for file in images.iterdir()}
    run = train("data.source=auto", f"data.folder={images}")
    assert run.status == 1
    assert "is not MNIST's file of that name" in run.err
    assert f"write data.source={images}" in run.err
    assert {file: file.read_bytes() for file in images.iterdir()} == before
