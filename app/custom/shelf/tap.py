"""A tap for debugging: it returns its input unchanged and reports the values, forward and backward.

Use it to look inside a network while it runs. Put it around another operator's input, as in
`opsmith.relu(tap(x, label="before relu"))`. It prints every 100th call, and every call with NaN or infinity; `seen`
keeps the last thousand calls.
"""

from __future__ import annotations

import sys
from collections import Counter, deque
from typing import Any

import numpy as np

import opsmith

seen: deque[dict[str, object]] = deque(maxlen=1000)
"""The last calls: the label, the direction, the number of calls before it, and statistics of the values."""

_calls: Counter[tuple[str, str]] = Counter()


@opsmith.custom_op(infer=lambda x, **settings: x)
def tap(x: np.ndarray, label: str = "tap", every: int = 100) -> np.ndarray:
    """x itself; `every=0` prints only calls with NaN or infinity."""
    note(label, "forward", x, every)
    return x.copy()


@tap.backward
def tap_grad(dy: np.ndarray, label: str, every: int) -> np.ndarray:
    note(label, "backward", dy, every)
    return dy.copy()


def note(label: str, way: str, array: np.ndarray, every: int) -> None:
    """Keep, and perhaps print, the statistics of an array."""
    numbers = array[np.isfinite(array)]
    odd = array.size - numbers.size
    call, _calls[label, way] = _calls[label, way], _calls[label, way] + 1
    about = {what: float(f(numbers)) if numbers.size else 0.0 for what, f in STATISTICS.items()}
    seen.append({"label": label, "way": way, "call": call, **about, "not finite": odd})
    if odd or (every and call % every == 0):
        statistics = "  ".join(f"{what} {value:.4g}" for what, value in about.items())
        print(f"{label}  {way:8}  call {call}  {statistics}  not finite {odd}", file=sys.stderr)


def zeros(array: np.ndarray) -> float:
    """The fraction of zeros."""
    return float(np.mean(array == 0))


STATISTICS: dict[str, Any] = {"mean": np.mean, "std": np.std, "min": np.min, "max": np.max, "zeros": zeros}
