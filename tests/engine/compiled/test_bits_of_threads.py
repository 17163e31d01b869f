"""The network of MNIST has the same bits after training on any number of threads, with BLAS kernels of several CPUs."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
PROGRAM = """
import hashlib
import numpy as np
import app
from app import static
from app.data import Batches
from app.engine import Executor, Scope
from app.engine.compiled import blas, program

main, startup = static.Program(), static.Program()
startup.random_seed = 1
with static.program_guard(main, startup):
    image, label = static.data("image", [None, 784], "uint8"), static.data("label", [None], "int64")
    hidden = app.nn.functional.relu(static.nn.fc(image.astype("float32") / 255.0, 100))
    loss = app.nn.functional.cross_entropy(static.nn.fc(hidden, 10), label)
    app.optimizer.Adam(0.001).minimize(loss)
random = np.random.default_rng(0)
data = Batches(random.integers(0, 256, (1000, 784)).astype("uint8"), random.integers(0, 10, 1000), None, 256)
for threads in (1, 2, 3, 4, 7):
    program.threads_worth = lambda lowered, n, most: threads
    scope, executor = Scope(), Executor(engine="compiled")
    executor.run(startup, scope=scope)
    losses = executor.train_from_dataset(main, data, ["image", "label"], [loss], scope)
    values = [losses[0], *(scope.values[name] for name in sorted(scope.values))]
    print(hashlib.sha256(b"".join(value.tobytes() for value in values)).hexdigest())
"""


@pytest.mark.parametrize(
    "kernels", ["", *(pytest.param(name, marks=pytest.mark.soak) for name in ("Haswell", "Sandybridge"))]
)
@pytest.mark.skipif(platform.machine() != "x86_64", reason="the kernels are of this kind of processor")
def test_any_number_of_threads_gives_the_same_bits(kernels: str):
    chosen = {"OPENBLAS_CORETYPE": kernels} if kernels else {}
    without = {name: value for name, value in os.environ.items() if name != "OPENBLAS_CORETYPE"}
    settings = {**without, **chosen, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=settings, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    first, *others = done.stdout.split()
    assert others == [first] * 4
