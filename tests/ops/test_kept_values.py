"""Which numbers a gradient needs: changing those in place afterwards is refused, and changing any others is not."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from op_calls import Call
from test_gradients import CASES, ROW

import app
from app.errors import InPlaceError
from app.ops.definition import REGISTRY, apply

Change = Callable[[np.ndarray], np.ndarray]

EQUAL = {
    **{name: [Call([ROW, ROW])] for name in ("maximum", "minimum")},
    "pow": [Call([np.array([0.0, 1.5]), np.array([0.0, 2.0])])],
}
"""More calls, for gradients that depend on more where two inputs are equal, or for 0 ** 0."""

OF_FLOATS: list[Change] = [
    lambda x: -x,
    lambda x: x * 0 - 1.0,
    lambda x: np.random.default_rng(0).uniform(-2.0, 2.0, x.shape),
    lambda x: np.random.default_rng(1).uniform(0.5, 0.9, x.shape),
]
OF_OTHERS: list[Change] = [lambda x: np.flip(x), lambda x: x * 0, lambda x: ~x if x.dtype == bool else x * 0 + 1]


def values_of(call: Call, target: int) -> list[Any]:
    return [app.to_tensor(np.array(x), stop_gradient=place != target) for place, x in enumerate(call.inputs)]


def gradient(name: str, call: Call, target: int, change: Callable[[list[Any]], None]) -> Any:
    """The gradient of input `target`, where values of the call are changed before the backward pass."""
    definition = REGISTRY[name.strip()]
    inputs = values_of(call, target)
    attributes = definition._bind_attributes((), dict(call.attributes))
    result = apply(definition, inputs, attributes)
    outputs = list(result) if isinstance(result, tuple) else [result]
    change([*inputs, *outputs])
    ends = [out for out in outputs if not out.stop_gradient]
    if not ends:
        return None
    random = np.random.default_rng(2)
    starts = [app.to_tensor(random.uniform(0.5, 1.5, out.shape)) for out in ends]
    slope = app.grad(ends, [inputs[target]], starts, allow_unused=True)[0]
    return None if slope is None else slope.numpy()


def silently(place: int, how: Change) -> Callable[[list[Any]], None]:
    def change(values: list[Any]) -> None:
        array = values[place]._array
        if array.flags.writeable:  # else a change in place makes a copy
            array[...] = how(array)

    return change


def in_place(place: int) -> Callable[[list[Any]], None]:
    def change(values: list[Any]) -> None:
        values[place].set_value(values[place].numpy())

    return change


def is_needed(name: str, call: Call, target: int, place: int, expected: np.ndarray) -> bool:
    """Whether the gradient is another one, or none, where the numbers of a value are others in the backward pass."""
    dtype = values_of(call, target)[place].dtype if place < len(call.inputs) else "float64"
    for how in OF_FLOATS if dtype.startswith("float") else OF_OTHERS:
        try:
            changed = gradient(name, call, target, silently(place, how))
        except (app.errors.AppError, np.linalg.LinAlgError, ValueError, IndexError):
            return True
        if changed is None or not np.array_equal(changed, expected, equal_nan=True):
            return True
    return False


def is_refused(name: str, call: Call, target: int, place: int) -> bool:
    try:
        gradient(name, call, target, in_place(place))
    except InPlaceError:
        return True
    return False


@pytest.mark.parametrize("name", CASES)
def test_exactly_the_values_that_a_gradient_needs_must_not_change(name: str):
    definition = REGISTRY[name.strip()]
    needed: set[tuple[int, int]] = set()
    refused: set[tuple[int, int]] = set()
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for call in [*CASES[name], *EQUAL.get(name, [])]:
            inputs = len(call.inputs)
            for target in range(inputs):
                expected = gradient(name, call, target, lambda values: None)
                if expected is None:
                    continue
                for place in range(inputs + len(definition.outputs)):
                    needs = is_needed(name, call, target, place, expected)
                    refuses = is_refused(name, call, target, place)
                    assert refuses or not needs, f"{call} needs value {place} for the gradient of {target}"
                    needed |= {(target, place)} if needs else set()
                    refused |= {(target, place)} if refuses else set()
    assert refused == needed, f"needed: {sorted(needed)}, refused: {sorted(refused)} (target, changed)"
