"""A PyLayer in a Program: one operator runs its forward, and one runs its backward.

The context is passed from forward to backward in a variable of the type `object`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from app.custom.calling import call_function, infer_by_running
from app.custom.composition import OnValues, Specs, derive_again, drawn
from app.custom.operator import CustomOperator, Origin
from app.custom.pylayer.context import PyLayerContext
from app.custom.pylayer.operator import LayerOperator, like, values_among
from app.errors import OperatorError
from app.graph.variable import Variable
from app.listed import as_list
from app.ops.creation import zeros_like
from app.ops.definition import OpDef, apply
from app.ops.spec import Spec
from app.reading import parameters_of
from app.tensor import Tensor, no_grad


def append(eager: LayerOperator, values: Sequence[Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Append the operator of a class to the Program of its Variables; gives the Variables of its outputs."""
    if not all(isinstance(v, Variable) for v in values):
        raise OperatorError(
            f"{eager.label}: a Tensor and a Variable were mixed in one apply; "
            "a Tensor has a value now, a Variable only when its Program runs"
        )
    place_of = {id(v): place for place, v in enumerate(values)}
    call = Call(_written(tuple(args), place_of), {key: _written(value, place_of) for key, value in kwargs.items()})
    stops = tuple(v.stop_gradient for v in values)
    definition, differentiable = definition_of(eager, call, stops, [v.spec for v in values])
    *results, _ = apply(definition, values, {})
    for variable, wanted in zip(results, differentiable, strict=True):
        variable.stop_gradient = variable.stop_gradient or not wanted
    return results[0] if len(results) == 1 else tuple(results)


class Call(NamedTuple):
    """The arguments of an apply, with ("value", 0) … in place of the Variables among them."""

    args: Any
    kwargs: Any


def definition_of(
    eager: LayerOperator,
    call: Call,
    stops: Sequence[bool],
    given: Sequence[Spec],
    outs: Sequence[Spec] = (),
) -> tuple[OpDef, Sequence[bool]]:
    """The operator that applies a class to values of these Specs, and which of its outputs have a gradient.

    `stops` says which values have none. The outputs' Specs are `outs`, or are found by running the class.
    """
    differentiable: list[bool] = []

    def fill(values: Sequence[Any]) -> tuple[Sequence[Any], dict[str, Any]]:
        return _filled(call.args, values), {key: _filled(written, values) for key, written in call.kwargs.items()}

    def forward(*arrays: np.ndarray) -> Any:
        tensors = [Tensor(np.asarray(a), stop) for a, stop in zip(arrays, stops, strict=True)]
        args, kwargs = fill(tensors)
        arguments = eager.arguments(args, kwargs)
        before = [t.inplace_version for t in tensors]
        context, result, outputs = eager.forward(args, kwargs, arguments, values_among(arguments), call_function)
        _refuse_changes(eager, context, tensors, before)
        if isinstance(result, (tuple, list)) and len(outputs) != len(result):
            raise OperatorError(f"{eager.label}: in a Program, forward can return Tensors only")
        context._close(outputs, None)
        differentiable[:] = [context._is_differentiable(o) and o._array.dtype.kind == "f" for o in outputs]
        return (*[t._array for t in outputs], context)

    specs = tuple(outs) or infer_by_running(lambda *arrays: forward(*arrays)[:-1], given)
    definition = CustomOperator(
        eager.name,
        eager.function,
        forward,
        lambda *given: (*specs, Spec((), "object")),
        inputs=_input_names(eager, call, len(stops)),
        outputs=[*(f"out{i}" for i in range(len(specs))), "context"],
        works_on="Tensors",
        backward=eager.backward_function,
        like=eager.like,
        optional_gradients=True,
        onnx=eager.onnx,
        where=eager.where,
    )
    definition.surrogate = eager.surrogate
    symbolic = _Symbolic(eager, fill, [not stop for stop in stops])
    definition.on_values = OnValues(symbolic.forward)
    settings = {"args": call.args, "kwargs": call.kwargs, "stops": tuple(stops), "outs": specs}
    definition.origin = Origin(eager.origin.hook, eager.origin.functions, settings)
    _differentiate(eager, definition, OnValues(symbolic.backward, _examples_for(definition)))
    return definition, differentiable


def _refuse_changes(
    eager: LayerOperator, context: PyLayerContext, tensors: Sequence[Tensor], before: Sequence[int]
) -> None:
    """Raise an error for a forward that changed its inputs, which would be the engine's memory."""
    for place, (tensor, version) in enumerate(zip(tensors, before, strict=True)):
        if tensor.inplace_version != version or any(tensor is dirty for dirty in context._dirty):
            raise OperatorError(
                f"{eager.label}: forward changes its input {place} in place, which others in the Program still read; "
                "return a new Tensor (x + 1, or a change of x.clone())"
            )


def _input_names(eager: LayerOperator, call: Call, count: int) -> list[str]:
    """The names of the inputs: those of forward's parameters, if each parameter has one value; else x0, x1 …"""
    parameters = list(parameters_of(eager.function))[1 if eager.setup_context is None else 0 :]
    named = {**dict(zip(parameters, call.args[2], strict=False)), **call.kwargs}
    found = {content[1]: name for name, content in named.items() if content[0] == "value"}
    names = [found.get(place, "") for place in range(count)]
    plain = all(names) and not any(name.startswith(("out", "dout", "context")) for name in names)
    return names if plain else [f"x{i}" for i in range(count)]


