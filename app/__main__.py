"""The door to the tools: `python -m app COMMAND`."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence

from app.command_line import Parser, run
from app.signals import ends_at_once

COMMANDS = {
    "data": ("app.data.command", "show where MNIST is and whether it is whole; fetch it"),
    "check": ("app.checking.command", "examine custom operators: gradients, shapes, behaviour, how they are compiled"),
    "compare": ("app.comparing.command", "train several operators alike, and tell what differs from what is noise"),
    "run": ("app.compat.command", "run a program written for Paddle or PyTorch, or list the names that it can use"),
    "export": ("app.deployment.export", "write a trained network as a file that other programs run"),
    "predict": ("app.deployment.predict", "say which digits image files show, by a trained network"),
    "demo": ("app.demo.command", "open a page on which one draws digits, and trained networks read them"),
    "report": ("app.reporting.command", "make the report of a run, a page that opens anywhere, from the run's folder"),
    "inspect": (
        "app.inspection.command",
        "show a network's Programs at every stage, the memory they need, and a picture",
    ),
}
"""Each command, with the module whose `add_arguments` and `run` it is and a line of help."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command that the arguments name; gives the exit status."""
    return run(lambda: _run(list(sys.argv[1:] if arguments is None else arguments)))


def _run(given: Sequence[str]) -> int:
    parser = Parser(prog="python -m app", description="The tools around training.")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    parsers = {name: commands.add_parser(name, help=line, description=line) for name, (_, line) in COMMANDS.items()}
    if given[:1] and given[0] in COMMANDS:
        module = importlib.import_module(COMMANDS[given[0]][0])  # no other than the one that is run
        module.add_arguments(parsers[given[0]])
        options = _options(parsers[given[0]], given[1:])
        with ends_at_once():
            return int(module.run(options))
    parser.parse_args(given)
    raise AssertionError("what names no command is help, or a mistake")


def _options(parser: argparse.ArgumentParser, words: Sequence[str]) -> argparse.Namespace:
    """What the words say; `key=value` and options may stand in any order."""
    try:
        return parser.parse_intermixed_args(words)
    except TypeError:  # of a command that has commands of its own, or takes all words that follow one
        return parser.parse_args(words)


if __name__ == "__main__":
    sys.exit(main())
