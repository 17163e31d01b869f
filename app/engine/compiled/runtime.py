"""What generated code calls: products of matrices through BLAS, and the meeting point of threads."""

from __future__ import annotations

import ctypes
from typing import Any

import llvmlite.binding as llvm
import numpy as np
from numba import njit, types
from numba.extending import intrinsic

from app.engine.compiled import blas

ARRIVED, ABORTED, PROBLEM, RUNNING = 0, 8, 16, 24
"""Places in the array that threads share, each in a cache line of its own; from RUNNING on, one for each thread."""
LINE = 8

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
llvm.add_symbol("opsmith_yield", ctypes.cast(ctypes.CDLL(None).sched_yield, ctypes.c_void_p).value or 0)
_sched_yield = types.ExternalFunction("opsmith_yield", types.int32())


@njit(nogil=True)
def product32(x: Any, turn_x: bool, y: Any, turn_y: bool, out: Any, lo: int, hi: int, alpha: Any, beta: Any) -> None:
    """Rows `lo` to `hi` of `out` become beta * out + alpha * x @ y."""
    inner = x.shape[0] if turn_x else x.shape[1]
    first = x.ctypes.data + x.itemsize * (lo if turn_x else lo * x.shape[1])
    _sgemm(
        _ROW_MAJOR, _TURNED if turn_x else _PLAIN, _TURNED if turn_y else _PLAIN, hi - lo, out.shape[1], inner,
        np.float32(alpha), first, max(x.shape[1], 1), y.ctypes.data, max(y.shape[1], 1),
        np.float32(beta), out.ctypes.data + out.itemsize * lo * out.shape[1], max(out.shape[1], 1),
    )  # fmt: skip


@njit(nogil=True)
def product64(x: Any, turn_x: bool, y: Any, turn_y: bool, out: Any, lo: int, hi: int, alpha: Any, beta: Any) -> None:
    """The same in double precision."""
    inner = x.shape[0] if turn_x else x.shape[1]
    first = x.ctypes.data + x.itemsize * (lo if turn_x else lo * x.shape[1])
    _dgemm(
        _ROW_MAJOR, _TURNED if turn_x else _PLAIN, _TURNED if turn_y else _PLAIN, hi - lo, out.shape[1], inner,
        np.float64(alpha), first, max(x.shape[1], 1), y.ctypes.data, max(y.shape[1], 1),
        np.float64(beta), out.ctypes.data + out.itemsize * lo * out.shape[1], max(out.shape[1], 1),
    )  # fmt: skip


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


@njit(nogil=True)
def meet(shared: Any, shards: int) -> bool:
    """Wait until every thread is here. True means that one of them gave up, and so should the caller."""
    if shards == 1:
        return False
    arrived = _add_atomically(shared, ARRIVED, 1) + 1
    wanted = (arrived + shards - 1) // shards * shards
    spins = 0
    while _load_atomically(shared, ARRIVED) < wanted:
        if _load_atomically(shared, ABORTED) != 0:
            return True
        spins += 1
        if spins > 2000:  # another program has the core; let it go on
            _sched_yield()
    return _load_atomically(shared, ABORTED) != 0


@njit(nogil=True)
def report(shared: Any, step: int) -> None:
    """Say that a step met a problem in its inputs."""
    shared[PROBLEM] = step


@njit(nogil=True)
def note(shared: Any, shard: int, step: int) -> None:
    """Say which step a thread begins, so that what a user's function raises is told with its operator."""
    shared[RUNNING + LINE * shard] = step


def sharing(shards: int) -> np.ndarray:
    """The array through which that many threads meet."""
    shared = np.zeros(RUNNING + LINE * shards, np.int64)
    shared[PROBLEM:] = -1
    return shared
