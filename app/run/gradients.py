"""Checks the gradients of a run's custom operators against finite differences before training."""

from __future__ import annotations

from collections.abc import Sequence

from app.checking.before_training import check_gradient
from app.errors import GradcheckError
from app.ranks.world import World
from app.run.config import Config
from app.run.console import Console
from app.run.events import Checked
from app.run.layers import width_of
from app.run.network import Activation, every_operator

_ADVICE = (
    "Training did not start, because results with a wrong gradient say nothing about the operator. `opsmith check` "
    "shows details. If the gradient is meant to differ, declare it: @operator.backward(surrogate=True). To train "
    'anyway, add --anyway or check=warn (in Python: check="warn")'
)


def check_gradients(config: Config, activations: Sequence[Activation], world: World, console: Console) -> list[Checked]:
    """Check each custom operator as `check` says. Rank 0 checks and sends the result to all ranks."""
    if config.check is False:
        return []
    found = world.gather(_found(config, activations, console) if world.rank == 0 else [])[0]
    checked = [Checked(*one) for one in found]
    wrong = [f"{one.operator}: {one.words}." for one in checked if one.state == "wrong"]
    if wrong and config.check is True:
        raise GradcheckError("\n".join([*wrong, _ADVICE]))
    for words in wrong:
        console.alarm(words)
    return checked


def _found(config: Config, activations: Sequence[Activation], console: Console) -> list[tuple[str, str, str]]:
    found: list[tuple[str, str, str]] = []
    width = width_of(config.model.all_layers)
    for activation in every_operator(activations):
        with console.busy(f"Checking the gradient of {activation.name}"):
            one = check_gradient(activation.operator, activation.name, activation.settings, width)
        if one is not None:
            found.append((activation.name, one.state, one.words))
    return found


def gradient_lines(checked: Sequence[Checked]) -> list[str]:
    """Format the results, one line per group of equal results. Wrong gradients have already been reported."""
    by_words: dict[str, list[str]] = {}
    for one in checked:
        if one.state != "wrong":
            by_words.setdefault(one.words, []).append(one.operator)
    return [f"{', '.join(names)}: {words}" for words, names in by_words.items()]
