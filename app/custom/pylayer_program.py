"""A PyLayer in a Program: one operator that runs its forward, and one that runs its backward.

What forward leaves in its context reaches backward through a variable like any other, of the type `object`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from app.custom.again import derive_again
from app.custom.composed import Body
from app.custom.context import PyLayerContext
from app.custom.functions import call_function
from app.custom.layer_call import arguments_of, like, run_backward, run_forward, values_among
from app.custom.origin import Origin
from app.custom.probe import infer_by_running
from app.custom.symbolic import backward_of, examples_for, forward_of
from app.errors import OperatorError
from app.graph.variable import Variable
from app.ops.definition import OpDef, apply
from app.ops.spec import Spec
from app.reading import parameters_of
from app.tensor import Tensor, no_grad

if TYPE_CHECKING:
    from app.custom.pylayer import LayerDefinition


def append(eager: LayerDefinition, values: Sequence[Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Append the class to the Program of its Variables; gives the Variables of its outputs."""
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
    """The arguments of an apply, with ("value", 0) … in the place of the Variables among them."""

    args: Any
    kwargs: Any


def definition_of(
    eager: LayerDefinition, call: Call, stops: Sequence[bool], given: Sequence[Spec], outs: Sequence[Spec] = ()
) -> tuple[OpDef, Sequence[bool]]:
    """The operator that applies a class to values of these Specs, and which of its outputs have a gradient.

    `stops` says which values have none. What the class returns is learned by running it, if `outs` does not say so.
    """
    differentiable: list[bool] = []

    def fill(values: Sequence[Any]) -> tuple[Sequence[Any], dict[str, Any]]:
        return _filled(call.args, values), {key: _filled(written, values) for key, written in call.kwargs.items()}

    def forward(*arrays: np.ndarray) -> Any:
        tensors = [Tensor(np.asarray(a), stop) for a, stop in zip(arrays, stops, strict=True)]
        args, kwargs = fill(tensors)
        arguments = arguments_of(eager, args, kwargs)
        before = [t.inplace_version for t in tensors]
        context, result, outputs = run_forward(eager, args, kwargs, arguments, values_among(arguments), call_function)
        _refuse_changes(eager, context, tensors, before)
        if isinstance(result, (tuple, list)) and len(outputs) != len(result):
            raise OperatorError(f"{eager.label}: in a Program, forward can return Tensors only")
        context.close(outputs, None)
        differentiable[:] = [context.is_differentiable(o) and o._array.dtype.kind == "f" for o in outputs]
        return (*[t._array for t in outputs], context)

    specs = tuple(outs) or infer_by_running(lambda *arrays: forward(*arrays)[:-1], given)
    definition = OpDef(
        eager.name,
        forward,
        lambda *given: (*specs, Spec((), "object")),
        inputs=_input_names(eager, call, len(stops)),
        outputs=[*(f"out{i}" for i in range(len(specs))), "context"],
        optional_gradients=True,
        onnx=eager.layer.onnx,
        custom=True,
        where=eager.where,
    )
    needs = [not stop for stop in stops]
    definition.body = Body(forward_of(eager, fill, needs))
    settings = {"args": call.args, "kwargs": call.kwargs, "stops": tuple(stops), "outs": specs}
    hook, functions = eager.layer._made_by or ("pylayer", {"layer": eager.layer})
    definition.origin = Origin(hook, functions, settings)
    gradient = _attach_backward(eager, definition)
    gradient.body = Body(backward_of(eager, fill, needs), examples_for(definition))
    return definition, differentiable


def _refuse_changes(
    eager: LayerDefinition, context: PyLayerContext, tensors: Sequence[Tensor], before: Sequence[int]
) -> None:
    """Refuse a forward that changed what it was given, which is the engine's memory; it is tried before that."""
    for place, (tensor, version) in enumerate(zip(tensors, before, strict=True)):
        if tensor.inplace_version != version or any(tensor is dirty for dirty in context._dirty):
            raise OperatorError(
                f"{eager.label}: forward changes its input {place} in place, which others in the Program still read; "
                "return a new Tensor (x + 1, or a change of x.clone())"
            )


def _input_names(eager: LayerDefinition, call: Call, count: int) -> list[str]:
    """What the inputs are called: as forward's parameters, where each of them that has a value has one alone."""
    parameters = list(parameters_of(eager.kernel))[0 if eager.sets_up else 1 :]
    named = {**dict(zip(parameters, call.args[2], strict=False)), **call.kwargs}
    found = {content[1]: name for name, content in named.items() if content[0] == "value"}
    names = [found.get(place, "") for place in range(count)]
    plain = all(names) and not any(name.startswith(("out", "dout", "context")) for name in names)
    return names if plain else [f"x{i}" for i in range(count)]


def _attach_backward(eager: LayerDefinition, definition: OpDef) -> OpDef:
    x_names, out_names = definition.inputs, definition.outputs[:-1]
    x_end, out_end = len(x_names), len(x_names) + len(out_names)

    def backward(*given: Any) -> Any:
        xs, outs, douts, context = given[:x_end], given[x_end:out_end], given[out_end:-1], given[-1]
        if context._materialize:
            douts = tuple(np.zeros_like(o) if d is None else d for o, d in zip(outs, douts, strict=True))
        with no_grad():
            arrived = [d if d is None else Tensor(np.asarray(d)) for d in douts]
            specs = [(x.shape, x.dtype) for x in xs]
            gradients = run_backward(eager, context, arrived, specs, call=call_function)
        arrays = [np.zeros_like(x) if g is None else g._array for x, g in zip(xs, gradients, strict=True)]
        return arrays[0] if len(arrays) == 1 else tuple(arrays)

    takes = [*x_names, *out_names, *("d" + name for name in out_names), "context"]
    gradient = OpDef(
        definition.name + "_grad",
        backward,
        lambda *given: given[:x_end],
        inputs=takes,
        outputs=["d" + name for name in x_names],
        custom=True,
        where=definition.where,
    )
    derive_again(
        gradient,
        f"{definition.label} cannot be differentiated twice in a Program, where its forward or its backward is Python "
        "code that works on numbers; write both with the framework's operators",
    )
    gradient.origin = Origin("gradient", {"operator": definition})
    definition.own_gradient = gradient
    definition.gradient(lambda *given: apply(gradient, given, {}), takes)
    return gradient


def _written(value: Any, place_of: Mapping[int, int]) -> Any:
    """An argument with each Variable replaced by ("value", its place), and what else there is by ("plain", itself)."""
    if id(value) in place_of:
        return ("value", place_of[id(value)])
    if isinstance(value, (list, tuple)):
        kind = value if hasattr(value, "_fields") else type(value)()
        return ("many", kind, tuple(_written(v, place_of) for v in value))
    return ("plain", value)


def _filled(written: Any, tensors: Sequence[Tensor]) -> Any:
    """The argument again, with the Tensors of a run in the places."""
    kind, content, *items = written
    if kind == "many":
        return like(content, [_filled(w, tensors) for w in items[0]])
    return tensors[content] if kind == "value" else content
