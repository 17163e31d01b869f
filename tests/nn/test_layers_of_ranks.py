"""Eager training on two ranks: the same layer at both, and the gradients of the whole batch."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from launches import program, run

pytestmark = pytest.mark.slow

OURS = """
import json, sys
import numpy as np
import app
from app.distributed import *

init_parallel_env()
rank, ranks = get_rank(), get_world_size()
app.seed(rank)  # other initial weights at each rank, until DataParallel gives them those of rank 0
layer = DataParallel(app.nn.Sequential(app.nn.Linear(3, 4), app.nn.Tanh(), app.nn.BatchNorm1D(4), app.nn.Linear(4, 1)))
trained = [p for p in layer.parameters() if not p.stop_gradient]
optimizer = app.optimizer.SGD(0.1, parameters=layer.parameters())
rows = np.random.default_rng(0).standard_normal((8, 3)).astype("float32")
mine = app.to_tensor(rows[rank * 4:(rank + 1) * 4])
before = [p.numpy().tolist() for p in layer.parameters()]

with layer.no_sync():
    layer(mine).sum().backward()
alone = layer.parameters()[0].grad.numpy().tolist()
layer(mine).sum().backward()
both = layer.parameters()[0].grad.numpy().tolist()
optimizer.step()
optimizer.clear_grad()

maximum, average, at_one, of_one = (app.to_tensor([rank + 1.0, 5.0 - rank]) for _ in range(4))
all_reduce(maximum, ReduceOp.MAX)
all_reduce(average, ReduceOp.AVG)
reduce(at_one, 1)
broadcast(of_one, 1)
listed = []
all_gather(listed, app.to_tensor([rank]))
barrier()
told = []
all_gather_object(told, {
    "before": before, "alone": alone, "both": both, "after": [p.numpy().tolist() for p in trained],
    "numbers": [t.tolist() for t in (maximum, average, at_one, of_one, *listed)],
    "samples": list(app.io.DistributedBatchSampler(range(6), 2)),
    "rank": [rank, ParallelEnv().local_rank, ranks],
})
if rank == 0:
    print(json.dumps(told))
"""


def test_eager_training_and_collective_operations_on_two_ranks(tmp_path: Path):
    ended = run(2, program(tmp_path, OURS), folder=tmp_path)
    assert (ended.status, ended.err) == (0, "")
    first, second = json.loads(ended.out)
    assert first["before"] == second["before"]  # the values of rank 0
    assert first["alone"] != second["alone"]  # within no_sync
    assert first["both"] == second["both"]  # the average of all that was added up
    assert first["after"] == second["after"]
    assert first["numbers"] == [[2.0, 5.0], [1.5, 4.5], [1.0, 5.0], [2.0, 4.0], [0], [1]]
    assert second["numbers"] == [[2.0, 5.0], [1.5, 4.5], [3.0, 9.0], [2.0, 4.0], [0], [1]]
    assert (first["samples"], second["samples"]) == ([[0, 2], [4]], [[1, 3], [5]])
    assert (first["rank"], second["rank"]) == ([0, 0, 2], [1, 1, 2])


def test_an_exception_in_a_program_ends_all_ranks(tmp_path: Path):
    text = "import app.distributed as d\nd.init_parallel_env()\nif d.get_rank():\n    [][1]\nd.barrier()\n"
    ended = run(2, program(tmp_path, text), folder=tmp_path)
    assert ended.status == 1
    assert ended.messages[0].startswith("error: rank 1 of 2 (")
    assert ended.messages[-1] == "IndexError: list index out of range"
