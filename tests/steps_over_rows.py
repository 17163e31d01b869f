"""Steps of random networks: each makes rows of three columns out of such, of Tensors and of Variables alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

import app

COLUMNS = 3

ONE: dict[str, Callable[[Any], Any]] = {
    "tanh": app.tanh,
    "exp": lambda x: app.exp(app.tanh(x)),
    "relu": app.nn.functional.relu,
    "sigmoid": app.nn.functional.sigmoid,
    "square": lambda x: app.tanh(app.square(x)),
    "half and one": lambda x: 1 - 0.5 * x,
    "softmax": app.nn.functional.softmax,
    "clip": lambda x: app.clip(x, -0.5, 0.5),
    "sum of rows": lambda x: app.tanh(app.sum(x, axis=0, keepdim=True)),
    "mean of columns": lambda x: app.mean(x, axis=1, keepdim=True) * x,
    "max of columns": lambda x: app.max(x, axis=1, keepdim=True) - x,
    "mean of all": lambda x: app.mean(x) - x,
    "reshape": lambda x: app.reshape(app.tanh(app.reshape(x, [-1, 1, COLUMNS])), [-1, COLUMNS]),
    "transpose": lambda x: app.tanh(app.matmul(x, app.matmul(app.transpose(x, [1, 0]), x))),
    "split": lambda x: app.concat(app.split(x, [1, 2], axis=1)[::-1], axis=1),
    "stack": lambda x: app.sum(app.stack([x, x * -2.0]), axis=0),
    "index": lambda x: x[:, 1:2] * x,
}
TWO: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda x, y: x + y,
    "subtract": lambda x, y: x - y,
    "multiply": lambda x, y: x * y,
    "divide": lambda x, y: x / (y * y + 1.0),
    "maximum": app.maximum,
    "where": lambda x, y: app.where(x > y, x, y * 0.5),
    "matmul twice": lambda x, y: app.tanh(app.matmul(x, app.matmul(y, y, transpose_x=True))),
    "concat": lambda x, y: app.concat([(x + y)[:, :1], (x * y)[:, 1:]], axis=1),
}
"""All of them make as many rows as the larger input has, or one."""


@dataclass(frozen=True)
class Step:
    """Picks values, counted from the last one back, and computes another from them."""

    name: str
    picks: tuple[int, ...]
    compute: Callable[..., Any]

    def __repr__(self) -> str:
        return f"{self.name}{self.picks}"

    def apply(self, values: Sequence[Any]) -> Any:
        return self.compute(*(values[-1 - pick % len(values)] for pick in self.picks))


def steps_of(
    one: dict[str, Callable[[Any], Any]], two: dict[str, Callable[[Any, Any], Any]]
) -> st.SearchStrategy[Step]:
    """Steps that make a value out of one or two."""
    picks = st.integers(0, 8)
    return st.one_of(
        st.builds(lambda name, x: Step(name, (x,), one[name]), st.sampled_from(sorted(one)), picks),
        st.builds(lambda name, x, y: Step(name, (x, y), two[name]), st.sampled_from(sorted(two)), picks, picks),
    )
