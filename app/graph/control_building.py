"""Building control flow: functions are traced into sub-blocks, and what these read becomes the operator's inputs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from app.errors import ProgramError
from app.graph import names
from app.graph.body import Body
from app.graph.control import cond, while_loop
from app.graph.gradients import active_names
from app.graph.program import Block, Program
from app.graph.variable import Variable
from app.ops.definition import OpDef
from app.ops.dtype import is_float


class Traced:
    """What a function appended to a block of its own, and which of its Variables it gave."""

    def __init__(self, block: Block, results: Sequence[Variable]):
        self.block = block
        self.results = list(results)

    @property
    def changed(self) -> list[str]:
        """The variables of blocks outside that operators in this block write."""
        return _each_once(n for op in self.block.ops for n in op.outputs if n not in self.block.vars)

    def close(self, formals: Sequence[str], changed: Sequence[str]) -> list[str]:
        """The names of the results, and after them of what was changed. Every value then has one writer.

        A value that is written over gets another name for what it is from there on.
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
            new = self.block.create_var(names.generate(name), old.shape, old.dtype, stop_gradient=old.stop_gradient)
            latest[name] = new.name
        defined.add(latest.get(name, name))
        return latest.get(name, name)

    def reads_from_outside(self, outputs: Sequence[str | None]) -> list[str]:
        """The variables of blocks outside that are read here, or handed out as they are."""
        reads = (n for op in self.block.ops for n in op.inputs if n is not None)
        return _each_once(n for n in (*reads, *outputs) if n is not None and n not in self.block.vars)

    def declare(self, taken: Sequence[str], outside: Block) -> None:
        """Give the block variables of its own for what it takes from outside, under the same names."""
        for name in taken:
            found = outside.find_var(name)
            if found is None:
                raise ProgramError(
                    f"block {self.block.idx} reads {name}, which is made in another branch or loop; "
                    "return it from the function that makes it"
                )
            formal(self.block, name, found, found.stop_gradient)


def formal(block: Block, name: str, like: Variable, stop_gradient: bool) -> Variable:
    """The variable that stands for a value from outside."""
    return block.create_var(name, like.shape, like.dtype, stop_gradient=stop_gradient)


def traced(program: Program, function: Callable[[Block], Iterable[Variable]]) -> Traced:
    """Run a function while operators are appended to a new block, inside the current one."""
    with program.sub_block() as block:
        return Traced(block, list(function(block)))


def append_cond(pred: Variable, true: Traced, false: Traced) -> list[Variable]:
    """Append the operator that chooses between two traced functions; gives its results.

    A variable of the outside that one of them writes becomes an output as well.
    """
    program = pred.program
    block = program.current_block()
    sides = (true, false)
    changed = _each_once(n for side in sides for n in side.changed)
    outputs: list[list[str | None]] = [list(side.close((), changed)) for side in sides]
    for given, side in zip(outputs, sides, strict=True):
        new = {i for i, name in enumerate(given) if name not in side.block.vars and not _has_value(block, str(name))}
        given[:] = [None if i in new else name for i, name in enumerate(given)]
    taken = _each_once(n for side, given in zip(sides, outputs, strict=True) for n in side.reads_from_outside(given))
    for side in sides:
        side.declare(taken, block)
    bodies = [Body(side.block, taken, given) for side, given in zip(sides, outputs, strict=True)]
    attributes = {"true": bodies[0], "false": bodies[1], "results": len(outputs[0])}
    specs = cond.infer_outputs([], attributes)
    flags = [all(v is None or v.stop_gradient for v in (b.output(i) for b in bodies)) for i in range(len(specs))]
    fresh = [
        block.create_var(_output_name(cond), spec.shape, spec.dtype, stop_gradient=flag)
        for spec, flag in zip(specs[: len(true.results)], flags, strict=False)
    ]
    written = [block.var(name) for name in changed]
    inputs = [pred, *(block.var(name) for name in taken)]
    return block.append_op(cond, inputs, attributes, [*fresh, *written])[: len(fresh)]


