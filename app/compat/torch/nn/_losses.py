"""The losses of `torch.nn.functional`. `size_average` and `reduce` are what `reduction` replaced."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import Any

from app.compat.torch._grad_fn import called
from app.errors import DtypeError
from app.nn import functional


def _loss(grad_fn: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Turn `size_average` and `reduce` into `reduction`, and name the operator of the result as PyTorch does."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        parameters = signature(function)

        @wraps(function)
        def computed(*args: Any, **kwargs: Any) -> Any:
            if len(args) == 2 and not kwargs:
                return called(grad_fn, function(*args))
            given = parameters.bind(*args, **kwargs).arguments
            average, reduce = given.pop("size_average", None), given.pop("reduce", None)
            if average is not None or reduce is not None:
                given["reduction"] = "none" if reduce is False else "sum" if average is False else "mean"
            return called(grad_fn, function(**given))

        return computed

    return decorate


@_loss("Mean")
def l1_loss(input: Any, target: Any, size_average: Any = None, reduce: Any = None, reduction: str = "mean") -> Any:
    """Absolute differences."""
    return functional.l1_loss(input, target, reduction)


@_loss("MseLoss")
def mse_loss(input: Any, target: Any, size_average: Any = None, reduce: Any = None, reduction: str = "mean") -> Any:
    """Squared differences."""
    return functional.mse_loss(input, target, reduction)


@_loss("HuberLoss")
def huber_loss(input: Any, target: Any, reduction: str = "mean", delta: float = 1.0) -> Any:
    """Half the squared difference up to `delta`; beyond, linear with slope `delta`."""
    return functional.smooth_l1_loss(input, target, reduction, delta)


@_loss("SmoothL1Loss")
def smooth_l1_loss(
    input: Any, target: Any, size_average: Any = None, reduce: Any = None, reduction: str = "mean", beta: float = 1.0
) -> Any:
    """Huber's loss with threshold `beta`, divided by `beta`."""
    return functional.smooth_l1_loss(input, target, reduction, beta) / beta


@_loss("NllLoss")
def cross_entropy(
    input: Any,
    target: Any,
    weight: Any = None,
    size_average: Any = None,
    ignore_index: int = -100,
    reduce: Any = None,
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


@_loss("NllLoss")
def nll_loss(
    input: Any,
    target: Any,
    weight: Any = None,
    size_average: Any = None,
    ignore_index: int = -100,
    reduce: Any = None,
    reduction: str = "mean",
) -> Any:
    """The negative logarithm of the probability of each class in `target`."""
    _check_classes("nll_loss", target, input)
    return functional.nll_loss(input, target, weight, ignore_index, reduction)


def _check_classes(name: str, target: Any, input: Any) -> None:
    if target.dtype.is_floating_point and tuple(target.shape) != tuple(input.shape):
        raise DtypeError(f"{name}: classes are whole numbers, found {target.dtype}; use target.long()")


@_loss("BinaryCrossEntropy")
def binary_cross_entropy(
    input: Any,
    target: Any,
    weight: Any = None,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Any:
    """Cross entropy of probabilities with zeros and ones."""
    return functional.binary_cross_entropy(input, target, weight, reduction)


@_loss("BinaryCrossEntropyWithLogits")
def binary_cross_entropy_with_logits(
    input: Any,
    target: Any,
    weight: Any = None,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    pos_weight: Any = None,
) -> Any:
    """Cross entropy of scores with zeros and ones."""
    return functional.binary_cross_entropy_with_logits(input, target, weight, reduction, pos_weight)


@_loss("Mean")
def kl_div(
    input: Any,
    target: Any,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Any:
    """The Kullback-Leibler divergence of logarithms of probabilities from probabilities."""
    return functional.kl_div(input, target, reduction, log_target)
