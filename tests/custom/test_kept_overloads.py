"""Code that Numba compiles for an operator is kept on disk, and is compiled again after any edit."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import forked
import numpy as np
import pytest
from modules_of_text import module_of_text

from app.custom.read_only import Guarded, read_only
from app.errors import ReadOnlyError

pytestmark = pytest.mark.slow

TEXT = """
import numpy as np
from numba import njit

FACTOR = 2.0
TABLE = np.array([1.0, 2.0])

def made(by):
    @njit
    def inner(x):
        return x + by
    return inner

inner = made(1.0)

@njit
def helper(x):
    return inner(x) * FACTOR

@njit(error_model="python")
def function(x):
    return helper(x[1]) * TABLE[1]
"""
X = read_only(np.array([1.0, 2.0]))


@pytest.fixture(autouse=True)
def cache_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("OPSMITH_CACHE", str(tmp_path / "kept"))
    return tmp_path / "kept"


def called(text: str, *values: Any) -> tuple[Any, bool]:
    """What the function of a new module gives, and whether its code came from disk."""
    guarded = Guarded(module_of_text(text).function)
    result = guarded(*values)
    return result, bool(guarded._function.stats.cache_hits)


def test_unchanged_code_comes_from_disk_and_a_damaged_file_is_replaced(cache_path: Path):
    assert called(TEXT, X) == (12, False)
    assert called(TEXT, X) == (12, True)
    (file,) = cache_path.glob("overload_*.bin")
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    assert called(TEXT, X) == (12, False)
    assert called(TEXT, X) == (12, True)
    assert called(TEXT, X.astype("float32"))[1] is False


def test_an_edit_of_what_the_function_depends_on_is_compiled_again():
    called(TEXT, X)
    edits = {
        ("return inner(x) * FACTOR", "return inner(x) - FACTOR"): 2,
        ("FACTOR = 2.0", "FACTOR = 3.0"): 18,
        ("made(1.0)", "made(5.0)"): 28,
        ('error_model="python"', 'error_model="numpy"'): 12,
    }
    for (old, new), expected in edits.items():
        assert old in TEXT
        assert called(TEXT.replace(old, new), X) == (expected, False), new


def test_code_from_disk_raises_copies_and_refuses_as_compiled_code_does():
    def edited(statement: str) -> str:
        return TEXT.replace("    return h", f"    {statement}\n    return h")

    values = read_only(np.ones(2))
    for from_disk in (False, True):
        guarded = Guarded(module_of_text(edited('raise ValueError("rows", x.shape[0])')).function)
        with pytest.raises(ValueError, match=r"'rows', 2"):
            guarded(X)
        _, copied_from_disk = called(edited("x.flat[0] = 9.0"), values)
        with pytest.raises(ReadOnlyError, match="it writes into an array that it is given"):
            called(edited("x[0] = 1.0"), X)
        assert (bool(guarded._function.stats.cache_hits), copied_from_disk) == (from_disk, from_disk)
    np.testing.assert_array_equal(values, np.ones(2))


def test_other_layouts_are_copied_and_not_compiled_for(cache_path: Path):
    unaligned = np.frombuffer(bytes(17), "uint8")[1:].view("float64")
    for values in (X, X[::-1], read_only(np.ones(4))[::2], unaligned):
        assert called(TEXT, values)[0] == (values[1] + 1) * 4
    assert len(list(cache_path.glob("overload_*.bin"))) == 1


@pytest.mark.slow
def test_another_process_loads_the_code(tmp_path: Path, cache_path: Path):
    lines = ["", "import app", "operator = app.custom_op(function)", "found = operator(app.to_tensor([1.0, 2.0]))"]
    hits = "print(found.tolist(), operator._call._function.stats.cache_hits)"
    (tmp_path / "run.py").write_text("\n".join([TEXT, *lines, hits]))
    seen = []
    for _ in range(2):
        done = forked.run(["run.py"], cwd=tmp_path, env={**os.environ, "OPSMITH_CACHE": str(cache_path)})
        assert (done.returncode, done.stderr) == (0, "")
        seen.append(done.stdout)
    assert "12.0 Counter()" in seen[0]
    assert seen[1].startswith("12.0 Counter({")
