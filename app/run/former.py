"""Settings of earlier releases: ignored if they have no effect, otherwise refused, except in the folder of a run."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from app.data import Dataset

_WITHOUT_EFFECT = {"pieces": None, "latency": 0, "bandwidth": None}
"""Removed settings of `dist`, with the value at which each had no effect."""
INSTEAD = {
    "shape": "write allreduce, which gives the results of one process to rounding",
    "pieces": "remove it: results are the same on any number of ranks, to rounding",
    "latency": "remove it: slower networks are not simulated any more",
    "bandwidth": "remove it: slower networks are not simulated any more",
}


def updated(data: Any) -> tuple[Any, dict[str, Any]]:
    """Return the data of a configuration in current settings, and the removed settings of `dist` that had an effect."""
    if not isinstance(data, dict) or not isinstance(dist := data.get("dist"), dict):
        return data, {}
    gone = {key: dist[key] for key, value in _WITHOUT_EFFECT.items() if dist.get(key, value) != value}
    gone |= {"shape": "rows"} if dist.get("shape") == "rows" else {}
    kept = {key: value for key, value in dist.items() if key not in _WITHOUT_EFFECT}
    return data | {"dist": kept | ({"shape": "allreduce"} if "shape" in gone else {})}, gone


def former_data_hash(dataset: Dataset) -> str:
    """The hash of a data set in checkpoints of earlier releases: of the labels and a sample of the images."""
    digest = hashlib.sha256()
    for images, labels in (
        (dataset.train_images, dataset.train_labels),
        (dataset.test_images, dataset.test_labels),
    ):
        some = images[:: len(images) // 500 + 1]
        digest.update(f"{images.shape}{some.shape}".encode() + np.asarray(labels, np.uint8).tobytes() + some.tobytes())
    return digest.hexdigest()
