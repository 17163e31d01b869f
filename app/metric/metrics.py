"""Metrics: `update` adds a batch, and `accumulate` returns the value over all batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from app.errors import ShapeError
from app.ops.loss import accuracy as share_of_hits
from app.ops.sorting import topk as largest
from app.tensor import no_grad


def accuracy(
    input: Any, label: Any, k: int = 1, correct: Any = None, total: Any = None, name: str | None = None
) -> Any:
    """The fraction of rows whose label is among the k largest values."""
    return share_of_hits(input, label, k=k)


class Metric:
    """The base class: `compute` prepares a batch, `update` adds it, `accumulate` returns the metric."""

    def reset(self) -> None:
        """Start over."""
        raise NotImplementedError(f"{type(self).__name__} needs a method reset")

    def update(self, *args: Any) -> Any:
        """Add what `compute` returned."""
        raise NotImplementedError(f"{type(self).__name__} needs a method update")

    def accumulate(self) -> Any:
        """The metric over all batches."""
        raise NotImplementedError(f"{type(self).__name__} needs a method accumulate")

    def name(self) -> Any:
        """The name, or the names of several values."""
        raise NotImplementedError(f"{type(self).__name__} needs a method name")

    def compute(self, *args: Any) -> Any:
        """The arguments of `update` for the outputs and labels of a batch; by default, just these."""
        return args


class Accuracy(Metric):
    """The fraction of examples whose label is among the k highest scores, for each k of `topk`."""

    def __init__(self, topk: Sequence[int] = (1,), name: str | None = None):
        self.topk = tuple(int(k) for k in np.ravel(topk))
        self.maxk = max(self.topk)
        base = name or "acc"
        self._names = [base] if self.topk == (1,) else [f"{base}_top{k}" for k in self.topk]
        self.reset()

    @no_grad()
    def compute(self, pred: Any, label: Any, *args: Any) -> Any:
        """For each example a row over its classes, highest score first: 1 where the class is the label, else 0."""
        if len(label.shape) == 1 or (len(label.shape) == len(pred.shape) and label.shape[-1] == 1):
            places = label.reshape([*pred.shape[:-1], 1])
        elif len(label.shape) == len(pred.shape):
            places = label.argmax(axis=-1, keepdim=True)
        else:
            places = label.unsqueeze(-1)
        classes = label.shape[-1] if len(label.shape) == len(pred.shape) else 1
        if list(places.shape[:-1]) != list(pred.shape[:-1]) or classes not in (1, pred.shape[-1]):
            raise ShapeError(
                f"Accuracy: scores of shape {list(pred.shape)} need labels of shape {list(pred.shape[:-1])}, perhaps "
                f"with an axis of 1 or of the classes at the end, found {list(label.shape)}"
            )
        scores, found = largest(pred, min(self.maxk, pred.shape[-1]))
        hits = (found == places.astype("int64")) & (scores == scores)  # NaN is no hit, as in `accuracy`
        return hits.astype("float32")

    def update(self, correct: Any, *args: Any) -> Any:
        """Add what `compute` returned. Returns the fractions of this batch."""
        hits = np.asarray(correct)
        count = int(np.prod(hits.shape[:-1], dtype=int))
        found = [float(hits[..., :k].sum()) for k in self.topk]
        for position, number in enumerate(found):
            self.total[position] += number
            self.count[position] += count
        shares = [number / count if count else 0.0 for number in found]
        return shares[0] if len(self.topk) == 1 else shares

    def reset(self) -> None:
        """Start over."""
        self.total, self.count = [0.0] * len(self.topk), [0] * len(self.topk)

    def accumulate(self) -> Any:
        """The fractions over all batches."""
        shares = [total / count if count else 0.0 for total, count in zip(self.total, self.count, strict=True)]
        return shares[0] if len(self.topk) == 1 else shares

    def name(self) -> list[str]:
        """The names of the fractions."""
        return self._names


def _flat(values: Any) -> Any:
    return np.asarray(values).reshape(-1)


class _Binary(Metric):
    """Counts of true positives, false positives and false negatives; a probability above 0.5 is positive."""

    def __init__(self, name: str):
        self._name = name
        self.reset()

    def reset(self) -> None:
        """Start over."""
        self.tp = self.fp = self.fn = 0

    def update(self, preds: Any, labels: Any) -> None:
        """Add probabilities and labels 0 or 1."""
        said, so = self.nearest(_flat(preds)).astype(int) == 1, _flat(labels).astype(int) == 1
        if said.shape != so.shape:
            raise ShapeError(f"{type(self).__name__}: {said.size} probabilities, but {so.size} labels")
        self.tp += int(np.sum(said & so))
        self.fp += int(np.sum(said & ~so))
        self.fn += int(np.sum(~said & so))

    def nearest(self, preds: Any) -> Any:
        """The class that each probability is nearest to."""
        return np.rint(preds)

    def name(self) -> str:
        """The name."""
        return self._name


class Precision(_Binary):
    """The fraction of predicted positives that are positive. A probability of 0.5 predicts one, as in Paddle."""

    def __init__(self, name: str = "precision"):
        super().__init__(name)

    def nearest(self, preds: Any) -> Any:
        return np.floor(preds + 0.5)

    def accumulate(self) -> float:
        """The fraction over all batches."""
        return self.tp / (self.tp + self.fp) if self.tp + self.fp else 0.0


class Recall(_Binary):
    """The fraction of positives that were predicted. A probability of 0.5 does not predict one, as in Paddle."""

    def __init__(self, name: str = "recall"):
        super().__init__(name)

    def accumulate(self) -> float:
        """The fraction over all batches."""
        return self.tp / (self.tp + self.fn) if self.tp + self.fn else 0.0
