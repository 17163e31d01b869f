"""Ranks train as one process does: the same losses, accuracies and parameters, whatever the shape and the operator.

The same on three and four ranks, with the compiled engine, and for longer, is in tests/soak/.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import training_on_ranks
from training_on_ranks import Job, Result

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("ranks")]  # one launch for all

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
REFERENCE = ("model.hidden=[16]", "model.activation=relu", "train.epochs=2", "train.eval_batch_size=40")
REFERENCE += ("train.learning_rate=0.05", "engine=reference")
ADAM = ("train.optimizer=adam", "train.learning_rate=0.002", "train.weight_decay=0.001")
JOBS = {
    # an operator without a kink, over five epochs
    "smooth": [*REFERENCE, "dist.shape=allreduce", "train.epochs=5", "model.hidden=[40]", "model.activation=tanh"],
    "plain": [*REFERENCE, "dist.shape=pserver", "model.activation=ops.py:plain"],
    "cosine": [*REFERENCE, *ADAM, "dist.shape=pserver", "train.schedule=cosine", "train.batch_size=17"],
    "layer": [
        *REFERENCE,
        *ADAM,
        "dist.shape=allreduce",
        "model.activation=ops.py:swish",
        "model.hidden=[9,8]",
        "train.batch_size=7",
    ],
    "single": [*REFERENCE, "dist.shape=allreduce", "model.activation=ops.py:plain", "train.batch_size=1"],
}
RESUMED = {shape: [*REFERENCE, "train.optimizer=adam", f"dist.shape={shape}"] for shape in ("allreduce", "pserver")}


class Launch(NamedTuple):
    """What one launch of two ranks, and one process, came to."""

    many: dict[str, Result]
    folder: Path


@pytest.fixture(scope="module")
def launch(tmp_path_factory: pytest.TempPathFactory) -> Launch:
    """All jobs of two ranks in one launch; each that goes on does so from what one process left."""
    folder = tmp_path_factory.mktemp("launch")
    (folder / "ops.py").write_text(OPERATORS)
    jobs = {name: Job(settings, images=11 if name == "single" else 300) for name, settings in JOBS.items()}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for shape, settings in RESUMED.items():
            training_on_ranks.train(Job([*settings, "train.epochs=1"], save=f"{shape} of one"), ranks=False)
            jobs[f"{shape} begun"] = Job([*settings, "train.epochs=1"], save=f"{shape} of two")
            jobs[f"{shape} continued"] = Job(settings, begin=1, restore=f"{shape} of one")
        results = training_on_ranks.train_on_ranks(2, list(jobs.values()), folder)
    return Launch(dict(zip(jobs, results, strict=True)), folder)


@pytest.mark.parametrize("name", JOBS)
def test_two_ranks_train_as_one_process(name: str, launch: Launch, monkeypatch: Any):
    monkeypatch.chdir(launch.folder)
    one = training_on_ranks.train(Job(JOBS[name], images=11 if name == "single" else 300), ranks=False)
    many = launch.many[name]
    np.testing.assert_allclose(many.figures(), one.figures(), rtol=1e-6 if name == "smooth" else 1e-5, atol=1e-7)
    for path, values in one.weights.items():
        np.testing.assert_allclose(many.weights[path], values, atol=1e-6 if name == "smooth" else 1e-5)


@pytest.mark.parametrize("shape", RESUMED)
def test_a_run_resumes_with_another_number_of_ranks(shape: str, launch: Launch, monkeypatch: Any):
    monkeypatch.chdir(launch.folder)
    whole = training_on_ranks.train(Job(RESUMED[shape]), ranks=False)
    alone = training_on_ranks.train(Job(RESUMED[shape], begin=1, restore=f"{shape} of two"), ranks=False)
    for rest in (launch.many[f"{shape} continued"], alone):
        half = len(rest.losses)
        np.testing.assert_allclose(rest.losses, whole.losses[half:], rtol=1e-5)
        for name, values in whole.weights.items():
            np.testing.assert_allclose(rest.weights[name], values, atol=1e-5)
