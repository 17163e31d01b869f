"""Runtime functions of generated code: BLAS, barriers, prefetching, calls of Python, values of iterations."""

from __future__ import annotations

import ctypes
import re
from math import lcm
from typing import Any

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

from app.engine.compiled import blas
from app.engine.compiled.numba_api import cgutils
from app.engine.compiled.vectors import lanes_of_machine

ARRIVED, LEFT, PROBLEM, RUNNING = 0, 8, 16, 24
"""Places in the array that threads share, each in its own cache line. From RUNNING on there is one for each thread: the
first step of its part, and the step within the part."""
CALLBACK, SIZE = 17, 18
"""Places beside PROBLEM: the address of the object that `call_python` calls, and the batch size at that call."""
LINE = 8
CACHE_LINE = 64
AHEAD = np.uintp(4)
"""The prefetch distance in rows."""

_POINTER = types.uintp
_INTEGER = types.int64 if blas.wide() else types.int32
_intrinsic: Any = intrinsic  # as a value: its own types do not describe what it decorates
_ROW_MAJOR, _PLAIN, _TURNED = 101, 111, 112


def _external(name: str, number: Any) -> Any:
    """BLAS's product of matrices for one type, linked by name so that compiled code can be cached."""
    llvm.add_symbol(f"opsmith_{name}", blas.address(name))
    return types.ExternalFunction(
        f"opsmith_{name}",
        types.void(
            *[types.int32] * 3, *[_INTEGER] * 3, number, _POINTER, _INTEGER, _POINTER, _INTEGER,
            number, _POINTER, _INTEGER,
        ),
    )  # fmt: skip


_sgemm = _external("cblas_sgemm", types.float32)
_dgemm = _external("cblas_dgemm", types.float64)


def _of_c(library: ctypes.CDLL, name: str, signature: Any) -> Any:
    """A function of a C library that is loaded, linked by name."""
    llvm.add_symbol(f"opsmith_{name}", ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0)
    return types.ExternalFunction(f"opsmith_{name}", signature)


_sched_yield = _of_c(ctypes.CDLL(None), "sched_yield", types.int32())
_take_gil = _of_c(ctypes.pythonapi, "PyGILState_Ensure", types.int32())
_release_gil = _of_c(ctypes.pythonapi, "PyGILState_Release", types.void(types.int32))
_call_object = _of_c(ctypes.pythonapi, "PyObject_CallObject", _POINTER(_POINTER, _POINTER))
_forget = _of_c(ctypes.pythonapi, "Py_DecRef", types.void(_POINTER))


def _product(gemm: Any, number: Any) -> Any:
    """Return the product of matrices of one type of numbers, by that function of BLAS."""

    @njit(nogil=True)
    def product(x: Any, turn_x: bool, y: Any, turn_y: bool, out: Any, lo: int, hi: int, alpha: Any, beta: Any) -> None:
        """Rows `lo` to `hi` of `out` become beta * out + alpha * x @ y."""
        inner = x.shape[0] if turn_x else x.shape[1]
        first = x.ctypes.data + x.itemsize * (lo if turn_x else lo * x.shape[1])
        gemm(
            _ROW_MAJOR, _TURNED if turn_x else _PLAIN, _TURNED if turn_y else _PLAIN, hi - lo, out.shape[1], inner,
            number(alpha), first, x.shape[1] or 1, y.ctypes.data, y.shape[1] or 1,
            number(beta), out.ctypes.data + out.itemsize * lo * out.shape[1], out.shape[1] or 1,
        )  # fmt: skip

    return product


product32, product64 = _product(_sgemm, np.float32), _product(_dgemm, np.float64)


