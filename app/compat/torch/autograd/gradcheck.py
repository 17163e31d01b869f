"""torch.autograd.gradcheck"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from app.autograd import gradcheck as check
from app.compat.missing import missing
from app.tensor import grad


def gradcheck(
    func: Callable[..., Any],
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    fast_mode: bool = False,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
) -> bool:
    """Whether the gradients of `func` agree with central differences; every element is checked."""
    given = [inputs] if hasattr(inputs, "dtype") else list(inputs)
    places = [i for i, value in enumerate(given) if hasattr(value, "dtype")]

    def of_tensors(*tensors: Any) -> Any:
        for place, tensor in zip(places, tensors, strict=True):
            given[place] = tensor
        return func(*given)

    return check(of_tensors, [given[i] for i in places], eps, atol, rtol, raise_exception)


def gradgradcheck(
    func: Callable[..., Any], inputs: Any, grad_outputs: Any = None, *, eps: float = 1e-6, **settings: Any
) -> bool:
    """Whether the gradients of the gradients of `func` agree with central differences."""
    given = [inputs] if hasattr(inputs, "dtype") else list(inputs)
    wanted = [i for i, x in enumerate(given) if getattr(x, "requires_grad", False)]
    outputs = _differentiable(func(*given))
    starts = _starts(outputs) if grad_outputs is None else _differentiable(grad_outputs)

    def gradients(*values: Any) -> Any:
        arguments, weights = values[: len(given)], values[len(given) :]
        results = _differentiable(func(*arguments))
        found = grad(results, [arguments[i] for i in wanted], list(weights), create_graph=True, allow_unused=True)
        return tuple(g for g in found if g is not None)

    return gradcheck(gradients, (*given, *starts), eps=eps, **settings)


def _differentiable(outputs: Any) -> list[Any]:
    listed = outputs if isinstance(outputs, (list, tuple)) else [outputs]
    return [o for o in listed if getattr(o, "requires_grad", False)]


def _starts(outputs: list[Any]) -> list[Any]:
    return [(o.detach() * 0.25 + 0.5).requires_grad_() for o in outputs]


__all__ = ["gradcheck", "gradgradcheck"]

__getattr__ = missing(__name__)
