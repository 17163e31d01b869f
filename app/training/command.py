"""`train.py`: its command line."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from app import command_line
from app.training.config import CONFIGS, config_name, load_config
from app.training.run import train


def main(arguments: Sequence[str] | None = None) -> int:
    """Train as the command line says; gives the exit status."""
    return command_line.run(lambda: _train(_parser().parse_intermixed_args(arguments)))


def _train(options: argparse.Namespace) -> int:
    overrides = [*options.overrides, *(["baseline=null"] if options.no_baseline else [])]
    train(load_config(options.config, overrides), config_name(options.config))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="train.py",
        description="Train MNIST with a custom operator and with the built-in one, and compare them.",
        epilog="example: python train.py --config configs/quick.yaml train.epochs=3 model.activation=tanh",
    )
    parser.add_argument(
        "--config", default=str(CONFIGS / "default.yaml"), help="the YAML file to train by (%(default)s)"
    )
    parser.add_argument("--no-baseline", action="store_true", help="train the one network alone, as baseline=null does")
    parser.add_argument("overrides", nargs="*", metavar="key=value", help="change a setting, such as train.epochs=3")
    return parser
