"""The loss functions of `torch.nn.functional`: input, target, and how the losses of elements become one."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from app.compat.torch._grad_fn import called
from app.errors import DtypeError
from app.nn import functional

LOSSES: dict[str, Callable[..., Any]] = {}
"""Every loss function by name."""


_NAMES = {"cross_entropy": "NllLoss", "kl_div": "Mean", "l1_loss": "Mean"}
"""What PyTorch calls the last operator of a loss, where that is not the loss itself."""


def loss(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a loss the parameters that `reduction` took the place of."""
    name = _NAMES.get(function.__name__, "".join(part.capitalize() for part in function.__name__.split("_")))

    @wraps(function)
    def computed(*args: Any, size_average: bool | None = None, reduce: bool | None = None, **settings: Any) -> Any:
        if size_average is not None or reduce is not None:
            settings["reduction"] = "none" if reduce is False else "sum" if size_average is False else "mean"
        return called(name, function(*args, **settings))

    LOSSES[function.__name__] = computed
    return computed


@loss
def l1_loss(input: Any, target: Any, reduction: str = "mean") -> Any:
    """Distances."""
    return functional.l1_loss(input, target, reduction)


@loss
def mse_loss(input: Any, target: Any, reduction: str = "mean") -> Any:
    """Squared distances."""
    return functional.mse_loss(input, target, reduction)


@loss
def huber_loss(input: Any, target: Any, reduction: str = "mean", delta: float = 1.0) -> Any:
    """Half squared distances up to `delta`, and `delta` times the distance beyond."""
    return functional.smooth_l1_loss(input, target, reduction, delta)


@loss
def smooth_l1_loss(input: Any, target: Any, reduction: str = "mean", beta: float = 1.0) -> Any:
    """Huber's loss divided by its threshold."""
    return functional.smooth_l1_loss(input, target, reduction, beta) / beta


@loss
def cross_entropy(
    input: Any,
    target: Any,
    weight: Any = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Any:
    """Cross entropy of scores with classes, or with the probabilities of classes."""
    _check_classes("cross_entropy", target, input)
    return functional.cross_entropy(
        input,
        target,
        weight,
        ignore_index,
        reduction,
        soft_label=tuple(target.shape) == tuple(input.shape) and target.dtype.is_floating_point,
        axis=min(1, input.ndim - 1),
        label_smoothing=label_smoothing,
    )


@loss
def nll_loss(input: Any, target: Any, weight: Any = None, ignore_index: int = -100, reduction: str = "mean") -> Any:
    """The negative of the logarithms of probabilities, at the classes of the target."""
    _check_classes("nll_loss", target, input)
    return functional.nll_loss(input, target, weight, ignore_index, reduction)


def _check_classes(name: str, target: Any, input: Any) -> None:
    if target.dtype.is_floating_point and tuple(target.shape) != tuple(input.shape):
        raise DtypeError(f"{name}: classes are whole numbers, found {target.dtype}; use target.long()")


@loss
def binary_cross_entropy(input: Any, target: Any, weight: Any = None, reduction: str = "mean") -> Any:
    """Cross entropy of probabilities with zeros and ones."""
    return functional.binary_cross_entropy(input, target, weight, reduction)


@loss
def binary_cross_entropy_with_logits(
    input: Any, target: Any, weight: Any = None, reduction: str = "mean", pos_weight: Any = None
) -> Any:
    """Cross entropy of scores with zeros and ones."""
    return functional.binary_cross_entropy_with_logits(input, target, weight, reduction, pos_weight)


@loss
def kl_div(input: Any, target: Any, reduction: str = "mean", log_target: bool = False) -> Any:
    """How far logarithms of probabilities are from probabilities."""
    return functional.kl_div(input, target.exp() if log_target else target, reduction)
