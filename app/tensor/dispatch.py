"""Running operators on Tensors, and recording them if a gradient may be needed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy import ndarray

from app.errors import OperatorError
from app.ops.call_cache import Conversions, Kinds
from app.ops.definition import REGISTRY, OpDef, kernel_error
from app.ops.methods import ValueMethods
from app.ops.spec import spec_of
from app.ops.values import Applied, Array, Attributes, Operand, Results
from app.tensor import tape
from app.tensor.inplace import note_sharing, write
from app.tensor.modes import Modes, modes


def _binary_method(name: str, python: str) -> Callable[[Any, Any], Applied]:
    """A fast method for a Python operator with two operands, whose inputs need no checks.

    If nothing is recorded and operands of these types were seen before, it calls the kernel directly. Users' functions
    on Tensors, such as those of a PyLayer, consist mostly of such calls.
    """
    definition, general = REGISTRY[name], getattr(ValueMethods, python)
    kernel, conversions_by_types = definition.kernel, definition.call_cache.conversions

    def method(self: Any, other: Operand) -> Applied:
        if modes().direct:
            x = self._array
            y = other._array if isinstance(other, RunsOperators) else other
            conversions = conversions_by_types.get((x.dtype, y.dtype if y.__class__ is ndarray else y.__class__))
            if conversions is not None:
                try:
                    result = kernel(x, np.array(y, conversions[0][1]) if conversions else y)
                    return tape.new_tensor(result if result.__class__ is ndarray else np.asarray(result))
                except Exception:  # the general method raises the error
                    pass
        return general(self, other)

    def swapped(self: Any, other: Operand) -> Applied:
        if modes().direct:
            y = self._array
            conversions = conversions_by_types.get((other.__class__, y.dtype))
            if conversions:
                try:
                    result = kernel(np.array(other, conversions[0][1]), y)
                    return tape.new_tensor(result if result.__class__ is ndarray else np.asarray(result))
                except Exception:
                    pass
        return general(self, other)

    return swapped if python.startswith("__r") else method


def as_applied(value: Any) -> Any:
    """An argument of an operator, or a list of them, with Tensors replaced by Variables while a function is traced.

    Every hook for users' operators calls this first, so that a captured Tensor becomes an input of the operator in the
    Program. Otherwise the operator would run at once, and would be missing in the Program.
    """
    tracer = modes().tracer
    return value if tracer is None else _with_variables(value, tracer)


def all_as_applied(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a hook's call, in the same way."""
    tracer = modes().tracer
    if tracer is None:
        return args, kwargs
    return _with_variables(args, tracer), {name: _with_variables(value, tracer) for name, value in kwargs.items()}


def as_results(variables: Sequence[Any]) -> Sequence[Any]:
    """What a hook appended to a Program: Variables without gradients if it is traced where nothing is recorded."""
    here = modes()
    if here.tracer is not None and not here.on:
        for variable in variables:
            variable.stop_gradient = True
    return variables


def _with_variables(value: Any, tracer: Any) -> Any:
    if isinstance(value, RunsOperators):
        return tracer.value(value)
    if isinstance(value, (list, tuple)) and not hasattr(value, "dtype"):
        make = value._make if hasattr(value, "_make") else type(value)
        return make([_with_variables(v, tracer) for v in value])
    return value


