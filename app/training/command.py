"""`train.py`: from a configuration to a trained and compared custom operator."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from app.data import Dataset, load
from app.errors import AppError
from app.training.comparison import Contestant, compare, contestants, summary
from app.training.config import CONFIGS, Config, config_name, load_config
from app.training.console import Console
from app.training.run_folder import RunFolder

INTERRUPTED = 130
"""The exit status that shells expect after Ctrl-C."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Train as the command line says; gives the exit status."""
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
    options = parser.parse_intermixed_args(arguments)
    try:
        overrides = [*options.overrides, *(["baseline=null"] if options.no_baseline else [])]
        config = load_config(options.config, overrides)
        return train(config, config_name(options.config))
    except AppError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_status
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED


def train(config: Config, name: str) -> int:
    """Train and compare; gives the exit status. An interrupted run still says and saves what it had."""
    data = config.data
    dataset = load(data.source, data.sources, data.folder, say=lambda text: print(text, file=sys.stderr))
    entered = contestants(config, dataset.train_images.shape[1])
    console = Console(max(len(c.operator) for c in entered), config.train.epochs)
    with RunFolder(config, name) as folder:
        for line in _introduction(config, dataset, entered):
            console.say(line)
        status = 0
        try:
            compare(config, dataset, entered, console, folder.record)
        except KeyboardInterrupt:
            status = INTERRUPTED
        text = summary(entered, _notes(dataset, interrupted=status != 0))
        console.say(f"\n{text}\n")
        for contestant in entered:
            folder.save_weights(contestant.operator, contestant.learner.weights())
        folder.save_summary(text)
        console.say(f"The run is in {folder.path}{_separator(folder.path)}")
    return status


def _separator(path: Path) -> str:
    return "/" if not str(path).endswith("/") else ""


def _introduction(config: Config, dataset: Dataset, entered: Sequence[Contestant]) -> list[str]:
    train, test = len(dataset.train_images), len(dataset.test_images)
    checked = "verified" if dataset.verified else "not verified"
    widths = "-".join(map(str, [dataset.train_images.shape[1], *config.model.hidden, 10]))
    who = " against ".join(c.operator for c in entered)
    return [
        f"Data: {train:,} training and {test:,} test images, {dataset.origin} ({checked})",
        *_sample_note(dataset),
        f"Network {widths} with {who}; engine {config.engine}, seed {config.seed}",
        "",
    ]


def _sample_note(dataset: Dataset) -> list[str]:
    if not dataset.is_sample:
        return []
    return ["Note: this is the small sample, not the full MNIST; accuracies are lower than the full set gives."]


def _notes(dataset: Dataset, interrupted: bool) -> list[str]:
    stopped = ["Interrupted: the figures are those of the epochs that were finished."] if interrupted else []
    return [*_sample_note(dataset), *stopped]
