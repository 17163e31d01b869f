"""The operator of a PyLayer class: it runs forward on Tensors, and backward for a recorded call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from app.custom.calling import let_through
from app.custom.operator import CustomOperator
from app.custom.pylayer.context import Inputs, PyLayerContext
from app.errors import CustomOperatorError, ShapeError
from app.ops.broadcasting import sum_to
from app.ops.dtype import name_of
from app.ops.methods import ValueMethods
from app.ops.size import Shape
from app.ops.spec import differ, spec_of
from app.reading import signature_of
from app.tensor import Tensor
from app.tensor.inplace import check_changeable, note_sharing, record_change
from app.tensor.modes import modes, reset_modes, set_modes
from app.tensor.tape import Node, check_unchanged, latest, note_change


class LayerOperator(CustomOperator):
    """A PyLayer class as an operator on Tensors. Its gradient is the backward of the class."""

    backward_function: Callable[..., Any]
    made_of: tuple[Any, ...]
    """The attributes of the class that it was made of."""

    def __init__(
        self,
        name: str,
        forward: Callable[..., Any],
        backward: Callable[..., Any],
        setup_context: Callable[..., Any] | None,
        *,
        lenient: bool,
        onnx: Any,
        like: str,
        where: str,
    ):
        super().__init__(
            name,
            forward,
            forward,
            lambda: (),
            backward=backward,
            like=like,
            inputs=[],
            onnx=onnx,
            where=where,
        )
        self.setup_context = setup_context
        self.lenient = lenient
        self._label = self.label

    def arguments(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Sequence[Any]:
        """The arguments of a call in the order of forward's parameters; with defaults if there is a `setup_context`."""
        if not kwargs and self.setup_context is None:
            return args
        values = args if self.setup_context is not None else (None, *args)
        try:
            bound = signature_of(self.function).bind(*values, **kwargs)
        except TypeError as error:
            raise CustomOperatorError(f"{self.label}: forward got wrong arguments: {error}") from error
        if self.setup_context is not None:
            bound.apply_defaults()
        return [*bound.args[len(values) - len(args) :], *bound.kwargs.values()]

    def apply(self, args: Sequence[Any], kwargs: Mapping[str, Any], arguments: Sequence[Any], inputs: Inputs) -> Any:
        """Run forward and record the call on the tape."""
        context, result, outputs = self.forward(args, kwargs, arguments, inputs)
        handed = _handed_through(inputs, outputs)
        changed = self._changed_inputs(context, handed, outputs, inputs) if handed or context._dirty else ()
        node = self._record(inputs, outputs, context)
        made: Sequence[Tensor | None] = outputs
        if handed:
            made = [None if _is_among(o, handed) and not _is_among(o, changed) else o for o in outputs]
        context._close(made, node)
        if isinstance(result, Tensor):
            own = _placed(result, 0, node, context, handed, changed)
            _note_sharing(own, inputs)
            return own
        if not outputs:
            return result
        keys = [slot if new is None else id(new) for slot, new in enumerate(made)]
        slots = dict(zip(keys, range(len(keys)), strict=True))  # the last one of a Tensor that is returned twice
        placed = {key: _placed(outputs[slot], slot, node, context, handed, changed) for key, slot in slots.items()}
        for own in placed.values():
            _note_sharing(own, inputs)
        owners = map(placed.__getitem__, keys)
        return like(result, [next(owners) if isinstance(r, Tensor) else r for r in result])

    def forward(
        self,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        arguments: Sequence[Any],
        inputs: Inputs,
    ) -> tuple[PyLayerContext, Any, list[Tensor]]:
        """Call forward on Tensors; returns the context, the result, and the Tensors in the result."""
        context = PyLayerContext(self._label, self.lenient, len(arguments), inputs)
        outside = set_modes(modes().unrecorded)
        try:
            if self.setup_context is not None:
                result = let_through(self.function, self, args, kwargs)
                let_through(self.setup_context, self, (context, tuple(arguments), result), {})
            else:
                result = let_through(self.function, self, (context, *args), kwargs)
        finally:
            reset_modes(outside)
        if isinstance(result, Tensor):
            return context, result, [result]
        return context, result, self.values_in(result, Tensor, context)

    def values_in(self, result: Any, kind: type, context: PyLayerContext) -> list[Any]:
        """The Tensors or the Variables among the results of forward; the context notes where they are."""
        results = result if isinstance(result, (tuple, list)) else (result,)
        outputs = [r for r in results if isinstance(r, kind)]
        if self.lenient:
            if isinstance(result, list) and outputs and True in context._needs and modes().on:
                raise CustomOperatorError(
                    f"{self.label}: forward returned a list, to whose Tensors PyTorch silently gives no gradient; "
                    "return a tuple"
                )
            if len(outputs) != len(results):
                context._among_results = [isinstance(r, kind) for r in results]
        elif not outputs:
            kinds = ", ".join(type(r).__name__ for r in results)
            raise CustomOperatorError(f"{self.label}: forward must return at least one Tensor, found {kinds}")
        return outputs

    def backward(
        self,
        context: PyLayerContext,
        douts: Sequence[Tensor | None],
        specs: Sequence[Any],
        sources: Sequence[Any],
    ) -> list[Tensor | None]:
        """Call backward with Tensors; returns a Tensor or None for each Tensor that forward got.

        `specs` are the shapes and types of these, and `sources` their sources on the tape.
        """
        if context._among_results is not None:
            douts = context._as_results(douts, context._among_results)
        before = latest.moment
        result = let_through(self.backward_function, self, (context, *douts), {}, "Error message in backward of ")
        if latest.moment > before:
            for slot, dout in enumerate(douts):
                if dout is not None:
                    check_unchanged(dout._array, before + 1, f"{self.label}: gradient {slot}, which backward got")
        single = isinstance(result, Tensor) and len(context._places) == 1
        gradients = (result,) if single else context._as_inputs(result)
        checked: list[Tensor | None] = []
        for index, gradient in enumerate(gradients):
            shape, dtype = specs[index]
            right = isinstance(gradient, Tensor) and context._needs[index] and gradient._array.shape == shape
            if gradient is not None and not (right and gradient._array.dtype is dtype):
                gradient = self.checked_gradient(gradient, shape, context._needs[index], index)
                if gradient is not None and gradient._array.dtype != dtype and _wants_its_type(sources, index):
                    gradient = gradient.astype(name_of(dtype))
            checked.append(gradient)
        return checked

    def checked_gradient(self, gradient: Any, shape: Shape, needed: bool, index: int) -> Any:
        """A gradient with the shape of its Tensor or Variable; None if that needs none."""
        label = f"{self.label}: backward"
        if not isinstance(gradient, ValueMethods):
            raise CustomOperatorError(
                f"{label} returned {type(gradient).__name__} as gradient {index}, expected a Tensor or None"
            )
        if not needed:
            if self.lenient:
                return None
            raise CustomOperatorError(
                f"{label} returned a Tensor as gradient {index}, expected None, as that input has stop_gradient=True"
            )
        own_shape = spec_of(gradient).shape
        if not differ(own_shape, shape):
            return gradient
        if self.lenient and _broadcasts_to(shape, own_shape):
            return sum_to(gradient, shape=shape)
        raise ShapeError(
            f"{label} returned shape {list(own_shape)} as gradient {index}, "
            f"but expected shape {list(shape)}, that of the input"
        )

    def differentiate(self, call: Any, douts: Sequence[Any]) -> list[Any]:
        context: PyLayerContext = call.attributes["context"]
        if context._materialize and len(douts) > 1:
            douts = [call.zeros(j) if d is None else d for j, d in enumerate(douts)]
        arriving: list[Tensor | None] = []
        for slot, dout in enumerate(douts):
            if dout is not None:
                dtype = call.output_specs[slot][1]
                if not isinstance(dout, Tensor):
                    dout = Tensor(np.asarray(dout))
                if dout._array.dtype is not dtype and context._same_dtype:
                    dout = dout.astype(name_of(dtype))
            arriving.append(dout)
        gradients: list[Any] = self.backward(context, arriving, call.input_specs, call.input_keys)
        if not modes().on:  # an unrecorded backward pass works on arrays
            for place, gradient in enumerate(gradients):
                gradients[place] = None if gradient is None else gradient._array
        return gradients

    def _record(self, inputs: Inputs, outputs: Sequence[Tensor], context: PyLayerContext) -> Node | None:
        if not (modes().on and True in context._needs and outputs):
            return None
        sources, arrays = [], []
        for _, tensor in inputs:
            sources.append(None if tensor.stop_gradient else tensor.source)
            arrays.append(tensor._array)
        results = []
        for output in outputs:
            results.append(output._array)
        return modes().node(self, sources, arrays, results, {"context": context}, context._needs)

    def _changed_inputs(
        self, context: PyLayerContext, handed: Sequence[Tensor], outputs: Sequence[Tensor], inputs: Inputs
    ) -> list[Tensor]:
        """The inputs that forward changed in place and returned; their memory gets a new version."""
        changed = context._changed(handed)
        for tensor in changed:
            if not _is_among(tensor, outputs):
                raise CustomOperatorError(
                    f"{self.label}: a Tensor that was marked as dirty was not returned as output of forward"
                )
            check_changeable(tensor, *(one for _, one in inputs if one is not tensor))
            note_change(tensor._array)
        return changed