@_intrinsic
def _add_atomically(typing_context: Any, array: Any, index: Any, value: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = _element(context, builder, signature, arguments)
        return builder.atomic_rmw("add", pointer, arguments[2], "seq_cst")

    return types.int64(array, types.int64, types.int64), generate


@_intrinsic
def _load_atomically(typing_context: Any, array: Any, index: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.load_atomic(_element(context, builder, signature, arguments), "seq_cst", 8)

    return types.int64(array, types.int64), generate


def _element(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    array = context.make_array(signature.args[0])(context, builder, arguments[0])
    return builder.gep(array.data, [arguments[1]])


@_intrinsic
def _prefetch(typing_context: Any, address: Any) -> Any:
    """Prefetch the cache line of an address."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        flag, pointer = ir.IntType(32), ir.IntType(8).as_pointer()
        kind = ir.FunctionType(ir.VoidType(), [pointer, flag, flag, flag])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        builder.call(function, [builder.inttoptr(arguments[0], pointer), flag(0), flag(3), flag(1)])
        return context.get_dummy_value()

    return types.void(types.uintp), generate


@njit(nogil=True)
def add_exactly(total: float, lost: float, more: float) -> tuple[float, float]:
    """Return a compensated sum: the sum, and the accumulated rounding error."""
    after = total + more
    added = after - total
    return after, lost + ((total - (after - added)) + (more - added))


@njit(nogil=True)
def given_back(total: float, lost: float) -> float:
    """Return a sum plus its rounding error; infinity and NaN unchanged."""
    return total + lost if lost - lost == 0.0 else total


IN_PANELS = not any(kernels in blas.description() for kernels in ("SkylakeX", "Cooperlake", "SapphireRapids"))
"""Whether BLAS computes rows in panels, and the remaining rows in another order. With whole panels per thread, the
number of threads changes no bit. Other kernels choose by the size of a share how they compute small products, of up to
a million multiplications, so that the number may change bits; a large product of float32 may begin with any row."""

GRAIN = 12 if IN_PANELS else 1
"""The rows of a panel, of which threads take whole ones."""

TILES = lcm(GRAIN, lanes_of_machine())
"""The same for images: with whole tiles per thread, too."""


@njit(nogil=True)
def cut(count: int, shard: int, shards: int) -> int:
    """The first row of a thread's share of `count` rows; `count` for shard == shards."""
    if shard == shards:
        return count
    first = (count * shard // shards + GRAIN // 2) // GRAIN * GRAIN
    return first if first < count else count


@njit(nogil=True)
def cut_tiles(count: int, shard: int, shards: int) -> int:
    """As `cut`, but each share begins with a tile of images."""
    if shard == shards:
        return count
    first = (count * shard // shards + TILES // 2) // TILES * TILES
    return first if first < count else count


@njit(nogil=True)
def fetch_ahead(data: Any, rows: Any, i: int) -> None:
    """Prefetch the row of data needed a few rows after the i-th: rows of a shuffled batch are scattered."""
    ahead = i + AHEAD
    if ahead < rows.size:
        size = np.uintp(data.strides[0])
        first = np.uintp(data.ctypes.data) + np.uintp(rows[ahead]) * size
        for offset in range(np.uintp(0), size, np.uintp(CACHE_LINE)):
            _prefetch(first + offset)


@njit(nogil=True)
def report(shared: Any, shard: int) -> None:
    """Record that a thread's current step rejected its inputs."""
    shared[PROBLEM] = shard


@njit(nogil=True)
def begin(shared: Any, shard: int, step: int) -> None:
    """Record which part a thread begins, by its first step."""
    shared[RUNNING + LINE * shard] = step


@njit(nogil=True)
def note(shared: Any, shard: int, step: int) -> None:
    """Record which step a thread begins, so that an error can name the operator."""
    shared[RUNNING + LINE * shard + 1] = step


@njit(nogil=True)
def write_down(results: Any, row: int, value: Any) -> None:
    """Store the value of a fetched variable for this iteration."""
    for i in range(value.size):
        results[row, i] = value[i]


# Arguments of users' functions


def read_only(array: Any) -> Any:
    """Return the array. In compiled code it gets a read-only type (see `Emitter.call`)."""
    return array


@njit(nogil=True)
def copied(array: Any) -> Any:
    """Return a copy, for a function that may write into its input."""
    return array.copy()


# Threads, and calls of Python


@njit(nogil=True)
def meet(shared: Any, shards: int) -> bool:
    """Wait at a barrier. True means that a thread left before it reached the barrier, and the caller should leave, too.

    A barrier that all have reached is passed even if a thread has left since: that thread did all of its work.
    """
    if shards == 1:
        return False
    arrived = _add_atomically(shared, ARRIVED, 1) + 1
    complete = (arrived + shards - 1) // shards * shards
    spins = 0
    while _load_atomically(shared, ARRIVED) < complete:
        if _load_atomically(shared, LEFT) != 0:
            return _load_atomically(shared, ARRIVED) < complete
        spins += 1
        if spins > 2000:  # yield the core to another thread
            _sched_yield()
    return False


@njit(nogil=True)
def call_python(shared: Any, n: int) -> bool:
    """Call Python from the first thread, for the step that it recorded. True means that it raised, and the caller
    should leave: the exception is then raised where Python called the compiled code."""
    shared[SIZE] = n
    state = _take_gil()
    result = _call_object(shared[CALLBACK], 0)
    if result != 0:
        _forget(result)
    _release_gil(state)
    return result == 0


# The values with which the iterations of a loop begin, for its gradient


@njit(nogil=True)
def rows_like(count: int, value: Any) -> Any:
    """Return memory for so many values."""
    return np.empty((count, value.size), value.dtype)


@njit(nogil=True)
def save_row(rows: Any, row: int, value: Any) -> None:
    """Store a value."""
    flat = value.reshape(value.size)
    for i in range(value.size):
        rows[row, i] = flat[i]


@njit(nogil=True)
def load_row(rows: Any, row: int, value: Any) -> None:
    """Restore a value, counted from the last one."""
    flat = value.reshape(value.size)
    for i in range(value.size):
        flat[i] = rows[rows.shape[0] - 1 - row, i]


def running(shared: np.ndarray, shard: int) -> int:
    """Return the step that a thread recorded last; -1 if none."""
    first, step = shared[RUNNING + LINE * shard :][:2]
    return -1 if step < 0 else int(first + step)


def sharing(shards: int) -> np.ndarray:
    """Return the array that this many threads share for barriers."""
    shared = np.zeros(RUNNING + LINE * shards, np.int64)
    shared[PROBLEM] = -1
    shared[RUNNING + 1 :: LINE] = -1
    return shared


_FUNCTIONS: list[Any] = [
    fetch_ahead, cut, cut_tiles, meet, begin, note, report, call_python, rows_like, save_row, load_row, write_down,
    copied, read_only, add_exactly, given_back,
]  # fmt: skip
CALLED = {"product32": product32, "product64": product64, **{each.__name__: each for each in _FUNCTIONS}}
"""All functions that generated source may call, by name; compiled code depends on them besides the source."""


def called_in(text: str) -> list[str]:
    """Return the names of the functions that a source calls."""
    return [name for name in CALLED if re.search(rf"\b{name}\(", text)]
