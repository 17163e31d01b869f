"""Eager, reference and compiled execution of random networks give the same values, gradients and parameters."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from as_python import as_python
from hypothesis import HealthCheck, Phase, assume, example, given, settings
from hypothesis import strategies as st
from plain_source import PlainEngine
from recipes import ONE, PARAMETERS, TWO, Built, Recipe, batch, build, recipes, run, run_eagerly
from steps_over_rows import Step

from app import static
from app.engine.compiled import blas
from app.engine.compiled.engine import CompiledEngine
from app.engine.reference import ReferenceEngine

pytestmark = pytest.mark.slow

FEW = 2
EXAMPLES = int(os.environ.get("OPSMITH_EXAMPLES", FEW))
"""How many random networks are run in each way. `make soak` sets more, and compiles as many."""
IN_PYTHON = EXAMPLES * (2 if EXAMPLES == FEW else 10)
"""How many are run without compiling."""
ROWS = (4, 1, 7, 4)

careful: Any = {
    "phases": [Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink],
    "report_multiple_bugs": False,
    "deadline": None,
    "derandomize": EXAMPLES == FEW,
    "suppress_health_check": list(HealthCheck),
}


def are_moderate(values: Sequence[Any]) -> bool:
    """Whether rounding errors stay small: in a network that explodes, they become as large as its values."""
    return all(np.abs(value).max(initial=0) <= 1e6 for value in values)


def check(built: Built, actual: Sequence[Any], expected: Sequence[Any]) -> None:
    tolerance = 1e-7 if built.recipe.dtype == "float64" else 2e-3
    for a, b in zip(actual, expected, strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance, err_msg=str(built.steps))


def batches(recipe: Recipe) -> list[dict[str, np.ndarray]]:
    return [batch(recipe, seed, rows) for seed, rows in enumerate(ROWS)]


def check_against_reference(engine: Any, recipe: Recipe) -> None:
    built, other = build(recipe), build(recipe)
    actual, expected = run(engine, built, batches(recipe)), run(ReferenceEngine(), other, batches(recipe))
    assume(are_moderate([*expected, *other.seen]))
    check(built, actual, expected)
    check(built, built.seen, other.seen)


def check_against_eager(recipe: Recipe) -> None:
    built = build(recipe)
    scope = built.scope()
    for feed in batches(recipe):
        static.Executor(engine="reference").run(built.program, feed, scope=scope)
    eager = run_eagerly(built, batches(recipe))
    expected = [eager[name] for name in PARAMETERS]
    assume(are_moderate(expected))
    check(built, [scope.values[name] for name in PARAMETERS], expected)


@settings(max_examples=IN_PYTHON, **careful)
@given(recipes())
def test_eager_and_reference_execution_agree(recipe: Recipe):
    with as_python():
        check_against_eager(recipe)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Where sources are kept that are so many that they would push all others out of the cache."""
    return str(tmp_path_factory.mktemp("sources"))


@settings(max_examples=IN_PYTHON, **careful)
@given(recipes(), st.sampled_from([1, 2]))
def test_generated_source_run_as_python_agrees_with_the_reference_engine(folder: str, recipe: Recipe, shards: int):
    with as_python(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(blas, "threads", lambda: shards)
        patch.setenv("OPSMITH_CACHE", folder)
        check_against_reference(PlainEngine(shards), recipe)


MIXED = (
    *(Step(name, (pick,), ONE[name]) for name, pick in (("whole numbers", 0), ("min of rows", 0), ("truth", 1))),
    *(Step(name, (0, pick), TWO[name]) for name, pick in (("logic", 1), ("divide", 2))),
)


@settings(max_examples=EXAMPLES, **{**careful, "phases": [Phase.explicit] if EXAMPLES == FEW else careful["phases"]})
@example(Recipe(MIXED, "Momentum", "float32", frozenset()), 2)
@given(recipes(), st.sampled_from([1, 2]))
def test_compiled_and_reference_execution_agree(recipe: Recipe, shards: int):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blas, "threads", lambda: shards)
        check_against_reference(CompiledEngine(), recipe)


W, ROWS_OF_X, PRODUCT = -1, -7, -8
"""Picks of what steps begin with, counted from the first one."""
OF_UNKNOWN_SIZES = {"concat rows", "first row", "stack", "transpose"}
"""The compiled engine leaves these to the reference engine."""
PAIRS = sorted(TWO.keys() - OF_UNKNOWN_SIZES)
STEPS = [
    *(Step(name, (PRODUCT,), ONE[name]) for name in sorted(ONE.keys() - OF_UNKNOWN_SIZES)),
    *(Step(name, picks, TWO[name]) for name in PAIRS for picks in ((PRODUCT, ROWS_OF_X), (PRODUCT, W))),
]
GROUPS = [
    *(STEPS[first : first + 25] for first in range(0, len(STEPS), 25)),
    pytest.param([Step(name, (W, W), TWO[name]) for name in PAIRS], marks=pytest.mark.soak),
]


@pytest.mark.parametrize("steps", GROUPS, ids=range(len(GROUPS)))
def test_every_step_has_the_same_value_and_gradient_everywhere(steps: list[Step], monkeypatch: pytest.MonkeyPatch):
    """Eagerly, by the reference engine, and as generated source; steps that do not fit their values are left out."""
    monkeypatch.setattr(blas, "threads", lambda: 2)
    recipe, engine = Recipe(tuple(steps), "SGD", "float64", frozenset(), True), PlainEngine(2)
    built, feeds = build(recipe), batches(recipe)[:2]
    scope = built.scope()
    check(built, run(engine, built, feeds), run(ReferenceEngine(), built, feeds, scope))
    eager = run_eagerly(built, feeds)
    check(built, [eager[name] for name in PARAMETERS], [scope.values[name] for name in PARAMETERS])
    assert engine.fallbacks == []
