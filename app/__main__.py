"""The door to the tools: `python -m app COMMAND`."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence

from app.command_line import run

COMMANDS = {
    "data": ("app.data.command", "show where MNIST is and whether it is whole; fetch it"),
    "check": ("app.checking.command", "examine custom operators: gradients, shapes, manners, how they are compiled"),
    "run": ("app.compat.command", "run a program written for Paddle or PyTorch, or list the names that it can use"),
    "export": ("app.deployment.export", "write a trained network as a file that other programs run"),
    "predict": ("app.deployment.predict", "say which digits image files show, by a trained network"),
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
    parser = argparse.ArgumentParser(prog="python -m app", description="The tools around training.")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    modules = {}
    for name, (module, line) in COMMANDS.items():
        command = commands.add_parser(name, help=line, description=line)
        if given[:1] == [name]:  # a command's module is imported only when it is the one that is run
            modules[name] = importlib.import_module(module)
            modules[name].add_arguments(command)
    options = parser.parse_args(given)
    return int(modules[options.command].run(options))


if __name__ == "__main__":
    sys.exit(main())
