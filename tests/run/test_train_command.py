"""`python train.py` as a user types it."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from runs_of_train import without_waits

from app.run import config as config_module
from app.run import yaml_text

pytestmark = pytest.mark.slow

ROOT = Path(config_module.__file__).parents[2]


QUICK = str(ROOT / "configs" / "quick.yaml")


ENDLESS = ("--config", QUICK, "train.epochs=1000000", "engine=reference", "output=run")


# --- A run from its first line to its last ---


def test_quick_on_the_sample_from_the_checkout(type_it, tmp_path):
    words = ("train.epochs=1", "train.batch_size=1000", "train.log_every=5", "engine=reference")
    run = type_it("--config", "configs/quick.yaml", *words, f"output={tmp_path}/run", cwd=ROOT)
    assert run.status == 0
    assert run.err == ""
    note = "This is a small sample of MNIST; accuracies are lower than with the full data set."
    line = r"{}epoch 1/1  iteration {}/10  loss \d\.\d{{4}}  accuracy \d\.\d{{4}}"
    test = r"{}epoch 1/1  test accuracy (\d\.\d{{4}})  test loss \d\.\d{{4}}  \d+\.\d{{3}} s"
    table = r"{}(\d\.\d{{4}}) +\d+\.\d{{3}}  +\d+\.\d\d( \(one epoch\))?"
    expected = [
        r"Data: 10,000 training and 2,000 test images, the committed sample \(verified\)",
        re.escape(note),
        r"Network 784-100-10 with custom\.relu against relu; engine reference, seed 0",
        "custom.relu: gradient agrees with finite differences",
        "",
        *(line.format(r"custom\.relu  ", " 0"), line.format(r"custom\.relu  ", " 5"), test.format(r"custom\.relu  ")),
        *(line.format(r"relu         ", " 0"), line.format(r"relu         ", " 5"), test.format(r"relu         ")),
        "",
        r"operator     test accuracy  seconds per epoch \(median\) +ratio",
        table.format(r"custom\.relu +"),
        table.format(r"relu +"),
        re.escape(note),
        "",
        f"The run is in {tmp_path}/run/",
        f"The report is {tmp_path}/run/report.html",
    ]
    printed = without_waits(run.out).splitlines()
    for shown, pattern in zip(printed, expected, strict=True):
        assert re.fullmatch(pattern, shown), f"{shown!r} is not like {pattern!r}"
    assert (run.folder / "summary.txt").read_text() in without_waits(run.out)


def test_a_python_without_the_packages_is_told_which_one_has_them():
    words = [sys.executable, "-I", "-S", str(ROOT / "train.py")]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert re.fullmatch(
        r"error: .* has no package \w+: run `make train`, or \.venv/bin/python after `make`\n", done.stderr
    )


def test_the_folder_is_by_default_runs_name_time(type_it, tmp_path):
    run = type_it("--config", QUICK, "--no-baseline", "train.epochs=1", "train.batch_size=5000", "engine=reference")
    assert run.status == 0
    (folder,) = (tmp_path / "runs").iterdir()
    assert re.fullmatch(r"quick-\d{8}-\d{6}", folder.name)
    assert f"\nThe run is in runs/{folder.name}/\n" in run.out
    assert run.out.endswith(f"\nThe report is runs/{folder.name}/report.html\n")
    files = {"config.yaml", "metrics.jsonl", "summary.txt", "weights-custom.relu.safetensors"}
    files |= {
        "model.json",
        "model.safetensors",
        "checkpoints",
        "answers.safetensors",
        "operators.json",
        "report.html",
        "curves.png",
        "SHA256SUMS",
    }
    assert {file.name for file in folder.iterdir()} == files


def test_two_operators_on_other_images_than_mnist(train, images):
    run = train("seed=3")
    assert f"Data: 60 training and 20 test images, the folder {images} (not verified)" in run.out
    assert "Network 12-5-10 with" in run.out
    assert "sample" not in run.out
    order = [(m["epoch"], m["operator"]) for m in run.metrics if m["event"] == "epoch"]
    assert order == [(0, "custom.relu"), (0, "relu"), (1, "custom.relu"), (1, "relu")]
    for event, keys in {"iteration": ("loss", "accuracy"), "epoch": ("test_loss", "test_accuracy")}.items():
        for key in keys:  # equal operators give equal numbers, bit for bit
            assert run.column("custom.relu", event, key) == run.column("relu", event, key)
    resolved = yaml_text.parse((run.folder / "config.yaml").read_text(), "").data
    assert resolved["seed"] == 3
    assert resolved["train"] | {"epochs": 2, "batch_size": 8, "log_every": 3} == resolved["train"]
    assert resolved["model"]["hidden"] == [5]
    assert (run.folder / "summary.txt").read_text() in run.out


def test_the_resolved_configuration_repeats_the_run(train):
    first = train("seed=3", folder="first")
    again = train("--config", str(first.folder / "config.yaml"), folder="again")
    assert [strip_seconds(m) for m in again.metrics] == [strip_seconds(m) for m in first.metrics]


def strip_seconds(event):
    return {key: value for key, value in event.items() if key not in ("seconds", "at")}


def test_metrics_are_those_that_were_promised(train):
    run = train("train.epochs=1", "report=true", "check=true")  # 60 images in batches of 8: iterations 0 to 7
    keys = ["event", "operator", "epoch", "iteration", "loss", "accuracy"]
    iterations = [m for m in run.metrics if m["event"] == "iteration"]
    assert [list(m) for m in iterations] == [keys] * 6
    assert [(m["operator"], m["epoch"], m["iteration"]) for m in iterations] == [
        (operator, 0, iteration) for operator in ("custom.relu", "relu") for iteration in (0, 3, 6)
    ]
    epochs = [m for m in run.metrics if m["event"] == "epoch"]
    keys = ["event", "operator", "epoch", "seconds", "test_accuracy", "test_loss"]
    assert [list(m) for m in epochs] == [keys] * 2
    assert all(m["seconds"] > 0 and m["test_accuracy"] * 20 % 1 == 0 for m in epochs)
    activations = [m for m in run.metrics if m["event"] == "activations"]
    keys = ["event", "operator", "epoch", "layer", "mean", "zeros", "dead"]
    assert [list(m) for m in activations] == [keys] * 2
    assert run.metrics[0].keys() == {"event", "at", "machine", "data", "engines"}
    assert len(run.metrics) == 12


@pytest.mark.parametrize("words", [["seed=1", "--no-baseline", "train.epochs=1"], ["baseline=custom.relu"]])
def test_one_network_alone(train, words):
    run = train(*words)
    assert run.status == 0
    assert {m["operator"] for m in run.metrics[1:]} == {"custom.relu"}
    assert "  ratio" not in run.out
    assert " against " not in run.out


def test_no_hidden_layer_leaves_nothing_to_compare_and_says_so(train):
    run = train("model.hidden=[]")
    assert run.status == 0
    assert "Network 12-10 with" in run.out
    assert "Note: the activation is not used, because the network has no hidden layers." in run.out


@pytest.mark.parametrize("words", [["train.batch_size=99999999999", "train.log_every=7"], ["train.log_every=1000000"]])
def test_an_epoch_of_one_batch_and_reports_rarer_than_an_epoch(train, words):
    assert train(*words, "--no-baseline").column("custom.relu", "iteration", "iteration") == [0, 0]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_loss_that_is_no_number_is_null_in_the_metrics_and_said(train):
    run = train("train.learning_rate=1e38", "train.on_nonfinite=ignore", "--no-baseline")
    assert run.column("custom.relu", "epoch", "test_loss")[-1] is None  # JSON has no NaN
    assert "custom.relu diverged: the loss is NaN or infinite (chance level is 2.303)." in run.out


# --- Mistakes ---

MISTAKES = {
    "nonsense": "expected key=value, such as train.epochs=3",
    "train.epochs=many": "train.epochs: found 'many' (text)",
    "tran.epochs=3": "did you mean 'train'?",
    "model.activation=rulu": "there is no operator 'rulu'",
    "model.activation=custom.rulu": "there is no operator 'custom.rulu'",
    "baseline=rulu": "there is no operator 'rulu'",
    "model.activation=no_such_file.py:swish": "there is no file",
    "--config=no-such.yaml": "no-such.yaml: no such file",
}


@pytest.mark.parametrize("word", MISTAKES)
def test_a_mistake_is_one_line_and_status_2(train, word):
    run = train(word)
    assert run.status == 2
    assert run.out == ""
    assert run.err.startswith("error: ")
    assert MISTAKES[word] in run.err
    assert run.err.count("\n") == 1
    assert not run.folder.exists()


def test_an_option_that_does_not_exist_is_status_2(type_it):
    run = type_it("--bogus")
    assert run.status == 2
    assert "unrecognized arguments: --bogus" in run.err


def test_help_names_the_options_and_an_example(type_it):
    run = type_it("--help")
    assert run.status == 0
    assert all(word in run.out for word in ("--config", "--no-baseline", "key=value", "example: python train.py"))


def test_data_that_cannot_be_had_is_status_1(train):
    run = train("data.source=/no/such/folder")
    assert (run.status, run.out) == (1, "")
    assert run.err.startswith("error: there is no data folder '/no/such/folder'")


def test_a_mistyped_operator_is_found_before_any_data_is_fetched(train):
    run = train("data.source=/no/such/folder", "model.activation=rulu")
    assert (run.status, run.err[:24]) == (2, "error: there is no opera")


def test_a_network_too_large_for_the_machine_is_status_1(train):
    for engine in ("reference", "eager"):
        run = train("model.hidden=[1000000000000]", f"engine={engine}")
        assert run.status == 1
        assert "Unable to allocate" in run.err


def test_a_run_is_not_written_over(train):
    first = train().metrics
    run = train()
    assert run.status == 1
    assert (
        run.err == "error: run already holds a run; choose another output=, resume it (--resume) or remove it first\n"
    )
    assert run.metrics == first


def test_an_empty_folder_that_is_there_may_be_used(train, tmp_path):
    (tmp_path / "run").mkdir()
    assert train().status == 0


@pytest.mark.parametrize(
    ("folder", "message"),
    [
        ("file", "file is a file, and output= names a folder"),
        ("file/inside", "file/inside cannot be written: Not a directory"),
        ("/proc/inside", "/proc/inside cannot be written: "),
    ],
)
def test_a_folder_that_cannot_be_written_is_status_1(train, tmp_path, folder, message):
    (tmp_path / "file").touch()
    run = train(folder=folder)
    assert run.status == 1
    assert "epoch 1/2" not in run.out
    assert run.err.startswith(f"error: {message}")


def test_files_of_the_users_own_in_data_folder_are_left_and_told(train, images):
    before = {file: file.read_bytes() for file in images.iterdir()}
    run = train("data.source=auto", f"data.folder={images}")
    assert run.status == 1
    assert "is not MNIST's file of that name" in run.err
    assert f"write data.source={images}" in run.err
    assert {file: file.read_bytes() for file in images.iterdir()} == before
