"""A trained network as a model for use: pixels to scores, without what trained it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from app.engine import Scope
from app.graph import Program, names, program_guard, static_mode
from app.static import data
from app.static.model_file import SavedModel
from app.static.saving import for_use
from app.training.activation import Activation
from app.training.config import Config
from app.training.network import Network


def model_for_use(config: Config, activation: Activation, pixels: int, weights: Mapping[str, np.ndarray]) -> SavedModel:
    """The network of a configuration with these weights, which are named by their paths in it."""
    main, scope = Program(), Scope()
    with names.guard(), program_guard(main, Program()), static_mode():
        image = data("image", [None, pixels], "uint8")
        network = Network(config.model, activation, pixels, config.data.pixel_range)
        scores = network(image)
    scope.values = {variable.name: weights[path] for path, variable in network.named_parameters()}
    return for_use(main, [image.name], [scores.name], scope)
