"""`PyLayer` and `Function`: a custom operator as a class whose `forward` and `backward` work on Tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, ClassVar

from app.custom.operator import Origin
from app.custom.pylayer.context import Inputs
from app.custom.pylayer.operator import LayerOperator, values_among
from app.custom.pylayer.traced import append
from app.errors import CustomOperatorError, MissingFunctionError
from app.listed import as_list
from app.ops.methods import ValueMethods
from app.reading import user_place
from app.tensor import Tensor, no_grad
from app.tensor.dispatch import all_as_applied
from app.tensor.modes import modes


class PyLayer:
    """A custom operator: define static `forward(ctx, ...)` and `backward(ctx, *gradients)` in a subclass, call `apply`.

    Forward keeps Tensors for backward with `ctx.save_for_backward`, and other values as attributes of `ctx`. If it
    returns one of its inputs, the input counts as changed in place, unless it calls `ctx.mark_not_inplace(x)`.
    """

    lenient: ClassVar[bool] = False
    """PyTorch's rules: backward may return a gradient for an input that needs none, integer outputs have no gradient,
    and an input that forward returns counts as changed only after `ctx.mark_dirty(x)`. No argument and no result has
    to be a Tensor; backward gets None in the position of each result that is not one."""
    _where: ClassVar[str] = ""
    onnx: ClassVar[Any] = None
    """The equivalent ONNX operator ("Relu"), or a rule, a static method, that makes several nodes."""
    like: ClassVar[str] = ""
    """An operator that computes the same ("relu"); `opsmith check` compares with it."""
    surrogate: ClassVar[bool] = False
    """Whether backward differs from the derivative on purpose, as in a straight-through estimator."""
    _operator: ClassVar[LayerOperator]
    """The operator of a class (see `operator_of_layer`)."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls._where = user_place()

    @staticmethod
    def forward(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        """Compute the outputs. At least one argument and one result are Tensors."""
        raise MissingFunctionError("a PyLayer needs a static method forward(ctx, ...)")

    @staticmethod
    def backward(ctx: Any, *args: Any) -> Any:
        """Compute the gradients of the Tensors that forward took from the gradients of its results."""
        raise MissingFunctionError("a PyLayer needs a static method backward(ctx, ...)")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Save what backward needs, after a forward that takes no `ctx`."""
        raise NotImplementedError

    @classmethod
    def apply(cls, /, *args: Any, **kwargs: Any) -> Any:
        """Run forward, and record it for the backward pass."""
        operator = operator_of_layer(cls)
        args, kwargs = all_as_applied(args, kwargs)
        arguments = operator.arguments(args, kwargs) if kwargs or operator.setup_context is not None else args
        inputs = values_among(arguments)
        if not inputs and not cls.lenient:
            raise CustomOperatorError(f"{operator.label}: at least one argument of apply must be a Tensor")
        if cls.lenient and modes().on:
            _check_not_in_lists(operator, arguments, inputs)
        for _, value in inputs:
            if not isinstance(value, Tensor):
                return append(operator, [v for _, v in inputs], args, kwargs)
        return operator.apply(args, kwargs, arguments, inputs)


class Function(PyLayer):
    """A PyLayer with PyTorch's names and rules."""

    lenient = True


def _check_not_in_lists(operator: LayerOperator, arguments: Sequence[Any], inputs: Inputs) -> None:
    for place, value in inputs:
        if arguments[place] is not value and not value.stop_gradient:
            kind = type(arguments[place]).__name__
            raise CustomOperatorError(
                f"{operator.label}: argument {place} of apply is a {kind} with a Tensor that needs a gradient, to "
                "which PyTorch silently gives none; pass each Tensor as an argument of its own"
            )


def sets_up_context(layer: type[PyLayer]) -> bool:
    """Whether a class defines `setup_context`, so that its forward takes no ctx."""
    return layer.setup_context is not PyLayer.setup_context


def operator_of_layer(layer: type[PyLayer]) -> LayerOperator:
    """The operator of a class, made at the first call, and again after one of its attributes was replaced."""
    cached: LayerOperator | None = layer.__dict__.get("_operator")
    made_of = layer.forward, layer.backward, layer.setup_context, layer.surrogate, layer.onnx, layer.like, layer.lenient
    if cached is None or cached.made_of != made_of:
        operator = LayerOperator(
            layer.__name__,
            layer.forward,
            layer.backward,
            layer.setup_context if sets_up_context(layer) else None,
            lenient=layer.lenient,
            onnx=layer.onnx,
            like=layer.like,
            where=layer._where,
        )
        operator.made_of = made_of
        operator.surrogate = layer.surrogate
        operator.origin = Origin("pylayer", {"layer": layer})
        layer._operator = cached = operator
    return cached


class _Differentiated(Function):
    """Passes gradients on, and raises an error if it is differentiated itself."""

    @staticmethod
    def forward(ctx: Any, label: str, count: int, *values: Any) -> Any:
        ctx.label = label
        return values[count:]

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        raise CustomOperatorError(
            f"{ctx.label}: trying to differentiate twice a function that was marked with @once_differentiable; "
            "write its backward on Tensors, and remove the decorator"
        )


def once_differentiable(backward: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a backward that cannot be differentiated; a second derivative is then an error."""

    @wraps(backward)
    def unrecorded(ctx: Any, *douts: Any) -> Any:
        recorded = ctx._recorded(douts)
        with no_grad():
            result = backward(ctx, *douts)
        if not recorded:
            return result
        listed = as_list(result)
        tensors = [g for g in listed if isinstance(g, ValueMethods)]
        marked = iter(_Differentiated.apply(ctx._label, len(recorded), *recorded, *tensors) if tensors else ())
        return tuple(next(marked) if isinstance(g, ValueMethods) else g for g in listed)

    return unrecorded
