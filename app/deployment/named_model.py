"""The saved model that a command line names: a run's folder, or what the files of a model begin with."""

from __future__ import annotations

import argparse
from pathlib import Path

from app.custom.references import ChangedOperatorError, UnnamedOperatorError
from app.errors import AppError, MissingFileError
from app.static.model_file import SavedModel, paths_of, read_model
from app.training.run_folder import MODEL
from app.training.trusted import add_custom_op


def add_trust_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare how a user says whose code may run."""
    add_custom_op(parser)
    about = "use it though its source has changed"
    parser.add_argument("--accept-changed", action="append", default=[], metavar="FILE:NAME", help=about)


def read_named_model(options: argparse.Namespace) -> tuple[SavedModel, str]:
    """The model at `options.model`, and the name of its file."""
    path = Path(options.model)
    prefix = path / MODEL if path.is_dir() else path
    name = str(paths_of(prefix)[0])
    missing = [file.name for file in paths_of(prefix) if not file.exists()]
    try:
        return read_model(prefix, options.custom_op, options.accept_changed), name
    except MissingFileError as error:
        if path.is_dir():
            both = len(missing) == 2
            why = "no run was kept there for use" if both else "a network for use is that file and the one beside it"
            raise MissingFileError(f"{path} has no {missing[0]}: {why}") from error
        raise
    except UnnamedOperatorError as error:
        words = " ".join(f"--custom-op {reference}" for reference in error.needed)
        raise AppError(
            f"{name} needs {', '.join(error.needed)}: code that is run only if you name it. "
            f"If you trust it, say where it lies: {words}"
        ) from error
    except ChangedOperatorError as error:
        told = str(error).partition(" If the new one")[0]
        raise AppError(f"{told} If the new one will do: --accept-changed {error.changed}") from error
