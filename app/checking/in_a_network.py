"""An operator at the size, with the settings and on the numbers that it has in a network."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from app.checking.checks.direction import Point, moved
from app.checking.layer import LayerAsOperator
from app.checking.operators import UserOperator
from app.checking.subject import Input, Result, Subject, same
from app.ops import random

_CALLS = 12
"""About how many calls all of these checks take."""
_GROWTH = 8
"""How many times more rows are tried, as long as there is time."""
_ELEMENTS = 500
"""The number of elements for an elementwise operator, to which the size makes no difference."""
_ALIKE = 1e-9


@dataclass(frozen=True)
class Place:
    """Where an operator is in a network."""

    key: str
    """What decides the inputs, for the cache of results."""
    inputs: Callable[[], Sequence[np.ndarray]]
    """Computes a batch of the operator's inputs for each layer that applies it."""


def drawing_alike(one: UserOperator, stream: int = 0) -> UserOperator:
    """The same operator, for which every call draws the same numbers from the framework's random streams."""

    def call(*values: Any, **settings: Any) -> Any:
        with random.Streams(stream).drawing():
            return one.call(*values, **settings)

    return replace(one, call=call)


def in_a_network(one: UserOperator, settings: dict[str, Any], inputs: np.ndarray, seconds: float) -> Point | None:
    """Return an operator with as many rows of these inputs as can be checked in time; None if two take too long."""
    x = np.asarray(inputs, np.float64)
    if one.elementwise:
        x = np.random.default_rng(0).permutation(x.reshape(-1))[:_ELEMENTS].reshape(1, -1)
    layer = one.call if isinstance(one.call, LayerAsOperator) else None
    parameters = [] if layer is None else [p.numpy().astype(np.float64) for _, p in layer.layer.named_parameters()]
    names = [one.parameters[0].name, *one.shapes]
    kinds = tuple(Input(name, a.shape) for name, a in zip(names, [x, *parameters], strict=True))
    all_rows = Point(Subject(drawing_alike(one), kinds, settings=settings), moved([x, *parameters], 1))
    if one.elementwise:
        return all_rows
    fitting, rows = None, min(2, len(x))
    all_rows.rows(0, rows).run()  # which may compile
    while True:
        few = all_rows.rows(0, rows)
        began = time.perf_counter()
        few.run()
        if _CALLS * (time.perf_counter() - began) > seconds:
            return fitting
        if rows == len(x):
            return few
        fitting, rows = few, min(_GROWTH * rows, len(x))


def differs_each_time(of: Point) -> str:
    """What differs between two calls with the same inputs: the "result" or the "gradient"; '' if nothing does.

    A function of single numbers has no size at which it differs, other than that of the small inputs.
    """
    return "" if of.subject.operator.elementwise else of.run().copy().differs_from(of.run())


def mixes_rows(one: UserOperator, of: Point) -> bool:
    """Whether the rows of a batch have other results or gradients alone than in the batch.

    Of an operator that draws random numbers, other numbers say nothing.
    """
    rows = len(of.arrays[0])
    if rows < 2 or one.elementwise:
        return False
    whole = of.run().copy()
    if any(output.shape[:1] != (rows,) for output in whole.outputs):
        return True
    arriving = of.subject.arriving(whole.outputs)
    for start, end in ((0, rows // 2), (rows // 2, rows)):
        alone = of.rows(start, end).run([g[start:end].copy() for g in arriving])
        gradient = whole.gradients[0]
        here = Result([o[start:end] for o in whole.outputs], [None if gradient is None else gradient[start:end]])
        if here.far_from(Result(alone.outputs, alone.gradients[:1]), _ALIKE):
            return not _draws(one, of)
    return False


def _draws(one: UserOperator, of: Point) -> bool:
    """Whether an operator draws from the framework's random streams."""
    others = replace(of.subject, operator=drawing_alike(one, 1)).outputs(of.arrays)
    return any(not same(a, b) for a, b in zip(of.subject.outputs(of.arrays), others, strict=True))
