"""`opsmith.inspect`: what becomes of a network or an operator, down to the source that is compiled."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np

from app.checking.findings import name_of, one_of
from app.display import Displayed
from app.errors import ConfigError
from app.experiment.calls import Operator, activation_of, configured
from app.graph import Program
from app.graph.statements import Watched
from app.inspection.stages import ALL, NAMES, Section, Stages
from app.inspection.subject import Subject, ends_of, of_function, of_network, of_operator, of_word
from app.run.activation import find_all
from app.run.config import config_name, load_config
from app.run.options import DEFAULT


class Inspection(list[Section], Displayed):
    """Stages of a network or an operator, as `opsmith inspect` prints them."""

    def __str__(self) -> str:
        return "\n\n".join(f"== {section.heading}\n\n{section.text}" for section in self)

    __repr__ = __str__


def inspect(
    what: Program | Operator | Callable[[], Any] | None = None,
    stage: str | None = None,
    *,
    batch: int | None = None,
    rank: int | None = None,
    config: str | os.PathLike[str] = DEFAULT,
    **settings: Any,
) -> Inspection:
    """Show the Programs of a network, what each pass changes, how an engine runs them, and the generated source.

    >>> print(opsmith.inspect("custom.relu", "source"))
    == The source that is generated
    ...

    `what` is an operator, which is shown with its gradient, a Program, a function without parameters that builds a
    network, or the name of an operator, a function, a saved model or a run's folder. Without it, the network that
    `opsmith.train` trains is shown, with the same settings: `opsmith.inspect(activation=swish, hidden=[50])`; that of
    one `rank`, for a configuration with `dist.shape`. `stage` names one stage ("main", "engine", "memory", "source"
    ...).
    """
    if stage is not None and stage not in (*NAMES, ALL):
        raise ConfigError(f"there is no stage {stage!r}; there are {', '.join(NAMES)} and {ALL}")
    if batch is not None and (not isinstance(batch, (int, np.integer)) or batch < 1):
        raise ConfigError(f"batch must be a whole number of at least 1, found {batch!r}")
    if what is not None and settings:
        raise ConfigError(f"{', '.join(settings)}: settings of a configuration's network cannot be used with {what}")
    if rank is not None and (what is not None or not isinstance(rank, (int, np.integer)) or rank < 0):
        raise ConfigError(f"rank is a whole number of at least 0, for the network of a configuration; found {rank!r}")
    if what is None:
        subject = _of_settings(config, settings, rank)
    elif isinstance(what, str):
        subject = of_word(what)
    elif isinstance(what, Program):
        subject = Subject("Program", Program(), what, ends_of(what), Watched(()))
    elif _builds(what):
        subject = of_function(name_of(what), what)
    else:
        subject = of_operator(one_of(what))
    return Inspection(Stages(subject, batch).sections(stage))


def _of_settings(config: str | os.PathLike[str], settings: dict[str, Any], rank: int | None) -> Subject:
    config_of_call = load_config(config)
    activations = [activation_of(settings.pop("activation"))] if "activation" in settings else []
    if activations:
        config_of_call = msgspec.structs.replace(
            config_of_call, model=msgspec.structs.replace(config_of_call.model, activation=activations[0].name)
        )
    config_of_call, activations = configured(config_of_call, activations, settings, "opsmith.inspect")
    (activation,) = find_all([config_of_call.model.activation], config_of_call.model, activations)
    return of_network(config_of_call, activation, config_name(config), rank)


def _builds(what: Any) -> bool:
    """Whether it is a function that builds a network, which takes nothing, and no operator."""
    code = getattr(what, "__code__", None)
    return code is not None and not code.co_argcount and not code.co_flags & 0x04  # no *values
