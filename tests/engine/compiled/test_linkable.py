"""Functions kept as LLVM code: compiled once, linked afterwards, and seen by nobody else."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba import njit, types

from app import static
from app.custom import custom_op
from app.engine.compiled import cache, linkable, native_code
from app.errors import OperatorError

pytestmark = pytest.mark.slow

NUMBER = (types.float32,)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, in a process that knows of no function yet."""
    monkeypatch.setenv("OPSMITH_CACHE", str(tmp_path))
    monkeypatch.setattr(linkable, "_cache", type(linkable._cache)())
    monkeypatch.setattr(native_code, "_loaded", type(native_code._loaded)())
    return tmp_path


def like_a_new_process(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Forget everything but the disk; gives the names of the functions that are compiled from now on."""
    linkable._cache.clear()
    native_code._loaded.clear()
    compiled, compile_ = [], linkable._compiled

    def noted(key: str, function: Any, kinds: Any) -> Any:
        compiled.append(function.__name__)
        return compile_(key, function, kinds)

    monkeypatch.setattr(linkable, "_compiled", noted)
    return compiled


def value_of(factor: float) -> float:
    """What a Program computes with an operator that has a constant of its own."""

    @custom_op(elementwise=True)
    def times(x):
        return x * factor

    main = static.Program()
    with static.program_guard(main, static.Program()):
        x = static.data("x", [None, 2])
        y = times(x) - x
        result = static.Executor(engine="compiled").run(main, {"x": np.ones((1, 2), "float32")}, [y])
    return float(result[0][0, 0])


def test_after_an_edit_only_the_edited_function_is_compiled(monkeypatch: pytest.MonkeyPatch):
    assert value_of(2.0) == 1.0
    compiled = like_a_new_process(monkeypatch)
    assert value_of(3.0) == 2.0
    assert compiled == ["times"]


def test_functions_of_one_name_export_one_symbol_each():
    def build(factor: float) -> Any:
        @njit
        def helper(x):
            return x * factor

        @njit
        def function(x):
            return helper(x) - helper(x + 1)

        return function

    one, other = (linkable.linkable(build(factor), NUMBER) for factor in (2.0, 3.0))
    assert one is not None
    assert other is not None
    assert one.name != other.name
    for each in (one, other):
        functions = each._get_module_for_linking().functions
        shown = {f.name for f in functions if not f.is_declaration and f.linkage.name != "internal"}
        assert shown == {each.name}


def test_an_error_that_names_shapes_is_the_same_from_disk(monkeypatch: pytest.MonkeyPatch):
    def run(x: np.ndarray) -> Any:
        @custom_op
        @njit
        def rows(x):
            y = np.empty_like(x)
            for i in range(x.shape[0]):
                y[i] = x[i, : x.shape[1] if x[0, 0] >= 0 else 2]
            return y

        main = static.Program()
        with static.program_guard(main, static.Program()):
            y = rows(static.data("x", [None, 4]))
            return static.Executor(engine="compiled").run(main, {"x": x}, [y])[0]

    def check() -> None:
        x = np.ones((2, 4), "float32")
        np.testing.assert_array_equal(run(x), x)
        with pytest.raises(OperatorError, match=r"cannot assign slice of shape \(4,\) from input of shape \(2,\)"):
            run(-x)

    check()
    compiled = like_a_new_process(monkeypatch)
    check()
    assert compiled == []


def test_code_that_holds_an_address_of_this_process_is_not_kept(folder: Path):
    absolute = ctypes.CDLL(None).labs
    absolute.restype, absolute.argtypes = ctypes.c_long, [ctypes.c_long]

    @njit
    def function(x):
        return absolute(np.int64(x))

    with pytest.raises(linkable.OfThisProcessError, match="this process only"):
        linkable.linkable(function, NUMBER)
    assert not list(folder.glob("function_*.bin"))


def test_a_damaged_file_is_compiled_again(folder: Path, monkeypatch: pytest.MonkeyPatch):
    @njit
    def function(x):
        return x + 1

    assert linkable.linkable(function, NUMBER) is not None
    (file,) = folder.glob("function_*.bin")
    cache.keep(file.name, b"another content")  # with a checksum that is right
    compiled = like_a_new_process(monkeypatch)
    assert linkable.linkable(function, NUMBER) is not None
    assert compiled == ["function"]
