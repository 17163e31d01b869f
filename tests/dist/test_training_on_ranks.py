"""Ranks train as one process does: the same losses, accuracies and parameters, whatever the shape and the operator.

The same on three and four ranks, and for longer, is in tests/soak/.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
import training_on_ranks
from ranks import run
from training_on_ranks import Job, Result

OPERATORS = """
import numpy as np
import app

@app.custom_op
def plain(x):
    assert len(x), "an operator of a user's gets rows"
    return np.maximum(x, 0)

@plain.backward
def plain_grad(x, dy):
    return dy * (x > 0)

class Swish(app.autograd.PyLayer):
    @staticmethod
    def forward(ctx, x):
        s = app.sigmoid(x)
        ctx.save_for_backward(x, s)
        return x * s

    @staticmethod
    def backward(ctx, dy):
        x, s = ctx.saved_tensor()
        return dy * (s + x * s * (1 - s))

def swish(x):
    return Swish.apply(x)
"""
SMALL = ("model.hidden=[16]", "train.epochs=2", "train.eval_batch_size=40", "train.learning_rate=0.05")
REFERENCE = (*SMALL, "engine=reference")


def on_ranks(ranks: int, jobs: Sequence[Job], folder: Path) -> list[Result]:
    (folder / "jobs.json").write_text(json.dumps([asdict(job) for job in jobs]))
    ended = run(ranks, training_on_ranks.__file__, "jobs.json", "results.json", folder=folder, timeout=300)
    assert (ended.status, ended.messages) == (0, [])
    return [Result(**result) for result in json.loads((folder / "results.json").read_text())]


def agree(many: Result, one: Result) -> None:
    np.testing.assert_allclose(many.figures(), one.figures(), rtol=1e-5, atol=1e-7)
    for name, values in one.weights.items():
        np.testing.assert_allclose(many.weights[name], values, atol=1e-5)


def test_losses_accuracies_and_parameters_are_those_of_one_process(tmp_path: Path):
    file = tmp_path / "ops.py"
    file.write_text(OPERATORS)
    adam = ("train.optimizer=adam", "train.learning_rate=0.002", "train.weight_decay=0.001")
    jobs = [
        # an operator without a kink, and weights that travel by themselves
        Job([*SMALL, "dist.shape=allreduce", "train.epochs=5", "model.hidden=[40]", "model.activation=custom.tanh"]),
        Job([*REFERENCE, "dist.shape=pserver", "dist.bucket=100", f"model.activation={file}:plain"]),
        Job([*REFERENCE, *adam, "dist.shape=pserver", "train.schedule=cosine", "train.batch_size=17"]),
        Job([*REFERENCE, *adam, "dist.shape=allreduce", f"model.activation={file}:swish", "model.hidden=[9,8]"]),
        Job([*REFERENCE, "dist.shape=allreduce", f"model.activation={file}:plain", "train.batch_size=1"], images=11),
    ]
    for job, many in zip(jobs, on_ranks(2, jobs, tmp_path), strict=True):
        one = replace(job, settings=[*job.settings, "engine=reference"])
        agree(many, training_on_ranks.train(one, ranks=False))


@pytest.mark.parametrize("shape", ["allreduce", "pserver"])
def test_a_run_goes_on_with_another_number_of_ranks(shape: str, tmp_path: Path):
    settings = [*REFERENCE, "train.optimizer=adam", f"dist.shape={shape}", "train.batch_size=32"]
    of_one, of_two = str(tmp_path / "of-one"), str(tmp_path / "of-two")
    whole = training_on_ranks.train(Job(settings), ranks=False)
    training_on_ranks.train(Job([*settings, "train.epochs=1"], save=of_one), ranks=False)
    jobs = [Job([*settings, "train.epochs=1"], save=of_two), Job(settings, begin=1, restore=of_one)]
    _, continued = on_ranks(2, jobs, tmp_path)
    alone = training_on_ranks.train(Job(settings, begin=1, restore=of_two), ranks=False)
    for rest in (continued, alone):
        half = len(rest.losses)
        np.testing.assert_allclose(rest.losses, whole.losses[half:], rtol=1e-5)
        for name, values in whole.weights.items():
            np.testing.assert_allclose(rest.weights[name], values, atol=1e-5)
