"""`train.py`: its command line."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from app.command_line import Parser
from app.experiment.run import resume, train
from app.ranks import ending
from app.ranks.current import place
from app.signals import ends_at_once
from app.training.config import CONFIGS, config_name, load_config, operators_typed
from app.training.telling.console import console
from app.training.trusted import Trust, add_custom_op


def main(arguments: Sequence[str] | None = None) -> int:
    """Train as the command line says; gives the exit status."""
    return ending.run(lambda: _train(_parser().parse_intermixed_args(arguments)))


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


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="train.py",
        description="Train MNIST with a custom operator and with the built-in one, and compare them.",
        epilog="example: python train.py --config configs/quick.yaml train.epochs=3 model.activation=tanh",
    )
    begin = parser.add_mutually_exclusive_group()
    begin.add_argument(
        "--config", default=str(CONFIGS / "default.yaml"), help="the YAML file to train by (%(default)s)"
    )
    begin.add_argument("--resume", metavar="FOLDER", help="go on with a run that was interrupted, such as runs/NAME")
    parser.add_argument("--no-baseline", action="store_true", help="train the one network alone, as baseline=null does")
    add_custom_op(parser)
    voice = parser.add_mutually_exclusive_group()
    voice.add_argument("--quiet", action="store_true", help="print the end of the run alone: its summary and folder")
    voice.add_argument("--json", action="store_true", help="print the metrics as they come, an object a line")
    parser.add_argument("overrides", nargs="*", metavar="key=value", help="change a setting, such as train.epochs=3")
    return parser
