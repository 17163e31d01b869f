"""The engine starts without SciPy's linear algebra, and a custom operator that needs it finds it."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

PROGRAM = """
import sys
import numpy as np
from numba import njit
import app
from app import static

@app.custom_op
@njit
def with_itself(x):
    return np.dot(x, x)

def run(build):
    with static.program_guard(static.Program(), static.Program()), static.scope_guard(static.Scope()):
        y = build(static.data("x", [2, 2]))
        executor = static.Executor(engine="compiled")
        (result,) = executor.run(feed={"x": np.array([[1, 2], [3, 4]], "float32")}, fetch_list=[y])
        return result.tolist()

assert run(lambda x: app.matmul(x, x)) == [[7, 10], [15, 22]]
assert not any(name.startswith("scipy.linalg") for name in sys.modules), "SciPy was loaded"
assert run(with_itself) == [[7, 10], [15, 22]]
import scipy.linalg
assert scipy.linalg.det(np.eye(2)) == 1
"""


def test_scipy_is_loaded_only_where_it_is_needed():
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
