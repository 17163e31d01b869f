"""Whatever happens to one rank, all end within ten seconds, with one message.

More that can happen, on four ranks, is in tests/soak/.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from launches import ROOT, main, program, run
from rank_failures import FAILURES, check, fail

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", ["is killed", "raises an error that nobody expected"])
def test_all_end_when_a_rank(name: str, tmp_path: Path):
    what = f"ending._FOR_RANK_0 = ending._FOR_EACH_RANK = 0.1; {FAILURES[name][0]}"  # rank 0 is well
    ended = fail(tmp_path, 2, what)
    check(ended, name)


def test_a_message_of_all_ranks_is_printed_once(tmp_path: Path):
    failing = ["import argparse", "argparse.ArgumentParser('train').parse_args(['--confg'])"]
    ended = run(2, program(tmp_path, main(["world.allgather(None)", *failing])), folder=tmp_path)
    messages = ["usage: train [-h]", "train: error: unrecognized arguments: --confg"]
    assert (ended.status, ended.messages) == (2, messages)


def test_a_launcher_of_another_mpi_is_an_error(tmp_path: Path):
    pretended = {**os.environ, "PYTHONPATH": str(ROOT), "OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "2"}
    words = [sys.executable, program(tmp_path, main(["pass"]))]
    done = subprocess.run(words, env=pretended, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("error: the launcher started 2 ranks, but each of them meets 1: mpi4py uses MPICH")
