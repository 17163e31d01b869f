"""Command-line options that several commands share."""

from __future__ import annotations

import argparse
import os

from app.files import PACKAGE_FOLDER, checkout

CONFIGS = (checkout() or PACKAGE_FOLDER) / "configs"
"""The shipped configurations, in the checkout or in the installed package."""
DEFAULT = CONFIGS / "default.yaml"


def configuration_file(named: str | os.PathLike[str]) -> str:
    """Return the file of a configuration: `quick` names the shipped quick.yaml, unless there is a file `quick`."""
    path = os.path.expanduser(named)
    shipped = CONFIGS / f"{path}.yaml"
    return str(shipped) if path.isidentifier() and shipped.is_file() and not os.path.isfile(path) else path


def add_config(parser: argparse._ActionsContainer) -> None:
    """Declare `--config`."""
    parser.add_argument(
        "--config",
        default=str(DEFAULT),
        help="the configuration: a YAML file, or the name of a shipped one, such as quick (%(default)s)",
    )


def add_overrides(parser: argparse._ActionsContainer) -> None:
    """Declare `key=value` arguments."""
    parser.add_argument("overrides", nargs="*", metavar="key=value", help="change a setting, such as train.epochs=3")


def add_custom_op(parser: argparse._ActionsContainer) -> None:
    """Declare `--custom-op`, which names operator files that may be executed; see `opsmith.run.trust`."""
    about = (
        "a file with operators that the run's folder or the saved model names, such as ops/my_ops.py. "
        "The file is executed: name only files that you trust"
    )
    parser.add_argument("--custom-op", action="append", default=[], metavar="FILE", help=about)


def add_anyway(parser: argparse.ArgumentParser) -> None:
    """Declare the option that trains despite a wrong gradient."""
    parser.add_argument("--anyway", action="store_true", help="train even if a gradient is wrong, as check=warn does")


def add_output(parser: argparse._ActionsContainer) -> None:
    """Declare the options for the console output; see `opsmith.run.console`."""
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument("--quiet", action="store_true", help="print only the summary of the run and its folder")
    choice.add_argument("--json", action="store_true", help="print each event as a line of JSON")
