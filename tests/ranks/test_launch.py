"""What an MPI launcher leaves in the environment, and each rank's share of the cores."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from app.ranks import cores
from app.ranks.current import current, entered, place, using
from app.ranks.launch import Launch, launched
from app.ranks.mpi import meet
from app.ranks.world import DistError, World

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def no_launcher(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PMI_RANK", "PMI_SIZE", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "SLURM_NTASKS"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("variables", "found"),
    [
        ({}, None),
        ({"PMI_RANK": "1", "PMI_SIZE": "4"}, Launch(1, 4)),
        ({"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "2"}, Launch(0, 2)),
        ({"PMIX_RANK": "3", "SLURM_NTASKS": "8"}, Launch(3, 8)),
        ({"PMIX_RANK": "3"}, Launch(3, 0)),
        ({"PMI_RANK": "0", "PMI_SIZE": "1"}, None),
        ({"SLURM_NTASKS": "8"}, None),
        ({"PMI_RANK": "no number"}, None),
    ],
)
def test_launchers_name_a_rank_by_environment_variables(
    variables: dict[str, str], found: Launch | None, monkeypatch: pytest.MonkeyPatch
):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert launched() == found


def test_without_mpi4py_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    with pytest.raises(DistError, match=r"python -m pip install mpi4py mpich, or in a checkout: .*'\.\[mpi\]'$"):
        meet(Launch(0, 2))


def test_a_world_can_replace_the_one_that_is_found():
    with using(None):
        assert entered() is None
        assert place() == (0, 1)
        assert type(current()) is World
    other = World()
    with using(other) as world:
        assert current() is world is other
    assert current() is not other


def test_a_world_of_one_does_nothing():
    world = World()
    assert world.gather("me") == ["me"]
    world.barrier()
    assert world.shared([]) is None
    assert (world.rank, world.size, world.said) == (0, 1, "")


class Pretended:
    """A rank that hears what the others would say."""

    host = "here"

    def __init__(self, *others: Any):
        self._others = others

    def gather(self, value: Any) -> list[Any]:
        return [value, *self._others] if len(value) == 2 else [value]


TWO, EIGHT = ("here", [0, 1]), ("here", list(range(8)))


@pytest.mark.parametrize(
    ("mine", "others", "settings", "said"),
    [
        (range(8), [EIGHT], {}, "4 for BLAS, 4 for Numba"),
        (range(8), [EIGHT, EIGHT], {}, "2 for BLAS, 2 for Numba"),
        (range(8), [("there", list(range(8)))], {}, "8 for BLAS, 8 for Numba"),
        (range(2), [TWO, TWO], {}, "1 for BLAS, 1 for Numba"),
        (range(2), [("here", [2, 3])], {}, "2 for BLAS, 2 for Numba"),  # bound to cores of its own
        (range(2), [TWO], {"OMP_NUM_THREADS": "2"}, "BLAS as OMP_NUM_THREADS=2 says, 1 for Numba"),
    ],
)
def test_ranks_of_a_machine_divide_its_cores_unless_the_user_has(
    mine: range, others: list[Any], settings: dict[str, str], said: str, monkeypatch: pytest.MonkeyPatch
):
    for name in (*cores.BLAS, *cores.NUMBA):
        monkeypatch.setenv(name, "")  # so that what is set is undone
        monkeypatch.delenv(name)
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(cores, "_cores", lambda: set(mine))
    monkeypatch.delitem(sys.modules, "numba", raising=False)  # that of the tests is left alone
    monkeypatch.setattr("threadpoolctl.threadpool_limits", lambda *args, **kwargs: None)
    assert cores.share(Pretended(*others)).partition("each: ")[2] == said


@pytest.mark.parametrize(
    ("words", "trained"),
    [
        (["train.epochs=2"], "--config configs/mpi.yaml train.epochs=2"),
        (["--resume", "runs/NAME"], "--resume runs/NAME"),
    ],
)
def test_the_slurm_script_lets_ranks_share_the_cores_of_each_node(tmp_path: Path, words: list[str], trained: str):
    launcher = tmp_path / ".venv" / "bin" / "mpiexec"
    launcher.parent.mkdir(parents=True)
    launcher.write_text('#!/bin/sh\nprintf \'%s|\' "$*" "$SLURM_CPU_BIND" "${SLURM_CPUS_PER_TASK:-unset}"\n')
    launcher.chmod(0o755)
    slurm = {"SLURM_NTASKS": "4", "SLURM_NTASKS_PER_NODE": "2", "SLURM_CPUS_PER_TASK": "4"}
    settings = {**os.environ, **slurm, "SLURM_SUBMIT_DIR": str(tmp_path)}
    script = ["bash", str(ROOT / "examples" / "train.sbatch"), *words]
    done = subprocess.run(script, env=settings, capture_output=True, text=True, check=True)
    assert done.stdout == f"-n 4 -ppn 2 .venv/bin/python train.py {trained}|none|unset|"
    assert (ROOT / "configs" / "mpi.yaml").exists()
