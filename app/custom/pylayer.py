"""`PyLayer` and `Function`: a custom operator as a class with `forward` and `backward` written over Tensors."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from app.custom.context import PyLayerContext
from app.custom.functions import registered_at
from app.errors import OperatorError, ShapeError
from app.graph.program import Variable
from app.ops.definition import Call, OpDef
from app.ops.methods import ValueMethods
from app.tensor import Tensor, no_grad
from app.tensor.modes import recording
from app.tensor.tape import Node


class _LayerDefinition(OpDef):
    """The operator of a PyLayer class on Tensors: its gradient is the class's own backward."""

    def __init__(self, layer: type[PyLayer]):
        self.layer = layer
        super().__init__(layer.__name__, layer.forward, lambda: (), inputs=[], where=registered_at())

    def differentiate(self, call: Call, douts: Sequence[Any]) -> list[Any]:
        context = call.attributes["context"]
        if context._materialize:
            douts = [call.zeros(j) if d is None else d for j, d in enumerate(douts)]
        gradients = run_backward(self.layer, context, douts, call.needs)
        for index, gradient in enumerate(gradients):
            if gradient is not None and tuple(gradient.shape) != call.input_shape(index):
                raise ShapeError(
                    f"{self.label}: backward returned shape {list(gradient.shape)} for input {index}, "
                    f"expected that of the input, {list(call.input_shape(index))}"
                )
        on_tape = any(isinstance(d, Tensor) for d in douts)
        return [g if g is None or on_tape else g._array for g in gradients]


class PyLayer:
    """Subclass it with static `forward(ctx, ...)` and `backward(ctx, *gradients)`, and call `apply`."""

    none_means_zero = False
    """Whether backward may return None for an input that wants a gradient."""

    @staticmethod
    def forward(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        """Compute the outputs; at least one argument and one result are Tensors."""
        raise NotImplementedError("a PyLayer needs a static method forward(ctx, ...)")

    @staticmethod
    def backward(ctx: Any, *args: Any) -> Any:
        """Compute the gradients of forward's Tensors from those of its results."""
        raise NotImplementedError("a PyLayer needs a static method backward(ctx, ...)")

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Run forward; a backward pass will run `backward`."""
        values = _values(cls, args, kwargs)
        definition = definition_of(cls)
        if any(isinstance(v, Variable) for v in values):
            from app.custom.pylayer_program import append

            return append(cls, definition, values, args, kwargs)
        tensors: list[Tensor] = values
        if not tensors:
            raise OperatorError(f"{definition.label}: at least one argument of apply must be a Tensor")
        context = PyLayerContext(definition.label)
        needs = [not t.stop_gradient for t in tensors]
        context.needs_input_grad = tuple(isinstance(a, Tensor) and not a.stop_gradient for a in args)
        with no_grad():
            result = cls.forward(context, *args, **kwargs)
        outputs = tensor_outputs(definition, result)
        node = None
        if recording.on and any(needs):
            arrays = [t._array for t in tensors]
            node = Node(definition, tensors, arrays, [t._array for t in outputs], {"context": context}, needs)
        given = {id(t) for t in tensors}
        wrapped = {id(t): _on_node(t, node, slot, context, id(t) in given) for slot, t in enumerate(outputs)}
        context.close(node, outputs)
        if isinstance(result, (tuple, list)):
            return type(result)(wrapped.get(id(r), r) for r in result)
        return wrapped[id(result)]


class Function(PyLayer):
    """PyTorch's name and manners for a PyLayer."""

    none_means_zero = True


def definition_of(layer: type[PyLayer]) -> _LayerDefinition:
    """The operator of a class, made at its first use."""
    if "_operator" not in layer.__dict__:
        layer._operator = _LayerDefinition(layer)  # type: ignore[attr-defined]
    definition: _LayerDefinition = layer.__dict__["_operator"]
    return definition


def _values(layer: type[PyLayer], args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
    """The Tensors or Variables among the arguments, in the order of forward's parameters."""
    if any(isinstance(v, ValueMethods) for v in kwargs.values()):
        bound = inspect.signature(layer.forward).bind(None, *args, **kwargs)
        ordered = [*bound.args[1:], *bound.kwargs.values()]
    else:
        ordered = list(args)
    found: list[Any] = []
    for value in ordered:
        if isinstance(value, (list, tuple)):
            found += [v for v in value if isinstance(v, ValueMethods)]
        elif isinstance(value, ValueMethods):
            found.append(value)
    return found


def tensor_outputs(definition: OpDef, result: Any) -> list[Tensor]:
    results = result if isinstance(result, (tuple, list)) else (result,)
    if any(r is None for r in results):
        raise OperatorError(f"{definition.label}: forward returned None, which cannot be one of its results")
    outputs = [r for r in results if isinstance(r, Tensor)]
    if not outputs:
        found = ", ".join(type(r).__name__ for r in results)
        raise OperatorError(f"{definition.label}: forward must return at least one Tensor, found {found}")
    return outputs


def _on_node(tensor: Tensor, node: Node | None, slot: int, context: PyLayerContext, is_input: bool) -> Tensor:
    """An output of forward as the result of the operator; an input that was handed through gets a Tensor of its own."""
    result = Tensor(tensor._array) if is_input else tensor
    if node is not None and id(tensor) not in context._not_differentiable and tensor._array.dtype.kind == "f":
        result._node, result._slot, result.stop_gradient = node, slot, False
    return result


def run_backward(
    layer: type[PyLayer], context: PyLayerContext, douts: Sequence[Any], needs: Sequence[bool]
) -> list[Any]:
    """Call a class's backward with Tensors and check what it returns: a Tensor or None for each input of forward."""
    label = definition_of(layer).label
    given = [d if d is None or isinstance(d, Tensor) else Tensor(np.asarray(d)) for d in douts]
    result = layer.backward(context, *given)
    gradients = list(result) if isinstance(result, (tuple, list)) else [result]
    if len(gradients) > len(needs) and all(g is None for g in gradients[len(needs) :]):
        gradients = gradients[: len(needs)]  # PyTorch's listings return None for arguments that are no Tensors, too
    if len(gradients) != len(needs):
        raise OperatorError(
            f"{label}: backward returned {len(gradients)} gradients, but forward had {len(needs)} Tensors as input"
        )
    for index, (gradient, needed) in enumerate(zip(gradients, needs, strict=True)):
        if gradient is not None and not isinstance(gradient, Tensor):
            raise OperatorError(
                f"{label}: backward returned {type(gradient).__name__} as gradient {index}, expected a Tensor or None"
            )
        if gradient is None and needed and not layer.none_means_zero:
            raise OperatorError(
                f"{label}: backward returned None as gradient {index}, but that input has stop_gradient=False"
            )
        if gradient is not None and not needed and not layer.none_means_zero:
            raise OperatorError(
                f"{label}: backward should return None as gradient {index}, as that input has stop_gradient=True"
            )
    return gradients
