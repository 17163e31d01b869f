"""The weights of the first layer as images."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from xml.etree.ElementTree import Element

import numpy as np

from app.errors import FileError
from app.nn import Linear, ParamAttr
from app.ops import random
from app.report import pictures
from app.report.markup import tag
from app.report.sections.section import Section
from app.run.config import Config
from app.run.network import INITIALIZERS
from app.run.predictions import alike
from app.run.record import RunRecord
from app.run.weights import Weights
from app.run.wording import listed

TILES, ACROSS = 100, 10


FIRST_LAYER = "layers.0.weight"


def section(runs: Sequence[RunRecord]) -> Section | None:
    """The weights of the first layer, if they belong to pixels."""
    run = runs[0]
    shape = run.start.data.shape if run.start is not None else []
    first = {name: _first_layer(weights, run.config) for name, weights in run.weights.items() if run.epochs(name)}
    fitting = {name: w for name, w in first.items() if _fits(w, shape, run.config)}
    tiles = [_tiles(names, fitting[names[0]], run.config, (shape[0], shape[1])) for names in alike(fitting)]
    if not tiles:
        return None
    return Section("units", "Hidden units", content=[tag("div", tiles, class_="charts")])


def _first_layer(weights: Weights, config: Config) -> np.ndarray:
    """Return the weights of the first layer, from pixels (rows) to units (columns)."""
    layer = weights.arrays.get(FIRST_LAYER)
    if layer is None or (layer.ndim != 2 and config.model.layers is None) or layer.dtype.kind != "f":
        shape = "missing" if layer is None else f"{layer.dtype}{list(layer.shape)}"
        raise FileError(f"{weights.file}: {FIRST_LAYER} is {shape}, expected a float matrix")
    return layer


def _fits(weights: np.ndarray, shape: Sequence[int], config: Config) -> bool:
    return config.model.layers is None and len(shape) == 2 and weights.shape == (prod(shape), *config.model.hidden[:1])


def _tiles(operators: list[str], weights: np.ndarray, config: Config, shape: tuple[int, int]) -> Element:
    """The initial and the trained weights of a first layer."""
    changes = weights - _first_weights(config, len(weights))
    strongest = np.sort(np.argsort(-np.linalg.norm(changes, axis=0), kind="stable")[:TILES])
    units = weights.shape[1]
    chosen = (
        "A tile for each unit." if units <= TILES else f"The {TILES} units, of {units}, whose weights changed most."
    )
    parts = []
    for title, shown in (("Changes during training", changes), ("Trained weights", weights)):
        description = f"{title}, {listed(operators)}: a tile for each unit, orange above zero, blue below"
        image, width, height = pictures.weights(shown[:, strongest], shape, ACROSS)
        picture = tag("img", src=image, alt=description, class_="tiles", width=width, height=height)
        parts.append(tag("div", tag("h4", title), picture))
    description = f"{chosen} Bright orange pixels increase a unit's value, bright blue pixels decrease it."
    caption = tag("figcaption", tag("h3", f"First layer, {listed(operators)}"), tag("p", description))
    return tag("figure", caption, tag("div", parts, class_="pair"), class_="chart")


def _first_weights(config: Config, pixels: int) -> np.ndarray:
    """The initial weights of the first layer. They depend only on the seed and are drawn before all others."""
    attr = ParamAttr(initializer=INITIALIZERS[config.model.initializer]())
    with random.Streams(config.seed).drawing():  # the user's own streams are left alone
        return Linear(pixels, config.model.hidden[0], weight_attr=attr).weight.numpy()
