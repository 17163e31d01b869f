"""Whether all ranks have the same parameters, to the last bit: every rank made the same updates, or received them."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b

import numpy as np

from app.dist.errors import DistError
from app.dist.rewriting import Place
from app.dist.world import current


def check_agreement(place: Place, parameters: Mapping[str, np.ndarray]) -> None:
    """Stop, at every rank, if a parameter is not the same at all of them."""
    if place.size == 1:
        return
    names = list(parameters)
    of_ranks = current().gather([_digest(parameters[name]) for name in names])
    for name, digests in zip(names, zip(*of_ranks, strict=True), strict=True):
        if len(set(digests)) > 1:
            others = [str(rank) for rank, digest in enumerate(digests) if digest != digests[0]]
            raise DistError(
                f"parameter {name} is not the same at all ranks any more: at rank {', '.join(others)} it differs from "
                "rank 0. Each rank makes the same updates of it, unless something that they depend on differs: a "
                "learning rate, a processor, a BLAS"
            )


def _digest(array: np.ndarray) -> str:
    return blake2b(np.ascontiguousarray(array).tobytes(), digest_size=16).hexdigest()
