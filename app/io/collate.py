"""Collation: stacking the same field of many examples into one array."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from numbers import Number
from typing import Any

import numpy as np

from app.errors import DataError
from app.tensor import Tensor, to_tensor


def default_collate_fn(batch: Sequence[Any]) -> Any:
    """Stack numbers and arrays into an array, Tensors into a Tensor, along a new first axis; put text into a list.

    Each field of tuples, lists and dictionaries is stacked on its own.
    """
    first = batch[0]
    if isinstance(first, Tensor):
        return Tensor(_stacked([example._array for example in batch]))
    if isinstance(first, np.ndarray):
        return _stacked(batch)
    if isinstance(first, (Number, np.generic)):
        return np.array(batch)
    if isinstance(first, (str, bytes)):
        return list(batch)
    if isinstance(first, Mapping):
        return {key: default_collate_fn([example[key] for example in batch]) for key in first}
    if isinstance(first, (tuple, list)):
        if len({len(example) for example in batch}) > 1:
            raise DataError(
                f"examples of one batch have {sorted({len(e) for e in batch})} fields; they must have the same number"
            )
        return [default_collate_fn(field) for field in zip(*batch, strict=True)]
    raise DataError(
        f"examples of type {type(first).__name__} cannot be made a batch: "
        "give numbers, arrays or Tensors, or a collate_fn that makes one"
    )


def _stacked(arrays: Sequence[Any]) -> Any:
    shapes = {array.shape for array in arrays}
    if len(shapes) > 1:
        found = " and ".join(str(list(shape)) for shape in sorted(shapes)[:3])
        raise DataError(
            f"examples of one batch have shapes {found}; they must have the same shape, so pad them in a collate_fn"
        )
    return np.stack(arrays)


def as_tensors(batch: Any, make: Callable[[Any], Any] = to_tensor) -> Any:
    """The batch with its numeric arrays turned into Tensors by `make`."""
    if isinstance(batch, (np.ndarray, np.generic)):
        return make(batch) if batch.dtype.kind in "biuf" else batch
    if isinstance(batch, Mapping):
        return {key: as_tensors(value, make) for key, value in batch.items()}
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(as_tensors(value, make) for value in batch))
    if isinstance(batch, (tuple, list)):
        return type(batch)(as_tensors(value, make) for value in batch)
    return batch
