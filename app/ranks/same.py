"""Checks that all ranks work on the same: before a run begins, and of the parameters after each epoch.

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


def compare(world: World, what: Mapping[str, str]) -> None:
    """Refuse to go on if a text differs from that of rank 0; `what` gives each text a name, such as 'configuration'."""
    digests = {name: digest(text) for name, text in what.items()}
    first, *others = world.gather(digests)
    for rank, theirs in enumerate(others, start=1):
        different = [name for name in [*first, *theirs] if first.get(name) != theirs.get(name)]
        if different:
            texts = world.gather(what.get(different[0], ""))
            difference = _first_difference(texts[rank], texts[0])
            raise DistError(
                f"{world.name(rank)} was started with another {different[0]} than rank 0: {difference}. "
                "Start all ranks in the same way"
            )


def check_agreement(world: World, parameters: Mapping[str, np.ndarray]) -> None:
    """Stop, at every rank, if the bits of a parameter differ between ranks."""
    if world.size == 1:
        return
    names = list(parameters)
    of_ranks = world.gather([hashlib.sha256(parameters[name].tobytes()).hexdigest() for name in names])
    for name, digests in zip(names, zip(*of_ranks, strict=True), strict=True):
        if len(set(digests)) > 1:
            others = [str(rank) for rank, digest in enumerate(digests) if digest != digests[0]]
            raise DistError(
                f"parameter {name} differs between ranks: rank {', '.join(others)} has other values than rank 0. "
                "Something that the updates depend on differs: a learning rate, a processor, a BLAS"
            )


def framework() -> str:
    """The framework's version, and each of its source files with a hash: some 25 ms."""
    from app import __version__  # imported late: the package imports all rooms

    root = Path(__file__).parents[1]
    files = [Path(folder, name) for folder, _, names in os.walk(root) for name in names if name.endswith(".py")]
    hashed = (f"{file.relative_to(root)} {hashlib.sha256(file.read_bytes()).hexdigest()[:12]}" for file in files)
    return "\n".join([f"version {__version__}", *sorted(hashed)])


def digest(text: str) -> str:
    """The hash by which texts are compared."""
    return hashlib.sha256(text.encode()).hexdigest()


def _first_difference(theirs: str, ours: str) -> str:
    lines = zip_longest(theirs.splitlines(), ours.splitlines(), fillvalue="nothing")
    there, here = next((a.strip(), b.strip()) for a, b in lines if a != b)
    return f"{there}, not {here}"
