"""The saved model that a command line names: a run's folder, or what the files of a model begin with."""

from __future__ import annotations

import argparse
from pathlib import Path

from app.custom.references import ChangedOperatorError, UnnamedOperatorError
from app.errors import AppError, MissingFileError
from app.static.model_file import SavedModel, paths_of, read_model
from app.training.run_folder import MODEL


def add_trust_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare how a user says whose code may run."""
    about = "code of yours that the model needs, such as my_ops.py:swish; it is run, so name only what you trust"
    parser.add_argument("--custom-op", action="append", default=[], metavar="FILE:NAME", help=about)
    about = "use it though its source has changed"
    parser.add_argument("--accept-changed", action="append", default=[], metavar="FILE:NAME", help=about)


def read_named_model(options: argparse.Namespace) -> tuple[SavedModel, str]:
    """The model at `options.model`, and the name of its file."""
    path = Path(options.model)
    prefix = path / MODEL if path.is_dir() else path
    name = str(paths_of(prefix)[0])
    try:
        return read_model(prefix, options.custom_op, options.accept_changed), name
    except MissingFileError as error:
        if path.is_dir():
            raise MissingFileError(f"{path} has no {Path(name).name}: no run was kept there for use") from error
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
