"""The weights of a run's networks: a file for each in the run's folder, which says whose operator's it is."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from app.errors import FileError
from app.files import read_file, write_whole
from app.graph.serialise import DAMAGE_ERRORS
from app.saving import pack

WEIGHTS = "weights-*.safetensors"
"""What such files are called; the star stands for the operator's name."""


@dataclass(frozen=True)
class Weights:
    """A network's weights by their names, and the file that they lie in."""

    file: Path
    arrays: Mapping[str, np.ndarray]


def write_weights(file: Path, operator: str, arrays: Mapping[str, np.ndarray]) -> None:
    """Write the weights of one operator's network."""
    write_whole(file, pack(arrays, {"operator": operator}))


def read_weights(folder: Path) -> dict[str, Weights]:
    """For each operator of a run the weights of its network."""
    from safetensors import SafetensorError
    from safetensors.numpy import load  # imported late: few commands need it

    found: dict[str, Weights] = {}
    for file in sorted(folder.glob(WEIGHTS)):
        try:
            content = read_file(file)
            arrays = load(content)
            operator = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])["__metadata__"]["operator"]
        except FileError:
            raise
        except (SafetensorError, OSError, *DAMAGE_ERRORS) as error:
            raise FileError(f"{file} is no file of a run's weights, or is damaged: {error}") from error
        found[operator] = Weights(file, arrays)
    return found
