"""`python -m app compare`: train several operators alike, and tell what differs."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence

from app.errors import ConfigError
from app.run.config import Config, config_name, load_config, operators_typed
from app.run.options import add_config, add_custom_op, add_output, add_overrides


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command line may say."""
    add_config(parser)
    parser.add_argument(
        "--with",
        dest="operators",
        metavar="OPERATOR,…",
        help="the operators, the others held against the first: relu,custom.relu,my_ops.py:swish "
        "(the configuration's baseline and activation)",
    )
    parser.add_argument(
        "--seeds",
        type=int,
        default=5,
        metavar="N",
        help="train each with so many seeds, from the configuration's on (5)",
    )
    add_custom_op(parser)
    add_output(parser)
    add_overrides(parser)


def run(options: argparse.Namespace) -> int:
    """Train and compare; gives the exit status."""
    if options.seeds < 1:
        raise ConfigError(f"--seeds must be at least 1, found {options.seeds}")
    config = load_config(options.config, options.overrides)
    if config.seed + options.seeds > 2**63:
        raise ConfigError(f"--seeds={options.seeds}: from seed={config.seed} on, there are {2**63 - config.seed} seeds")
    operators = _named(options.operators) if options.operators is not None else _of(config)
    typed = operators_typed(options.overrides)
    # Imported after the command line is read, so that a mistyped command is told at once.
    from app.experiment.api import compare
    from app.run.console import console
    from app.run.trust import Trust

    trust = Trust(options.custom_op, operators if options.operators is not None else typed, options.config)
    with console(options.quiet, options.json) as said:
        compare(config, operators, options.seeds, config_name(options.config), said, trust)
    return 0


def _of(config: Config) -> list[str]:
    return _several([name for name in (config.baseline, config.model.activation) if name], "the configuration")


def _named(text: str) -> list[str]:
    parts = re.split(r",(?![^(]*\))", text)  # not at the commas between the settings of an operator
    return _several([name for part in parts if (name := part.strip())], "--with")


def _several(names: Sequence[str], where: str) -> list[str]:
    twice = [name for place, name in enumerate(names) if name in names[:place]]
    if twice:
        raise ConfigError(f"{where} names {twice[0]} twice, and a comparison is between operators that differ")
    if len(names) < 2:
        found = f"only {names[0]}" if names else "no operator"
        raise ConfigError(f"{where} names {found}; a comparison needs two or more: --with relu,custom.relu")
    return list(names)
