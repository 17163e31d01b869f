"""Checks a run's custom operators before training: their gradients, that they are repeatable, and keep rows apart."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from app.checking.before_training import GradientCheck, check_gradient
from app.checking.in_a_network import Place
from app.data import Dataset
from app.errors import GradcheckError, OperatorError
from app.graph import dynamic_mode
from app.ops import random
from app.ranks.world import World
from app.run.activation import Activation, every_operator
from app.run.config import Config
from app.run.console import Console
from app.run.events import Checked
from app.run.layers import OF_IMAGES
from app.run.network import Network
from app.tensor import Tensor, no_grad

_ADVICE = (
    "Training did not start, because its results would say nothing about the operator. `opsmith check` shows details. "
    '{}To train anyway, add --anyway or check=warn (in Python: check="warn")'
)
_ON_PURPOSE = (
    "If the gradient is meant to differ, declare it: @operator.backward(surrogate=True), or surrogate = True in its "
    "class. "
)
_IMAGES = 32
"""The largest batch for a network with convolutions, which take long outside of a Program."""


def check_gradients(
    config: Config, activations: Sequence[Activation], dataset: Dataset, world: World, console: Console
) -> list[Checked]:
    """Check each custom operator as `check` says, as it is in the network. Rank 0 checks and sends the result to all
    ranks."""
    if config.check is False:
        return []
    checks = world.allgather(_checks(config, activations, dataset, console) if world.rank == 0 else {})[0]
    checked = [Checked(name, check.state, check.words) for name, check in checks.items()]
    mixing = [name for name, check in checks.items() if check.mixes_rows]
    if mixing and config.dist.shape != "none":
        raise OperatorError(
            f"{' and '.join(mixing)}: the result of a row depends on the other rows of its batch, and each rank has "
            "only its own rows, so results would depend on the number of ranks: train in one process"
        )
    wrong = [f"{one.operator}: {one.words}." for one in checked if one.state == "wrong"]
    if wrong and config.check is True:
        of_gradients = any(one.words.startswith("gradient") for one in checked if one.state == "wrong")
        raise GradcheckError("\n".join([*wrong, _ADVICE.format(_ON_PURPOSE if of_gradients else "")]))
    for message in wrong:
        console.alarm(message)
    return checked


def _checks(
    config: Config, activations: Sequence[Activation], dataset: Dataset, console: Console
) -> dict[str, GradientCheck]:
    """Return the check of each custom operator, by name."""
    checks = {}
    for activation in every_operator(activations):
        user = activation if activation in activations else activations[0]
        place = _place(config, user, activation.name, dataset)
        with console.busy(f"Checking the gradient of {activation.name}"):
            check = check_gradient(activation.operator, activation.name, activation.settings, place)
        if check is not None:
            checks[activation.name] = check
    return checks


def _place(config: Config, compared: Activation, name: str, dataset: Dataset) -> Place:
    """Return the place of an operator in the network of the compared one: its inputs are those of the first batch, with
    the first weights."""
    for_images = any(isinstance(layer, OF_IMAGES) for layer in config.model.all_layers)
    rows = min(config.train.batch_size, _IMAGES) if for_images else config.train.batch_size

    def inputs() -> list[np.ndarray]:
        with dynamic_mode(), no_grad(), random.Streams(config.seed).drawing():
            network = Network(config.model, compared, dataset.image_shape, config.data.pixel_range)
            applied, _ = network.applied(Tensor(dataset.train_images[:rows]))
        operators = [operator for operator in network.between if operator is not None]
        pairs = zip(operators, applied, strict=True)
        return [before.numpy() for operator, (before, _) in pairs if operator.name == name]

    key = [config.model, config.data.pixel_range, config.seed, config.train.batch_size, dataset.image_shape]
    return Place(repr(key), inputs)


def gradient_lines(checked: Sequence[Checked]) -> list[str]:
    """Format the results, one line per group of equal results. Wrong gradients have already been reported."""
    by_message: dict[str, list[str]] = {}
    for one in checked:
        if one.state != "wrong":
            by_message.setdefault(one.words, []).append(one.operator)
    return [f"{', '.join(names)}: {message}" for message, names in by_message.items()]
