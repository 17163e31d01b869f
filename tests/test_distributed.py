"""One process, asked about others."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import app
from app import distributed, nn
from app.errors import AppError

ROOT = Path(__file__).parents[1]


def test_a_single_process_has_rank_0_of_1():
    distributed.init_parallel_env()
    assert (distributed.get_rank(), distributed.get_world_size()) == (0, 1)
    assert (distributed.ParallelEnv().rank, distributed.ParallelEnv().nranks) == (0, 1)
    assert not distributed.is_initialized()


def test_spawn_calls_the_function_in_this_process():
    seen: list[int] = []
    distributed.spawn(seen.append, args=(3,))
    assert seen == [3]
    with pytest.raises(AppError, match="found nprocs=2, and 1 process; start the program with `mpiexec -n 2"):
        distributed.spawn(seen.append, args=(3,), nprocs=2)


def test_a_parallel_layer_is_the_layer_inside():
    inside = nn.Linear(2, 3)
    outside = distributed.DataParallel(inside)
    x = app.ones([1, 2])
    assert outside(x).tolist() == inside(x).tolist()
    assert list(outside.state_dict()) == ["weight", "bias"]
    assert len(outside.parameters()) == 2
    outside.set_state_dict({"weight": np.zeros((2, 3), "float32"), "bias": np.ones(3, "float32")})
    assert outside(x).tolist() == [[1.0, 1.0, 1.0]]
    with outside.no_sync():
        outside.scale_loss(outside(x).sum()).backward()
    outside.apply_collective_grads()
    assert inside.bias.grad.tolist() == [1.0, 1.0, 1.0]


def test_collectives_of_one_process_do_nothing_and_do_not_import_mpi():
    x = app.to_tensor([1.0, 2.0])
    for operation in (distributed.all_reduce, distributed.broadcast, distributed.reduce):
        operation(x)
    distributed.all_gather(listed := [], x)
    distributed.all_gather_object(told := [], "here")
    distributed.barrier()
    assert (x.tolist(), [t.tolist() for t in listed], told) == ([1.0, 2.0], [[1.0, 2.0]], ["here"])
    check = "import sys, app.distributed as d; d.init_parallel_env(); d.barrier(); sys.exit('mpi4py' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", check], cwd=ROOT, check=False).returncode == 0
