"""Control flow: steps that contain steps. Variables inside get names that are unique in the whole Program.

A body reads its inputs directly. It writes an output directly into its variable if nothing reads the old value
afterwards; otherwise the output is copied at the end.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from app.engine.compiled.kinds.call import CallbackStep
from app.engine.compiled.kinds.native import LowerOne, NativeStep, NotNativeError
from app.engine.compiled.kinds.python import PythonStep
from app.engine.compiled.kinds.view import ConstantStep
from app.engine.compiled.language import Break, Call, Do, Forever, If, Not
from app.engine.compiled.shapes import shapes_inside
from app.engine.compiled.steps import WHOLE, Lowered, Step
from app.engine.compiled.writer import Writer
from app.graph.program import Body, Operator
from app.ops.creation import assign
from app.ops.lowering import Alias, Choice, Constant, Elementwise, Fused, Loop


class ControlStep(NativeStep):
    """Runs one of two bodies, or one body repeatedly. A single thread runs everything inside."""

    def __init__(self, op: Operator, lowered: Lowered, bodies: Mapping[str, list[Step]], condition: str):
        super().__init__(op, lowered, "")
        if any(size != 1 for size in lowered.shapes[condition]):
            raise NotNativeError("its condition may have more than one element")
        self._bodies, self._condition = bodies, condition
        self.calls_function = any(step.calls_function for steps in bodies.values() for step in steps)
        inside = sum(not step.bodies and not isinstance(step, ConstantStep) for step in self.everything)
        self.verdict = f"compiled: a native {self.word}, {inside} step{'s' * (inside != 1)} inside"

    word = ""
    """The statement of Python that it is like."""

    @property
    def bodies(self) -> Mapping[str, list[Step]]:
        return self._bodies

    @property
    def condition(self) -> str:
        return self._condition


class IfStep(ControlStep):
    """Runs one of two bodies."""

    word = "if"

    def write(self, out: Writer) -> None:
        holds, fails = self.bodies.values()
        statement = If(out.number(self.condition))
        out.add(statement)
        with out.inside(statement.body):
            _write_inside(holds, out)
        with out.inside(statement.otherwise):
            _write_inside(fails, out)


class WhileStep(ControlStep):
    """Runs its body while a condition holds."""

    word = "while"
    repeated = ("condition", "body")

    def write(self, out: Writer) -> None:
        for name in self.op.outputs:
            if name in self.lowered.kept:
                out.do("forget", out.array(name))
        before, asking, body = (self.bodies[word] for word in ("before", "condition", "body"))
        _write_inside(before, out)
        loop = Forever()
        out.add(loop)
        with out.inside(loop.body):
            _write_inside(asking, out)
            with out.when(Not(out.number(self.condition))):
                out.add(Break())
            _write_inside(body, out)


class KeepStep(NativeStep):
    """Stores a value of each iteration of a loop, for the gradient."""

    def __init__(self, name: str, history: str, lowered: Lowered):
        super().__init__(Operator(assign, [name], [history], {}), lowered, "compiled: kept for the gradient")

    made = ()

    @property
    def comment(self) -> list[str]:
        return []

    def write(self, out: Writer) -> None:
        out.add(Do(Call("keep", (out.array(self.op.outputs[0]), out.array(str(self.op.inputs[0]))))))


def _write_inside(steps: Sequence[Step], out: Writer) -> None:
    for step in steps:
        if isinstance(step, NativeStep):
            out.comment(step.comment)
            step.write(out)


def lower_choice(op: Operator, lowered: Lowered, lower_one: LowerOne) -> Step:
    """The step of a choice between two bodies."""
    lowering: Choice = op.definition.lowering
    with _undone_if_not_native(lowered):
        inside = {}
        for name in (lowering.if_true, lowering.if_false):
            body = op.bodies[name]
            opened = _Opened(op, name, dict(zip(body.inputs, map(str, op.inputs[1:]), strict=True)), lowered, lower_one)
            wanted = {
                i: out for i, out in enumerate(op.outputs) if body.outputs[i] is not None and out not in op.inputs
            }
            steps = opened.steps(opened.direct(wanted, lambda place, inner: True))
            pairs = [(opened.names[n], out) for n, out in zip(body.outputs, op.outputs, strict=True) if n is not None]
            inside[name] = [*steps, *_copies(pairs, lowered, lower_one)]
        return IfStep(op, lowered, inside, str(op.inputs[0]))


def lower_loop(op: Operator, lowered: Lowered, lower_one: LowerOne) -> Step:
    """The step of a loop."""
    with _undone_if_not_native(lowered):
        return _loop(op, lowered, lower_one)


@contextmanager
def _undone_if_not_native(lowered: Lowered) -> Iterator[None]:
    """Restore what `lowered` knows of variables if something inside the block turns out not to be native."""
    known = dict(lowered.shapes), dict(lowered.inner), dict(lowered.constants), dict(lowered.roots), set(lowered.kept)
    try:
        yield
    except NotNativeError:
        lowered.shapes, lowered.inner, lowered.constants, lowered.roots, lowered.kept = known
        raise


def _loop(op: Operator, lowered: Lowered, lower_one: LowerOne) -> Step:
    lowering: Loop = op.definition.lowering
    says, makes, results = op.bodies[lowering.condition], op.bodies[lowering.body], op.attributes["results"]
    inputs, states = list(map(str, op.inputs)), op.outputs[:results]
    pairs = list(zip(inputs, states, strict=False))
    for place in range(results, len(inputs)):
        if inputs[place] in states:  # the loop changes it, and reads the value from before
            inputs[place] = _temporary(inputs[place], lowered)
            pairs.append((str(op.inputs[place]), inputs[place]))
    taken = [*states, *inputs[results:]]
    before = _copies(pairs, lowered, lower_one)
    condition = _Opened(op, lowering.condition, dict(zip(says.inputs, taken, strict=True)), lowered, lower_one)
    asking = condition.steps({})
    body = _Opened(op, lowering.body, dict(zip(makes.inputs, taken, strict=True)), lowered, lower_one)
    kept = list(zip(makes.outputs[results:], op.outputs[results:], strict=True))
    lowered.kept.update(history for _, history in kept)
    direct = body.direct(dict(enumerate(states)), lambda place, inner: _is_last_use(makes, results, place, inner))
    steps = body.steps(direct, {str(value): history for value, history in kept})
    news = [(body.names[str(n)], state) for n, state in zip(makes.outputs, states, strict=False)]
    inside = {"before": before, "condition": asking, "body": [*steps, *_copies(news, lowered, lower_one)]}
    return WhileStep(op, lowered, inside, condition.names[str(says.outputs[0])])


def _is_last_use(body: Body, results: int, place: int, inner: str) -> bool:
    """Return whether a loop's new value may overwrite the old one: nothing reads the old one afterwards."""
    old, operators = body.inputs[place], body.block.ops
    if old in body.outputs[:results]:
        return False
    at = next(i for i, op in enumerate(operators) if inner in op.outputs)
    if any(old in op.inputs for op in operators[at + 1 :]):
        return False
    if any(old in op.inputs and isinstance(op.definition.lowering, Alias) for op in operators[:at]):
        return False
    lowering = operators[at].definition.lowering
    if old not in operators[at].inputs or operators[at].bodies:
        return True
    if not isinstance(lowering, Fused):
        return isinstance(lowering, Elementwise)
    written = next(i for i, op in enumerate(lowering.body) if inner in op.outputs)
    return not any(old in op.inputs for op in lowering.body[written + 1 :])


