"""`PyLayer` and `Function`: a custom operator as a class with `forward` and `backward` written over Tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, ClassVar

from app.custom.calling import registered_at
from app.custom.layer_operator import LayerOperator, values_among
from app.custom.layer_program import Call, append, definition_of
from app.custom.operator import Origin, makes
from app.errors import CustomOperatorError, MissingFunctionError, OperatorError
from app.listed import as_list
from app.ops.definition import OpDef
from app.tensor import Tensor, is_grad_enabled, no_grad
from app.tensor.dispatch import as_applied
from app.tensor.modes import modes


class PyLayer:
    """Subclass it with static `forward(ctx, ...)` and `backward(ctx, *gradients)`, and call `apply`.

    A forward that returns one of its inputs has changed it in place, unless it says `ctx.mark_not_inplace(x)`.
    """

    lenient: ClassVar[bool] = False
    """PyTorch's rules: backward may return a gradient for an input that wants none, whole numbers among the outputs
    have no gradient, and an input that forward returns is changed only if it says `ctx.mark_dirty(x)`. There need be
    no Tensor among the arguments or the results; backward gets None at the place of each result that is none."""
    _where: ClassVar[str] = ""
    onnx: ClassVar[Any] = None
    """The ONNX operator that does the same ("Relu"), or a rule, a static method, that makes nodes of several."""
    like: ClassVar[str] = ""
    """The operator that computes the same ("relu"), which `python -m app check` holds the class against."""
    surrogate: ClassVar[bool] = False
    """Whether backward gives another gradient than the derivative on purpose, as a straight-through estimator does."""
    _made_by: ClassVar[Origin | None] = None
    """Where a class was made of functions, the hook that did it, and these by its names for them."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls._where = registered_at()

    @staticmethod
    def forward(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        """Compute the outputs; at least one argument and one result are Tensors."""
        raise MissingFunctionError("a PyLayer needs a static method forward(ctx, ...)")

    @staticmethod
    def backward(ctx: Any, *args: Any) -> Any:
        """Compute the gradients of forward's Tensors from those of its results."""
        raise MissingFunctionError("a PyLayer needs a static method backward(ctx, ...)")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Where a class has one, its forward takes no ctx, and what backward needs is kept here."""
        raise NotImplementedError

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Run forward; a backward pass will run `backward`."""
        operator: LayerOperator = cls.__dict__.get("_operator") or operator_of_layer(cls)
        if modes().tracer is not None:
            args, kwargs = as_applied(args), {name: as_applied(value) for name, value in kwargs.items()}
        arguments = operator.arguments(args, kwargs) if kwargs or operator.setup_context is not None else args
        inputs = values_among(arguments)
        if not inputs and not cls.lenient:
            raise CustomOperatorError(f"{operator.label}: at least one argument of apply must be a Tensor")
        for _, value in inputs:
            if not isinstance(value, Tensor):
                return append(operator, [v for _, v in inputs], args, kwargs)
        return operator.apply(args, kwargs, arguments, inputs)


class Function(PyLayer):
    """PyTorch's name and rules for a PyLayer."""

    lenient = True


def sets_up_context(layer: type[PyLayer]) -> bool:
    """Whether a class keeps in `setup_context` what backward needs, so that its forward takes no ctx."""
    return layer.setup_context is not PyLayer.setup_context


def operator_of_layer(layer: type[PyLayer]) -> LayerOperator:
    """The operator of a class, made at its first use."""
    if "_operator" not in layer.__dict__:
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
        operator.surrogate = layer.surrogate
        operator.origin = layer._made_by or Origin("pylayer", {"layer": layer})
        layer._operator = operator  # type: ignore[attr-defined]
    found: LayerOperator = layer.__dict__["_operator"]
    return found


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
        wanted += ctx._inputs_on_tape()  # what backward saved of them went into the result, too
        listed = as_list(result)
        tensors = [g for g in listed if isinstance(g, Tensor)]
        marked = iter(_Differentiated.apply(ctx._label, len(wanted), *wanted, *tensors) if tensors else ())
        return tuple(next(marked) if isinstance(g, Tensor) else g for g in listed)

    return unrecorded


# Layers of two functions, and operators of Programs out of a file


def layer_of_functions(
    forward_fn: Callable[..., Any], backward_fn: Callable[..., Any] | None, name: str | None = None
) -> Any:
    """A class whose forward and backward are functions over Tensors that take no context."""
    functions = {"forward_fn": forward_fn, "backward_fn": backward_fn}
    members = {
        "forward": staticmethod(lambda ctx, *values: forward_fn(*values)),
        "backward": staticmethod(lambda ctx, *gradients: backward_fn(*gradients)),  # type: ignore[misc]
        "_made_by": Origin("static_pylayer", {k: f for k, f in functions.items() if f is not None}),
    }
    return type(name or forward_fn.__name__, (PyLayer,), members)


@makes("pylayer")
def _of_class(functions: Mapping[str, Any], settings: Mapping[str, Any], where: str) -> OpDef:
    layer = functions["layer"]
    if not (isinstance(layer, type) and issubclass(layer, PyLayer)):
        raise OperatorError(f"{where}: {layer!r} was found, expected a PyLayer")
    call, stops, outs = Call(settings["args"], settings["kwargs"]), settings["stops"], settings["outs"]
    return definition_of(operator_of_layer(layer), call, stops, (), outs)[0]


@makes("static_pylayer")
def _of_functions(functions: Mapping[str, Any], settings: Mapping[str, Any], where: str) -> OpDef:
    return _of_class({"layer": layer_of_functions(functions["forward_fn"], functions.get("backward_fn"))}, settings, "")
