"""NaN and infinity: without NumPy's warnings, and in words, which operator turned finite numbers into them."""

from __future__ import annotations

from typing import Any

import numpy as np

from app.engine.watch import OperatorRun

NOT_REPRODUCED = (
    "Replaying the steps from the same weights gave finite values, so an operator keeps state between calls."
)
"""The message if replaying the steps gave finite values."""
_LARGE = 1e12
"""Values above this are close to overflowing float32."""


def warnings_off() -> Any:
    """Suppress NumPy's floating-point warnings inside the block; errors that the user enabled are still raised."""
    return np.errstate(**{kind: "ignore" for kind, does in np.geterr().items() if does == "warn"})  # type: ignore[arg-type]


def described(run: OperatorRun | None) -> str:
    """Return the inputs and outputs of the first operator that produced NaN or inf."""
    if run is None:
        return NOT_REPRODUCED
    lines = [f"Replaying the step, {run.operator} is the first operator that turns finite inputs into NaN or inf:"]
    named = [("in", pair) for pair in run.inputs] + [("out", pair) for pair in run.outputs]
    named = [(did, (name, array)) for did, (name, array) in named if array.dtype.kind in "biuf"]
    width = max(len(name) for _, (name, _) in named)
    lines += [f"  {did:3}  {name:{width}}  {statistics(array)}" for did, (name, array) in named]
    if any(_largest(array) > _LARGE for _, array in run.inputs):
        lines.append("The inputs were already very large: train.learning_rate may be too high.")
    return "\n".join(lines)


def statistics(array: np.ndarray) -> str:
    """Describe the type, the shape and the range of an array."""
    about = f"{array.dtype.name}{list(array.shape)}"
    if not array.size:
        return about
    finite = array[np.isfinite(array)].astype(np.float64)
    about += f"  min {finite.min():.4g}, max {finite.max():.4g}, mean {finite.mean():.4g}" if finite.size else ""
    if finite.size == array.size:
        return f"{about}, all finite"
    kinds = {"NaN": int(np.isnan(array).sum()), "infinite": int(np.isinf(array).sum())}
    counts = ", ".join(f"{number:,} {kind}" for kind, number in kinds.items() if number)
    return f"{about}; not finite: {array.size - finite.size:,} of {array.size:,} ({counts})"


def _largest(array: np.ndarray) -> float:
    return float(np.max(np.abs(array.astype(np.float64)), initial=0.0)) if array.dtype.kind == "f" else 0.0
