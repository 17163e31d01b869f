"""Training on two ranks: they begin alike, stop together, and leave a run that goes on with any number of ranks."""

import json
import os
import re
import signal
import sys
import time

import pytest
from launches import ROOT, process_of, run, start, wait

import app
from app.experiment.train_command import main
from app.ranks.current import using
from app.ranks.same import compare, digest, framework
from app.ranks.world import DistError, World

pytestmark = pytest.mark.slow

TRAIN = str(ROOT / "train.py")
TINY = [
    "model.activation=relu", "baseline=null", "model.hidden=[5]", "engine=reference", "costs=false", "report=false",
    "train.epochs=40", "train.batch_size=8", "train.checkpoint_every=2", "output=run",
]  # fmt: skip


@pytest.fixture
def tiny(images):
    """The words of a run of 40 epochs of 8 iterations."""
    return [*TINY, f"data.source={images}"]


@pytest.fixture(scope="module")
def alone(images, tmp_path_factory):
    """The losses of that run on one process."""
    folder = tmp_path_factory.mktemp("alone") / "run"
    assert main([*TINY, f"data.source={images}", f"output={folder}"]) == 0
    return losses(folder)


def losses(folder):
    events = map(json.loads, (folder / "metrics.jsonl").read_text().splitlines())
    return [event["test_loss"] for event in events if event["event"] == "epoch"]


SAME = {"configuration": "seed: 0\ntrain:\n  epochs: 5", "source of my_ops.py:swish": "a1b2"}


class Pretended(World):
    """Rank 0 of two, of which the other says what it is told to."""

    size = 2

    def __init__(self, other, ours=SAME):
        self._other, self._ours = other, ours

    def gather(self, value):
        if isinstance(value, dict):
            return [value, value | {name: digest(text) for name, text in self._other.items()}]
        return [value, next(text for name, text in self._other.items() if text != self._ours[name])]


def test_what_ranks_work_on_is_compared():
    compare(Pretended(SAME), SAME)
    with pytest.raises(DistError, match=r"^rank 1 was started with another configuration than rank 0: epochs: 9, not "):
        compare(Pretended({**SAME, "configuration": "seed: 0\ntrain:\n  epochs: 9"}), SAME)
    with pytest.raises(DistError, match=r"another source of my_ops.py:swish than rank 0: c3d4, not a1b2"):
        compare(Pretended({**SAME, "source of my_ops.py:swish": "c3d4"}), SAME)


def test_a_rank_with_another_configuration_is_named(tmp_path, tiny):
    words = [TRAIN, *tiny, "dist.shape=allreduce"]
    ended = run(1, *words, ":", "-n", "1", sys.executable, *words, "train.learning_rate=0.5", folder=tmp_path)
    (message,) = ended.messages
    assert re.fullmatch(
        r"error: rank 1 of 2 \(host \S+, process \d+\) was started with another configuration than rank 0: "
        r"learning_rate: 0.5, not learning_rate: 0.01. Start all ranks in the same way",
        message,
    )
    assert (ended.status, ended.out) == (1, "")
    assert not (tmp_path / "run").exists()


def test_a_rank_with_another_copy_of_the_framework_is_named(tiny, tmp_path, monkeypatch, capsys):
    other = re.sub(r"(?<=optimizer/kinds\.py ).*", "c0ffee", framework())
    monkeypatch.chdir(tmp_path)
    with using(Pretended({"framework": other}, {"framework": framework()})):
        assert main([*tiny, "dist.shape=allreduce"]) == 1
    told = (
        r"rank 1 was started with another framework than rank 0: optimizer/kinds\.py c0ffee, not .*kinds\.py \w{12}\."
    )
    assert re.search(told, capsys.readouterr().err)
    assert not (tmp_path / "run").exists()


def test_the_framework_is_known_by_its_version_and_all_its_files():
    version, *files = framework().splitlines()
    assert version == f"version {app.__version__}"
    assert len(files) == len(list((ROOT / "app").rglob("*.py")))


def test_ranks_without_a_shape_are_refused(tiny, capsys):
    with using(Pretended({})):
        assert main(tiny) == 2
    assert capsys.readouterr().err == (
        "error: mpiexec started 2 ranks, but dist.shape is none, by which each would do the whole work: set "
        "dist.shape=allreduce, or start one process\n"
    )


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_run_that_loses_a_rank_goes_on_with_another_number(number, tmp_path, tiny, alone, monkeypatch):
    process = start(2, TRAIN, *tiny, "dist.shape=allreduce", folder=tmp_path)
    while not list(tmp_path.glob("run/checkpoints/*.safetensors")):
        assert process.poll() is None, wait(process)
        time.sleep(0.02)
    os.kill(process_of(1, process), number)
    ended = wait(process)
    assert ended.seconds < 10
    if number == signal.SIGKILL:
        (processes,) = re.findall(r"processes ([\d ]+);", ended.out)
        assert f"PID {processes.split()[1]} RUNNING AT" in ended.out + ended.err
    else:  # asked politely, all stop at the same iteration, and keep what they have
        assert ended.messages[-1] == "terminated"
        assert "Resume with: mpiexec -n 2 python train.py --resume run" in ended.out
    done = len(losses(tmp_path / "run"))
    assert done < 40
    monkeypatch.chdir(tmp_path)
    assert main(["--resume", "run", "dist.shape=none"]) == 0
    together = losses(tmp_path / "run")
    assert len(together) == 40
    assert together == pytest.approx(alone, rel=1e-5)


def test_the_eager_engine_has_no_parameter_server(tiny, capsys):
    assert main([*tiny, "engine=eager", "dist.shape=pserver"]) == 2
    assert "engine=eager adds up gradients at every rank, and has no dist.shape=pserver" in capsys.readouterr().err
