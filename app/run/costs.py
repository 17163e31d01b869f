"""The time of one forward and one backward call of an operator by itself, at the size that it has in a network."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from app.engine import Executor, Scope
from app.graph import Operator, Program, names, program_guard, static_mode
from app.graph.gradients import gradients
from app.graph.program import BACKWARD
from app.run.activation import Activation
from app.run.config import Config
from app.run.events import Cost, Record
from app.run.layers import width_of
from app.static import data
from app.tensor import Tensor

TimedPasses = Callable[[], tuple[float, float]]
"""Runs the forward and the backward pass once and returns the seconds of each."""


def timed_operator(activation: Activation, engine: str, x: np.ndarray, dy: np.ndarray) -> TimedPasses:
    """Return both passes of an operator as between two layers, without the layers, for an input and a gradient. The
    input may be overwritten between runs. Only the compiled engine has another form of an operator than an eager call.
    """
    compiled = _compiled(activation, x, dy) if engine == "compiled" else None
    return compiled or _eagerly(activation, x, dy)


def _eagerly(activation: Activation, x: np.ndarray, dy: np.ndarray) -> TimedPasses:
    operator = activation.for_one_layer()

    def run_passes() -> tuple[float, float]:
        entry = Tensor(x, stop_gradient=False)
        start = time.perf_counter()
        y = operator(entry)
        forward = time.perf_counter() - start
        arrives = Tensor(_resized(dy, y.shape))
        start = time.perf_counter()
        y.backward(arrives)
        return forward, time.perf_counter() - start

    return run_passes


def _resized(dy: np.ndarray, shape: Sequence[int]) -> np.ndarray:
    """Return a gradient of an operator's result, from one of its input: the operator may change the width."""
    return dy if list(dy.shape) == list(shape) else np.resize(dy, shape)


def _compiled(activation: Activation, x: np.ndarray, dy: np.ndarray) -> TimedPasses | None:
    """The forward and backward passes as separate Programs, split where a network would have more layers; None if the
    engine does not compile them."""
    from numba.core import config  # imported late because Numba is slow to import

    from app.engine.compiled.program import CompiledProgram
    from app.engine.compiled.shapes import UnknownSizeError

    whole, startup = Program(), Program()
    with names.guard(), program_guard(whole, startup), static_mode():
        entry = data("x", [None, x.shape[1]])
        entry.stop_gradient = False
        y = activation.for_one_layer()(entry)
        gradients_of_inputs = gradients([y], [entry, *whole.all_parameters()], [data("dy", y.shape, y.dtype)])
    operators = whole.global_block().ops
    results = [gradient.name for gradient in gradients_of_inputs if gradient is not None]
    backward, inputs = _cut(whole, [op for op in operators if op.role == BACKWARD or not op.inputs], results)
    forward, _ = _cut(whole, [op for op in operators if op.role != BACKWARD], [])
    outputs = {name for op in forward.global_block().ops for name in op.outputs}
    saved = [y.name, *(name for name in inputs if name in outputs and name != y.name)]
    scope = Scope()
    Executor().run(startup, scope=scope)
    values: dict[str, Any] = {"x": x, "dy": _resized(dy, [len(x), *y.shape[1:]])}
    passes: list[Sequence[Callable[[], Any]]] = []
    for program, fetch in ((forward, saved), (backward, results)):
        variables = program.global_block().vars
        try:
            if config.DISABLE_JIT:  # type: ignore[attr-defined]
                return None
            native = CompiledProgram(program, fetch, whole=False)
        except UnknownSizeError:
            return None
        calls, after = native.calls({name: values[name] for name, v in variables.items() if v.is_data}, scope)
        values |= {name: after[name] for name in fetch}
        passes.append(calls)

    def run_passes() -> tuple[float, float]:
        start = time.perf_counter()
        for call in passes[0]:
            call()
        between = time.perf_counter()
        for call in passes[1]:
            call()
        return between - start, time.perf_counter() - between

    return run_passes


def _cut(whole: Program, operators: Sequence[Operator], fetch: Sequence[str]) -> tuple[Program, list[str]]:
    """Extract some operators of a Program into a new one, and return the names of its inputs."""
    program = whole.clone_without_operators()
    block = program.global_block()
    block.ops = [op.copied_into(block) for op in operators]
    outputs = {name for op in operators for name in op.outputs}
    read = dict.fromkeys(name for op in operators for name in op.inputs if name)
    inputs = [name for name in [*read, *fetch] if name not in outputs and not block.var(name).persistable]
    for name in inputs:
        block.var(name).is_data = True
    return program, inputs


SECONDS = 0.1
"""The time for measuring an operator, in seconds."""
LEAST, MOST = 3, 50
"""The minimum number of runs per operator, regardless of the time limit, and the maximum."""


def operator_costs(
    activations: Sequence[Activation], engine: str, rows: int, width: int, seconds: float = SECONDS
) -> list[Cost]:
    """Time operators through an engine, on one thread and in turns, for about the given number of seconds each. The
    minimum of several runs counts.

    Each run gets new values, as in training: with the same values, branch prediction would make the calls faster.
    """
    random = np.random.default_rng(0)
    x, dy = random.standard_normal((2, rows, width), np.float32)
    passes = [timed_operator(activation, engine, x, dy) for activation in activations]
    times_of_each: list[list[tuple[float, float]]] = [[] for _ in activations]
    until = time.perf_counter() + seconds * len(activations)
    for number in range(MOST):
        if number >= LEAST and time.perf_counter() > until:
            break
        for run_passes, times in zip(passes, times_of_each, strict=True):
            random.standard_normal(out=x, dtype=np.float32)
            times.append(run_passes())
    return [
        Cost(activation.name, *map(min, zip(*times, strict=True)))
        for activation, times in zip(activations, times_of_each, strict=True)
    ]


def measure_costs(
    config: Config, activations: Sequence[Activation], images: int, record: Record, warn: Callable[[str], None]
) -> list[Cost]:
    """Measure the cost of each operator at the batch size of a run, which has this number of training images, and the
    width of its first hidden layer. Record an event for each.

    The run has already succeeded: an error raised by a user's operator is reported, but does not fail the run.
    """
    width = width_of(config.model.all_layers)
    if not config.costs or width is None:
        return []
    try:
        costs = operator_costs(activations, config.engine, min(config.train.batch_size, images), width)
    except Exception as error:
        warn(f"note: the operators could not be timed alone: {error}")
        return []
    for cost in costs:
        record(cost)
    return costs
