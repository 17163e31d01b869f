"""What an MPI launcher leaves in the environment, and each rank's share of the cores."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from app.ranks import cores
from app.ranks.launch import Launch, launched
from app.ranks.world import DistError, connect

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def no_launcher(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PMI_RANK", "PMI_SIZE", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "SLURM_NTASKS"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("variables", "expected"),
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
    variables: dict[str, str], expected: Launch | None, monkeypatch: pytest.MonkeyPatch
):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert launched() == expected


def test_without_mpi4py_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PMI_RANK", "0")
    monkeypatch.setenv("PMI_SIZE", "2")
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    with pytest.raises(DistError, match=r"python -m pip install mpi4py mpich, or in a checkout: .*'\.\[mpi\]'$"):
        connect()


def test_a_single_process_is_a_world_of_one():
    world = connect()
    assert world.allgather("me") == ["me"]
    assert (world.rank, world.size, world.description) == (0, 1, "")


@pytest.mark.parametrize(
    ("ranks", "settings", "limits"),
    [
        ([range(8), range(8)], {}, "4 for BLAS, 4 for Numba"),
        ([range(8), range(8), range(8)], {}, "2 for BLAS, 2 for Numba"),
        ([range(8)], {}, "8 for BLAS, 8 for Numba"),
        ([range(2), range(2), range(2)], {}, "1 for BLAS, 1 for Numba"),
        ([range(2), range(2, 4)], {}, "2 for BLAS, 2 for Numba"),  # bound to cores of their own
        ([range(2), range(2)], {"OMP_NUM_THREADS": "2"}, "BLAS as OMP_NUM_THREADS=2 says, 1 for Numba"),
    ],
)
def test_ranks_of_a_host_divide_its_cores_unless_the_user_has(
    ranks: list[range], settings: dict[str, str], limits: str, monkeypatch: pytest.MonkeyPatch
):
    for name in (*cores.BLAS, *cores.NUMBA):
        monkeypatch.setenv(name, "")  # so that what is set is undone
        monkeypatch.delenv(name)
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(cores, "usable", lambda: set(ranks[0]))
    monkeypatch.delitem(sys.modules, "numba", raising=False)  # that of the tests is left alone
    monkeypatch.setattr("threadpoolctl.threadpool_limits", lambda *args, **kwargs: None)
    assert cores.limit(cores.share([set(usable) for usable in ranks])) == limits


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
