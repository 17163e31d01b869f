"""A PyLayer in a Program: one operator that runs its forward, and one that runs its backward.

What forward leaves in its context reaches backward through a variable like any other, of the type `object`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from app.custom.functions import refuse_second_derivative
from app.custom.layer_call import arguments_of, like, run_backward, run_forward, values_among
from app.custom.probe import infer_by_running
from app.errors import OperatorError
from app.graph.program import Variable
from app.ops.definition import OpDef, apply
from app.ops.spec import Spec
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
    differentiable: list[bool] = []

    def forward(*arrays: np.ndarray) -> Any:
        tensors = [Tensor(np.asarray(a), v.stop_gradient) for a, v in zip(arrays, values, strict=True)]
        of_this_run = {id(v): t for v, t in zip(values, tensors, strict=True)}
        given = [_replaced(a, of_this_run) for a in args]
        named = {k: _replaced(a, of_this_run) for k, a in kwargs.items()}
        arguments = arguments_of(eager, given, named)
        context, result, outputs = run_forward(eager, given, named, arguments, values_among(arguments))
        if isinstance(result, (tuple, list)) and len(outputs) != len(result):
            raise OperatorError(f"{eager.label}: in a Program, forward can return Tensors only")
        context.close(outputs, None)
        differentiable[:] = [context.is_differentiable(o) and o._array.dtype.kind == "f" for o in outputs]
        return (*[t._array for t in outputs], context)

    specs = infer_by_running(lambda *arrays: forward(*arrays)[:-1], [v.spec for v in values])
    definition = OpDef(
        eager.name,
        forward,
        lambda *given: (*specs, Spec((), "object")),
        inputs=[f"x{i}" for i in range(len(values))],
        outputs=[*(f"out{i}" for i in range(len(specs))), "context"],
        optional_gradients=True,
        where=eager.where,
    )
    _attach_backward(eager, definition)
    *results, _ = apply(definition, values, {})
    for variable, wanted in zip(results, differentiable, strict=True):
        variable.stop_gradient = variable.stop_gradient or not wanted
    return results[0] if len(results) == 1 else tuple(results)


def _attach_backward(eager: LayerDefinition, definition: OpDef) -> None:
    x_names, out_names = definition.inputs, definition.outputs[:-1]
    x_end, out_end = len(x_names), len(x_names) + len(out_names)

    def backward(*given: Any) -> Any:
        xs, outs, douts, context = given[:x_end], given[x_end:out_end], given[out_end:-1], given[-1]
        if context._materialize:
            douts = tuple(np.zeros_like(o) if d is None else d for o, d in zip(outs, douts, strict=True))
        with no_grad():
            arrived = [d if d is None else Tensor(np.asarray(d)) for d in douts]
            gradients = run_backward(eager, context, arrived, [(x.shape, x.dtype) for x in xs])
        arrays = [np.zeros_like(x) if g is None else g._array for x, g in zip(xs, gradients, strict=True)]
        return arrays[0] if len(arrays) == 1 else tuple(arrays)

    takes = [*x_names, *out_names, *("d" + name for name in out_names), "context"]
    gradient = OpDef(
        definition.name + "_grad",
        backward,
        lambda *given: given[:x_end],
        inputs=takes,
        outputs=["d" + name for name in x_names],
        where=definition.where,
    )
    refuse_second_derivative(
        gradient,
        f"{definition.label} cannot be differentiated twice in a Program, where its backward runs as Python code; "
        "on Tensors it can",
    )
    definition.gradient(lambda *given: apply(gradient, given, {}), takes)


def _replaced(value: Any, of_this_run: Mapping[int, Any]) -> Any:
    """An argument with each Variable replaced by the Tensor of this run."""
    if isinstance(value, (list, tuple)):
        return like(value, [_replaced(v, of_this_run) for v in value])
    return of_this_run.get(id(value), value)
