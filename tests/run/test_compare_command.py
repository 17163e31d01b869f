"""`opsmith compare` as a user types it, and trainings side by side, whose figures are the same."""

import json
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import launches
import numpy as np
import pytest
from runs_of_train import TINY, Run, without_waits
from safetensors.numpy import load_file

from app.__main__ import main
from app.errors import OperatorError
from app.experiment.api import compare as api_compare
from app.experiment.train_command import main as train
from app.run import run as run_module
from app.run import yaml_text
from app.run.config import load_compare_config
from app.run.console import Console
from app.run.workers import Processes, run_all

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
        status = main(["compare", f"data.source={images}", *QUICK, *named, *words])
        printed = capsys.readouterr()
        assert "Traceback" not in printed.err
        return Run(status, printed.out, printed.err, tmp_path / "run")

    return run


def data(run):
    return json.loads((run.folder / "comparison.json").read_text())


def test_a_comparison_prints_tables_and_verdicts_and_keeps_metrics_weights_and_hashes(compare):
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
        r"The run is in run/",
        r"The report is run/report\.html",
    ]
    for shown, pattern in zip(without_waits(done.out).splitlines(), expected, strict=True):
        assert re.fullmatch(pattern, shown), f"{shown!r} is not like {pattern!r}"
    assert (done.folder / "summary.txt").read_text() in without_waits(done.out)

    turns = [(3, "relu"), (3, "tanh"), (3, "custom.relu"), (4, "tanh"), (4, "custom.relu"), (4, "relu")]
    assert [(m["seed"], m["operator"]) for m in done.metrics if m["event"] == "epoch"] == turns
    assert all("seed" in m for m in done.metrics if m["event"] == "iteration")
    assert {m["operator"] for m in done.metrics if m["event"] == "cost"} == set(names)
    assert (data(done)["seeds"], data(done)["operators"]) == ([3, 4], names)
    resolved = yaml_text.parse((done.folder / "config.yaml").read_text(), "").data
    assert (resolved["baseline"], resolved["model"]["activation"]) == ("relu", "tanh")
    weights = {file.name for file in done.folder.glob("weights-*")}
    assert weights == {f"weights-{name}.safetensors" for name in names}


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


WORKERS = "--workers takes a number of processes of at least 1, found"


@pytest.mark.parametrize(
    ("operators", "word", "told"),
    [
        ("relu", "seed=0", "only relu is named; a comparison needs two or more operators: --with relu,custom.relu"),
        (None, "baseline=null", "only custom.relu is named; a comparison needs two or more"),
        ("", "seed=0", "no operator is named; a comparison needs two or more operators: --with relu,custom.relu"),
        ("relu,tanh,relu", "seed=0", "relu is named twice; a comparison needs different operators"),
        ("relu,rulu", "seed=0", "there is no operator 'rulu'; did you mean 'relu'?"),
        ("relu,no.py:swish", "seed=0", "no.py:swish: there is no file"),
        ("relu,ops.py:swish", "seed=0", "ops.py has no 'swish'"),
        ("relu,tanh", "dist.shape=allreduce", "a comparison runs in one process, but dist.shape=allreduce is for sev"),
        ("relu,tanh", "--seeds=0", "--seeds must be at least 1, found 0"),
        *(("relu,tanh", f"--workers={count}", f"{WORKERS} '{count}'") for count in ("0", "-1", "many", "1.5", "")),
    ],
)
def test_wrong_arguments_are_errors_before_data_is_read(compare, operators, word, told):
    done = compare(operators, word, "data.source=/no/such/folder")
    assert (done.status, done.out) == (2, "")
    assert done.err.startswith(f"error: {told}")
    assert not done.folder.exists()


def test_an_operator_that_raises_in_training_is_named_and_the_metrics_are_kept(compare):
    done = compare("relu,ops.py:raises_later", "--seeds", "2", "train.epochs=50")
    assert done.status == 1
    assert all(words in done.err for words in ("ops.py", "raises_later", "RuntimeError: enough of it"))
    assert "No seed finished, so there is nothing to compare." in done.out
    (*turns, last) = [m["operator"] for m in done.metrics if m["event"] == "epoch"]
    assert turns == (["relu", "ops.py:raises_later", "ops.py:raises_later", "relu"] * len(turns))[: len(turns)] != []
    assert last == "relu"
    assert data(done)["seeds"] == []


def test_an_interrupted_comparison_keeps_the_finished_seeds(compare, monkeypatch):
    start_training = Console.start_training

    def stop(self, *told):
        if told[3].startswith("Seed 2"):
            raise KeyboardInterrupt
        start_training(self, *told)

    monkeypatch.setattr(Console, "start_training", stop)
    done = compare("relu,tanh", "--seeds", "4", "costs=true")
    assert (done.status, done.err) == (130, "interrupted\n")
    assert "The run was stopped early, after 2 of 4 seeds." in done.out
    assert data(done)["seeds"] == [0, 1]
    assert not [m for m in done.metrics if m["event"] == "cost"]


