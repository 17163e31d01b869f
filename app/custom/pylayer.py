"""`PyLayer` and `Function`: a custom operator as a class with `forward` and `backward` written over Tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from app.custom.functions import registered_at
from app.custom.layer_call import arguments_of, like, run_backward, run_forward, values_among
from app.custom.pylayer_program import append
from app.errors import OperatorError
from app.graph.program import Variable
from app.ops.definition import Call, OpDef
from app.tensor import Tensor
from app.tensor.modes import recording
from app.tensor.tape import Node


class _LayerDefinition(OpDef):
    """The operator of a PyLayer class on Tensors: its gradient is the class's own backward."""

    def __init__(self, layer: type[PyLayer]):
        self.layer = layer
        super().__init__(layer.__name__, layer.forward, lambda: (), inputs=[], where=layer._where)

    def differentiate(self, call: Call, douts: Sequence[Any]) -> list[Any]:
        context = call.attributes["context"]
        if context._materialize:
            douts = [call.zeros(j) if d is None else d for j, d in enumerate(douts)]
        gradients = run_backward(self.layer, context, douts)
        recorded = any(isinstance(d, Tensor) for d in douts)
        return [g if g is None or recorded else g._array for g in gradients]


class PyLayer:
    """Subclass it with static `forward(ctx, ...)` and `backward(ctx, *gradients)`, and call `apply`."""

    lenient: ClassVar[bool] = False
    """Whether backward may return None for an input that wants a gradient, and a gradient for one that does not."""
    _where: ClassVar[str] = ""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls._where = registered_at()

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
        definition = _definition_of(cls)
        tensors = [value for _, value in values_among(arguments_of(definition, args, kwargs))]
        if not tensors:
            raise OperatorError(f"{definition.label}: at least one argument of apply must be a Tensor")
        if any(isinstance(t, Variable) for t in tensors):
            return append(cls, definition, tensors, args, kwargs)
        context, result, outputs = run_forward(definition, args, kwargs)
        node = _record(definition, tensors, outputs, context)
        differentiable = context.close(outputs, node)
        given = {id(t) for t in tensors}
        wrapped = {}
        for slot, output in enumerate(outputs):
            own = Tensor(output._array) if id(output) in given else output  # an input that was handed through
            if node is not None and differentiable[slot]:
                own._node, own._slot, own.stop_gradient = node, slot, False
            wrapped[id(output)] = own
        if isinstance(result, (tuple, list)):
            return like(result, [wrapped.get(id(r), r) for r in result])
        return wrapped[id(result)]


class Function(PyLayer):
    """PyTorch's name and manners for a PyLayer."""

    lenient = True


def _definition_of(layer: type[PyLayer]) -> _LayerDefinition:
    """The operator of a class, made at its first use."""
    if "_operator" not in layer.__dict__:
        layer._operator = _LayerDefinition(layer)  # type: ignore[attr-defined]
    definition: _LayerDefinition = layer.__dict__["_operator"]
    return definition


def _record(definition: OpDef, tensors: Sequence[Tensor], outputs: Sequence[Tensor], context: Any) -> Node | None:
    needs = [not t.stop_gradient for t in tensors]
    if not (recording.on and any(needs)):
        return None
    return Node(
        definition, tensors, [t._array for t in tensors], [t._array for t in outputs], {"context": context}, needs
    )
