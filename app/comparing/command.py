"""`python -m app compare`: train several operators alike, and tell what differs from what is noise."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import msgspec

from app.errors import ConfigError
from app.training.config import CONFIGS, Config, config_name, load_config, operators_typed
from app.training.trusted import Trust, add_custom_op


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command line may say."""
    parser.add_argument(
        "--config", default=str(CONFIGS / "default.yaml"), help="the YAML file to train by (%(default)s)"
    )
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
    parser.add_argument("overrides", nargs="*", metavar="key=value", help="change a setting, such as train.epochs=3")


def run(options: argparse.Namespace) -> int:
    """Train and compare; gives the exit status."""
    if options.seeds < 1:
        raise ConfigError(f"--seeds must be at least 1, found {options.seeds}")
    config = load_config(options.config, options.overrides)
    if config.seed + options.seeds > 2**63:
        raise ConfigError(f"--seeds={options.seeds}: from seed={config.seed} on, there are {2**63 - config.seed} seeds")
    if config.dist.shape != "none":
        raise ConfigError(f"a comparison is made by one process, and dist.shape={config.dist.shape} is for several")
    operators = _named(options.operators) if options.operators is not None else _of(config)
    typed = operators_typed(options.overrides)
    from app.comparing.run import compare  # imported late, so that a mistyped command is told at once

    model = msgspec.structs.replace(config.model, activation=operators[1])
    compare(
        msgspec.structs.replace(config, model=model, baseline=operators[0]),
        operators,
        options.seeds,
        config_name(options.config),
        Trust(options.custom_op, operators if options.operators is not None else typed, options.config),
    )
    return 0


def _of(config: Config) -> list[str]:
    return _several([name for name in (config.baseline, config.model.activation) if name], "the configuration")


def _named(text: str) -> list[str]:
    return _several([name for part in text.split(",") if (name := part.strip())], "--with")


def _several(names: Sequence[str], where: str) -> list[str]:
    twice = [name for place, name in enumerate(names) if name in names[:place]]
    if twice:
        raise ConfigError(f"{where} names {twice[0]} twice, and a comparison is between operators that differ")
    if len(names) < 2:
        found = f"only {names[0]}" if names else "no operator"
        raise ConfigError(f"{where} names {found}; a comparison needs two or more: --with relu,custom.relu")
    return list(names)
