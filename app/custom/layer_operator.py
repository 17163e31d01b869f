"""The operator that a PyLayer class is: its calls on Tensors, and the context that forward leaves for backward."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from app.custom.calling import let_through
from app.custom.operator import CustomOperator
from app.errors import CustomOperatorError, ShapeError
from app.ops.broadcasting import sum_to
from app.ops.dtype import name_of
from app.ops.methods import ValueMethods
from app.reading import signature_of
from app.tensor import Tensor
from app.tensor.inplace import check_changeable, note_view_of_inputs, record_change
from app.tensor.modes import modes, reset_modes, set_modes
from app.tensor.tape import Node, check_unchanged, latest, note_change, on_tape

Caller = Callable[..., Any]
"""Calls a user's function and decides how its errors are reported: `let_through` or `call_function`."""

Inputs = Sequence[tuple[int, Any]]
"""The Tensors or Variables among the arguments of a call, each with the place of the argument."""


class PyLayerContext:
    """Holds the tensors saved for backward, and any attribute that a forward sets on it.

    A user may give an attribute any name, so whatever is not part of the interface begins with an underscore.
    """

    _saved: Sequence[Any] | None = None
    _in_forward = True
    _node: weakref.ref[Node] | None = None
    _materialize = _same_dtype = True
    _not_differentiable: tuple[Any, ...] = ()
    _not_in_place: tuple[Any, ...] = ()
    _dirty: tuple[Any, ...] = ()
    _among_results: Sequence[bool] | None = None
    """For each result of forward whether it is a Tensor; None where all are."""
    _kind: Any = Tensor.result_class
    """The class of the Tensors that backward gets."""

    def __init__(self, label: str, lenient: bool, argument_count: int, inputs: Inputs):
        self._label, self._lenient = label, lenient
        self._argument_count = argument_count
        self._places: list[int] = []
        """Of each Tensor among the arguments, which argument it was, or was in."""
        self._needs: list[bool] = []
        """Of each, whether it wants a gradient."""
        for place, tensor in inputs:
            self._places.append(place)
            self._needs.append(not tensor.stop_gradient)

    @property
    def needs_input_grad(self) -> tuple[bool, ...]:
        """For each argument of apply, whether it is, or holds, a Tensor that wants a gradient."""
        wanting = {place for place, needed in zip(self._places, self._needs, strict=True) if needed}
        return tuple(place in wanting for place in range(self._argument_count))

    def save_for_backward(self, *tensors: Any) -> None:
        """Keep tensors for backward; once, and only in forward."""
        if not self._in_forward:
            raise CustomOperatorError("save_for_backward can only be called in forward")
        if self._saved is not None and not self._lenient:
            raise CustomOperatorError("save_for_backward was called a second time; pass it all tensors at once")
        for value in tensors:
            if value is not None and not isinstance(value, Tensor):
                raise CustomOperatorError(
                    f"save_for_backward takes Tensors, found {type(value).__name__}; "
                    "keep other values as attributes of ctx"
                )
        self._saved = tensors

    def saved_tensor(self) -> tuple[Any, ...]:
        """The tensors that forward saved (Paddle's spelling)."""
        if self._in_forward or not self._saved:
            return tuple(self._saved or ())
        node = None if self._node is None else self._node()
        if node is not None:
            node.check_alive()
            if latest.moment > node.order:
                for place, saved in enumerate(self._saved):
                    if saved is not None:
                        check_unchanged(saved[0], node.order, f"{self._label}: Tensor {place} that forward saved")
        tensors = []
        for saved in self._saved:
            tensors.append(saved if saved is None else self._restored(saved, node))
        return tuple(tensors)

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """The tensors that forward saved (PyTorch's spelling)."""
        return self.saved_tensor()

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        """Say which outputs have no gradient."""
        self._not_differentiable += tensors

    def mark_not_inplace(self, *tensors: Tensor) -> None:
        """Say which inputs forward returns without having changed them, so that they become results of their own."""
        self._not_in_place += tensors

    def mark_dirty(self, *tensors: Tensor) -> None:
        """Say which inputs forward changed in place; it must return them."""
        self._dirty += tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Whether backward gets zeros (at first) or None for an output that got no gradient."""
        self._materialize = bool(value)

    def set_grad_in_dtype_consistent(self, flag: bool) -> None:
        """Whether backward gets gradients in the types of the outputs (at first), or as they come."""
        self._same_dtype = bool(flag)

    # For the operator

    def _restored(self, saved: tuple[np.ndarray, Any, int | None], node: Node | None) -> Any:
        array, source, slot = saved
        if slot is not None:
            source = (node, slot) if node is not None and modes().on else None
        return self._kind(array) if source is None else on_tape(self._kind, array, source)

    def _inputs_on_tape(self) -> list[Tensor]:
        """A value at the place of each input that wants a gradient; its numbers are not those of the input."""
        node = None if self._node is None else self._node()
        inputs: list[Tensor] = []
        if node is None:
            return inputs
        for index, source in enumerate(node.sources):
            if isinstance(source, tuple):
                inputs.append(on_tape(self._kind, node.like(index), source))
            elif source is not None:
                inputs.append(source)
        return inputs

    def _close(self, outputs: Sequence[Tensor], node: Node | None) -> None:
        """End of forward: of what was saved, keep the numbers and where they stand on the tape.

        Of an output that is its number: holding the Tensor itself would be a reference cycle.
        """
        self._in_forward = False
        if node is not None:
            self._node = weakref.ref(node)
        if not self._saved:
            return
        kept: list[Any] = []
        for tensor in self._saved:
            if tensor is None:
                kept.append(None)
                continue
            source, own = None if tensor.stop_gradient else tensor.source, None
            for slot, output in enumerate(outputs):
                if output is tensor:
                    source, own = None, slot
            kept.append((tensor._array, source, own))
        self._saved = kept

    def _is_differentiable(self, output: Tensor) -> bool:
        """Whether a gradient may arrive at an output."""
        if self._not_differentiable and any(output is marked for marked in self._not_differentiable):
            return False
        return output._array.dtype.kind == "f" or not self._lenient

    @staticmethod
    def _as_results(douts: Sequence[Any], are_tensors: Sequence[bool]) -> Sequence[Any]:
        """The gradients of the Tensors that forward returned, None at the place of each result that is no Tensor."""
        gradients = iter(douts)
        return [next(gradients) if is_tensor else None for is_tensor in are_tensors]

    def _as_inputs(self, result: Any) -> list[Any]:
        """What backward returned, for each Tensor of the call: it may be one for each argument, as in PyTorch."""
        by_argument = list(result) if isinstance(result, (tuple, list)) else [result]
        gradients = _flat(by_argument)
        wanted, places = len(self._places), self._places
        if len(gradients) == wanted:
            return gradients
        if len(by_argument) >= self._argument_count:
            others = [g for place, g in enumerate(by_argument) if place not in places]
            expanded = _flat(
                [[None] * places.count(p) if by_argument[p] is None else by_argument[p] for p in dict.fromkeys(places)]
            )
            if all(g is None for g in others) and len(expanded) == wanted:
                return expanded
        raise CustomOperatorError(
            f"{self._label}: backward returned {_counted(len(gradients), 'gradient')}, "
            f"but forward had {_counted(wanted, 'Tensor')} as input "
            f"(an incorrect number of gradients: expected {wanted}, got {len(gradients)})"
        )


class LayerOperator(CustomOperator):
    """A PyLayer class as an operator on Tensors; its gradient is the class's own backward."""

    backward_function: Callable[..., Any]

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
            works_on="Tensors",
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
        """The arguments of a call in the order of forward's parameters; with the defaults for `setup_context`."""
        if not kwargs and self.setup_context is None:
            return args
        given = args if self.setup_context is not None else (None, *args)
        try:
            bound = signature_of(self.function).bind(*given, **kwargs)
        except TypeError as error:
            raise CustomOperatorError(f"{self.label}: forward cannot be called so: {error}") from error
        if self.setup_context is not None:
            bound.apply_defaults()
        return [*bound.args[len(given) - len(args) :], *bound.kwargs.values()]

    def apply(self, args: Sequence[Any], kwargs: Mapping[str, Any], arguments: Sequence[Any], inputs: Inputs) -> Any:
        """Run forward, and record that backward belongs to it."""
        context, result, outputs = self.forward(args, kwargs, arguments, inputs)
        handed = _handed_through(inputs, outputs)
        changed = self._changed_inputs(context, handed, outputs) if handed or context._dirty else ()
        node = self._record(inputs, outputs, context)
        context._close(outputs, node)
        if isinstance(result, Tensor):
            own = _placed(result, 0, node, context, handed, changed)
            if handed or own._array.base is not None:
                note_view_of_inputs(own, [tensor for _, tensor in inputs], self._label)
            return own
        if not outputs:
            return result
        placed = {id(t): _placed(t, slot, node, context, handed, changed) for slot, t in enumerate(outputs)}
        for own in placed.values():
            note_view_of_inputs(own, [tensor for _, tensor in inputs], self._label)
        return like(result, [placed.get(id(r), r) for r in result])

    def forward(
        self,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        arguments: Sequence[Any],
        inputs: Inputs,
        call: Caller = let_through,
    ) -> tuple[PyLayerContext, Any, list[Tensor]]:
        """Call the class's forward on Tensors; gives the context, the result, and the Tensors in the result."""
        context = PyLayerContext(self._label, self.lenient, len(arguments), inputs)
        if inputs:
            context._kind = inputs[-1][1].result_class
        outside = set_modes(modes().unrecorded)
        try:
            if self.setup_context is not None:
                result = call(self.function, self, args, kwargs)
                call(self.setup_context, self, (context, tuple(arguments), result), {})
            else:
                result = call(self.function, self, (context, *args), kwargs)
        finally:
            reset_modes(outside)
        if isinstance(result, Tensor):
            return context, result, [result]
        results = result if isinstance(result, (tuple, list)) else (result,)
        outputs = [r for r in results if isinstance(r, Tensor)]
        if self.lenient:
            if len(outputs) != len(results):
                context._among_results = [isinstance(r, Tensor) for r in results]
        elif not outputs:
            found = ", ".join(type(r).__name__ for r in results)
            raise CustomOperatorError(f"{self.label}: forward must return at least one Tensor, found {found}")
        return context, result, outputs

    def backward(
        self,
        context: PyLayerContext,
        douts: Sequence[Tensor | None],
        specs: Sequence[Any],
        sources: Sequence[Any] = (),
        call: Caller = let_through,
    ) -> list[Tensor | None]:
        """Call the class's backward with Tensors; gives a Tensor, or None, for each Tensor that forward got.

        `specs` are shapes and types of these, and `sources` say where they came from on the tape.
        """
        if context._among_results is not None:
            douts = context._as_results(douts, context._among_results)
        result = call(self.backward_function, self, (context, *douts), {}, "Error message in backward of ")
        single = isinstance(result, Tensor) and len(context._places) == 1
        gradients = (result,) if single else context._as_inputs(result)
        checked: list[Tensor | None] = []
        for index, gradient in enumerate(gradients):
            shape, dtype = specs[index]
            right = isinstance(gradient, Tensor) and context._needs[index] and gradient._array.shape == shape
            if gradient is not None and not (right and gradient._array.dtype is dtype):
                gradient = self._checked(gradient, shape, dtype, context._needs[index], index, sources)
            checked.append(gradient)
        return checked

    def _checked(
        self, gradient: Any, shape: tuple[int, ...], dtype: np.dtype, needed: bool, index: int, sources: Sequence[Any]
    ) -> Tensor | None:
        """A gradient of the shape and type of the Tensor that it is for; None where that wants none."""
        label = f"{self.label}: backward"
        if not isinstance(gradient, Tensor):
            raise CustomOperatorError(
                f"{label} returned {type(gradient).__name__} as gradient {index}, expected a Tensor or None"
            )
        if not needed:
            if self.lenient:
                return None
            raise CustomOperatorError(
                f"{label} returned a Tensor as gradient {index}, expected None, as that input has stop_gradient=True"
            )
        found = gradient._array.shape
        if found != shape and self.lenient and _broadcasts_to(shape, found):
            gradient = sum_to(gradient, shape=shape)
        elif found != shape:
            raise ShapeError(
                f"{label} returned shape {list(found)} as gradient {index}, "
                f"but expected shape {list(shape)}, that of the input"
            )
        if gradient._array.dtype == dtype or not _wants_its_type(sources, index):
            return gradient
        return gradient.astype(name_of(dtype))

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
        gradients: list[Any] = self.backward(context, given, call.input_specs, call.input_keys)
        if not modes().on:  # out of the Tensors that a user's function works with, for the walk over arrays
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
        return Node(self, sources, arrays, results, {"context": context}, context._needs)

    def _changed_inputs(
        self, context: PyLayerContext, handed: Sequence[Tensor], outputs: Sequence[Tensor]
    ) -> list[Tensor]:
        """The inputs that forward changed in place, and returned: their memory has another version now."""
        changed = list(context._dirty)
        if not self.lenient:
            changed += [t for t in handed if all(t is not kept for kept in context._not_in_place)]
        for tensor in changed:
            if all(tensor is not output for output in outputs):
                raise CustomOperatorError(
                    f"{self.label}: a Tensor that was marked as dirty was not returned as output of forward"
                )
            check_changeable(tensor)
            note_change(tensor._array)
        return changed


