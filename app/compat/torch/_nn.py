"""`torch.nn`, as far as functions of one's own are used in it: a module with parameters, activations and two losses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from app.compat.torch._functions import FUNCTIONS
from app.compat.torch._tensor import Tensor
from app.nn import functional


class Parameter(Tensor):
    """A leaf Tensor that training updates. As an attribute of a `Module` it is among its `parameters()`."""

    __slots__ = ()

    def __init__(self, data: Tensor, requires_grad: bool = True):
        super().__init__()
        self._array = data._array
        self.requires_grad_(requires_grad)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        """A copy without the gradient, unlike that of other Tensors."""
        copied = super().__deepcopy__(memo)
        copied.grad = None
        return copied

    def __repr__(self) -> str:
        return f"Parameter containing:\n{super().__repr__()}"


class Module:
    """A function with parameters: those among its attributes, and those of the modules among its attributes."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.forward(*args, **kwargs)  # type: ignore[attr-defined]  # which a subclass defines

    def parameters(self) -> Iterator[Parameter]:
        """The parameters."""
        for value in vars(self).values():
            if isinstance(value, Parameter):
                yield value
            elif isinstance(value, Module):
                yield from value.parameters()


def mse_loss(input: Any, target: Any, *, reduction: str = "mean") -> Any:
    """The squared differences: their mean, their sum, or (with "none") each of them."""
    return functional.mse_loss(input, target, reduction)


def binary_cross_entropy_with_logits(input: Any, target: Any, *, reduction: str = "mean") -> Any:
    """The cross entropy of the sigmoid of scores."""
    return functional.binary_cross_entropy_with_logits(input, target, reduction=reduction)


FUNCTIONAL: dict[str, Any] = {
    **{name: FUNCTIONS[name] for name in ("relu", "sigmoid", "tanh", "softmax", "log_softmax")},
    "binary_cross_entropy_with_logits": binary_cross_entropy_with_logits,
    "leaky_relu": lambda input, negative_slope=0.01: functional.leaky_relu(input, negative_slope),
    "mse_loss": mse_loss,
    "softplus": lambda input: functional.softplus(input),
}
"""The functions of `torch.nn.functional`."""
