"""torch.nn.functional"""

from __future__ import annotations

from typing import Any

import app
from app.compat.missing import missing
from app.compat.torch._grad_fn import called
from app.compat.torch.nn._activations import ACTIVATIONS, gelu, glu, log_softmax, softmax, softmin
from app.compat.torch.nn._images import FUNCTIONS as OF_IMAGES
from app.compat.torch.nn._losses import LOSSES
from app.nn import functional

globals().update(ACTIVATIONS)
globals().update(LOSSES)
globals().update(OF_IMAGES)


def linear(input: Any, weight: Any, bias: Any = None) -> Any:
    """`input @ weight.T + bias`."""
    product = app.matmul(input, weight, transpose_y=True)
    return product if bias is None else called("Addmm", product + bias)


def dropout(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    """Some elements set to zero at random, the others made larger to keep the mean."""
    result = functional.dropout(input, p, training=training)
    return input.become(result) if inplace else result


def threshold(input: Any, threshold: float, value: float, inplace: bool = False) -> Any:
    """The elements above a threshold, and `value` instead of the others."""
    result = app.where(input > threshold, input, value)
    return input.become(result) if inplace else result


def one_hot(tensor: Any, num_classes: int = -1) -> Any:
    """A row for each class, with a one at its place."""
    classes = int(tensor.max()) + 1 if num_classes < 0 else num_classes
    return app.cast(functional.one_hot(tensor, classes), dtype="int64")


def embedding(input: Any, weight: Any, padding_idx: int | None = None) -> Any:
    """The rows of a table that whole numbers name."""
    return functional.embedding(input, weight, padding_idx)


def normalize(input: Any, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Any:
    """The value divided by its norm along an axis."""
    return functional.normalize(input, p, dim, eps)


def layer_norm(input: Any, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-05) -> Any:
    """The last axes shifted and scaled to mean 0 and variance 1."""
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
    """Each feature shifted and scaled to mean 0 and variance 1, of the batch or as remembered."""
    if not training:
        return functional.batch_norm(input, running_mean, running_var, weight, bias, False, epsilon=eps)
    mean, var = input.new_zeros(input.shape[1]), input.new_zeros(input.shape[1])
    result = functional.batch_norm(input, mean, var, weight, bias, True, 0.0, eps)  # with 0.0 they become the batch's
    if running_mean is not None:
        with app.no_grad():
            count = input.numel() // input.shape[1]
            running_mean.lerp_(mean, momentum)
            running_var.lerp_(var * (count / max(count - 1, 1)), momentum)
    return called("NativeBatchNorm", result)


def cosine_similarity(x1: Any, x2: Any, dim: int = 1, eps: float = 1e-08) -> Any:
    """The cosine of the angle between two values along an axis."""
    return functional.cosine_similarity(x1, x2, dim, eps)


def pairwise_distance(x1: Any, x2: Any, p: float = 2.0, eps: float = 1e-06, keepdim: bool = False) -> Any:
    """The norm of the difference along the last axis."""
    return app.norm(x1 - x2 + eps, p, -1, keepdim)


__all__ = [
    *ACTIVATIONS,
    *LOSSES,
    *OF_IMAGES,
    "batch_norm",
    "cosine_similarity",
    "dropout",
    "embedding",
    "gelu",
    "glu",
    "layer_norm",
    "linear",
    "log_softmax",
    "normalize",
    "one_hot",
    "pairwise_distance",
    "softmax",
    "softmin",
    "threshold",
]

__getattr__ = missing(__name__)
