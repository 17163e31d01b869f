"""A PyLayer in a Program: one operator that runs its forward, and one that runs its backward.

What forward leaves in its context reaches backward through a variable like any other, of the type `object`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from app.custom.context import PyLayerContext
from app.custom.probe import infer_by_running
from app.custom.pylayer import PyLayer, run_backward, tensor_outputs
from app.errors import OperatorError
from app.graph.program import Variable
from app.ops.definition import OpDef, apply
from app.ops.spec import Spec
from app.tensor import Tensor, no_grad


def append(
    layer: type[PyLayer], eager: OpDef, values: Sequence[Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Any:
    """Append the class to the Program of its Variables; gives the Variables of its outputs."""
    if not all(isinstance(v, Variable) for v in values):
        raise OperatorError(f"{eager.label}: Tensors and Variables were mixed in one apply")
    needs = tuple(not v.stop_gradient for v in values)

    def forward(*arrays: np.ndarray) -> Any:
        context = PyLayerContext(eager.label)
        context.needs_input_grad = needs
        tensors = [Tensor(a, stop_gradient=not n) for a, n in zip(arrays, needs, strict=True)]
        by_id = {id(v): t for v, t in zip(values, tensors, strict=True)}
        with no_grad():
            result = layer.forward(context, *_replaced(list(args), by_id), **_replaced(dict(kwargs), by_id))
        outputs = tensor_outputs(eager, result)
        if isinstance(result, (tuple, list)) and len(outputs) != len(result):
            raise OperatorError(f"{eager.label}: in a Program, forward can return Tensors only")
        context.close(None, outputs)
        return (*[t._array for t in outputs], context)

    specs = infer_by_running(lambda *arrays: forward(*arrays)[:-1], [v.spec for v in values], eager.label)
    definition = OpDef(
        eager.name,
        forward,
        lambda *given: (*specs, Spec((), "object")),
        inputs=[f"x{i}" for i in range(len(values))],
        outputs=[*(f"out{i}" for i in range(len(specs))), "context"],
        optional_gradients=True,
        where=eager.where,
    )
    _attach_backward(layer, definition, needs)
    results = apply(definition, values, {})[:-1]
    return results[0] if len(results) == 1 else results


def _attach_backward(layer: type[PyLayer], definition: OpDef, needs: Sequence[bool]) -> None:
    x_names, out_names = definition.inputs, definition.outputs[:-1]
    dout_names = ["d" + name for name in out_names]
    x_end, out_end = len(x_names), len(x_names) + len(out_names)

    def backward(*given: Any) -> Any:
        xs, outs, douts, context = given[:x_end], given[x_end:out_end], given[out_end:-1], given[-1]
        if context._materialize:
            douts = tuple(np.zeros_like(o) if d is None else d for o, d in zip(outs, douts, strict=True))
        with no_grad():
            gradients = run_backward(layer, context, douts, needs)
        arrays = [np.zeros_like(x) if g is None else g._array for x, g in zip(xs, gradients, strict=True)]
        return arrays[0] if len(arrays) == 1 else tuple(arrays)

    takes = [*x_names, *out_names, *dout_names, "context"]
    gradient = OpDef(
        definition.name + "_grad",
        backward,
        lambda *given: given[:x_end],
        inputs=takes,
        outputs=["d" + name for name in x_names],
        where=definition.where,
    )
    definition.gradient(lambda *given: apply(gradient, given, {}), takes)


def _replaced(value: Any, by_id: Mapping[int, Any]) -> Any:
    """Arguments with each Variable replaced by the Tensor of this run."""
    if isinstance(value, dict):
        return {k: _replaced(v, by_id) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_replaced(v, by_id) for v in value)
    return by_id.get(id(value), value)
