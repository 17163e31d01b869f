"""`train.py`: its command line."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from app.command_line import Parser
from app.experiment.api import resume, train
from app.ranks import ending
from app.ranks.current import place
from app.run.config import CONFIGS, config_name, load_config, operators_typed
from app.run.console import add_console, console
from app.run.trust import Trust, add_custom_op
from app.signals import ends_at_once


def main(arguments: Sequence[str] | None = None, name: str = "train.py") -> int:
    """Train as the command line says; gives the exit status."""
    return ending.run(lambda: _train(_parser(name).parse_intermixed_args(arguments)))


def _train(options: argparse.Namespace) -> int:
    overrides = [*options.overrides, *(["baseline=null"] if options.no_baseline else [])]
    trust = Trust(options.custom_op, operators_typed(overrides), options.resume or options.config)
    last_words = b"" if place()[0] else b"interrupted\n"
    with ends_at_once(last_words=last_words), console(options.quiet, options.json) as said:
        if options.resume is not None:
            resume(Path(options.resume), overrides, said, trust)
            return 0
        train(load_config(options.config, overrides), config_name(options.config), said, trust)
    return 0


def _parser(name: str) -> argparse.ArgumentParser:
    typed = "python train.py" if name == "train.py" else name
    parser = Parser(
        prog=name,
        description="Train MNIST with a custom operator and with the built-in one, and compare them.",
        epilog=f"example: {typed} --config configs/quick.yaml train.epochs=3 model.activation=tanh",
    )
    begin = parser.add_mutually_exclusive_group()
    begin.add_argument(
        "--config", default=str(CONFIGS / "default.yaml"), help="the YAML file to train by (%(default)s)"
    )
    begin.add_argument("--resume", metavar="FOLDER", help="go on with a run that was interrupted, such as runs/NAME")
    parser.add_argument("--no-baseline", action="store_true", help="train the one network alone, as baseline=null does")
    add_custom_op(parser)
    add_console(parser)
    parser.add_argument("overrides", nargs="*", metavar="key=value", help="change a setting, such as train.epochs=3")
    return parser