def _differentiate(eager: LayerOperator, definition: CustomOperator, on_values: OnValues) -> None:
    """Let the class's backward, for Variables `on_values`, compute the gradients of an operator in a Program."""
    x_names, out_names = definition.inputs, definition.outputs[:-1]
    x_end, out_end = len(x_names), len(x_names) + len(out_names)

    def backward(*given: Any) -> Any:
        xs, outs, douts, context = given[:x_end], given[x_end:out_end], given[out_end:-1], given[-1]
        if context._materialize:
            douts = tuple(np.zeros_like(o) if d is None else d for o, d in zip(outs, douts, strict=True))
        with no_grad():
            arrived = [d if d is None else Tensor(np.asarray(d)) for d in douts]
            specs = [(x.shape, x.dtype) for x in xs]
            gradients = eager.backward(context, arrived, specs, call=call_function)
        arrays = [np.zeros_like(x) if g is None else g._array for x, g in zip(xs, gradients, strict=True)]
        return arrays[0] if len(arrays) == 1 else tuple(arrays)

    takes = [*x_names, *out_names, *("d" + name for name in out_names), "context"]
    counts = [("input", x_end), ("output", len(out_names)), ("dout", len(out_names))]
    sources = [(kind, place) for kind, count in counts for place in range(count)]
    gradient = CustomOperator(
        definition.name + "_grad",
        eager.backward_function,
        backward,
        lambda *given: given[:x_end],
        works_on="Tensors",
        inputs=takes,
        outputs=["d" + name for name in x_names],
        where=definition.where,
    )
    gradient.on_values = on_values
    derive_again(
        gradient,
        on_values,
        f"{definition.label} cannot be differentiated twice in a Program, where its forward or its backward is Python "
        "code that works on numbers; write both with the framework's operators",
    )
    definition.gradient_operator = gradient
    definition.gradient(lambda *given: apply(gradient, given, {}), [*sources, ("output", len(out_names))])


def _written(value: Any, place_of: Mapping[int, int]) -> Any:
    """An argument with ("value", position) in place of each Variable, and ("plain", value) for other values."""
    if id(value) in place_of:
        return ("value", place_of[id(value)])
    if isinstance(value, (list, tuple)):
        kind = value if hasattr(value, "_fields") else type(value)()
        return ("many", kind, tuple(_written(v, place_of) for v in value))
    return ("plain", value)


def _filled(written: Any, tensors: Sequence[Tensor]) -> Any:
    """The argument again, with the Tensors of a run in place of the Variables."""
    kind, content, *items = written
    if kind == "many":
        return like(content, [_filled(w, tensors) for w in items[0]])
    return tensors[content] if kind == "value" else content


# The composition of a class


Fill = Callable[[Sequence[Any]], tuple[Sequence[Any], dict[str, Any]]]
"""Gives the arguments of an apply for the values of a run."""


class _SymbolicContext(PyLayerContext):
    """A context for Variables. It gives back what was saved unchanged."""

    def save_for_backward(self, *tensors: Any) -> None:
        self._saved = tensors

    def saved_tensor(self) -> tuple[Any, ...]:
        return tuple(self._saved or ())


class _Symbolic:
    """A class's forward and backward as functions of Variables, to find their compositions."""

    def __init__(self, eager: LayerOperator, fill: Fill, needs: Sequence[bool]):
        self._eager, self._fill, self._needs = eager, fill, list(needs)

    def forward(self, *values: Any) -> Any:
        return self._run(values)[1]

    def _run(self, values: Sequence[Any]) -> tuple[PyLayerContext, Any]:
        eager = self._eager
        args, kwargs = self._fill(values)
        arguments = eager.arguments(args, kwargs)
        context = _SymbolicContext(eager.label, eager.lenient, len(arguments), values_among(arguments))
        context._needs = self._needs
        if eager.setup_context is None:
            return context, eager.function(context, *args, **kwargs)
        result = eager.function(*args, **kwargs)
        eager.setup_context(context, tuple(arguments), result)
        return context, result

    def backward(self, *given: Any) -> list[Any]:
        """The gradients, from the inputs, the outputs and their gradients; the context is made again."""
        xs = given[: len(self._needs)]
        context, result = self._run(xs)
        outputs = as_list(result)
        douts: Sequence[Any] = given[-1 - len(outputs) : -1]
        if context._materialize:
            douts = [zeros_like(o) if d is None else d for o, d in zip(outputs, douts, strict=True)]
        gradients = context._as_inputs(self._eager.backward_function(context, *douts))
        return [zeros_like(x) if g is None else g for x, g in zip(xs, gradients, strict=True)]


def _examples_for(definition: OpDef) -> Callable[[Specs], list[Any]]:
    """Makes inputs to try a backward on: its outputs and its context come from the forward."""

    def examples(specs: Specs) -> list[Any]:
        some = drawn(specs)
        inputs = some[: len(definition.inputs)]
        results: Any = definition.kernel(*inputs)
        *outputs, context = results
        douts = some[len(inputs) + len(outputs) : -1]
        return [*inputs, *outputs, *douts, context]

    return examples
