"""torch.nn.functional"""

from __future__ import annotations

from typing import Any

import app
from app.compat.table import table
from app.compat.torch._grad_fn import called, named_by
from app.nn import functional

ROWS = table(
    functional,
    """
    dropout = dropout(input, p, training, inplace)
    dropout2d = dropout2d(input, p, training, inplace)
    linear = linear(input, weight, bias, :outputs_first=True)
    normalize = normalize(input, p=2.0, dim:axis, eps:epsilon)
    """,
)
"""The functions that differ in the names of parameters only."""


def one_hot(tensor: Any, num_classes: int = -1) -> Any:
    """For each class a row of integers that is 1 at the class and 0 elsewhere."""
    return app.cast(functional.one_hot(tensor, num_classes), dtype="int64")


def embedding(input: Any, weight: Any, padding_idx: int | None = None) -> Any:
    """The rows of `weight` at the indices `input`. No gradient reaches the row at `padding_idx`."""
    rows = functional.embedding(input, weight)
    if padding_idx is None:
        return rows
    trained = app.unsqueeze(input != padding_idx % weight.shape[0], axis=-1)
    return app.where(trained, rows, rows.detach())


@named_by("NativeLayerNorm")
def layer_norm(input: Any, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-05) -> Any:
    """Normalise the last axes to mean 0 and variance 1."""
    return functional.layer_norm(input, list(normalized_shape), weight, bias, eps)


def batch_norm(
    input: Any,
    running_mean: Any,
    running_var: Any,
    weight: Any = None,
    bias: Any = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-05,
) -> Any:
    """Normalise each channel to mean 0 and variance 1. `momentum` is the weight of the batch in the running values."""
    result = functional.batch_norm(
        input, running_mean, running_var, weight, bias, training, 1 - momentum, eps, unbiased=True
    )
    return called("NativeBatchNorm", result) if training else result
