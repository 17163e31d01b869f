"""The time of one forward and backward call of an operator by itself, as a function of the array size."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
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

Prepare = Callable[[np.ndarray, np.ndarray], Go]
"""Compiles both passes for an input and a gradient. The input may be overwritten between runs."""

Calls = Sequence[Callable[[], Any]]


def timed_operator(activation: Activation, engine: str, width: int) -> Prepare:
    """Return an operator with inputs as between two layers of this width, without the layers."""
    return _eagerly(activation) if engine == "eager" else _in_programs(activation, width, engine == "compiled")


def _eagerly(activation: Activation) -> Prepare:
    operator = activation.for_one_layer()

    def prepare(x: np.ndarray, dy: np.ndarray) -> Go:
        def go() -> tuple[float, float]:
            given = Tensor(x, stop_gradient=False)
            start = time.perf_counter()
            y = operator(given)
            forward = time.perf_counter() - start
            arrives = Tensor(_resized(dy, y.shape))
            start = time.perf_counter()
            y.backward(arrives)
            return forward, time.perf_counter() - start

        return go

    return prepare


def _resized(dy: np.ndarray, shape: Sequence[int]) -> np.ndarray:
    """Return a gradient of an operator's result, from one of its input: the operator may change the width."""
    return dy if list(dy.shape) == list(shape) else np.resize(dy, shape)


def _in_programs(activation: Activation, width: int, native: bool) -> Prepare:
    """The forward and backward passes as separate Programs, split where a network would have more layers."""
    whole, startup = Program(), Program()
    with names.guard(), program_guard(whole, startup), static_mode():
        x = data("x", [None, width])
        x.stop_gradient = False
        y = activation.for_one_layer()(x)
        dy = data("dy", y.shape, y.dtype)
        found = gradients([y], [x, *whole.all_parameters()], [dy])
    operators = whole.global_block().ops
    wanted = [gradient.name for gradient in found if gradient is not None]
    backward, taken = _cut(whole, [op for op in operators if op.role == BACKWARD or not op.inputs], wanted)
    forward, _ = _cut(whole, [op for op in operators if op.role != BACKWARD], [])
    made = {name for op in forward.global_block().ops for name in op.outputs}
    left = [y.name, *(name for name in taken if name in made and name != y.name)]
    passes = [(p, fetch, _compiled(p, fetch) if native else None) for p, fetch in ((forward, left), (backward, wanted))]
    scope = Scope()
    Executor().run(startup, scope=scope)

    def prepare(x: np.ndarray, dy: np.ndarray) -> Go:
        dy = _resized(dy, [len(x), *y.shape[1:]])
        values: dict[str, Any] = {}
        both = []
        for program, fetch, compiled in passes:
            calls, values = _calls(program, fetch, compiled, {**values, "x": x, "dy": dy}, scope)
            both.append(calls)

        def go() -> tuple[float, float]:
            start = time.perf_counter()
            for call in both[0]:
                call()
            between = time.perf_counter()
            for call in both[1]:
                call()
            return between - start, time.perf_counter() - between

        return go

    return prepare


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


def _calls(
    program: Program, fetch: Sequence[str], compiled: Any, feed: dict[str, Any], scope: Scope
) -> tuple[Calls, dict[str, Any]]:
    """Return the calls of one run of a Program, and the values that a run produced."""
    block = program.global_block()
    fed = {name: feed[name] for name, v in block.vars.items() if v.is_data and name in feed}
    if compiled is not None:
        calls, values = compiled.calls(fed, scope)
    else:
        values = Values(block, fed, scope)
        calls = [partial(run_operator, op, values) for op in block.ops]
        for call in calls:
            call()
    return calls, {name: values[name] for name in fetch}


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
) -> Iterator[Cost]:
    """Time operators through an engine, on one thread and in turns, for about the given number of seconds each.

    The arrays have rows of `width` elements and about `sizes` elements in total. An operator that would take too long
    on the larger arrays is skipped there.
    """
    subjects = {activation.name: timed_operator(activation, engine, width) for activation in activations}
    numbers = np.random.default_rng(0).standard_normal((max(1, round(max(sizes) / width)), width), np.float32)
    for size, following in zip(sizes, [*sizes[1:], 0], strict=True):
        rows, share = max(1, round(size / width)), seconds * len(subjects) / len(sizes)
        taken = _taken(list(subjects.values()), numbers, rows, share)
        for name, both in zip(list(subjects), taken, strict=True):
            forward, backward = map(min, zip(*both, strict=True))
            yield Cost(name, rows * width, forward, backward)
            if LEAST * (forward + backward) * following / size > seconds:
                del subjects[name]


def _taken(
    subjects: Sequence[Prepare], numbers: np.ndarray, rows: int, seconds: float
) -> list[list[tuple[float, float]]]:
    """Return the seconds of both passes in each run of each operator. Each run gets new values, as in training: with
    the same values, branch prediction would make the calls faster.
    """
    x, dy = np.array(numbers[:rows]), np.array(numbers[-rows:])
    goes = [prepare(x, dy) for prepare in subjects]
    taken: list[list[tuple[float, float]]] = [[] for _ in subjects]
    until = time.perf_counter() + seconds
    for number in range(MOST):
        if number >= LEAST and time.perf_counter() > until:
            break
        first = number * rows % (len(numbers) - rows + 1)
        for go, times in zip(goes, taken, strict=True):
            np.copyto(x, numbers[first : first + rows])
            times.append(go())
    return taken


def measure_costs(
    config: Config,
    activations: Sequence[Activation],
    record: Record,
    warn: Callable[[str], None],
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
            for cost in operator_costs(activations, config.engine, width, sizes, seconds):
                record(cost)
                costs.append(cost)
        except Exception as error:
            warn(f"note: the operators could not be timed alone: {error}")
    return costs
