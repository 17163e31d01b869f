"""What a user's function returns, learned by running it on small arrays of ones before the real values exist."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from app.errors import AppError, OperatorError, ReadOnlyError
from app.ops.spec import UNKNOWN, Spec
from app.tensor.modes import Modes, modes, set_modes

_SIZES = (2, 3)
"""Two sizes to stand for an unknown one: output sizes that change with them are unknown too."""


def infer_by_running(
    run: Callable[..., Sequence[np.ndarray]], specs: Sequence[Spec], advice: str = ""
) -> tuple[Spec, ...]:
    """The shapes and types that `run` returns for inputs of these Specs; `advice` ends the error where it fails."""
    open_sizes = any(UNKNOWN in spec.shape for spec in specs)
    outside = modes()
    set_modes(Modes(outside.on, None))  # these Tensors are run, whatever is being traced
    try:
        results = [run(*[_example(spec, size) for spec in specs]) for size in (_SIZES if open_sizes else _SIZES[:1])]
    except ReadOnlyError:
        raise  # whatever it is given
    except AppError as error:
        raise OperatorError(f"run on arrays of ones, to learn what it returns, it failed: {error}{advice}") from error
    finally:
        set_modes(outside)
    return tuple(Spec(_joined([r.shape for r in each]), each[0].dtype.name) for each in zip(*results, strict=True))


def _example(spec: Spec, size: int) -> np.ndarray:
    return np.ones([size if s == UNKNOWN else s for s in spec.shape], spec.dtype)


def _joined(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    return tuple(sizes[0] if len(set(sizes)) == 1 else UNKNOWN for sizes in zip(*shapes, strict=True))
