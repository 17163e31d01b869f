"""`python -m app inspect`: the Programs that a configuration makes, and how the compiled engine runs them."""

from __future__ import annotations

import argparse

from app.engine.compiled.explain import after_passes, explain
from app.training.activation import find_activation
from app.training.config import CONFIGS, load_config
from app.training.learner import ProgramLearner

PIXELS = 28 * 28


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command line may say."""
    default = str(CONFIGS / "default.yaml")
    parser.add_argument("--config", default=default, help="the configuration whose network is shown (%(default)s)")
    parser.add_argument("--no-source", action="store_true", help="leave out the source that is generated")
    parser.add_argument("overrides", nargs="*", metavar="key=value", help="change a setting first")


def run(options: argparse.Namespace) -> int:
    """Print the startup Program, the main one before and after the passes, and how each operator runs."""
    config = load_config(options.config, options.overrides)
    learner = ProgramLearner(config, find_activation(config.model.activation), PIXELS)
    sections = {
        "The startup Program, run once": learner.startup,
        "The main Program, run for every batch": learner.main,
        "The main Program after the passes": after_passes(learner.main, learner.fetch),
        "How the compiled engine runs it": explain(learner.main, learner.fetch, source=not options.no_source),
    }
    print("\n\n".join(f"== {title}\n\n{text}" for title, text in sections.items()))
    return 0
