"""`torch.autograd`: `grad`, and `Function`, whose methods get Tensors with PyTorch's names."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from app import autograd
from app.compat.torch._creation import FUNCTIONS
from app.compat.torch._tensor import check_starts, in_torch, listed
from app.custom.pylayer.context import PyLayerContext
from app.errors import GradientError
from app.tensor import grad as gradients_of
from app.tensor.backward import run_hooks


def grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    *,
    allow_unused: bool | None = None,
    materialize_grads: bool = False,
) -> tuple[Any, ...]:
    """The gradients of the sum of `outputs` with respect to `inputs`; no `.grad` changes."""
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, which makes zeros"
        )
    tensors, leaves = listed(outputs), listed(inputs)
    starts = check_starts(tensors, grad_outputs)
    if any(leaf.stop_gradient for leaf in leaves):
        raise GradientError("One of the differentiated Tensors does not require grad")
    unused = materialize_grads if allow_unused is None else allow_unused
    gradients = gradients_of(tensors, leaves, starts, retain_graph, create_graph, allow_unused=unused)
    for place, (gradient, leaf) in enumerate(zip(gradients, leaves, strict=True)):
        if gradient is None:
            if materialize_grads:
                gradients[place] = FUNCTIONS["zeros_like"](leaf, requires_grad=create_graph)
            continue
        if leaf._hooks and leaf._node is None:  # in Paddle, grad leaves out the hooks of leaves
            gradient = run_hooks(leaf._hooks, gradient)
        if gradient._node is None:
            gradient.stop_gradient = True
        gradients[place] = in_torch(gradient)
    return tuple(gradients)


class FunctionCtx(PyLayerContext):
    """The `ctx` of a function."""

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """The Tensors that forward saved."""
        return in_torch(super().saved_tensor())

    def save_for_forward(self, *tensors: Any) -> None:
        """Do nothing: `jvp`, for which Tensors are saved here, is not called, because there is no forward mode."""


class Function(autograd.Function):
    """A custom operator: define static `forward(ctx, ...)` and `backward(ctx, *gradients)`, call `apply`."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for name in ("forward", "setup_context", "backward"):
            if name in vars(cls):
                setattr(cls, name, staticmethod(_translated(getattr(cls, name))))

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Run forward, and record it for the backward pass."""
        return in_torch(super().apply(*args, **kwargs))


def _translated(function: Callable[..., Any]) -> Callable[..., Any]:
    """A method of a `Function` that gets PyTorch's context and Tensors."""

    @wraps(function)
    def method(*args: Any, **kwargs: Any) -> Any:
        if args and isinstance(args[0], PyLayerContext):
            args[0].__class__ = FunctionCtx
        return function(*in_torch(args), **kwargs)

    return method
