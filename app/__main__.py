"""The command line: `opsmith COMMAND`, in a checkout `.venv/bin/opsmith COMMAND`."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

from app.command_line import Parser, run
from app.signals import end_at_second_interrupt
from app.version import __version__


class Command(NamedTuple):
    """A command: the module that has its `add_arguments` and `run`, a line of help, and an example."""

    module: str
    help: str
    example: str


COMMANDS = {
    "check": Command(
        ".checking.command",
        "examine custom operators: gradients, shapes, behaviour, how they are compiled",
        "my_ops.py:swish --like silu",
    ),
    "derive": Command(
        ".checking.derive_command",
        "print the gradient that is derived from the source of an operator",
        "my_ops.py:softmax --shape 4,6",
    ),
    "learn": Command(
        ".learn.command",
        "list exercises on operators and gradients, and examine your solutions",
        "3",
    ),
    "compare": Command(
        ".experiment.compare_command",
        "compare several operators over several seeds: accuracy, speed, and which differences are significant",
        "--with relu,my_ops.py:swish --seeds 5 train.epochs=2",
    ),
    "watch": Command(
        ".experiment.watch_command",
        "check the operators of a file and train them briefly, whenever it is saved",
        "my_ops.py --config quick",
    ),
    "export": Command(
        ".use.export",
        "export a trained network to ONNX, or an operator to PyTorch, JAX or C",
        "my_ops.py:softmax --to torch",
    ),
    "report": Command(
        ".report.command",
        "write the report of a run again, from its folder",
        "runs/NAME",
    ),
    "predict": Command(
        ".use.predict", "recognise the digits in image files with a trained network", "runs/NAME digit.png"
    ),
    "demo": Command(
        ".use.demo.command",
        "open a page on which you draw digits and trained networks read them",
        "runs/NAME --port 0",
    ),
    "inspect": Command(
        ".inspection.command",
        "show a network's Programs at every stage, the memory they need, and a picture",
        "--config quick",
    ),
    "run": Command(
        ".compat.command",
        "run a program written for Paddle or PyTorch",
        "tutorial.py",
    ),
    "data": Command(".data.command", "show where MNIST is stored and whether it is complete, or download it", "fetch"),
}
"""The commands other than `train`, in the order in which a newcomer needs them."""
WITHOUT_COMMAND = 2
"""The exit status of `opsmith` alone, that of other mistakes on the command line."""
TRAIN = "train a custom operator beside the built-in one, as train.py does"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command that the arguments name, and return the exit status."""
    argv = list(sys.argv[1:] if arguments is None else arguments)
    if arguments is None and argv[:1] != ["run"]:  # a script that it runs may need to save its work
        end_at_second_interrupt()
    if argv[:1] == ["train"]:
        from app.experiment.train_command import main as train

        return train(argv[1:], "opsmith train")
    return run(lambda: _run(argv))


def _run(argv: Sequence[str]) -> int:
    names = [*COMMANDS]
    names.insert(names.index("compare") + 1, "train")
    examples = {**{word: command.example for word, command in COMMANDS.items()}, "train": "--config quick"}
    parser = Parser(
        prog="opsmith",
        description="Check, derive, compare, train and export custom operators.",
        epilog="\n".join(["examples:", *(f"  opsmith {word} {examples[word]}" for word in names)]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"opsmith {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    parsers = {word: _added(commands, word) for word in names}
    if argv[:1] and argv[0] in COMMANDS:
        module = importlib.import_module(COMMANDS[argv[0]].module, __package__)  # only the command that runs
        module.add_arguments(parsers[argv[0]])
        options = _options(parsers[argv[0]], argv[1:])
        return int(module.run(options))
    if not argv:
        parser.exit(WITHOUT_COMMAND, parser.format_help())
    parser.parse_args(argv)
    raise AssertionError("arguments without a command should have ended in help or an error")


def _added(commands: Any, word: str) -> Any:
    if word == "train":  # which has a parser of its own
        return commands.add_parser(word, help=TRAIN)
    command = COMMANDS[word]
    epilog = f"example: opsmith {word} {command.example}"
    return commands.add_parser(word, help=command.help, description=command.help, epilog=epilog)


def _options(parser: argparse.ArgumentParser, arguments: Sequence[str]) -> argparse.Namespace:
    """Parse the arguments; `key=value` and options may be mixed."""
    try:
        return parser.parse_intermixed_args(arguments)
    except TypeError:  # argparse cannot mix them where a command has subcommands, or takes all remaining words
        return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