def values_among(arguments: Iterable[Any]) -> list[tuple[int, Any]]:
    """The Tensors or Variables among the arguments, or in lists among them, each with its argument's position."""
    values = []
    for place, argument in enumerate(arguments):
        if isinstance(argument, ValueMethods):
            values.append((place, argument))
        elif isinstance(argument, (list, tuple)):
            values += [(place, value) for value in argument if isinstance(value, ValueMethods)]
    return values


def like(sequence: Any, items: Iterable[Any]) -> Any:
    """Items as a list, tuple or named tuple of the same type as `sequence`."""
    return type(sequence)(*items) if hasattr(sequence, "_fields") else type(sequence)(items)


def _handed_through(inputs: Inputs, outputs: Sequence[Tensor]) -> list[Tensor]:
    """The inputs that forward returned."""
    handed = []
    for output in outputs:
        for _, tensor in inputs:
            if tensor is output:
                handed.append(output)
                break
    return handed


def _is_among(tensor: Tensor, tensors: Sequence[Tensor]) -> bool:
    return any(tensor is other for other in tensors)  # by identity, as == compares numbers


def _note_sharing(result: Tensor, inputs: Inputs) -> None:
    for _, tensor in inputs:
        note_sharing(result, tensor)


def _placed(
    output: Tensor,
    slot: int,
    node: Node | None,
    context: PyLayerContext,
    handed: Sequence[Tensor],
    changed: Sequence[Tensor],
) -> Tensor:
    """A result of forward as an output of this operator. An unchanged input becomes a separate Tensor."""
    own = output
    if not output.stop_gradient or (handed and _is_among(output, handed)):
        own = Tensor(output._array)
    if node is not None and context._is_differentiable(output):
        own._node, own._slot, own.stop_gradient = node, slot, False
    if not changed or not _is_among(output, changed):
        return own
    if node is not None:
        record_change(output, own._node, own._slot, own.stop_gradient)
    return output


def _broadcasts_to(shape: Shape, target: Shape) -> bool:
    last = target[len(target) - len(shape) :]
    return len(shape) <= len(target) and all(n in (1, m) for n, m in zip(shape, last, strict=True))


def _wants_its_type(sources: Sequence[Any], index: int) -> bool:
    """Whether the operator that made an input takes only gradients of the type of its output."""
    source = sources[index] if sources else None
    context = source[0].attributes.get("context") if isinstance(source, tuple) else None
    return not isinstance(context, PyLayerContext) or context._same_dtype
