"""The files of a run that hold the weights of its networks, one for each operator."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from app.errors import FileError
from app.files import LARGEST, read_file, write_whole
from app.graph.serialise import DAMAGE_ERRORS
from app.saving import pack

WEIGHTS = "weights-*.safetensors"
"""The pattern of these files; the star stands for the operator's name."""


@dataclass(frozen=True)
class Weights:
    """A network's weights by name, and the file that holds them."""

    file: Path
    arrays: Mapping[str, np.ndarray]


def write_weights(file: Path, operator: str, arrays: Mapping[str, np.ndarray]) -> None:
    """Write the weights of one operator's network."""
    write_whole(file, pack(arrays, {"operator": operator}))


def hash_of(weights: Mapping[str, np.ndarray]) -> str:
    """Return the hash of a network's weights."""
    digest = hashlib.sha256()
    for path, array in sorted(weights.items()):
        digest.update(f"{path} {array.dtype} {array.shape}\n".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def read_weights(folder: Path) -> dict[str, Weights]:
    """Read the network weights of each operator of a run."""
    from safetensors import SafetensorError
    from safetensors.numpy import load  # imported late: only a few commands need it

    weights: dict[str, Weights] = {}
    for file in sorted(folder.glob(WEIGHTS)):
        try:
            content = read_file(file, LARGEST["arrays"], links=False)
            arrays = load(content)
            operator = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])["__metadata__"]["operator"]
        except FileError:
            raise
        except (SafetensorError, OSError, *DAMAGE_ERRORS) as error:
            raise FileError(f"{file} is not a weights file of a run, or is damaged: {error}") from error
        weights[operator] = Weights(file, arrays)
    return weights
