"""What the report shows of a run's operators: source, distribution of inputs and curve.

They are stored in the run's folder, so that the report needs neither the operator's file nor the data.
"""

from __future__ import annotations

import os
import textwrap
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np

from app.checking.before_training import as_written, between_layers
from app.checking.operators import user_operator
from app.checking.processes import End
from app.checking.undisturbed import undisturbed
from app.custom.foreign import adapter_of, operator_of_framework, parts_of
from app.custom.operator import CustomOperator, derived_source
from app.errors import FileError
from app.files import LARGEST, read_file, write_whole
from app.functions import python_function
from app.nn import Layer
from app.ops.definition import OpDef
from app.reading import source_text
from app.run.activation import Activation, every_operator
from app.run.events import Index
from app.run.folder import DESCRIPTIONS
from app.run.network import Network
from app.tensor import Tensor, grad

IMAGES = 1000
"""The number of images for the distribution of an operator's inputs, and for dead units."""
BINS, PLACES = 60, (7, 23)
"""The bars of a histogram; the points of a curve, as rows and columns."""
_STEP = 1e-6
_PATIENCE = 10.0
_LONGEST = 20_000
"""The maximum number of characters of a source."""

Numbers = list[float | None]


class Histogram(msgspec.Struct, frozen=True):
    """The distribution of an operator's inputs over all images and hidden layers."""

    low: float
    high: float
    counts: list[Index]
    not_finite: Index = 0


class Curve(msgspec.Struct, frozen=True):
    """An elementwise operator as a function of its input; NaN and infinity are None."""

    x: list[float]
    y: Numbers
    slope: Numbers
    """The derivative from backward."""
    differences: Numbers
    """The derivative by finite differences."""


class Description(msgspec.Struct, frozen=True):
    """What the report shows of an operator."""

    operator: str
    sources: dict[str, str] = {}
    """The source of the operator's functions, by role; empty for a built-in operator."""
    histogram: Histogram | None = None
    curve: Curve | None = None
    """None if the operator is not elementwise."""
    dead: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None
    """The share of hidden units for which the operator gives 0 on all of the images."""


def describe(activation: Activation, network: Network, images: np.ndarray) -> Description:
    """Describe the operator of a trained network."""
    try:
        return _describe(activation, network, images)
    except Exception:  # a user's operator may raise anything, and the run has already succeeded
        return Description(activation.name)


def _describe(activation: Activation, network: Network, images: np.ndarray) -> Description:
    values = network.operator_values(images[:IMAGES])
    histogram = histogram_of([inputs for inputs, _ in values]) if values else None
    low, high = (histogram.low, histogram.high) if histogram is not None else (-4.0, 4.0)
    curve = curve_of(activation, low, high)
    return Description(activation.name, source_texts(activation), histogram, curve, dead_share(values))


def dead_share(values: Sequence[tuple[np.ndarray, np.ndarray]]) -> float | None:
    """Return the share of hidden units whose results are 0 for every image; None without hidden layers."""
    dead = [(results == 0).all(axis=0).ravel() for _, results in values]
    return float(np.concatenate(dead).mean()) if dead else None


def describe_layers(activations: Sequence[Activation]) -> list[Description]:
    """Describe the custom operators that layers name for themselves: their sources, as no network compares them."""
    own = every_operator(activations)[len(activations) :]
    return [Description(one.name, sources) for one in own if (sources := source_texts(one))]


def histogram_of(arrays: Sequence[np.ndarray]) -> Histogram | None:
    """Return the distribution of the values of arrays; None if no value is finite."""
    numbers = np.concatenate([np.asarray(array, np.float64).ravel() for array in arrays])
    finite = numbers[np.isfinite(numbers)]
    if not finite.size:
        return None
    low, high = float(finite.min()), float(finite.max())
    if not high - low > 1e-9 * max(abs(low), abs(high)):
        low, high = low - 1.0, high + 1.0
    counts, _ = np.histogram(finite, BINS, (low, high))
    return Histogram(low, high, counts.tolist(), int(numbers.size - finite.size))


