"""Settings of earlier releases: ignored if they have no effect, refused otherwise."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from app.run.yaml_text import Document

_WITHOUT_EFFECT = {"pieces": None, "latency": 0, "bandwidth": None}
"""Removed settings of `dist`, with the value at which each had no effect."""
_INSTEAD = {
    "pieces": "remove it: results are the same on any number of ranks, to rounding",
    "latency": "remove it: slower networks are not simulated any more",
    "bandwidth": "remove it: slower networks are not simulated any more",
}


def without_former(layer: Document) -> Document:
    """Drop removed settings from a layer of plain data; refuse those that had an effect."""
    data = layer.data
    if not isinstance(data, dict) or not isinstance(dist := data.get("dist"), dict):
        return layer
    if dist.get("shape") == "rows":
        raise layer.error(
            "$.dist.shape",
            "dist.shape: 'rows' is not supported any more; write allreduce, which gives the results of one process to "
            "rounding",
        )
    for name, instead in _INSTEAD.items():
        if name in dist and dist[name] != _WITHOUT_EFFECT[name]:
            raise layer.error(f"$.dist.{name}", f"dist.{name} is not supported any more; {instead}", of_key=True)
    kept = {name: value for name, value in dist.items() if name not in _WITHOUT_EFFECT}
    return replace(layer, data=data | {"dist": kept})


def updated(data: Any) -> Any:
    """Convert the configuration of an earlier release to current settings: `rows` becomes `allreduce`."""
    if not isinstance(data, dict) or not isinstance(dist := data.get("dist"), dict):
        return data
    kept = {name: value for name, value in dist.items() if name not in _WITHOUT_EFFECT}
    return data | {"dist": kept | ({"shape": "allreduce"} if kept.get("shape") == "rows" else {})}


def former_settings(data: Any) -> str:
    """Return the settings with an effect that `updated` changes, such as 'dist.shape=rows'; '' if none."""
    dist = data.get("dist") if isinstance(data, dict) else None
    if not isinstance(dist, dict):
        return ""
    found = {name: dist[name] for name, value in _WITHOUT_EFFECT.items() if dist.get(name, value) != value}
    found |= {"shape": "rows"} if dist.get("shape") == "rows" else {}
    return ", ".join(f"dist.{name}={value}" for name, value in found.items())
