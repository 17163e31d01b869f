"""`once_differentiable`: a backward that computes what no tape can see, so that its results have no gradient."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from app.custom.pylayer import Function
from app.errors import CustomOperatorError
from app.listed import as_list
from app.tensor import Tensor, is_grad_enabled, no_grad


class _Differentiated(Function):
    """Hands gradients on, and refuses to be differentiated itself."""

    @staticmethod
    def forward(ctx: Any, label: str, count: int, *values: Any) -> Any:
        ctx.label = label
        return values[count:]

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        raise CustomOperatorError(
            f"{ctx.label}: trying to differentiate twice a function that was marked with @once_differentiable; "
            "write its backward over Tensors, and leave the mark out"
        )


def once_differentiable(backward: Callable[..., Any]) -> Callable[..., Any]:
    """Let a backward of a PyLayer or a Function run unrecorded; differentiating its results is an error."""

    @wraps(backward)
    def unrecorded(ctx: Any, *douts: Any) -> Any:
        wanted = [d for d in douts if isinstance(d, Tensor) and not d.stop_gradient] if is_grad_enabled() else []
        with no_grad():
            result = backward(ctx, *douts)
        if not wanted:
            return result
        wanted += ctx.inputs_on_tape()  # what backward saved of them went into the result, too
        listed = as_list(result)
        tensors = [g for g in listed if isinstance(g, Tensor)]
        marked = iter(_Differentiated.apply(ctx._label, len(wanted), *wanted, *tensors) if tensors else ())
        return tuple(next(marked) if isinstance(g, Tensor) else g for g in listed)

    return unrecorded