class _Opened:
    """A body whose variables are renamed to be unique in the whole Program."""

    def __init__(self, op: Operator, name: str, taken: Mapping[str, str], lowered: Lowered, lower_one: LowerOne):
        self.op = op
        self.body: Body = op.bodies[name]
        self.names = dict(taken)
        """The unique name for each name in the body."""
        self.lowered, self.lower_one = lowered, lower_one
        self._shapes = shapes_inside(op, lowered.shapes, name)

    def direct(self, targets: Mapping[int, str], fits: Callable[[int, str], bool]) -> dict[str, str]:
        """Return the variables of the body that can be written directly into a target, with that target."""
        made = {
            name: op
            for op in self.body.block.ops
            for name in op.outputs
            if not isinstance(op.definition.lowering, (Alias, Constant))
        }
        found: dict[str, str] = {}
        for place, target in targets.items():
            inner = str(self.body.outputs[place])
            if inner in made and inner not in found and fits(place, inner):
                found[inner] = target
        return found

    def steps(self, direct: Mapping[str, str], kept: Mapping[str, str] | None = None) -> list[Step]:
        """Return the steps of the body. A row of each `kept` variable is stored as soon as it is computed."""
        self.names.update(direct)
        kept = kept or {}
        steps: list[Step] = [
            KeepStep(self.names[name], kept[name], self.lowered) for name in self.body.inputs if name in kept
        ]
        for op in self.body.block.ops:
            step = self.lower_one(self._renamed(op))
            if isinstance(step, (PythonStep, CallbackStep)):
                reason = step.reason if isinstance(step, PythonStep) else step.verdict
                raise NotNativeError(reason if op.bodies else f"{op.definition.label} inside it: {reason}")
            step.share = WHOLE
            steps.append(step)
            steps += [self._keep(name, kept) for name in op.outputs if name in kept]
        return steps

    def _keep(self, name: str, kept: Mapping[str, str]) -> Step:
        return KeepStep(self.names[name], kept[name], self.lowered)

    def _renamed(self, op: Operator) -> Operator:
        for name in op.outputs:
            self._name(name)
        definition, lowering = op.definition, op.definition.lowering
        if isinstance(lowering, Fused):
            for name in lowering.dtypes:
                self._name(name, lowering.dtypes[name])
            definition = copy.copy(definition)
            members = tuple(self._with_names(member) for member in lowering.body)
            definition.lowering = Fused(members, {self.names[n]: dtype for n, dtype in lowering.dtypes.items()})
        renamed = self._with_names(op)
        renamed.definition = definition
        return renamed

    def _name(self, name: str, dtype: str = "") -> None:
        lowered = self.lowered
        if name not in self.names:
            self.names[name] = lowered.unused(name)
            lowered.inner[self.names[name]] = dtype or self.body.block.var(name).dtype
        if name in self._shapes:
            lowered.shapes.setdefault(self.names[name], self._shapes[name])

    def _with_names(self, op: Operator) -> Operator:
        inputs = [None if n is None else self.names[n] for n in op.inputs]
        return Operator(op.definition, inputs, [self.names[n] for n in op.outputs], op.attributes, op.role)


def _copies(pairs: Iterable[tuple[str, str]], lowered: Lowered, lower_one: LowerOne) -> list[Step]:
    """Return steps that copy as if at once: a variable that is both read and written is first copied elsewhere."""
    pairs = [(source, target) for source, target in pairs if source != target]
    targets = {target for _, target in pairs}
    aside = {s: _temporary(s, lowered) for s, _ in pairs if lowered.root(s) in targets}
    moves: Sequence[tuple[str, str]] = [*aside.items(), *((aside.get(s, s), target) for s, target in pairs)]
    steps = [lower_one(Operator(assign, [source], [target], {})) for source, target in moves]
    for step in steps:
        step.share = WHOLE
    return steps


def _temporary(name: str, lowered: Lowered) -> str:
    fresh = lowered.unused(f"{name}.before")
    lowered.shapes[fresh], lowered.inner[fresh] = lowered.shapes[name], lowered.dtype(name)
    return fresh
