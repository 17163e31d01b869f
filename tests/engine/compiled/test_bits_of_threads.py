"""The network of MNIST has the same bits after training on any number of threads, with BLAS kernels of several CPUs."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import numpy as np
import pytest

import app
from app import static
from app.data import Batches
from app.engine import Executor, Scope
from app.engine.compiled.threads import Worth
from app.graph import names

pytestmark = pytest.mark.slow


def test_any_number_of_threads_gives_the_same_bits(monkeypatch: pytest.MonkeyPatch):
    main, startup = static.Program(), static.Program()
    startup.random_seed = 1
    with names.guard(), static.program_guard(main, startup):
        image, label = static.data("image", [None, 784], "uint8"), static.data("label", [None, 1], "int64")
        hidden = app.nn.functional.relu(static.nn.fc(image.astype("float32") / 255.0, 100))
        loss = app.nn.functional.cross_entropy(static.nn.fc(hidden, 10), label)
        app.optimizer.Adam(0.001).minimize(loss)
    random = np.random.default_rng(0)
    images, labels = random.integers(0, 256, (1000, 784)).astype("uint8"), random.integers(0, 10, (1000, 1))
    bits = set()
    for threads in (1, 2, 3, 4, 7):
        monkeypatch.setattr(Worth, "threads", lambda worth, n, most, threads=threads: threads)
        scope, executor = Scope(), Executor(engine="compiled")
        executor.run(startup, scope=scope)
        data = Batches(images, labels, None, 256)
        losses = executor.train_from_dataset(main, data, ["image", "label"], [loss], scope)
        bits.add((losses[0].tobytes(), *(scope.values[name].tobytes() for name in sorted(scope.values))))
    assert len(bits) == 1


@pytest.mark.soak
@pytest.mark.skipif(platform.machine() != "x86_64", reason="the kernels are of this kind of processor")
@pytest.mark.parametrize("kernels", ["Haswell", "Sandybridge"])
def test_any_number_of_threads_gives_the_same_bits_with_kernels_of_other_processors(kernels: str):
    test = f"{__file__}::{test_any_number_of_threads_gives_the_same_bits.__name__}"
    subprocess.run([sys.executable, "-m", "pytest", test], env={**os.environ, "OPENBLAS_CORETYPE": kernels}, check=True)
