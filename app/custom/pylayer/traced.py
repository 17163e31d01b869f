"""A PyLayer in a Program: its forward is called with Variables, and one operator after it holds the gradient rule.

The operators of forward become part of the Program, and so do those of backward when gradients are appended. The
operator between them, `TracedLayer`, hands on the results of forward; the compiled engine removes it.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from app.custom.calling import call_function, let_through, place_raised
from app.custom.operator import CustomOperator, Origin, makes
from app.custom.pylayer.context import PyLayerContext
from app.custom.pylayer.operator import LayerOperator, like, values_among
from app.errors import AppError, OperatorError, ProgramError
from app.graph.defaults import program_guard, static_mode
from app.graph.variable import Variable
from app.ops.broadcasting import sum_like
from app.ops.definition import OpDef, apply
from app.ops.dtype import is_float
from app.ops.lowering import Unchanged
from app.ops.methods import ValueMethods
from app.ops.rules import Call
from app.ops.spec import may_broadcast
from app.reading import parameters_of
from app.tensor.dispatch import as_applied
from app.tensor.modes import modes

ADVICE = "use py_func or custom_op for this part"


class TracedContext(PyLayerContext):
    """The `ctx` of a PyLayer whose functions are called with Variables."""

    _dtypes: Sequence[str]
    """The types of the inputs."""
    _call: Call
    """The call that is differentiated."""

    def saved_tensor(self) -> tuple[Any, ...]:
        return tuple(self._saved or ())

    def _recorded(self, douts: Sequence[Any]) -> list[Any]:
        inputs = [self._call.input(place) for place, needed in enumerate(self._needs) if needed]
        return [*(d for d in douts if isinstance(d, Variable)), *inputs]


class TracedLayer(CustomOperator):
    """Hands on the results of a class's forward; their gradients are what the class's backward returns.

    Its inputs are those of forward, the results, and the other Variables that the context has for backward.
    """

    def __init__(
        self,
        layer: LayerOperator,
        inputs: Sequence[str],
        results: int,
        saved: int,
        context: TracedContext | None,
        dtypes: Sequence[str] = (),
    ):
        places = tuple(range(len(inputs), len(inputs) + results))
        super().__init__(
            layer.name,
            layer.function,
            lambda *arrays: tuple(np.copy(arrays[place]) for place in places),
            lambda *specs: tuple(specs[place] for place in places),
            backward=layer.backward_function,
            like=layer.like,
            inputs=[*inputs, *(f"result{i}" for i in range(results)), *(f"saved{i}" for i in range(saved))],
            outputs=[f"out{i}" for i in range(results)],
            optional_gradients=True,
            lowering=Unchanged(places),
            onnx=layer.onnx,
            where=layer.where,
        )
        self.gradient(self._gradients, [("call", None), ("douts", None)])
        self.layer, self.context, self.surrogate = layer, context, layer.surrogate
        self.dtypes = dtypes
        """The types of the results."""
        settings: dict[str, Any] = {"name": layer.name, "inputs": tuple(inputs), "results": results, "saved": saved}
        if isinstance(layer.onnx, str):
            settings["onnx"] = layer.onnx
        self.origin = Origin("pylayer", {}, settings)

    def _gradients(self, call: Call, douts: Sequence[Any]) -> list[Any]:
        if self.context is None:
            raise OperatorError(
                f"the gradient of {self.label} is the backward of its class, which a file does not contain: compute "
                "inside opsmith.no_grad(), or append the gradients before the Program is saved"
            )
        dout = next(dout for dout in douts if dout is not None)
        if not isinstance(dout, Variable):
            raise OperatorError(
                f"{self.label}: a backward on arrays that applies it can be differentiated in a Program only; on "
                "Tensors, write that backward in a PyLayer"
            )
        layer, context = self.layer, _with_values(self.context, call)
        with program_guard(dout.program), static_mode():
            arriving = [self._arriving(place, dout, call) for place, dout in enumerate(douts)]
            if context._among_results is not None:
                arriving = list(context._as_results(arriving, context._among_results))
            returned = _called(layer, "backward", layer.backward_function, (context, *arriving), {})
            gradients = [
                None if gradient is None else self._checked(gradient, place, context, call)
                for place, gradient in enumerate(context._as_inputs(returned))
            ]
        return [*gradients, *[None] * (len(call.needs) - len(gradients))]

    def _arriving(self, place: int, dout: Any, call: Call) -> Any:
        context = self.context
        assert context is not None
        if dout is None:
            return call.zeros(place) if context._materialize else None
        dtype = self.dtypes[place]
        return dout.astype(dtype) if context._same_dtype and dout.dtype != dtype else dout

    def _checked(self, gradient: Any, place: int, context: TracedContext, call: Call) -> Any:
        """A gradient with the shape and the type of an input of forward; None if that needs none."""
        if isinstance(gradient, ValueMethods) and not isinstance(gradient, Variable):
            raise OperatorError(
                f"{self.label}: backward returned a {type(gradient).__name__} as gradient {place}, expected a Variable "
                f"or None; {ADVICE}"
            )
        shape = call.input_shape(place)
        gradient = self.layer.checked_gradient(gradient, shape, context._needs[place], place)
        if gradient is None:
            return None
        others = [call.input_shape(i) for i in range(len(context._needs)) if i != place]
        if may_broadcast(shape, gradient.spec.shape, others):
            gradient = sum_like(gradient, call.like(place))
        dtype = context._dtypes[place]
        return gradient if gradient.dtype == dtype else gradient.astype(dtype)


def append(layer: LayerOperator, values: Sequence[Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Call a class's forward with Variables; returns its results, whose gradient is the class's backward."""
    if not all(isinstance(v, Variable) for v in values):
        raise OperatorError(
            f"{layer.label}: a Tensor and a Variable were mixed in one apply; "
            "a Tensor has a value now, a Variable only when its Program runs"
        )
    arguments = layer.arguments(args, kwargs)
    context = TracedContext(layer.label, layer.lenient, len(arguments), values_among(arguments))
    if modes().tracer is not None:
        modes().tracer.own(context)
    before = [v.name for v in values]
    with program_guard(values[0].program), static_mode():
        if layer.setup_context is not None:
            result = as_applied(_called(layer, "forward", layer.function, args, kwargs))
            _called(layer, "setup_context", layer.setup_context, (context, tuple(arguments), result), {})
        else:
            result = as_applied(_called(layer, "forward", layer.function, (context, *args), kwargs))
    if context._dirty or [v.name for v in values] != before:
        raise OperatorError(
            f"{layer.label}: forward changes an input in place, which others in the Program still read; return a new "
            "Tensor (x + 1, or a change of x.clone())"
        )
    results = layer.values_in(result, Variable, context)
    if not results:
        return result
    outputs = _handed_on(layer, context, _names(layer, args, kwargs, values), values, results)
    placed = iter(outputs)
    if isinstance(result, Variable):
        return outputs[0]
    return like(result, [next(placed) if isinstance(r, Variable) else r for r in result])


