"""The command line of `train.py` and of `opsmith train`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from app import command_line
from app.command_line import Parser
from app.ranks import ending
from app.ranks.launch import launched
from app.run.options import add_anyway, add_config, add_custom_op, add_output, add_overrides
from app.signals import end_at_second_interrupt


def main(arguments: Sequence[str] | None = None, name: str = "train.py") -> int:
    """Run the command; return the exit status."""
    if arguments is None:
        end_at_second_interrupt()
    run = command_line.run if launched() is None else ending.run
    return run(partial(_train, arguments, name))


def _train(arguments: Sequence[str] | None, name: str) -> int:
    options = _parser(name).parse_intermixed_args(arguments)
    # Imported after the command line is read, so that --help and a misspelt option take no time.
    from app.run.config import load_config

    overrides = [*options.overrides, *(["baseline=null"] if options.no_baseline else [])]
    overrides += ["check=warn"] if options.anyway else []
    config = None if options.resume is not None else load_config(options.config, overrides)

    from app.report.report import write_report
    from app.run.console import console
    from app.run.run import resume, train
    from app.run.trust import refuse_without_effect

    with console(options.quiet, options.json) as output:
        if config is None:
            resume(Path(options.resume), output, overrides, options.custom_op, write_report=write_report)
        else:
            refuse_without_effect(options.custom_op)
            train(config, output, write_report=write_report)
    return 0


def _parser(name: str) -> argparse.ArgumentParser:
    typed = "python train.py" if name == "train.py" else name
    parser = Parser(
        prog=name,
        description="Train MNIST with a custom operator and with the built-in one, and compare them.",
        epilog=f"example: {typed} --config quick train.epochs=3 model.activation=tanh",
    )
    begin = parser.add_mutually_exclusive_group()
    add_config(begin)
    begin.add_argument("--resume", metavar="FOLDER", help="continue an interrupted run, such as runs/NAME")
    parser.add_argument(
        "--no-baseline", action="store_true", help="train without the built-in operator, as baseline=null does"
    )
    add_anyway(parser)
    add_custom_op(parser)
    add_output(parser)
    add_overrides(parser)
    return parser