def test_an_operator_of_a_layer_that_was_typed_is_run_beside_those_to_compare(compare, tmp_path):
    (tmp_path / "mine.py").write_text("def double(x):\n    return x * 2.0\n")
    layers = "model.layers=[{type: dense, units: 4, activation: 'mine.py:double'}, {type: dense, units: 4}]"
    done = compare("relu,tanh", "--seeds", "1", layers)
    assert (done.status, done.err) == (0, "")


# --- Trainings side by side ---


def figures(folder):
    """All of a comparison that is not a time."""
    found = json.loads((folder / "comparison.json").read_text())
    for result in found["results"].values():
        del result["seconds_per_epoch"]
    found["differences"] = [{key: d[key] for key in ("operator", "identical")} for d in found["differences"]]
    del found["verdicts"]
    kept = [m for m in Run(0, "", "", folder).metrics if m["event"] in ("iteration", "epoch", "tested")]
    found["events"] = sorted(json.dumps({k: v for k, v in m.items() if k != "seconds"}) for m in kept)
    found["weights"] = {file.name: file.read_bytes() for file in sorted(folder.glob("weights-*"))}
    return found


@pytest.fixture(scope="module")
def words(images):
    """A comparison of two operators with two seeds."""
    return [f"data.source={images}", *QUICK, "operators=[custom.tap, tanh]", "seeds=2", "data.validation=10"]


def compared(words, folder, executor):
    config = load_compare_config(ROOT / "configs" / "quick.yaml", [*words, f"output={folder}"])
    api_compare(config, "test", Console(lines=False), executor=executor)
    return figures(folder)


@pytest.fixture(scope="module")
def expected(words, tmp_path_factory):
    """The figures of one worker, in this process."""
    with ThreadPoolExecutor(1) as executor:
        return compared(words, tmp_path_factory.mktemp("one") / "run", executor)


def test_processes_give_the_same_figures(words, expected, tmp_path):
    with Processes(2) as executor:
        assert compared(words, tmp_path / "run", executor) == expected
    assert expected["seeds"] == [0, 1]
    assert len(expected["weights"]) == 2
    assert len(expected["results"]["tanh"]["test_accuracies"]) == 2


def test_speeds_of_trainings_that_ran_at_the_same_time_are_not_compared(words, expected, tmp_path):
    with Processes(2) as executor:
        compared([*words, "train.epochs=3"], tmp_path / "run", executor)
    run = Run(0, "", "", tmp_path / "run")
    found = json.loads((tmp_path / "run" / "comparison.json").read_text())
    for name in found["results"]:
        assert len(set(run.column(name, "epoch", "seconds"))) == 6  # each as it was measured
    assert [result["seconds_per_epoch"] for result in found["results"].values()] == [None, None]
    assert [difference["speed"] for difference in found["differences"]] == [None]
    assert not [sentence for sentence in found["verdicts"] if "faster" in sentence or "differ in speed" in sentence]
    assert "Speeds are not compared, because trainings ran at the same time." in found["verdicts"]
    assert (tmp_path / "run" / "summary.txt").read_text().count("not compared") == 5  # a table and a sentence


def test_workers_train_networks_with_image_layers(words, tmp_path):
    layers = "model.layers=[{type: conv, channels: 2, kernel: 2}, {type: max_pool, size: 2, stride: 1}]"
    with ThreadPoolExecutor(1) as executor:
        kept = compared([*words, layers], tmp_path / "workers", executor)["weights"]
        assert compared([*words, layers], tmp_path / "alone", None)["weights"].keys() == kept.keys()
    for name in kept:
        alone, other = (load_file(tmp_path / folder / name) for folder in ("alone", "workers"))
        for path, array in alone.items():
            np.testing.assert_allclose(other[path], array, rtol=1e-4, atol=1e-5)


def test_workers_that_remain_read_a_data_set_again_that_has_changed(words, images, tmp_path):
    shutil.copytree(images, tmp_path / "data")
    words = [*words, f"data.source={tmp_path / 'data'}"]
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
from app.experiment.api import compare
from app.run.config import load_compare_config

if __name__ == "__main__":
    with MPIPoolExecutor() as executor:
        compare(load_compare_config(sys.argv[1], sys.argv[2:]), "test", executor=executor)
