"""`opsmith compare`: train several operators under equal conditions and test how they differ."""

from __future__ import annotations

import argparse
import re

from app.command_line import FAILED
from app.errors import ConfigError
from app.run.options import add_anyway, add_config, add_output, add_overrides


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command-line arguments."""
    add_config(parser)
    parser.add_argument(
        "--with",
        dest="operators",
        metavar="OPERATOR,…",
        help="the operators to compare; the first is the reference: relu,custom.relu,my_ops.py:swish "
        "(default: the configuration's operators, or its baseline and activation)",
    )
    parser.add_argument(
        "--seeds", type=int, metavar="N", help="train each with N seeds, beginning with the configuration's (5)"
    )
    parser.add_argument(
        "--workers",
        default="1",
        metavar="N",
        help="train in N processes side by side",
    )
    add_anyway(parser)
    add_output(parser)
    add_overrides(parser)


def run(options: argparse.Namespace) -> int:
    """Train and compare; return the exit status."""
    # Imported after the command line is read, so that --help and a misspelt option take no time.
    from app.run.config import config_name, load_compare_config

    if options.seeds is not None and options.seeds < 1:
        raise ConfigError(f"--seeds must be at least 1, found {options.seeds}")
    overrides = [*options.overrides, *([] if options.seeds is None else [f"seeds={options.seeds}"])]
    overrides += ["check=warn"] if options.anyway else []
    if options.operators is not None:
        overrides.append(f"operators={_as_yaml(_parted(options.operators))}")
    config = load_compare_config(options.config, overrides)

    from app.experiment.api import compare
    from app.ranks.launch import launched
    from app.run.console import console
    from app.run.workers import executor_of

    executor = executor_of(options.workers)
    if launched() is not None:
        raise ConfigError(
            "mpiexec started several ranks, each of which would do the whole work: start one process. In Python, ranks "
            "train side by side with opsmith.compare(..., executor=mpi4py.futures.MPIPoolExecutor())"
        )
    with console(options.quiet, options.json) as said:
        result = compare(config, config_name(options.config), said, executor)
    return 0 if result.comparison is not None else FAILED


def _parted(text: str) -> list[str]:
    """Split a list of operators such as `relu,custom.leaky_relu(slope=0.2,other=1)`."""
    return [name for part in re.split(r",(?![^(]*\))", text) if (name := part.strip())]


def _as_yaml(names: list[str]) -> str:
    return "[" + ", ".join("'" + name.replace("'", "''") + "'" for name in names) + "]"