def values_among(arguments: Iterable[Any]) -> list[tuple[int, Any]]:
    """The Tensors or Variables that are arguments, or in a list that is one, each with the place of the argument."""
    found = []
    for place, argument in enumerate(arguments):
        if isinstance(argument, ValueMethods):
            found.append((place, argument))
        elif isinstance(argument, (list, tuple)):
            found += [(place, value) for value in argument if isinstance(value, ValueMethods)]
    return found


def like(sequence: Any, items: Iterable[Any]) -> Any:
    """Items in a list or tuple of the same kind as `sequence`, which may be a named tuple."""
    return type(sequence)(*items) if hasattr(sequence, "_fields") else type(sequence)(items)


def _handed_through(inputs: Inputs, outputs: Sequence[Tensor]) -> list[Tensor]:
    """The inputs that forward returned."""
    found = []
    for output in outputs:
        for _, tensor in inputs:  # by identity, as == compares numbers
            if tensor is output:
                found.append(output)
                break
    return found


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
    if node is not None and context._is_differentiable(output):
        own._node, own._slot, own.stop_gradient = node, slot, False
    if not changed or all(output is not tensor for tensor in changed):
        return own
    if node is not None:
        record_change(output, own)
    return output


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _flat(values: Iterable[Any]) -> list[Any]:
    return [v for value in values for v in (value if isinstance(value, (list, tuple)) else (value,))]


def _broadcasts_to(shape: Sequence[int], target: Sequence[int]) -> bool:
    last = target[len(target) - len(shape) :]
    return len(shape) <= len(target) and all(n in (1, m) for n, m in zip(shape, last, strict=True))


def _wants_its_type(sources: Sequence[Any], index: int) -> bool:
    """Whether what made an input takes gradients of the type of what it made alone."""
    source = sources[index] if sources else None
    context = source[0].attributes.get("context") if isinstance(source, tuple) else None
    return not isinstance(context, PyLayerContext) or context._same_dtype
