"""`opsmith compare`: train several operators under equal conditions and test how they differ."""

from __future__ import annotations

import argparse
import re
from contextlib import nullcontext
from pathlib import Path

from app.command_line import count
from app.errors import ConfigError
from app.run.options import add_anyway, add_config, add_custom_op, add_output


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command-line arguments."""
    begin = parser.add_mutually_exclusive_group()
    add_config(begin)
    begin.add_argument("--resume", metavar="FOLDER", help="continue a comparison, such as runs/NAME")
    parser.add_argument(
        "--with",
        dest="operators",
        metavar="OPERATOR,…",
        help="the operators to compare; the first is the reference: relu,custom.relu,my_ops.py:swish "
        "(default: the configuration's operators, or its baseline and activation)",
    )
    parser.add_argument(
        "--seeds",
        type=count,
        metavar="N",
        help="train each with N seeds, beginning with the configuration's (5); with --resume, more than before",
    )
    parser.add_argument(
        "--workers", type=count, default=1, metavar="N", help="train N seeds at the same time, each in a process"
    )
    add_anyway(parser)
    add_custom_op(parser)
    add_output(parser)
    parser.add_argument(
        "words",
        nargs="*",
        metavar="RUN | key=value",
        help="folders of finished runs, to compare these; or a setting to change, such as train.epochs=3",
    )


def run(options: argparse.Namespace) -> int:
    """Train and compare; return the exit status."""
    # Imported after the command line is read, so that --help and a misspelt option take no time.
    from app.run.config import load_compare_config

    folders, overrides = _folders_and_overrides(options)
    config = load_compare_config(options.config, overrides) if not folders and options.resume is None else None

    from app.experiment.comparing import compare, compare_finished, continue_comparison
    from app.ranks.launch import launched
    from app.run.console import console
    from app.run.trust import refuse_without_effect
    from app.run.workers import Processes

    if launched() is not None:
        raise ConfigError(
            "mpiexec started several ranks, each of which would do the whole work: start one process. In Python, ranks "
            "train side by side with opsmith.compare(..., executor=mpi4py.futures.MPIPoolExecutor())"
        )
    workers = Processes(options.workers) if options.workers > 1 else nullcontext()
    with console(options.quiet, options.json) as output, workers as executor:
        if config is not None:
            refuse_without_effect(options.custom_op)
            compare(config, output, executor)
        elif options.resume is not None:
            continue_comparison(Path(options.resume), output, executor, options.custom_op, seeds=options.seeds)
        else:
            compare_finished(folders, output, next((word[len("output=") :] for word in overrides), None))
    return 0


def _folders_and_overrides(options: argparse.Namespace) -> tuple[list[Path], list[str]]:
    """Part the words of the command line, and refuse those that have no effect."""
    folders = [Path(word) for word in options.words if not re.match(r"[\w.]+=", word)]
    overrides = [word for word in options.words if re.match(r"[\w.]+=", word)]
    if options.seeds is not None and options.resume is None:
        overrides.append(f"seeds={options.seeds}")
    overrides += ["check=warn"] if options.anyway else []
    if options.operators is not None:
        from app.run.yaml_text import in_a_line

        overrides.append(f"operators={in_a_line(_parted(options.operators))}")
    if folders and options.resume is not None:
        raise ConfigError(f"--resume continues one comparison, and {folders[0]} is another folder: leave out one")
    if options.operators is not None and (other := next((str(one) for one in folders if not one.exists()), None)):
        raise ConfigError(
            f"{other} is neither the folder of a run nor a setting; operators are listed with commas, without spaces: "
            f"--with {','.join([*_parted(options.operators), other])}"
        )
    if folders and (changes := [word for word in overrides if not word.startswith("output=")]):
        raise ConfigError(f"finished runs are compared as they are, but {changes[0]} is to change them")
    if options.resume is not None and overrides:
        raise ConfigError(
            f"a comparison is continued with its own settings, but {overrides[0]} is to change them; only --seeds may "
            "grow"
        )
    return folders, overrides


def _parted(text: str) -> list[str]:
    """Split a list of operators such as `relu,custom.leaky_relu(slope=0.2,other=1)`."""
    return [name for part in re.split(r",(?![^(]*\))", text) if (name := part.strip())]
