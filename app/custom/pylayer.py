"""`PyLayer` and `Function`: a custom operator as a class with `forward` and `backward` written over Tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from app.custom.context import PyLayerContext
from app.custom.functions import registered_at
from app.custom.layer_call import arguments_of, like, run_backward, run_forward, values_among
from app.custom.pylayer_program import append
from app.errors import CustomOperatorError, MissingFunctionError
from app.ops.definition import OpDef
from app.ops.dtype import name_of
from app.tensor import Tensor
from app.tensor.dispatch import as_applied
from app.tensor.inplace import check_changeable, note_view_of_inputs, record_change
from app.tensor.modes import modes
from app.tensor.tape import Node, note_change


class LayerDefinition(OpDef):
    """The operator of a PyLayer class on Tensors: its gradient is the class's own backward."""

    def __init__(self, layer: type[PyLayer]):
        self.layer = layer
        self.sets_up = layer.setup_context is not PyLayer.setup_context
        super().__init__(layer.__name__, layer.forward, lambda: (), inputs=[], custom=True, where=layer._where)

    def differentiate(self, call: Any, douts: Sequence[Any]) -> list[Any]:
        context: PyLayerContext = call.attributes["context"]
        if context._materialize and len(douts) > 1:
            douts = [call.zeros(j) if d is None else d for j, d in enumerate(douts)]
        given: list[Tensor | None] = []
        for slot, dout in enumerate(douts):
            if dout is not None:
                dtype = call.output_specs[slot][1]
                if not isinstance(dout, Tensor):
                    dout = context._kind(np.asarray(dout))
                if dout._array.dtype is not dtype and context._same_dtype:
                    dout = dout.astype(name_of(dtype))
            given.append(dout)
        gradients: list[Any] = run_backward(self, context, given, call.input_specs, call.input_keys)
        if not modes().on:  # out of the Tensors that a user's function works with, for the walk over arrays
            for place, gradient in enumerate(gradients):
                gradients[place] = None if gradient is None else gradient._array
        return gradients


class PyLayer:
    """Subclass it with static `forward(ctx, ...)` and `backward(ctx, *gradients)`, and call `apply`.

    A forward that returns one of its inputs has changed it in place, unless it says `ctx.mark_not_inplace(x)`.
    """

    lenient: ClassVar[bool] = False
    """PyTorch's manners: backward may return a gradient for an input that wants none, whole numbers among the outputs
    have no gradient, and an input that forward returns is changed only if it says `ctx.mark_dirty(x)`. There need be
    no Tensor among the arguments or the results; backward gets None at the place of each result that is none."""
    _where: ClassVar[str] = ""
    onnx: ClassVar[Any] = None
    """The ONNX operator that does the same ("Relu"), or a rule, a static method, that makes nodes of several."""
    like: ClassVar[str] = ""
    """The operator that computes the same ("relu"), which `python -m app check` holds the class against."""
    _made_by: ClassVar[Any] = None
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
        definition: LayerDefinition = cls.__dict__.get("_operator") or definition_of_layer(cls)
        if modes().tracer is not None:
            args, kwargs = as_applied(args), {name: as_applied(value) for name, value in kwargs.items()}
        arguments = arguments_of(definition, args, kwargs)
        inputs = values_among(arguments)
        if not inputs and not cls.lenient:
            raise CustomOperatorError(f"{definition.label}: at least one argument of apply must be a Tensor")
        for _, value in inputs:
            if not isinstance(value, Tensor):
                return append(definition, [v for _, v in inputs], args, kwargs)
        context, result, outputs = run_forward(definition, args, kwargs, arguments, inputs)
        handed = _handed_through(inputs, outputs)
        changed = _changed_inputs(definition, context, handed, outputs) if handed or context._dirty else ()
        node = _record(definition, inputs, outputs, context)
        context.close(outputs, node)
        if isinstance(result, Tensor):
            own = _placed(result, 0, node, context, handed, changed)
            if handed or own._array.base is not None:
                note_view_of_inputs(own, [tensor for _, tensor in inputs], definition.label)
            return own
        if not outputs:
            return result
        placed = {id(t): _placed(t, slot, node, context, handed, changed) for slot, t in enumerate(outputs)}
        for own in placed.values():
            note_view_of_inputs(own, [tensor for _, tensor in inputs], definition.label)
        return like(result, [placed.get(id(r), r) for r in result])


class Function(PyLayer):
    """PyTorch's name and manners for a PyLayer."""

    lenient = True


def definition_of_layer(layer: type[PyLayer]) -> LayerDefinition:
    """The operator of a class, made at its first use."""
    if "_operator" not in layer.__dict__:
        layer._operator = LayerDefinition(layer)  # type: ignore[attr-defined]
    definition: LayerDefinition = layer.__dict__["_operator"]
    return definition


def _handed_through(inputs: Sequence[tuple[int, Tensor]], outputs: Sequence[Tensor]) -> list[Tensor]:
    """The inputs that forward returned."""
    found = []
    for output in outputs:
        for _, tensor in inputs:  # by identity, as == compares numbers
            if tensor is output:
                found.append(output)
                break
    return found


def _record(
    definition: OpDef, inputs: Sequence[tuple[int, Tensor]], outputs: Sequence[Tensor], context: PyLayerContext
) -> Node | None:
    if not (modes().on and True in context._needs and outputs):
        return None
    sources, arrays = [], []
    for _, tensor in inputs:
        sources.append(None if tensor.stop_gradient else tensor.source)
        arrays.append(tensor._array)
    results = []
    for output in outputs:
        results.append(output._array)
    return Node(definition, sources, arrays, results, {"context": context}, context._needs)


def _changed_inputs(
    definition: LayerDefinition, context: PyLayerContext, handed: Sequence[Tensor], outputs: Sequence[Tensor]
) -> list[Tensor]:
    """The inputs that forward changed in place, and returned: their memory has another version now."""
    changed = list(context._dirty)
    if not definition.layer.lenient:
        changed += [t for t in handed if all(t is not kept for kept in context._not_in_place)]
    for tensor in changed:
        if all(tensor is not output for output in outputs):
            raise CustomOperatorError(
                f"{definition.label}: a Tensor that was marked as dirty was not returned as output of forward"
            )
        check_changeable(tensor)
        note_change(tensor._array)
    return changed


def _placed(
    output: Tensor,
    slot: int,
    node: Node | None,
    context: PyLayerContext,
    handed: Sequence[Tensor],
    changed: Sequence[Tensor],
) -> Tensor:
    """A Tensor that forward returned, as what this operator made; an input that was not changed in another Tensor."""
    own = output
    if not output.stop_gradient or (handed and any(output is tensor for tensor in handed)):
        own = output.result_class(output._array)
    if node is not None and context.is_differentiable(output):
        own._node, own._slot, own.stop_gradient = node, slot, False
    if not changed or all(output is not tensor for tensor in changed):
        return own
    if node is not None:
        record_change(output, own)
    return output