def _handed_on(
    layer: LayerOperator, context: TracedContext, names: Sequence[str], values: Sequence[Any], results: Sequence[Any]
) -> Sequence[Any]:
    """The results of forward as outputs of one operator, which has the gradient rule."""
    differentiable = [context._is_differentiable(v) and is_float(v.dtype) for v in results]
    places = {v.name: _Place("input", i) for i, v in enumerate(values)}
    changed = context._changed([v for v in results if v.name in places])
    unchanged = places.keys() - {v.name for v in changed}
    places |= {v.name: _Place("output", i) for i, v in enumerate(results) if v.name not in unchanged}
    count = len(values) + len(results)
    saved: list[Any] = []
    state = {name: _mapped(value, as_applied) for name, value in vars(context).items() if name not in _OF_RESULTS}
    for variable in _variables_in([*state.values()]):
        if variable.name not in places:
            places[variable.name] = _Place("input", count + len(saved))
            saved.append(variable)
    context_of_places = copy.copy(context)
    vars(context_of_places).clear()
    vars(context_of_places).update(
        {
            name: _mapped(value, lambda v: places[v.name] if isinstance(v, Variable) else v)
            for name, value in state.items()
        }
    )
    context_of_places._in_forward, context_of_places._dtypes = False, [v.dtype for v in values]
    definition = TracedLayer(layer, names, len(results), len(saved), context_of_places, [v.dtype for v in results])
    outputs = apply(definition, [*values, *results, *saved], {})
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    for variable, flows in zip(outputs, differentiable, strict=True):
        variable.stop_gradient = variable.stop_gradient or not flows or True not in context._needs
    last = {v.name: output for v, output in zip(results, outputs, strict=True) if places[v.name].kind == "output"}
    return [last.get(v.name, output) for v, output in zip(results, outputs, strict=True)]


