"""Training on two ranks: they begin alike, stop together, and leave a run that continues on any number of ranks."""

import json
import os
import re
import signal
import sys
import time

import pytest
from launches import ROOT, process_of, run, start, wait
from worlds import using

import app
from app.__main__ import main as opsmith
from app.errors import ConfigError
from app.experiment.train_command import main
from app.ranks.same import framework
from app.ranks.world import World
from app.run.config import Config
from app.run.ranks import ranks_of

pytestmark = pytest.mark.slow

TRAIN = str(ROOT / "train.py")
TINY = [
    "model.activation=relu", "baseline=null", "model.hidden=[5]", "engine=reference", "costs=false", "report=false",
    "train.epochs=40", "train.batch_size=8", "output=run",
]  # fmt: skip


@pytest.fixture(scope="module")
def tiny(images):
    """The words of a run of 40 epochs of 8 iterations."""
    return [*TINY, f"data.source={images}"]


@pytest.fixture(scope="module")
def alone(tiny, tmp_path_factory):
    """The losses of that run on one process."""
    folder = tmp_path_factory.mktemp("alone") / "run"
    assert main([*tiny, f"output={folder}"]) == 0
    return losses(folder)


def losses(folder):
    events = map(json.loads, (folder / "metrics.jsonl").read_text().splitlines())
    return [event["test_loss"] for event in events if event["event"] == "epoch"]


class Pretended(World):
    """Rank 0 of two, of which the other one has these texts instead of ours."""

    size = 2

    def __init__(self, other):
        self._other = other

    def allgather(self, value):
        return [value, value | self._other if isinstance(value, dict) else value]


def test_a_rank_with_another_configuration_is_named(tmp_path, tiny):
    words = [TRAIN, *tiny, "dist.shape=allreduce"]
    ended = run(1, *words, ":", "-n", "1", sys.executable, *words, "train.learning_rate=0.5", folder=tmp_path)
    (message,) = ended.messages
    what = "another configuration than rank 0: learning_rate: 0.5, not learning_rate: 0.01"
    assert message == f"error: rank 1 has {what}. Start all ranks in the same way, on machines of one kind"
    assert (ended.status, ended.out) == (1, "")
    assert not (tmp_path / "run").exists()


def test_a_rank_with_another_copy_of_the_framework_or_of_an_operator_is_named(tiny, tmp_path, monkeypatch, capsys):
    version, *files = framework().splitlines()
    assert version == f"version {app.__version__}"
    assert len(files) == len(list((ROOT / "app").rglob("*.py")))
    other = re.sub(r"(?<=optimizer/kinds\.py ).*", "c0ffee", framework())
    monkeypatch.chdir(tmp_path)
    with using(Pretended({"framework": other})):
        assert main([*tiny, "dist.shape=allreduce"]) == 1
    message = r"rank 1 has another framework than rank 0: optimizer/kinds\.py c0ffee, not .*kinds\.py \w{12}"
    assert re.search(rf"{message}\.", capsys.readouterr().err)
    with using(Pretended({"source of relu": "c0ffee"})):
        assert main([*tiny, "dist.shape=allreduce"]) == 1
    assert "rank 1 has another source of relu than rank 0: c0ffee, not built-in." in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_ranks_that_would_each_do_the_whole_work_are_refused(tiny, monkeypatch, capsys):
    monkeypatch.setenv("PMI_RANK", "0")  # as mpiexec does
    monkeypatch.setenv("PMI_SIZE", "2")
    with pytest.raises(ConfigError, match=r"mpiexec started 2 ranks, but dist\.shape is none, by which each "):
        ranks_of(Config())
    assert opsmith(["compare", "--with", "relu,tanh", *tiny]) == 2
    assert "error: mpiexec started several ranks, each of which would do the whole work" in capsys.readouterr().err


def test_settings_that_ranks_cannot_have_are_errors(tiny, capsys):
    for words, message in (
        (["engine=eager", "dist.shape=allreduce"], "engine=eager is for one process, as what ranks share is a Program"),
        (["train.clip_norm=1", "dist.shape=allreduce"], "train.clip_norm is for one process"),
        (["model.dropout=0.1", "dist.shape=allreduce"], "model.dropout is for one process"),
        (
            ["dist.shape=allreduce"],
            "dist.shape=allreduce is for several processes, and mpiexec did not start this one.",
        ),
    ):
        assert main([*tiny, *words]) == 2
        assert message in capsys.readouterr().err


@pytest.mark.parametrize("number", [pytest.param(signal.SIGKILL, marks=pytest.mark.soak), signal.SIGTERM])
def test_a_run_that_loses_a_rank_resumes_on_another_number(number, tmp_path, tiny, alone, monkeypatch):
    process = start(2, TRAIN, *tiny, "dist.shape=allreduce", folder=tmp_path)
    while not list(tmp_path.glob("run/checkpoint.safetensors")):
        assert process.poll() is None, wait(process)
        time.sleep(0.02)
    os.kill(process_of(1, process), number)
    ended = wait(process)
    assert ended.seconds < 10
    done = len(losses(tmp_path / "run"))
    assert done < 40
    monkeypatch.chdir(tmp_path)
    assert main(["--resume", "run", "dist.shape=none"]) == 0
    together = losses(tmp_path / "run")
    assert len(together) == 40
    assert together == pytest.approx(alone, rel=1e-5)
