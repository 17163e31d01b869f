"""torch.nn.functional"""

from __future__ import annotations

from typing import Any

import app
from app.compat.torch._grad_fn import called
from app.nn import functional


def linear(input: Any, weight: Any, bias: Any = None) -> Any:
    """`input @ weight.T + bias`."""
    return functional.linear(input, weight, bias, outputs_first=True)


def dropout(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    """In training, set elements to 0 with probability `p`, and scale the others so that the mean stays the same."""
    result = functional.dropout(input, p, training=training)
    return input.become(result) if inplace else result


def dropout2d(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    """In training, set channels of images to 0 with probability `p`, and scale the others."""
    result = functional.dropout2d(input, p, training)
    return input.become(result) if inplace else result


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


def normalize(input: Any, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Any:
    """The value divided by its norm along an axis."""
    return functional.normalize(input, p, dim, eps)


def layer_norm(input: Any, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-05) -> Any:
    """Normalise the last axes to mean 0 and variance 1."""
    return called("NativeLayerNorm", functional.layer_norm(input, list(normalized_shape), weight, bias, eps))


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


def cosine_similarity(x1: Any, x2: Any, dim: int = 1, eps: float = 1e-08) -> Any:
    """The cosine of the angle between two values along an axis."""
    return functional.cosine_similarity(x1, x2, dim, eps)


def pairwise_distance(x1: Any, x2: Any, p: float = 2.0, eps: float = 1e-06, keepdim: bool = False) -> Any:
    """The norm of the difference along the last axis."""
    return functional.pairwise_distance(x1, x2, p, eps, keepdim)
