"""The weights of the first layer as images."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from xml.etree.ElementTree import Element

import numpy as np

from app.nn import Linear, ParamAttr
from app.ops import random
from app.report import pictures
from app.report.markup import tag
from app.report.record import Record
from app.report.sections.section import Section
from app.run.answers import alike
from app.run.config import Config
from app.run.network import INITIALIZERS
from app.run.wording import listed

TILES, ACROSS = 100, 10


def section(record: Record) -> Section | None:
    """The weights of the first layer, if they belong to pixels."""
    shape = record.start.data.shape if record.start is not None else []
    fitting = {name: w for name, w in record.first_layers.items() if _fits(w, shape, record.config)}
    tiles = [_tiles(names, fitting[names[0]], record.config, (shape[0], shape[1])) for names in alike(fitting)]
    if not tiles:
        return None
    return Section("units", "Hidden units", content=[tag("div", tiles, class_="charts")])


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
    words = f"{chosen} Bright orange pixels increase a unit's value, bright blue pixels decrease it."
    caption = tag("figcaption", tag("h3", f"First layer, {listed(operators)}"), tag("p", words))
    return tag("figure", caption, tag("div", parts, class_="pair"), class_="chart")


def _first_weights(config: Config, pixels: int) -> np.ndarray:
    """The initial weights of the first layer. They depend only on the seed and are drawn before all others."""
    attr = ParamAttr(initializer=INITIALIZERS[config.model.initializer]())
    with random.Streams(config.seed).drawing():  # the user's own streams are left alone
        return Linear(pixels, config.model.hidden[0], weight_attr=attr).weight.numpy()
