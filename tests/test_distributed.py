"""One process, asked about others."""

from __future__ import annotations

import numpy as np
import pytest

import app
from app import distributed, nn
from app.errors import AppError


def test_this_process_is_the_only_one():
    distributed.init_parallel_env()
    assert (distributed.get_rank(), distributed.get_world_size()) == (0, 1)
    assert (distributed.ParallelEnv().rank, distributed.ParallelEnv().nranks) == (0, 1)
    assert not distributed.is_initialized()


def test_spawn_calls_the_function_here():
    seen: list[int] = []
    distributed.spawn(seen.append, args=(3,))
    assert seen == [3]
    with pytest.raises(AppError, match="there is one process in training, found nprocs=2"):
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
