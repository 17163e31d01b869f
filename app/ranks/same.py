"""Checks that all ranks train the same: before a run begins, and the parameters after each epoch.

Ranks that were started with another configuration, other data, other operators or another copy of the framework would
compute gradients of different things, whose sums look like any others.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from itertools import zip_longest
from pathlib import Path

import numpy as np

from app.ranks.world import DistError, World
from app.version import __version__


def compare(world: World, texts: Mapping[str, str]) -> None:
    """Raise an error at every rank if a text differs from that of rank 0; a name is one such as `configuration`."""
    first, *others = world.allgather(dict(texts))
    for rank, theirs in enumerate(others, start=1):
        for name in [*first, *theirs]:
            if theirs.get(name) != first.get(name):
                lines = zip_longest(theirs.get(name, "").splitlines(), first.get(name, "").splitlines())
                other, here = next((str(a).strip(), str(b).strip()) for a, b in lines if a != b)
                raise DistError(
                    f"rank {rank} has another {name} than rank 0: {other}, not {here}. Start all ranks in the same "
                    "way, on machines of one kind"
                )


def check_agreement(world: World, parameters: Mapping[str, np.ndarray]) -> None:
    """Raise an error at every rank if the bits of a parameter differ between ranks."""
    if world.size > 1:
        compare(world, {f"parameter {n}": hashlib.sha256(v.tobytes()).hexdigest()[:12] for n, v in parameters.items()})


def framework() -> str:
    """The framework's version, and each of its source files with a hash: some 25 ms."""
    root = Path(__file__).parents[1]
    files = [Path(folder, name) for folder, _, names in os.walk(root) for name in names if name.endswith(".py")]
    hashed = (f"{file.relative_to(root)} {hashlib.sha256(file.read_bytes()).hexdigest()[:12]}" for file in files)
    return "\n".join([f"version {__version__}", *sorted(hashed)])