_OF_RESULTS = ("_dirty", "_not_differentiable", "_not_in_place")
"""The attributes of a context that concern only the results of forward."""


class _Place(NamedTuple):
    """Where a Variable of a context is among the inputs and outputs of the operator."""

    kind: str
    place: int


def _variables_in(value: Any) -> Iterator[Variable]:
    if isinstance(value, Variable):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _variables_in(item)
    elif isinstance(value, dict):
        yield from _variables_in([*value.values()])


def _mapped(value: Any, replace: Callable[[Any], Any]) -> Any:
    """A value with others in place of the Tensors, Variables or places in it; the value itself if none changes."""
    if isinstance(value, (ValueMethods, _Place)):
        return replace(value)
    if isinstance(value, dict):
        items = {key: _mapped(item, replace) for key, item in value.items()}
        return items if any(items[key] is not item for key, item in value.items()) else value
    if isinstance(value, (list, tuple)):
        listed = [_mapped(item, replace) for item in value]
        return like(value, listed) if any(a is not b for a, b in zip(listed, value, strict=True)) else value
    return value


def _with_values(context: TracedContext, call: Call) -> TracedContext:
    """The context with the Variables of the call that is differentiated; it may be in a copy of the Program."""

    def value(at: _Place) -> Any:
        return call.input(at.place) if at.kind == "input" else call.output(at.place)

    filled = copy.copy(context)
    vars(filled).update({name: _mapped(held, value) for name, held in vars(context).items()})
    filled._call = call
    return filled if modes().tracer is None else modes().tracer.own(filled)


def _called(layer: LayerOperator, role: str, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """Call a user's function with Variables. If it needs their numbers, an error names its line.

    While a function is traced, what tracing raises passes unchanged.
    """
    tracer = modes().tracer
    try:
        if tracer is None:
            return call_function(function, layer, args, kwargs)
        return let_through(tracer.converted(function), layer, args, kwargs)
    except (AppError, AttributeError) as error:
        cause = error.__cause__ or error
        needs_numbers = isinstance(cause, ProgramError) or type(cause) is OperatorError
        if ADVICE in str(error) or not (needs_numbers or isinstance(getattr(cause, "obj", None), Variable)):
            raise
        from_outside = "set what it reads from outside as attributes of ctx in forward, or " * (role == "backward")
        raise OperatorError(
            f"{layer.label}: its {role}{place_raised(cause)} cannot be part of a Program, where it is called with "
            f"Variables: {cause}; {from_outside}{ADVICE}"
        ) from error


def _names(layer: LayerOperator, args: Any, kwargs: Any, values: Sequence[Any]) -> list[str]:
    """The names of the inputs: those of forward's parameters, if each parameter has one value; else x0, x1 …"""
    parameters = list(parameters_of(layer.function))[1 if layer.setup_context is None else 0 :]
    named = {**dict(zip(parameters, args, strict=False)), **kwargs}
    names = {id(value): name for name, value in named.items()}
    own_names = [names.get(id(value), "") for value in values]
    return (
        own_names if all(own_names) and len({*own_names}) == len(own_names) else [f"x{i}" for i in range(len(values))]
    )


# Reading a file


@makes("pylayer")
def _of_file(functions: Mapping[str, Any], settings: Mapping[str, Any], where: str) -> OpDef:
    layer = LayerOperator(
        settings["name"], _of_class, _of_class, None, lenient=False, onnx=settings.get("onnx"), like="", where=where
    )
    return TracedLayer(layer, settings["inputs"], settings["results"], settings["saved"], None)


def _of_class(*_: Any) -> None:
    """Stands for the functions of a class, which a file does not contain."""