def append_while(
    initial: Sequence[Variable], says: Callable[..., Variable], makes: Callable[..., Sequence[Variable]]
) -> list[Variable]:
    """Append the operator that repeats `makes` on values while `says` holds of them; gives what they are in the end.

    A variable of the outside that `makes` writes is carried from one iteration to the next as well.
    """
    program = initial[0].program
    block = program.current_block()
    given_names = [names.generate(v.name) for v in initial]

    def formals(inside: Block) -> list[Variable]:
        pairs = zip(given_names, initial, strict=True)
        return [formal(inside, name, v, not is_float(v.dtype)) for name, v in pairs]

    condition = traced(program, lambda inside: [says(*formals(inside))])
    if condition.changed:
        raise ProgramError(f"the condition of a loop changes {condition.changed[0]}; change it in the loop's body")
    with _perhaps_changed(block) as constant:
        body = traced(program, lambda inside: makes(*formals(inside)))
        changed = body.changed
        for name in changed:
            constant.pop(name, None)
    outputs = body.close(given_names, changed)
    answer = condition.close(given_names, ())
    taken = _each_once((*condition.reads_from_outside(answer), *body.reads_from_outside(outputs)))
    taken = [*changed, *(name for name in taken if name not in changed)]
    for side in (condition, body):
        side.declare(taken, block)
    inputs = [*given_names, *taken]
    attributes = {
        "cond": Body(condition.block, inputs, answer),
        "body": Body(body.block, inputs, outputs),
        "results": len(outputs),
        "counter": -1,
    }
    values = [*initial, *(block.var(name) for name in taken)]
    active = active_carried(attributes["body"], [not v.stop_gradient for v in values], len(outputs))  # type: ignore[arg-type]
    for side in (condition, body):
        for name in given_names:
            side.block.var(name).stop_gradient = name not in active
    specs = while_loop.infer_outputs([], attributes)
    fresh = [
        block.create_var(_output_name(while_loop), spec.shape, spec.dtype, stop_gradient=name not in active)
        for spec, name in zip(specs, given_names, strict=False)
    ]
    written = [block.var(name) for name in changed]
    return block.append_op(while_loop, values, attributes, [*fresh, *written])[: len(fresh)]


@contextmanager
def _perhaps_changed(block: Block) -> Iterator[dict[str, Variable]]:
    """Take gradients to flow through everything computed outside while a loop's body is built.

    The body may write to it, further down, what gradients flow through; the next iteration then reads that. Those that
    are left in the dictionary at the end are constants again.
    """
    around = [b for b in block.program.blocks if block.is_within(b)]
    constant = {
        v.name: v
        for b in around
        for v in b.vars.values()
        if v.stop_gradient and not (v.is_data or v.persistable or v.dtype == "object") and is_float(v.dtype)
    }
    given = list(constant.values())
    for variable in given:
        variable.stop_gradient = False
    try:
        yield constant
    except BaseException:
        constant = {v.name: v for v in given}
        raise
    finally:
        for variable in constant.values():
            variable.stop_gradient = True


def active_carried(body: Body, needs: Sequence[bool], carried: int) -> set[str]:
    """The variables of a loop's body that depend on inputs whose gradients are wanted, in some iteration."""
    sources = {name for name, need in zip(body.inputs, needs, strict=True) if need}
    while True:
        active = active_names(body.block, sources)
        more = {body.inputs[i] for i in range(carried) if body.outputs[i] in active} - sources
        if not more:
            return active
        sources |= more


def _has_value(block: Block, name: str) -> bool:
    """Whether a variable outside has a value before the operator that is being built."""
    variable = block.var(name)
    home = variable.block
    given = (
        variable.persistable or variable.is_data or (all(name not in op.outputs for op in home.ops) and home.idx > 0)
    )
    return given or any(name in op.outputs for op in home.ops)


def _output_name(definition: OpDef) -> str:
    return names.generate(f"{definition.name}.out")


def _each_once(found: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(found))