def curve_of(activation: Activation, low: float, high: float) -> Curve | None:
    """Return the operator and its derivative from `low` to `high`; None if it is not elementwise."""
    operator = activation.for_one_layer()
    if operator.layer is not None and operator.layer.parameters():
        return None  # each hidden layer has its own parameters
    framework = adapter_of(as_written(activation.operator))
    for compiled in (False, True):
        curve: Curve | End | None = undisturbed(partial(_curve, operator, low, high), _PATIENCE, compiled, framework)
        if not isinstance(curve, End):
            return curve
    return None


def _curve(operator: Activation, low: float, high: float) -> Curve | None:
    x = np.linspace(low, high, PLACES[0] * PLACES[1])
    column, block = x[:, None], np.ascontiguousarray(x[::-1].reshape(PLACES))
    y, slope = _both(operator, column)
    if not np.array_equal(_both(operator, block)[0].ravel()[::-1], y.ravel(), equal_nan=True):
        return None
    step = _STEP * max(1.0, abs(low), abs(high))
    above, below = (_both(operator, column + side)[0] for side in (step, -step))
    return Curve(x.tolist(), _plain(y), _plain(slope), _plain((above - below) / (2 * step)))


def _both(operator: Activation, array: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return an operator's output for an array, and its derivative."""
    x = Tensor(array, stop_gradient=False)
    y = operator(x)
    (slope,) = (None,) if y.stop_gradient else grad([y], [x], allow_unused=True)
    return y.numpy(), np.zeros_like(array) if slope is None else slope.numpy()


def _plain(array: np.ndarray) -> Numbers:
    return [float(value) if np.isfinite(value) else None for value in array.ravel()]


def source_texts(activation: Activation) -> dict[str, str]:
    """Return the source of an operator's functions, by role; unreadable sources are omitted."""
    thing = as_written(activation.operator)
    if isinstance(thing, OpDef) and not thing.custom:
        return {}
    sources = undisturbed(partial(_sources, thing, activation), _PATIENCE, False, adapter_of(thing))
    return {} if isinstance(sources, End) else sources


def _sources(thing: Any, activation: Activation) -> dict[str, str]:
    parts: dict[str, Any] = {}
    if operator_of_framework(thing) is not None:
        definition, *rules = parts_of(thing)
        parts = {"definition": definition, **{rule.__name__: rule for rule in rules}}
    elif not isinstance(thing, CustomOperator):
        parts["definition"] = type(thing) if isinstance(thing, Layer) else thing
    if not isinstance(thing, (type, Layer)):
        for operator in _applied(thing, activation):
            parts["forward"] = python_function(operator.function)
            if operator.backward_function is not None:
                parts["backward"] = python_function(operator.backward_function)
            elif derived := derived_source(operator):
                parts["derived backward"] = derived
    texts = {
        what: part if isinstance(part, str) else textwrap.dedent(source_text(part))[:_LONGEST]
        for what, part in parts.items()
    }
    return {what: text for what, text in texts.items() if text}


def _applied(thing: Any, activation: Activation) -> Sequence[CustomOperator]:
    """Return the custom operator that an object is, or that a function applies."""
    if isinstance(thing, CustomOperator):
        return [thing]
    try:
        applied = between_layers(user_operator(thing, activation.name), dict(activation.settings), None).definitions()
    except Exception:  # a user's function may raise anything
        return []
    return applied if len(applied) == 1 else []


def write_descriptions(descriptions: Sequence[Description], folder: Path) -> None:
    """Write descriptions to a run's folder."""
    write_whole(folder / DESCRIPTIONS, msgspec.json.encode(list(descriptions)))


def read_descriptions(folder: Path) -> Mapping[str, Description]:
    """Read the descriptions in a run's folder, by operator name; empty if there are none."""
    path = folder / DESCRIPTIONS
    if not os.path.lexists(path):
        return {}
    try:
        descriptions = msgspec.json.decode(read_file(path, LARGEST["operators"], links=False), type=list[Description])
    except (msgspec.DecodeError, UnicodeDecodeError, OSError) as error:
        raise FileError(f"{path} is damaged or was edited: {error}") from error
    for one in descriptions:
        c = one.curve
        columns: list[Numbers] = [] if c is None else [[*c.x], c.y, c.slope, c.differences]
        if len({*map(len, columns)}) > 1:
            raise FileError(f"{path} is damaged or was edited: the curve of {one.operator} has columns of two lengths")
    return {one.operator: one for one in descriptions}
