"""How time grows with the network's width, the batch and the network's depth, here and elsewhere."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.process import Run, run
from benchmarks.work import Work

CONTENDERS = {"ours": "This project", "jax_scan": "JAX, lax.scan", "torch_eager": "PyTorch eager"}
"""Those who are watched growing, and what the tables call them."""
WIDTHS = (16, 64, 256, 1024, 4096)
BATCHES = (1, 16, 256, 4096, 16384)
DEPTHS = (1, 2, 4, 8, 16, 32, 64)

_STEPS, _MULTIPLICATIONS = 2000, 2.5e10
"""About how much of an epoch is done: this many batches, and this many multiplications in the forward pass."""


def points(quick: bool = False) -> list[tuple[str, int, Work]]:
    """What is varied, its value, and the work."""
    varied = [
        *(("width", width, Work(hidden=(width,))) for width in WIDTHS),
        *(("batch", batch, Work(batch=batch)) for batch in BATCHES),
        *(("depth", depth, Work(hidden=(100,) * depth)) for depth in DEPTHS),
    ]
    if quick:
        varied = [point for point in varied if point[1] in (256, 4)]
    return [(what, value, _shortened(replace(work, epochs=4))) for what, value, work in varied]


def _shortened(work: Work) -> Work:
    """The work on no more images than are needed for a time: seconds of the whole epoch follow in proportion."""
    weights = sum(a * b for a, b in zip(work.widths[:-1], work.widths[1:], strict=True))
    rows = min(_STEPS * work.batch, int(_MULTIPLICATIONS / weights))
    rows = max(rows // work.batch, 4) * work.batch
    return work if rows >= work.rows else replace(work, rows=rows)


def measure(folder: Path, names: Sequence[str], quick: bool = False) -> list[dict[str, Any]]:
    """For every point and contender: seconds per epoch, and seconds until it is ready to train at that pace."""
    found = []
    for what, value, work in points(quick):
        row: dict[str, Any] = {"what": what, "value": value, "rows": work.rows, "seconds": {}, "ready": {}}
        for name in names:
            runs = _cold_and_warm(folder, work) if (what, name) == ("depth", "ours") else [run(name, folder, work)]
            row["seconds"][name] = _seconds(runs[-1], work)
            row["ready"][name] = [_ready(one) for one in runs]
            print(f"  {what} {value}: {name} {runs[-1].problem or format(row['seconds'][name], '.4f')}", flush=True)
        found.append(row)
    return found


def _cold_and_warm(folder: Path, work: Work) -> list[Run]:
    """Two runs of ours, of which the second finds what the first compiled; one where that fails."""
    with tempfile.TemporaryDirectory() as empty:
        cache = {"OPSMITH_CACHE": empty, "NUMBA_CACHE_DIR": empty}
        cold = run("ours", folder, work, cache)
        return [cold] if cold.problem else [cold, run("ours", folder, work, cache)]


def _seconds(one: Run, work: Work) -> float | None:
    """Of a whole epoch: the best after the first."""
    return None if one.problem else min(one.seconds[1:]) * Work().rows / work.rows


def _ready(one: Run) -> float | None:
    """From the start of the process to the first epoch, had that gone at the pace of the others."""
    return None if one.problem else one.ends[0] - min(one.seconds[1:])
