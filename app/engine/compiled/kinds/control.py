"""Control flow: steps that contain steps. Variables inside get names that are unique in the whole Program.

A body reads its inputs directly. It writes an output directly into its variable if nothing reads the old value
afterwards; otherwise the output is copied at the end.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from app.engine.compiled.kinds.call import CallbackStep
from app.engine.compiled.kinds.native import NativeStep, NotNativeError
from app.engine.compiled.kinds.python import PythonStep
from app.engine.compiled.kinds.view import ConstantStep
from app.engine.compiled.language import COUNT, Array, Break, Call, Forever, If, Infix, Local, Not, Number
from app.engine.compiled.shapes import shapes_inside
from app.engine.compiled.steps import WHOLE, Lowered, Step
from app.engine.compiled.writer import Writer, after
from app.graph.program import Body, Operator
from app.ops.creation import assign
from app.ops.lowering import Alias, Choice, Constant, Elementwise, Fused, Loop, LoopGradient


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
        before, asking, body = (self.bodies[word] for word in ("before", "condition", "body"))
        count = out.element(self.op.outputs[-1], [])
        _write_inside(before, out)
        out.assign(count, Number(0, count.dtype))
        loop = Forever()
        out.add(loop)
        with out.inside(loop.body):
            _write_inside(asking, out)
            with out.when(Not(out.number(self.condition))):
                out.add(Break())
            _write_inside(body, out)
            out.assign(count, Infix(count, "+", Number(1, count.dtype), count.dtype))


class LoopGradientStep(ControlStep):
    """Runs the body of a loop again, and then its gradient for each iteration, the last one first."""

    word = "for"
    repeated = ("body", "gradient")

    def __init__(
        self, op: Operator, lowered: Lowered, bodies: Mapping[str, list[Step]], condition: str, states: Sequence[str]
    ):
        super().__init__(op, lowered, bodies, condition)
        self._states = states

    def write(self, out: Writer) -> None:
        before, body, gradient = (self.bodies[word] for word in ("before", "body", "gradient"))
        count, place = out.number(self.condition), Local(out.names.of(("row", self.op.outputs[0]), "row"), COUNT)
        rows = {state: Array(out.names.of(("rows", state), f"{out.name(state)}_rows")) for state in self._states}
        _write_inside(before, out)
        for state, memory in rows.items():
            out.assign(memory, Call("rows_like", (count, out.array(state))))
        with out.loop(place.name, None, count):
            for state, memory in rows.items():
                out.do("save_row", memory, place, out.array(state))
            with out.when(Infix(after(place), "<", count, "bool")):
                _write_inside(body, out)
        with out.loop(place.name, None, count):
            for state, memory in rows.items():
                out.do("load_row", memory, place, out.array(state))
            _write_inside(gradient, out)


def _write_inside(steps: Sequence[Step], out: Writer) -> None:
    for step in steps:
        if isinstance(step, NativeStep):
            out.comment(step.comment)
            step.write(out)


def lower_choice(op: Operator, lowered: Lowered) -> Step:
    """The step of a choice between two bodies."""
    lowering: Choice = op.definition.lowering
    inside = {}
    for name in (lowering.if_true, lowering.if_false):
        opened = _Opened(op, name, list(map(str, op.inputs[1:])), lowered)
        targets = {i: output for i, output in enumerate(op.outputs) if output not in op.inputs}
        inside[name] = opened.steps(targets, lambda place, inner: True, op.outputs)
    return IfStep(op, lowered, inside, str(op.inputs[0]))


def lower_loop(op: Operator, lowered: Lowered) -> Step:
    """The step of a loop."""
    lowering: Loop = op.definition.lowering
    inputs, states = list(map(str, op.inputs)), op.outputs[:-1]
    rest, pairs = _apart(inputs[len(states) :], states, lowered)
    pairs += zip(inputs, states, strict=False)
    inner_inputs = [*states, *rest]
    inside = {"before": _copies(pairs, lowered)}
    condition = _Opened(op, lowering.condition, inner_inputs, lowered)
    inside["condition"] = condition.steps({}, condition.is_last_use, ())
    body = _Opened(op, lowering.body, inner_inputs, lowered)
    inside["body"] = body.steps(dict(enumerate(states)), body.is_last_use, states)
    return WhileStep(op, lowered, inside, condition.names[condition.body.outputs[0]])


def lower_loop_gradient(op: Operator, lowered: Lowered) -> Step:
    """The step of the gradient of a loop."""
    lowering: LoopGradient = op.definition.lowering
    count, *inputs = map(str, op.inputs)
    carried = len(op.bodies[lowering.body].outputs)
    states = [_temporary(name, lowered) for name in inputs[:carried]]
    begin = len(inputs) - len(op.outputs)
    rest, pairs = _apart(inputs[carried:begin], op.outputs, lowered)
    pairs += [*zip(inputs, states, strict=False), *zip(inputs[begin:], op.outputs, strict=True)]
    inner_inputs = [*states, *rest, *op.outputs]
    inside = {"before": _copies(pairs, lowered)}
    body = _Opened(op, lowering.body, inner_inputs, lowered)
    inside["body"] = body.steps(dict(enumerate(states)), body.is_last_use, states)
    gradient = _Opened(op, lowering.gradient, inner_inputs, lowered)
    inside["gradient"] = gradient.steps(
        dict(enumerate(op.outputs)), partial(gradient.is_last_use, begin=begin), op.outputs
    )
    return LoopGradientStep(op, lowered, inside, count, states)


class _Opened:
    """A body whose variables are renamed to be unique in the whole Program."""

    def __init__(self, op: Operator, name: str, inputs: Sequence[str], lowered: Lowered):
        self.op = op
        self.body: Body = op.bodies[name]
        self.names = dict(zip(self.body.inputs, inputs, strict=False))
        """The unique name for each name in the body."""
        self.lowered = lowered
        self._shapes = shapes_inside(op, lowered.shapes, name)

    def steps(self, targets: Mapping[int, str], fits: Callable[[int, str], bool], outputs: Sequence[str]) -> list[Step]:
        """Return the steps of the body, after which the `outputs` have the values of its outputs.

        It computes one directly in the variable of `targets` if that `fits`.
        """
        self.names.update(self._direct(targets, fits))
        steps: list[Step] = []
        for op in self.body.block.ops:
            step = self.lowered.lower_one(self._renamed(op))
            if isinstance(step, (PythonStep, CallbackStep)):
                reason = step.reason if isinstance(step, PythonStep) else step.verdict
                raise NotNativeError(reason if op.bodies else f"{op.definition.label} inside it: {reason}")
            step.share = WHOLE
            steps.append(step)
        pairs = zip((self.names[name] for name in self.body.outputs), outputs, strict=False)
        return [*steps, *_copies(pairs, self.lowered)]

    def _direct(self, targets: Mapping[int, str], fits: Callable[[int, str], bool]) -> dict[str, str]:
        """Return the variables of the body that can be written directly into a target, with that target."""
        operators = {
            name: op
            for op in self.body.block.ops
            for name in op.outputs
            if not isinstance(op.definition.lowering, (Alias, Constant))
        }
        direct: dict[str, str] = {}
        for place, target in targets.items():
            inner = self.body.outputs[place]
            if inner in operators and inner not in direct and fits(place, inner):
                direct[inner] = target
        return direct

    def is_last_use(self, place: int, inner: str, begin: int = 0) -> bool:
        """Return whether a new value may overwrite the old one, which is an input from `begin` on: nothing reads the
        old one afterwards."""
        body = self.body
        old, operators = body.inputs[begin + place], body.block.ops
        if old in body.outputs:
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


def _apart(inputs: Sequence[str], written: Sequence[str], lowered: Lowered) -> tuple[list[str], list[tuple[str, str]]]:
    """The inputs that each iteration of a loop reads, and pairs for `_copies`: those that the loop writes are copied
    first, as it reads the values from before."""
    apart = [_temporary(name, lowered) if name in written else name for name in inputs]
    return apart, [(name, other) for name, other in zip(inputs, apart, strict=True) if name != other]


def _copies(pairs: Iterable[tuple[str, str]], lowered: Lowered) -> list[Step]:
    """Return steps that copy as if at once: a variable that is both read and written is first copied elsewhere."""
    pairs = [(source, target) for source, target in pairs if source != target]
    targets = {target for _, target in pairs}
    aside = {s: _temporary(s, lowered) for s, _ in pairs if lowered.root(s) in targets}
    moves: Sequence[tuple[str, str]] = [*aside.items(), *((aside.get(s, s), target) for s, target in pairs)]
    steps = [lowered.lower_one(Operator(assign, [source], [target], {})) for source, target in moves]
    for step in steps:
        step.share = WHOLE
    return steps


def _temporary(name: str, lowered: Lowered) -> str:
    fresh = lowered.unused(f"{name}.before")
    lowered.shapes[fresh], lowered.inner[fresh] = lowered.shapes[name], lowered.dtype(name)
    return fresh