"""


def test_ranks_of_mpi_give_the_same_figures(words, expected, tmp_path):
    file = launches.program(tmp_path, ON_RANKS)
    words = [str(ROOT / "configs" / "quick.yaml"), *words, "output=run"]
    ended = launches.run(3, "-m", "mpi4py.futures", file, *words, folder=tmp_path)
    assert ended.status == 0, ended.err
    assert figures(tmp_path / "run") == expected


@pytest.mark.soak
def test_a_cluster_of_dask_gives_the_same_figures(words, expected, tmp_path):
    distributed = pytest.importorskip("distributed", reason="Dask is a development dependency")
    cluster = distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None)
    with cluster, distributed.Client(cluster) as client:
        assert compared(words, tmp_path / "run", client.get_executor()) == expected


# --- Workers that are lost ---


def run_jobs(executor, work, jobs):
    """The results, and the jobs that were lost, each with whether it is tried again."""
    done, lost = [], []

    def lose(job, error, again):
        lost.append((job, again))

    run_all(executor, work, jobs, lambda job, result: done.append(result), lose, lambda: None)
    return sorted(done), sorted(lost)


def test_a_worker_that_dies_costs_its_own_training(tmp_path):
    always = "__import__('os')._exit(3)"
    marker = str(tmp_path / "died")
    once = f"'once' if __import__('os').path.exists({marker!r}) else (open({marker!r}, 'w').close(), {always})"
    with Processes(2) as executor:
        done, lost = run_jobs(executor, eval, ["'a'", once, "'b'", always, "'c'"])
    assert done == ["a", "b", "c", "once"]
    assert lost == sorted([(always, False), (always, True), (once, True)])


def test_an_error_of_the_framework_ends_all_trainings():
    def failing(job):
        raise OperatorError("no") if job == "ours" else RuntimeError("lost")

    with ThreadPoolExecutor(1) as executor, pytest.raises(OperatorError, match="no"):
        run_jobs(executor, failing, ["ours", "other"])


def test_a_seed_that_was_lost_twice_counts_for_no_operator(words, tmp_path, monkeypatch, capsys):
    real = run_module.train_one

    def sometimes(job):
        if (job.operator, job.config.seed) == ("tanh", 0):
            raise RuntimeError("the machine is gone")
        return real(job)

    monkeypatch.setattr(run_module, "train_one", sometimes)
    with ThreadPoolExecutor(1) as executor:
        found = compared(words, tmp_path / "run", executor)
    assert found["seeds"] == [1]
    told = "note: the training of tanh with seed 0 failed (RuntimeError: the machine is gone); "
    err = capsys.readouterr().err
    assert f"{told}trying again\n" in err
    assert f"{told}this was the second time, so seed 0 is left out for all operators\n" in err


PLANTED = ("threading", "struct", "pickle", "subprocess", "signal", "numpy", "json", "random", "socket", "statistics")


def test_workers_import_no_module_from_the_working_folder(tmp_path, images):
    for name in PLANTED:
        (tmp_path / f"{name}.py").write_text("open('was_run', 'a').close()\nraise SystemExit(7)\n")
    program = (
        "import sys; sys.path[:] = [p for p in sys.path if p]\n"
        "from app.run.workers import Processes\n"
        "with Processes(2) as executor: print(executor.submit(eval, '__import__(\"os\").getcwd()').result())"
    )
    command = [sys.executable, "-I", "-c", f"import sys; sys.path.append({str(ROOT)!r})\n{program}"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{tmp_path}\n", "")
    assert not (tmp_path / "was_run").exists()


FAILING = """
import app
from numba import njit

@njit
def shout(x):
    print("native")
    return x

@app.custom_op
def failing(x):
    shout(1)
    print("python", flush=True)
    if FAIL and x.shape[0] == 8:
        raise ValueError("enough of it")
    return x

@failing.backward
def _(dy):
    return dy
"""


def test_an_error_of_an_operator_in_a_worker_ends_the_comparison_and_is_printed_as_itself(type_it, images, tmp_path):
    (tmp_path / "ops.py").write_text(f"FAIL = True\n{FAILING}")
    words = ("--with", "relu,ops.py:failing", "--seeds", "2", "--workers", "2", "check=false", "report=false")
    command = [sys.executable, "-m", "app", "compare", *words, f"data.source={images}", *TINY]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "its function failing raised ValueError: enough of it (ops.py:16)" in done.stderr
    assert "PicklingError" not in done.stdout + done.stderr
    assert "trying again" not in done.stdout + done.stderr


@pytest.mark.parametrize("workers", ["1", "2"])
def test_json_holds_nothing_that_operators_print(images, tmp_path, workers):
    (tmp_path / "ops.py").write_text(f"FAIL = False\n{FAILING}")
    words = ("--with", "relu,ops.py:failing", "--seeds", "1", "--workers", workers, "--json", "report=false")
    command = [sys.executable, "-m", "app", "compare", *words, f"data.source={images}", *TINY]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert [json.loads(line)["event"] for line in done.stdout.splitlines()][-1] == "comparison"
    assert "native" in done.stderr
    assert "python" in done.stderr


def test_a_comparison_that_compared_nothing_ends_with_status_1(compare, monkeypatch):
    def lost(job):
        raise RuntimeError("the machine is gone")

    monkeypatch.setattr(run_module, "train_one", lost)
    monkeypatch.setattr("app.run.workers.Processes", lambda count: ThreadPoolExecutor(count))
    done = compare("relu,tanh", "--seeds", "1", "--workers", "2")
    assert "No seed finished, so there is nothing to compare." in done.out
    assert done.status == 1
