"""The functions that layers are made of, on Tensors and Variables alike."""

from __future__ import annotations

from typing import Any

from app.errors import OperatorError
from app.ops import activation, logic, loss, math, shaping
from app.ops import linear as products
from app.ops import reduction as reductions

relu = activation.relu
leaky_relu = activation.leaky_relu
sigmoid = activation.sigmoid
softplus = activation.softplus
silu = activation.silu
elu = activation.elu
softmax = activation.softmax
log_softmax = activation.log_softmax
tanh = math.tanh
flatten = shaping.flatten
one_hot = loss.one_hot


def linear(x: Any, weight: Any, bias: Any = None, name: str | None = None) -> Any:
    """`x @ weight + bias`."""
    out = products.matmul(x, weight)
    return out if bias is None else out + bias


def cross_entropy(
    input: Any,
    label: Any,
    weight: Any = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    soft_label: bool = False,
    axis: int = -1,
    use_softmax: bool = True,
    name: str | None = None,
) -> Any:
    """Cross entropy of scores and hard labels; of probabilities where `use_softmax` is off.

    Labels equal to `ignore_index` count neither in the sum nor in the mean; a negative one, as in Paddle, ignores none.
    """
    if weight is not None or soft_label or axis not in (-1, 1):
        raise OperatorError("cross_entropy works on rows of scores and hard labels, without weights of classes")
    kept = logic.not_equal(shaping.reshape(label, [-1, 1]), ignore_index) if ignore_index >= 0 else None
    if kept is not None:
        label = shaping.reshape(label, [-1, 1]) * kept
    losses = loss.softmax_with_cross_entropy(input, label)[0] if use_softmax else -math.log(loss.pick(input, label))
    if kept is None:
        return _reduced(losses, reduction)
    losses = logic.where(kept, losses, 0.0)
    if reduction != "mean":
        return _reduced(losses, reduction)
    return reductions.sum(losses) / reductions.sum(shaping.cast_like(kept, losses))


def mse_loss(input: Any, label: Any, reduction: str = "mean", name: str | None = None) -> Any:
    """The mean, sum or list of squared differences."""
    return _reduced(math.square(input - label), reduction)


def _reduced(losses: Any, reduction: str) -> Any:
    if reduction == "none":
        return losses
    if reduction not in ("mean", "sum"):
        raise OperatorError(f"reduction is 'mean', 'sum' or 'none', not {reduction!r}")
    return (reductions.mean if reduction == "mean" else reductions.sum)(losses)
