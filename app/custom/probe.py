"""What a user's function returns, learned by running it on small arrays of ones before the real values exist."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from app.errors import AppError, OperatorError, ReadOnlyError
from app.ops.size import AnySize, Size, named_size, names_of
from app.ops.spec import UNKNOWN, Spec
from app.tensor.modes import Modes, modes, set_modes

_SIZES = (2, 3, 5)
"""What an open size is taken to be: output sizes that change with it are open too."""


def infer_by_running(
    run: Callable[..., Sequence[np.ndarray]], specs: Sequence[Spec], advice: str = ""
) -> tuple[Spec, ...]:
    """The shapes and types that `run` returns for inputs of these Specs; `advice` ends the error where it fails."""
    sizes = [size for spec in specs for size in spec.shape]
    are_open = any(isinstance(size, Size) or size == UNKNOWN for size in sizes)
    outside = modes()
    set_modes(Modes(outside.on, None))  # these Tensors are run, whatever is being traced
    try:
        results = [run(*[_example(spec, n) for spec in specs]) for n in (_SIZES if are_open else _SIZES[:1])]
    except ReadOnlyError:
        raise  # whatever it is given
    except AppError as error:
        raise OperatorError(f"run on arrays of ones, to learn what it returns, it failed: {error}{advice}") from error
    finally:
        set_modes(outside)
    names = {name for size in sizes for name in names_of(size)}
    size_name = names.pop() if len(names) == 1 and UNKNOWN not in sizes else None
    return tuple(_joined(each, size_name) for each in zip(*results, strict=True))


def _example(spec: Spec, n: int) -> np.ndarray:
    return np.ones([_sample(size, n) for size in spec.shape], spec.dtype)


def _sample(size: AnySize, n: int) -> int:
    """A size where every open size is n."""
    if isinstance(size, Size):
        return size.at(**dict.fromkeys(names_of(size), n))
    return n if size == UNKNOWN else size


def _joined(results: Sequence[np.ndarray], size_name: str | None) -> Spec:
    """What one output is, from what it was for each of `_SIZES`."""
    shapes = [result.shape for result in results]
    if len(set(map(len, shapes))) > 1:
        raise OperatorError(f"its output has {' and '.join(map(str, shapes))} as shapes, for different batch sizes")
    return Spec(tuple(_joined_size(sizes, size_name) for sizes in zip(*shapes, strict=True)), results[0].dtype.name)


def _joined_size(sizes: Sequence[int], size_name: str | None) -> Any:
    """A size that is the same each time; or the multiple of the named size, plus a number, that it was each time."""
    if len(set(sizes)) == 1:
        return sizes[0]
    if size_name is not None:
        steps = sizes[1] - sizes[0]
        found = steps * named_size(size_name) + (sizes[0] - steps * _SIZES[0])
        if all(_sample(found, n) == size for n, size in zip(_SIZES, sizes, strict=True)):
            return found
    return UNKNOWN
