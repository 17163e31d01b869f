"""Comparisons whose trainings run side by side: the same figures whatever runs them, and a lost worker costs little."""

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from runs_of_train import Run

from app.errors import OperatorError
from app.experiment.api import compare
from app.run import run as run_module
from app.run.config import load_compare_config
from app.run.console import Quiet
from app.run.workers import Processes, run_all

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
QUICK = (
    *("data.source=sample", "engine=reference", "model.hidden=[4]", "costs=false", "report=false", "train.epochs=1"),
    *("train.batch_size=500", "operators=[custom.tap, tanh]", "seeds=2", "data.validation=500"),
)


def figures(folder):
    """All of a comparison that is not a time."""
    found = json.loads((folder / "comparison.json").read_text())
    for result in found["results"].values():
        del result["seconds_per_epoch"]
    found["differences"] = [{key: d[key] for key in ("operator", "identical")} for d in found["differences"]]
    del found["verdicts"]
    kept = [m for m in Run(0, "", "", folder).metrics if m["event"] in ("iteration", "epoch", "tested", "activations")]
    found["events"] = sorted(json.dumps({k: v for k, v in m.items() if k != "seconds"}) for m in kept)
    found["weights"] = {file.name: file.read_bytes() for file in sorted(folder.glob("weights-*"))}
    return found


def compared(folder, executor):
    config = load_compare_config(ROOT / "configs" / "quick.yaml", [*QUICK, f"output={folder}"])
    compare(config, "test", Quiet(), executor=executor)
    return figures(folder)


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """The figures of one worker, in this process."""
    with ThreadPoolExecutor(1) as executor:
        return compared(tmp_path_factory.mktemp("one") / "run", executor)


def test_processes_give_the_same_figures(expected, tmp_path):
    with Processes(2) as executor:
        assert compared(tmp_path / "run", executor) == expected
    assert expected["seeds"] == [0, 1]
    assert len(expected["weights"]) == 2
    assert len(expected["results"]["tanh"]["test_accuracies"]) == 2
    # times are measured one at a time, in this process
    for name, result in json.loads((tmp_path / "run" / "comparison.json").read_text())["results"].items():
        seconds = Run(0, "", "", tmp_path / "run").column(name, "epoch", "seconds")
        assert len(seconds) == 2
        assert result["seconds_per_epoch"] == pytest.approx(sum(seconds) / 2)


def test_ranks_of_mpi_give_the_same_figures(expected, tmp_path):
    mpiexec = Path(sys.executable).with_name("mpiexec")
    command = [mpiexec, "-n", "2", sys.executable, "-m", "app", "compare", "--workers", "mpi"]
    words = ["--config", "configs/quick.yaml", *QUICK, f"output={tmp_path / 'run'}"]
    subprocess.run([*command, *words], cwd=ROOT, check=True, capture_output=True, timeout=100)
    assert figures(tmp_path / "run") == expected


@pytest.mark.soak
def test_a_cluster_of_dask_gives_the_same_figures(expected, tmp_path):
    distributed = pytest.importorskip("distributed", reason="Dask is a development dependency")
    cluster = distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None)
    with cluster, distributed.Client(cluster) as client:
        assert compared(tmp_path / "run", client.get_executor()) == expected


# --- Workers that are lost ---


def run(executor, work, jobs):
    done, lost = set(), []

    def keep(job, result):
        done.add(result)

    def lose(job, error, again):
        lost.append((job, again))

    run_all(executor, work, jobs, keep, lose, lambda: None)
    return done, lost


def test_a_worker_that_dies_costs_its_own_training(tmp_path):
    always = "__import__('os')._exit(3)"
    marker = str(tmp_path / "died")
    once = f"'once' if __import__('os').path.exists({marker!r}) else (open({marker!r}, 'w').close(), {always})"
    with Processes(2) as executor:
        done, lost = run(executor, eval, ["'a'", once, "'b'", always, "'c'"])
    assert done == {"a", "once", "b", "c"}
    assert sorted(lost) == sorted([(always, False), (always, True), (once, True)])


def test_an_error_of_the_framework_ends_all_trainings():
    def failing(job):
        raise OperatorError("no") if job == "ours" else RuntimeError("lost")

    with ThreadPoolExecutor(1) as executor, pytest.raises(OperatorError, match="no"):
        run(executor, failing, ["ours", "other"])


def test_a_seed_that_was_lost_twice_counts_for_no_operator(tmp_path, monkeypatch, capsys):
    real = run_module.train_one

    def sometimes(job):
        if (job.operator, job.config.seed) == ("tanh", 0):
            raise RuntimeError("the machine is gone")
        return real(job)

    monkeypatch.setattr(run_module, "train_one", sometimes)
    with ThreadPoolExecutor(1) as executor:
        found = compared(tmp_path / "run", executor)
    assert found["seeds"] == [1]
    told = "note: the training of tanh with seed 0 failed (RuntimeError: the machine is gone); "
    err = capsys.readouterr().err
    assert f"{told}trying again\n" in err
    assert f"{told}this was the second time, so seed 0 is left out for all operators\n" in err