class RunsOperators(ValueMethods):
    """The base of Tensor, which runs operators."""

    __slots__ = ()
    __hash__ = ValueMethods.__hash__
    _array: np.ndarray
    stop_gradient: bool

    __add__, __radd__ = _binary_method("add", "__add__"), _binary_method("add", "__radd__")
    __sub__, __rsub__ = _binary_method("subtract", "__sub__"), _binary_method("subtract", "__rsub__")
    __mul__, __rmul__ = _binary_method("multiply", "__mul__"), _binary_method("multiply", "__rmul__")
    __truediv__, __rtruediv__ = _binary_method("divide", "__truediv__"), _binary_method("divide", "__rtruediv__")
    __lt__, __le__ = _binary_method("less_than", "__lt__"), _binary_method("less_equal", "__le__")
    __gt__, __ge__ = _binary_method("greater_than", "__gt__"), _binary_method("greater_equal", "__ge__")

    def apply_operator(
        self, definition: OpDef, inputs: Sequence[Any], attributes: Attributes, into: Any = None
    ) -> Applied:
        """Run the operator now, and record it if a gradient may be needed."""
        here = modes()
        if here.tracer is not None:
            return here.tracer.apply(definition, inputs, attributes, into)
        arrays: list[Any] = []
        kinds: Any = []
        for x in inputs:
            value = x._array if isinstance(x, RunsOperators) else x
            arrays.append(value)
            kinds.append(value.dtype if value.__class__ is ndarray else value.__class__)
        kinds = tuple(kinds)
        conversions = definition.call_cache.conversions.get(kinds)
        if conversions is None:
            inputs, arrays = _prepared(definition, inputs, arrays, kinds, attributes)
        elif conversions:
            arrays = _with_numbers(definition, inputs, arrays, conversions)
        if definition.checked:
            _check(definition, arrays, attributes)
        if into is not None:
            return _update(definition, arrays, attributes, into)
        try:  # as `definition.run` does, without the cost of one more call
            results = definition.kernel(*arrays, **attributes) if attributes else definition.kernel(*arrays)
        except Exception as error:
            raise kernel_error(definition, arrays, attributes, error) from error
        if results.__class__ is ndarray and not (here.on or definition.many_outputs or definition.views):
            return tape.new_tensor(results)
        outputs = [results] if results.__class__ is ndarray else _as_arrays(results)
        tensors = self._results(definition, inputs, arrays, outputs, attributes, here)
        return tensors[0] if len(tensors) == 1 and not definition.many_outputs else tuple(tensors) or None

    def _results(
        self,
        definition: OpDef,
        inputs: Sequence[Any],
        arrays: Sequence[Any],
        outputs: Sequence[np.ndarray],
        attributes: Attributes,
        here: Modes,
    ) -> list[Any]:
        """The outputs as Tensors; the operator is recorded if recording is on and a gradient may be needed."""
        tensors = []
        for array in outputs:
            tensors.append(tape.new_tensor(array))
        if definition.views and hasattr(inputs[0], "_array"):
            for tensor in tensors:
                if tensor._array.base is not None:
                    note_sharing(tensor, inputs[0])
        if here.on and definition.rules:
            needs, sources = [], []
            for x in inputs:
                needs_gradient = isinstance(x, RunsOperators) and not x.stop_gradient
                needs.append(needs_gradient)
                sources.append(x.source if needs_gradient else None)
            if True in needs:  # the user may change an array of NumPy before the backward pass
                arrays = [
                    array.copy() if array.__class__ is ndarray and array is x else array
                    for array, x in zip(arrays, inputs, strict=True)
                ]
                node = here.node(definition, sources, arrays, outputs, attributes, needs)
                for slot, tensor in enumerate(tensors):
                    if tensor._array.dtype.kind == "f":
                        tensor._node, tensor._slot, tensor.stop_gradient = node, slot, False
        return tensors


def _prepared(
    definition: OpDef, inputs: Sequence[Any], operands: Sequence[Any], kinds: Kinds, attributes: Attributes
) -> tuple[Sequence[Any], list[Any]]:
    """The inputs converted for the kernel, and their arrays. The conversions are remembered."""
    for value in operands:
        if hasattr(value, "apply_operator"):
            raise OperatorError(
                f"{definition.label}: a Tensor and a {type(value).__name__} were mixed; "
                "a Tensor has a value now, a Variable only when its Program runs"
            )
    prepared = definition.prepared(inputs)
    arrays = [x._array if isinstance(x, RunsOperators) else x for x in prepared]
    definition.check_types(arrays, attributes)
    definition.call_cache.remember_conversions(kinds, operands, arrays)
    return prepared, [a if a is None or isinstance(a, (np.ndarray, np.generic)) else np.asarray(a) for a in arrays]


def _with_numbers(definition: OpDef, inputs: Sequence[Any], arrays: list[Any], conversions: Conversions) -> list[Any]:
    """The arrays, with the Python numbers among them converted to arrays."""
    try:
        for place, dtype in conversions:
            arrays[place] = np.array(arrays[place], dtype)
    except OverflowError:  # the number does not fit the type; `prepared` raises a better error
        definition.prepared(inputs)
        raise
    return arrays


def _update(definition: OpDef, arrays: Sequence[Any], attributes: Attributes, into: Sequence[Any]) -> Sequence[Any]:
    """Run an operator whose results replace values in their own memory, as an optimiser's step does."""
    try:
        if definition.accumulates is not None and into[0]._array.flags.writeable:
            base, scale, term = [arrays[place] for place in definition.accumulates.places(definition.inputs)]
            results: Results = np.subtract(base, np.multiply(scale, term), into[0]._array)
        else:
            results = definition.kernel(*arrays, **attributes)
    except Exception as error:
        raise kernel_error(definition, arrays, attributes, error) from error
    for target, array in zip(into, _as_arrays(results), strict=True):
        write(target, array)
    return into


def _as_arrays(results: Results) -> list[np.ndarray]:
    """The results of a kernel, which may return an array, a NumPy scalar, a tuple of these, or None, as arrays."""
    if isinstance(results, tuple):
        return [np.asarray(r) for r in results]
    return [] if results is None else [np.asarray(results)]


def _check(definition: OpDef, arrays: Sequence[Array], attributes: Attributes) -> None:
    """Check the inputs with shape inference, unless inputs of these shapes and types were checked before."""
    signature = tuple([(a.shape, a.dtype) for a in arrays]) if attributes is definition.attributes else None
    if signature is None or signature not in definition.call_cache.valid:
        definition.infer_outputs([spec_of(a) for a in arrays], attributes)
        if signature is not None:
            definition.call_cache.remember_valid(signature)
