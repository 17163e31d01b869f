"""The time of one forward and backward call of an operator by itself, as a function of the array size."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from app.engine import Executor, Scope
from app.engine.reference import Values
from app.graph import Operator, Program, names, program_guard, static_mode
from app.graph.gradients import gradients
from app.graph.interpret import run_operator
from app.graph.program import BACKWARD
from app.run.config import Config
from app.run.events import Cost, Record
from app.run.layers import width_of
from app.run.network import Activation
from app.static import data
from app.tensor import Tensor

Go = Callable[[], tuple[float, float]]
"""Runs both passes once and returns the seconds of each."""

Calls = Sequence[Callable[[], Any]]


class TimedOperator:
    """An operator with inputs as between two layers, without the layers."""

    def __init__(self, activation: Activation, engine: str, width: int):
        self.name = activation.name
        if engine == "eager":
            self._prepare: Callable[[np.ndarray, np.ndarray], Go] = _eagerly(activation)
        else:
            self._prepare = _InPrograms(activation, width, native=engine == "compiled").on

    def on(self, x: np.ndarray, dy: np.ndarray) -> Go:
        """Return a function that runs both compiled passes on these values. `x` may be overwritten between runs."""
        return self._prepare(x, dy)


def _eagerly(activation: Activation) -> Callable[[np.ndarray, np.ndarray], Go]:
    operator = activation.for_one_layer()

    def on(x: np.ndarray, dy: np.ndarray) -> Go:
        arrives = Tensor(dy)

        def go() -> tuple[float, float]:
            given = Tensor(x, stop_gradient=False)
            start = time.perf_counter()
            y = operator(given)
            between = time.perf_counter()
            y.backward(arrives)
            return between - start, time.perf_counter() - between

        return go

    return on


class _InPrograms:
    """The forward and backward passes as separate Programs, split where a network would have more layers."""

    def __init__(self, activation: Activation, width: int, native: bool):
        whole, startup = Program(), Program()
        with names.guard(), program_guard(whole, startup), static_mode():
            x = data("x", [None, width])
            x.stop_gradient = False
            y = activation.for_one_layer()(x)
            dy = data("dy", y.shape, y.dtype)
            found = gradients([y], [x, *whole.all_parameters()], [dy])
        operators = whole.global_block().ops
        backward = [op for op in operators if op.role == BACKWARD or not op.inputs]
        wanted = [gradient.name for gradient in found if gradient is not None]
        self._backward, taken = _cut(whole, backward, wanted)
        self._forward, _ = _cut(whole, [op for op in operators if op.role != BACKWARD], [])
        made = {name for op in self._forward.global_block().ops for name in op.outputs}
        self._ways = [
            _Way(self._forward, [y.name, *(name for name in taken if name in made and name != y.name)], native),
            _Way(self._backward, wanted, native),
        ]
        self._scope = Scope()
        Executor().run(startup, scope=self._scope)

    def on(self, x: np.ndarray, dy: np.ndarray) -> Go:
        forward, values = self._ways[0].calls({"x": x}, self._scope)
        backward, _ = self._ways[1].calls({**values, "x": x, "dy": dy}, self._scope)

        def go() -> tuple[float, float]:
            start = time.perf_counter()
            for call in forward:
                call()
            between = time.perf_counter()
            for call in backward:
                call()
            return between - start, time.perf_counter() - between

        return go


def _cut(whole: Program, operators: Sequence[Operator], fetch: Sequence[str]) -> tuple[Program, list[str]]:
    """Extract some operators of a Program into a new one, and return the names of its inputs."""
    program = whole.clone_without_operators()
    block = program.global_block()
    block.ops = [op.copied_into(block) for op in operators]
    made = {name for op in operators for name in op.outputs}
    read = dict.fromkeys(name for op in operators for name in op.inputs if name)
    taken = [name for name in [*read, *fetch] if name not in made and not block.var(name).persistable]
    for name in taken:
        block.var(name).is_data = True
    return program, taken


class _Way:
    """A Program prepared for an engine."""

    def __init__(self, program: Program, fetch: Sequence[str], native: bool):
        self._program, self._fetch = program, fetch
        self._native = _compiled(program, fetch) if native else None

    def calls(self, feed: dict[str, Any], scope: Scope) -> tuple[Calls, dict[str, Any]]:
        """Return the calls of one run, and the values that a run produced."""
        data = [name for name, v in self._program.global_block().vars.items() if v.is_data]
        fed = {name: feed[name] for name in data if name in feed}
        if self._native is not None:
            calls, values = self._native.calls(fed, scope)
        else:
            values = Values(self._program.global_block(), fed, scope)
            calls = [_call(op, values) for op in self._program.global_block().ops]
            for call in calls:
                call()
        return calls, {name: values[name] for name in self._fetch}


def _call(op: Operator, values: Values) -> Callable[[], None]:
    return lambda: run_operator(op, values)


def _compiled(program: Program, fetch: Sequence[str]) -> Any:
    """Return the native steps of a Program; None if it must run on the reference engine."""
    from numba.core import config  # imported late because Numba is slow to import

    from app.engine.compiled.program import CompiledProgram
    from app.engine.compiled.shapes import UnknownSizeError

    try:
        native = None if config.DISABLE_JIT else CompiledProgram(program, fetch, whole=False)  # type: ignore[attr-defined]
    except UnknownSizeError:
        return None
    return native if native is not None and not native.lowered.kept else None


SIZES = (1_000, 4_000, 16_000, 64_000, 250_000)
SECONDS = 0.1
COMPARED_SIZES, COMPARED_SECONDS = (*SIZES, 1_000_000), 0.3
LEAST, MOST = 3, 50
"""The minimum number of runs per operator and array, regardless of the time limit."""


def operator_costs(
    activations: Sequence[Activation],
    engine: str,
    width: int,
    sizes: Sequence[int] = SIZES,
    seconds: float = SECONDS,
    check: Callable[[], None] = lambda: None,
) -> Iterator[Cost]:
    """Time operators through an engine, on one thread and in turns, for about the given number of seconds each.

    The arrays have rows of `width` elements and about `sizes` elements in total. An operator that would take too long
    on the larger arrays is skipped there. `check` is called where the measurement may be interrupted.
    """
    subjects = [TimedOperator(activation, engine, width) for activation in activations]
    numbers = np.random.default_rng(0).standard_normal((max(1, round(max(sizes) / width)), width), np.float32)
    for size, following in zip(sizes, [*sizes[1:], 0], strict=True):
        rows, share = max(1, round(size / width)), seconds * len(subjects) / len(sizes)
        taken = _taken(subjects, numbers, rows, share, check)
        for subject, both in zip(list(subjects), taken, strict=True):
            forward, backward = map(min, zip(*both, strict=True))
            yield Cost(subject.name, rows * width, forward, backward)
            if LEAST * (forward + backward) * following / size > seconds:
                subjects.remove(subject)


def _taken(
    subjects: Sequence[TimedOperator], numbers: np.ndarray, rows: int, seconds: float, check: Callable[[], None]
) -> list[list[tuple[float, float]]]:
    """Return the seconds of both passes in each run of each operator. Each run gets new values, as in training: with
    the same values, branch prediction would make the calls faster.
    """
    x, dy = np.array(numbers[:rows]), np.array(numbers[-rows:])
    goes = [subject.on(x, dy) for subject in subjects]
    taken: list[list[tuple[float, float]]] = [[] for _ in subjects]
    until = time.perf_counter() + seconds
    for number in range(MOST):
        if number >= LEAST and time.perf_counter() > until:
            break
        first = number * rows % (len(numbers) - rows + 1)
        for go, times in zip(goes, taken, strict=True):
            check()
            np.copyto(x, numbers[first : first + rows])
            times.append(go())
    return taken


def measure_costs(
    config: Config,
    activations: Sequence[Activation],
    record: Record,
    warn: Callable[[str], None],
    check: Callable[[], None],
    sizes: Sequence[int] = SIZES,
    seconds: float = SECONDS,
) -> list[Cost]:
    """Measure the cost of each operator of a run at the width of its first hidden layer, and record an event for each.

    The run has already succeeded: an error raised by a user's operator is reported, but does not fail the run.
    """
    costs: list[Cost] = []
    width = width_of(config.model.all_layers)
    if config.costs and width is not None:
        try:
            for cost in operator_costs(activations, config.engine, width, sizes, seconds, check):
                record(cost)
                costs.append(cost)
        except Exception as error:
            warn(f"note: the time of the operators alone was not measured: {error}")
    return costs
