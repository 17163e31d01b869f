"""Control flow: the operators `cond` and `while_loop`, and how they are built from functions.

A function is traced into a sub-block, and the outer variables that it reads become inputs of the operator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from app.errors import DtypeError, ProgramError, ShapeError
from app.graph.gradients import active_names
from app.graph.interpret import RunValue, run_body
from app.graph.program import Block, Body, Program
from app.graph.variable import Variable
from app.ops.definition import operator
from app.ops.dtype import is_float
from app.ops.lowering import Choice, Loop
from app.ops.spec import UNKNOWN, Spec

# cond


def _specs_of_choice(*values: Spec, true: Body, false: Body) -> list[Spec]:
    return [_shared_spec([true.output(i).spec, false.output(i).spec]) for i in range(len(true.outputs))]


def _shared_spec(specs: Sequence[Spec]) -> Spec:
    """The Spec of a value with one of several Specs; sizes that differ become unknown."""
    sizes = zip(*(spec.shape for spec in specs), strict=True)
    return Spec(tuple(size[0] if len(set(size)) == 1 else UNKNOWN for size in sizes), specs[0].dtype)


@operator(_specs_of_choice, many_outputs=True, optional_gradients=True, lowering=Choice())
def cond(*values: RunValue, true: Body, false: Body) -> tuple[RunValue, ...]:
    """Run one of two bodies, selected by the first value, on the other values."""
    return tuple(run_body(true if _truth(values[0]) else false, values[1:]))


def _truth(value: RunValue) -> bool:
    if np.size(value) != 1:
        raise ShapeError(
            f"its condition must be a single boolean, found shape {list(np.shape(value))}; "
            "reduce it with opsmith.all or opsmith.any"
        )
    if np.asarray(value).dtype != bool:
        raise DtypeError(f"its condition must be boolean, found {np.asarray(value).dtype}; use a comparison")
    return bool(np.asarray(value).reshape(())[()])


@cond.in_onnx
def _(onnx: Any, values: Sequence[Any], true: Body, false: Body) -> list[Any]:
    then, otherwise = (lambda body=body: onnx.run(body, values[1:]) for body in (true, false))
    condition = onnx.Reshape(values[0], []) if values[0].rank else values[0]
    return list(onnx.either(condition, then, otherwise))


# while_loop


def _specs_of_loop(*values: Spec, cond: Body, body: Body) -> list[Spec]:
    pairs = [(body.block.var(name), body.output(i)) for i, name in enumerate(body.inputs[: len(body.outputs)])]
    return [*(_shared_spec([old.spec, new.spec]) for old, new in pairs), Spec((), "int64")]


@operator(_specs_of_loop, many_outputs=True, optional_gradients=True, lowering=Loop())
def while_loop(*values: RunValue, cond: Body, body: Body) -> tuple[RunValue, ...]:
    """While `cond` of the values is true, replace the first ones, the carried values, by the outputs of `body`.

    Returns the carried values, and the number of iterations.
    """
    carried, others = values[: len(body.outputs)], values[len(body.outputs) :]
    count = 0
    while _truth(run_body(cond, (*carried, *others))[0]):
        carried = tuple(run_body(body, (*carried, *others)))
        count += 1
    return (*carried, np.asarray(count, np.int64))


@while_loop.in_onnx
def _(onnx: Any, values: Sequence[Any], cond: Body, body: Body) -> list[Any | None]:
    carried = len(body.outputs)

    def condition(now: Sequence[Any]) -> Any:
        (is_true,) = onnx.run(cond, [*now, *values[carried:]])
        return onnx.Reshape(is_true, []) if is_true.rank else is_true

    def step(now: Sequence[Any]) -> list[Any]:
        return list(onnx.run(body, [*now, *values[carried:]]))

    return [*onnx.repeated(values[:carried], condition, step), None]  # the count is for gradients


# Building


class Traced:
    """A traced function: the block with its operators, and the Variables that it returned."""

    def __init__(self, block: Block, results: Sequence[Variable]):
        self.block = block
        self.results = list(results)

    @property
    def changed(self) -> list[str]:
        """The outer variables that operators in this block overwrite."""
        return _unique(n for op in self.block.ops for n in op.outputs if n not in self.block.vars)

    def close(self, formals: Sequence[str], changed: Sequence[str]) -> list[str]:
        """Rename overwritten values, so that each name has one value; returns the names of results and `changed`.

        `formals` are the names of the inputs.
        """
        latest: dict[str, str] = {}
        defined = {*formals, *changed}
        for op in self.block.ops:
            op.inputs = tuple(latest.get(n, n) if n else n for n in op.inputs)
            op.outputs = tuple(self._new_version(n, defined, latest) for n in op.outputs)
        return [latest.get(name, name) for name in (*(v.name for v in self.results), *changed)]

    def _new_version(self, name: str, defined: set[str], latest: dict[str, str]) -> str:
        if name in defined:
            old = self.block.var(name)
            new = self.block.create_var(
                self.block.new_name(name), old.shape, old.dtype, stop_gradient=old.stop_gradient
            )
            latest[name] = new.name
        defined.add(latest.get(name, name))
        return latest.get(name, name)

    def reads_from_outside(self, outputs: Sequence[str]) -> list[str]:
        """The outer variables that are read here, or returned unchanged."""
        reads = (n for op in self.block.ops for n in op.inputs if n is not None)
        return _unique(n for n in (*reads, *outputs) if n is not None and n not in self.block.vars)

    def prune(self) -> None:
        """Remove the operators that no result depends on, with their variables."""
        needed = {v.name for v in self.results}
        ops = []
        for op in reversed(self.block.ops):
            if needed.isdisjoint(op.outputs):
                for name in op.outputs:
                    self.block.vars.pop(name, None)
            else:
                ops.append(op)
                needed.update(op.input_arg_names)
        self.block.ops = ops[::-1]

    def declare(self, inputs: Sequence[str], outside: Block) -> None:
        """Create variables in the block for its inputs, with the names of the outer variables."""
        for name in inputs:
            variable = outside.find_var(name)
            if variable is None:
                raise ProgramError(
                    f"block {self.block.idx} reads {name}, which is computed in another branch or loop; "
                    "return it from the function that computes it"
                )
            create_formal(self.block, name, variable, variable.stop_gradient)


def create_formal(block: Block, name: str, like: Variable, stop_gradient: bool) -> Variable:
    """Create the variable of a body for an outer value."""
    return block.create_var(name, like.shape, like.dtype, stop_gradient=stop_gradient)


def traced(program: Program, function: Callable[[Block], Iterable[Variable]]) -> Traced:
    """Call a function that appends operators, in a new block inside the current one."""
    with program.sub_block() as block:
        return Traced(block, list(function(block)))


def append_cond(pred: Variable, true: Traced, false: Traced) -> list[Variable]:
    """Append `cond` with two traced functions; returns its results.

    An outer variable that one of them overwrites becomes an output too.
    """
    program = pred.program
    block = program.current_block()
    sides = (true, false)
    changed = _unique(n for side in sides for n in side.changed)
    outputs = [side.close((), changed) for side in sides]
    for name in (n for side, names in zip(sides, outputs, strict=True) for n in names if n not in side.block.vars):
        if not _has_value(block, name):
            raise ProgramError(
                f"only one branch writes to {name}, which has no value before: write to it in both, or before them"
            )
    captured = _unique(n for side, names in zip(sides, outputs, strict=True) for n in side.reads_from_outside(names))
    for side in sides:
        side.declare(captured, block)
    bodies = [Body(side.block, captured, names) for side, names in zip(sides, outputs, strict=True)]
    attributes = dict(zip(("true", "false"), bodies, strict=True))
    specs = cond.infer_outputs([], attributes)
    created = [
        block.create_var(
            block.new_name("cond.out"),
            spec.shape,
            spec.dtype,
            stop_gradient=all(body.output(i).stop_gradient for body in bodies),
        )
        for i, spec in enumerate(specs[: len(true.results)])
    ]
    overwritten = [block.var(name) for name in changed]
    inputs = [pred, *(block.var(name) for name in captured)]
    return block.append_op(cond, inputs, attributes, [*created, *overwritten])[: len(created)]


def append_while(
    initial: Sequence[Variable], condition_of: Callable[..., Variable], step: Callable[..., Sequence[Variable]]
) -> list[Variable]:
    """Append `while_loop`, which repeats `step` while `condition_of` is true; returns the final values.

    An outer variable that `step` overwrites is a carried variable too.
    """
    program = initial[0].program
    block = program.current_block()
    formal_names = [block.new_name(v.name) for v in initial]

    def formals(inside: Block) -> list[Variable]:
        pairs = zip(formal_names, initial, strict=True)
        return [create_formal(inside, name, v, not is_float(v.dtype)) for name, v in pairs]

    condition = traced(program, lambda inside: [condition_of(*formals(inside))])
    if condition.changed:
        raise ProgramError(f"the condition of a loop changes {condition.changed[0]}; change it in the loop's body")
    with _with_gradients(block) as constants:
        body = traced(program, lambda inside: step(*formals(inside)))
        changed = body.changed
        for name in changed:
            constants.pop(name, None)
    outputs = body.close(formal_names, changed)
    condition_outputs = condition.close(formal_names, ())
    captured = _unique((*condition.reads_from_outside(condition_outputs), *body.reads_from_outside(outputs)))
    captured = [*changed, *(name for name in captured if name not in changed)]
    for side in (condition, body):
        side.declare(captured, block)
    inputs = [*formal_names, *captured]
    repeated = Body(body.block, inputs, outputs)
    attributes = {"cond": Body(condition.block, inputs, condition_outputs), "body": repeated}
    values = [*initial, *(block.var(name) for name in captured)]
    active = active_carried(repeated, [not v.stop_gradient for v in values])
    for side in (condition, body):
        for name in formal_names:
            side.block.var(name).stop_gradient = name not in active
    specs = while_loop.infer_outputs([], attributes)
    created = [
        block.create_var(block.new_name("while_loop.out"), spec.shape, spec.dtype, stop_gradient=name not in active)
        for spec, name in zip(specs, formal_names, strict=False)
    ]
    count = block.create_var(block.new_name("while_loop.count"), (), "int64", stop_gradient=True)
    into = [*created, *(block.var(name) for name in changed), count]
    return block.append_op(while_loop, values, attributes, into)[: len(created)]


@contextmanager
def _with_gradients(block: Block) -> Iterator[dict[str, Variable]]:
    """While the body of a loop is built, let gradients flow through every value computed outside.

    The body may overwrite such a variable with a value that has a gradient, which the next iteration reads. Variables
    that are still in the dictionary at the end get `stop_gradient` again.
    """
    around = [b for b in block.program.blocks if block.is_within(b)]
    constants = {
        v.name: v
        for b in around
        for v in b.vars.values()
        if v.stop_gradient and not (v.is_data or v.persistable) and is_float(v.dtype)
    }
    changed = list(constants.values())
    for variable in changed:
        variable.stop_gradient = False
    try:
        yield constants
    except BaseException:
        constants = {v.name: v for v in changed}
        raise
    finally:
        for variable in constants.values():
            variable.stop_gradient = True


def active_carried(body: Body, needs: Sequence[bool]) -> set[str]:
    """The variables of a loop body that depend, in any iteration, on inputs whose gradients are needed."""
    sources = {name for name, need in zip(body.inputs, needs, strict=True) if need}
    while True:
        active = active_names(body.block, sources)
        more = {old for old, new in zip(body.inputs, body.outputs, strict=False) if new in active} - sources
        if not more:
            return active
        sources |= more


def _has_value(block: Block, name: str) -> bool:
    """Whether an outer variable has a value before the operator that is being built."""
    variable = block.find_var(name)
    if variable is None:  # of another branch or loop, which `declare` refuses
        return True
    home = variable.block
    return variable.persistable or variable.is_data or home.idx > 0 or any(name in op.outputs for op in home.ops)


def _unique(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))
