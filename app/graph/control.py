"""The operators of control flow: what they compute, given the bodies that are their attributes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from app.errors import DtypeError, ShapeError
from app.graph.body import Body
from app.graph.interpret import run_body
from app.ops.definition import operator
from app.ops.form import Choice, Loop
from app.ops.spec import UNKNOWN, Spec

# Choosing between two bodies


def _specs_of_choice(*values: Spec, true: Body, false: Body, results: int) -> list[Spec]:
    both = [(true.output(i), false.output(i)) for i in range(len(true.outputs))]
    return [_shared_spec([v.spec for v in pair if v is not None]) for pair in both]


def _shared_spec(specs: Sequence[Spec]) -> Spec:
    """What is known of a value that is one of several: sizes that differ are unknown."""
    sizes = zip(*(spec.shape for spec in specs), strict=True)
    return Spec(tuple(size[0] if len(set(size)) == 1 else UNKNOWN for size in sizes), specs[0].dtype)


@operator(_specs_of_choice, many_outputs=True, optional_gradients=True, form=Choice())
def cond(*values: Any, true: Body, false: Body, results: int) -> Any:
    """Run one body or the other on all values but the first, which says which.

    The first `results` outputs are what was asked for; those after them are kept for the gradient, and are zeros where
    the body that runs does not have them.
    """
    chosen, other = (true, false) if _truth(values[0]) else (false, true)
    given = run_body(chosen, values[1:])
    return tuple(_absent(other, i) if value is None else value for i, value in enumerate(given))


def _truth(value: Any) -> bool:
    if np.size(value) != 1:
        raise ShapeError(
            f"its condition must be one truth value, found shape {list(np.shape(value))}; "
            "make one of it with app.all or app.any"
        )
    if np.asarray(value).dtype != bool:
        raise DtypeError(f"its condition must be a truth value, found {np.asarray(value).dtype}; compare it first")
    return bool(np.asarray(value).reshape(())[()])


def _absent(body: Body, index: int) -> Any:
    """What stands for a value that only a body which does not run has: nothing reads its numbers."""
    variable = body.output(index)
    if variable is None or variable.dtype == "object":
        return None
    return np.zeros([max(size, 1) for size in variable.spec.shape], variable.dtype)


@cond.in_onnx
def _(onnx: Any, values: Any, true: Body, false: Body, results: int) -> Any:
    then, otherwise = (lambda body=body: onnx.run(body, values[1:])[:results] for body in (true, false))
    condition = onnx.Reshape(values[0], []) if values[0].rank else values[0]
    return [*onnx.either(condition, then, otherwise), *[None] * (len(true.outputs) - results)]


# Repeating a body


def _specs_of_loop(*values: Spec, cond: Body, body: Body, results: int, counter: int = -1) -> list[Spec]:
    outputs = [body.block.var(str(name)).spec for name in body.outputs]
    carried = [_shared_spec([body.block.var(n).spec, s]) for n, s in zip(body.inputs, outputs[:results], strict=False)]
    return [*carried, *(Spec((UNKNOWN, *spec.shape), spec.dtype) for spec in outputs[results:])]


@operator(_specs_of_loop, many_outputs=True, optional_gradients=True, form=Loop())
def while_loop(*values: Any, cond: Body, body: Body, results: int, counter: int = -1) -> Any:
    """While `cond` says so of all values, replace the first `results` of them by what `body` makes of all.

    What `body` gives after the results is kept of each iteration, one below the other, for the gradient. `counter` says
    which of the results counts iterations, where one was added for that.
    """
    carried, others = values[:results], values[results:]
    kept: list[list[Any]] = [[] for _ in body.outputs[results:]]
    while _truth(run_body(cond, (*carried, *others))[0]):
        given = run_body(body, (*carried, *others))
        carried = tuple(given[:results])
        for rows, value in zip(kept, given[results:], strict=True):
            rows.append(value)
    specs = [body.block.var(str(name)).spec for name in body.outputs[results:]]
    return (*carried, *map(_below_each_other, kept, specs))


@while_loop.in_onnx
def _(onnx: Any, values: Any, cond: Body, body: Body, results: int) -> Any:
    def says(carried: Any) -> Any:
        (answer,) = onnx.run(cond, [*carried, *values[results:]])
        return onnx.Reshape(answer, []) if answer.rank else answer

    def makes(carried: Any) -> Any:
        return onnx.run(body, [*carried, *values[results:]])[:results]

    found = onnx.repeated(values[:results], says, makes)
    return [*found, *[None] * (len(body.outputs) - results)]


def _below_each_other(rows: list[Any], spec: Spec) -> Any:
    """An array with a row for each iteration. A value that was absent in one is broadcast to the shape of others."""
    shapes = {np.shape(row) for row in rows}
    try:
        shape = np.broadcast_shapes(*shapes) if shapes else tuple(max(size, 0) for size in spec.shape)
    except ValueError as error:
        found = " and ".join(str(list(s)) for s in sorted(shapes)[:2])
        raise ShapeError(
            f"a value that its gradient needs changes its shape from one iteration to the next ({found}); "
            "a loop can have gradients where shapes stay"
        ) from error
    together = np.empty((len(rows), *shape), spec.dtype)
    for i, row in enumerate(rows):
        together[i] = row
    return together
