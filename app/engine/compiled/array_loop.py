"""A function of single numbers over whole arrays, for eager calls. A Program inlines the same compiled function."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numba import config

from app.engine.compiled import native_code, trial
from app.engine.compiled.language import (
    ANY,
    INDEX,
    Assign,
    Call,
    Element,
    For,
    Function,
    Length,
    Local,
    Number,
    Parameter,
    Return,
    Value,
    printed,
)
from app.errors import AppError


class NotCompiledError(AppError):
    """A function cannot be compiled; the message says why."""


class ArrayLoop:
    """Calls a function for the elements of arrays of one type, which are broadcast.

    The function takes an element of each array, and then the settings. Those in `numbers`, which has their types, are
    given with each call; the others are compiled into the loop.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        arrays: Sequence[np.dtype],
        settings: Mapping[str, Any],
        numbers: Mapping[str, np.dtype],
        results: int,
    ):
        reason = "NUMBA_DISABLE_JIT switches compiling off"
        if not config.DISABLE_JIT:  # type: ignore[attr-defined]  # Numba sets it when it is loaded
            reason = trial.why_not_numbers(function, arrays, [*settings.values()], [arrays[0].name] * results)
        if reason:
            raise NotCompiledError(reason)
        self._arrays, self._dtype, self._results = len(arrays), arrays[0], results
        loop = _loop([a.name for a in arrays], settings, {name: n.name for name, n in numbers.items()}, results)
        self._entry = native_code.load("\n".join(printed(loop)), {loop.name: loop}, {"function": function})[loop.name]

    def __call__(self, *values: Any) -> tuple[np.ndarray, ...]:
        """Take the arrays, then the numbers; returns an array of each result."""
        arrays, numbers = values[: self._arrays], values[self._arrays :]
        shape = arrays[0].shape
        if any(array.shape != shape for array in arrays):
            arrays = tuple(np.broadcast_arrays(*arrays))
            shape = arrays[0].shape
        inputs = [_as_row(array, self._dtype) for array in arrays]
        outputs = [np.empty(shape, self._dtype) for _ in range(self._results)]
        self._entry.bound([*inputs, *numbers, *[output.reshape(-1) for output in outputs]])(0, 1)
        return tuple(outputs)


def _as_row(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """The elements of an array, one after the other in memory."""
    if not (array.dtype == dtype and array.flags.c_contiguous and array.flags.aligned):
        array = np.array(array, dtype, order="C")
    return array.reshape(-1)


def _loop(arrays: Sequence[str], settings: Mapping[str, Any], numbers: Mapping[str, str], results: int) -> Function:
    """The function that Python calls, for these types."""
    i = Local("i", INDEX)
    inputs = [Parameter(f"x{place}", dtype, (None,)) for place, dtype in enumerate(arrays)]
    parameters = {name: Parameter(f"number{place}", dtype) for place, (name, dtype) in enumerate(numbers.items())}
    outputs = [Parameter(f"out{place}", arrays[0], (None,)) for place in range(results)]
    elements = [Element(x.name, (i,), x.dtype) for x in inputs]
    same = [
        Local(parameters[name].name, parameters[name].dtype) if name in parameters else Number(value, ANY)
        for name, value in settings.items()
    ]
    arguments: tuple[Value, ...] = (*elements, *same)
    each = Assign([Element(out.name, (i,), out.dtype) for out in outputs], [Call("function", arguments)])
    return Function(
        "over_arrays",
        [Parameter("shard"), Parameter("shards"), *inputs, *parameters.values(), *outputs],
        [For(i.name, None, Length(outputs[0].name), [each]), Return(False)],
    )
