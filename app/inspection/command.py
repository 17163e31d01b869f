"""`opsmith inspect`: a network at each stage, from its statements to the source that is compiled."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from app.errors import ConfigError
from app.files import write_whole
from app.inspection.picture import draw
from app.inspection.stages import ALL, NAMES, Stages
from app.inspection.subject import Subject, of_configuration, of_word
from app.printing import say
from app.run.options import DEFAULT
from app.run.trust import refuse_without_effect
from app.use.models import add_trust_arguments

SETTING = re.compile(r"[\w.]+=")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command line."""
    parser.add_argument("--config", help="the configuration whose network is shown (default)")
    parser.add_argument(
        "words",
        nargs="*",
        metavar="WHAT",
        help="key=value, a setting of the configuration; or instead of a configuration: a saved model, a run's folder, "
        "an operator, or file.py:function, which builds a network and returns its loss or outputs",
    )
    parser.add_argument("--stage", help=f"show only this stage: {', '.join(NAMES)}; or {ALL}")
    parser.add_argument("--batch", type=int, help="the batch size for the memory that is shown")
    parser.add_argument("--rank", type=int, help="the rank whose Program is shown, for a configuration with dist.shape")
    parser.add_argument(
        "--svg",
        metavar="FILE",
        help="draw the Program of the stage (by default the main one) to this file",
    )
    add_trust_arguments(parser)


def run(options: argparse.Namespace) -> int:
    """Print the requested stages, or draw one of them."""
    if options.batch is not None and options.batch < 1:
        raise ConfigError(f"--batch must be at least 1, found {options.batch}")
    if options.rank is not None and options.rank < 0:
        raise ConfigError(f"--rank must be at least 0, found {options.rank}")
    stages = Stages(_subject(options), options.batch)
    if options.svg:
        _draw(stages, options.stage, Path(options.svg))
        return 0
    sections = stages.sections(options.stage)
    say("\n\n".join(f"== {section.heading}\n\n{section.text}" for section in sections))
    return 0


def _subject(options: argparse.Namespace) -> Subject:
    others = [word for word in options.words if not SETTING.match(word)]
    settings = [word for word in options.words if SETTING.match(word)]
    if not others:
        path = options.config or str(DEFAULT)
        refuse_without_effect(options.custom_op, options.accept_changed)
        return of_configuration(path, settings, options.rank)
    if options.config or settings or len(others) > 1:
        more = ["--config", *settings] if options.config else settings or others[1:]
        raise ConfigError(f"one network at a time: {others[0]} cannot be combined with {', '.join(more)}")
    if options.rank is not None:
        raise ConfigError(f"--rank is for a configuration; {others[0]} is for one process")
    return of_word(others[0], options.custom_op, options.accept_changed)


def _draw(stages: Stages, stage: str | None, path: Path) -> None:
    """Draw the Program of the requested stage, or the main one if the stage has none."""
    requested = [] if stage in (None, ALL) else [s for s in stages.sections(stage) if s.program is not None]
    section = (requested or stages.sections("main"))[-1]
    assert section.program is not None
    write_whole(path, draw(section.program, f"{section.heading} ({stages.subject.name})").encode())
    say(f"{section.heading}: the picture is in {path}")
