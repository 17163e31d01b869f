"""`opsmith predict`: classify the digits in image files with a trained network."""

from __future__ import annotations

import argparse
import sys

import numpy as np

from app.data.dataset import CLASSES
from app.errors import AppError, DataError
from app.printing import say
from app.use.digits import prepare
from app.use.image_files import read_picture
from app.use.models import add_trust_arguments, load_network


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command-line arguments."""
    parser.add_argument(
        "model", metavar="MODEL", help="a run's folder, a saved model (the path without .json), or an .onnx file"
    )
    parser.add_argument("images", nargs="+", metavar="IMAGE", help="image files, each of one digit")
    add_trust_arguments(parser)


def run(options: argparse.Namespace) -> int:
    """Print a line for each picture; return 1 if one could not be read."""
    network = load_network(options)
    failed = False
    for image in options.images:
        try:
            scores = np.asarray(network(prepare(read_picture(image))[None]))
            if scores.size != CLASSES:
                raise AppError(
                    f"{options.model} gives numbers of shape {list(scores.shape)} for a picture; a network that reads "
                    f"digits gives {CLASSES}"
                )
            if not np.isfinite(scores.max()):
                raise DataError("the network's scores are NaN or infinite, as after a training that diverged")
        except DataError as error:
            message = str(error) if str(error).startswith(image) else f"{image}: {error}"
            say(f"error: {message}".replace("\n", "\\n"), sys.stderr)
            failed = True
            continue
        say(line(image, probabilities(scores)).replace("\n", "\\n"))
    return int(failed)


def line(image: str, shares: np.ndarray) -> str:
    """Format the result for a picture: the most probable digit, its probability, and the runners-up."""
    order = np.argsort(-shares, kind="stable")[:_NAMED]
    first, *others = [f"{digit}  {shares[digit]:.4f}" for digit in order]
    return f"{image}  {first}  (then {', '.join(other.replace('  ', ' ') for other in others)})"


_NAMED = 3
"""The number of digits that are printed for each picture."""


def probabilities(scores: np.ndarray) -> np.ndarray:
    """Convert scores to probabilities; probabilities are returned unchanged."""
    scores = np.asarray(scores, np.float64).ravel()
    if (scores >= 0).all() and abs(scores.sum() - 1) < 1e-3:
        return scores
    powers = np.exp(scores - scores.max())
    return powers / powers.sum()
