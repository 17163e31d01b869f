"""Losses and accuracy of classifiers."""

from __future__ import annotations

from typing import Any

import numpy as np

from app.errors import DtypeError, OperatorError, ShapeError
from app.ops.definition import operator
from app.ops.dtype import FLOATS, INTEGERS
from app.ops.lowering import Filling
from app.ops.public import public
from app.ops.reduction import sum_
from app.ops.softmax import SUMMED
from app.ops.spec import UNKNOWN, Spec
from app.ops.values import Array, Gradients, Results, Value


def _check_labels(x: Spec, label: Spec) -> None:
    if len(x.shape) != 2:
        raise ShapeError(f"expected shape [examples, classes], found shape {list(x.shape)}")
    if label.dtype not in INTEGERS:
        raise DtypeError(f"labels must be integers, found {label.dtype}")
    if label.shape[1:] not in ((), (1,), (UNKNOWN,)) or not label.shape:
        raise ShapeError(f"labels must have shape [n] or [n, 1], found {list(label.shape)}")
    if UNKNOWN not in (x.shape[0], label.shape[0]) and x.shape[0] != label.shape[0]:
        raise ShapeError(f"{x.shape[0]} examples, but {label.shape[0]} labels")


def _rows(x: Array, label: Array) -> Array:
    """The labels as a vector, checked to have one valid class for each example."""
    rows = label.reshape(-1)
    if len(rows) != len(x):
        raise ShapeError(f"{len(x)} examples, but {len(rows)} labels")
    _check_classes(rows, x.shape[1])
    return rows


def _check_classes(labels: Array, classes: int) -> None:
    if labels.size and (np.min(labels) < 0 or np.max(labels) >= classes):
        raise OperatorError(f"labels must be in 0..{classes - 1}, found {labels.min()}..{labels.max()}")


def _infer_loss(logits: Spec, label: Spec) -> tuple[Spec, Spec]:
    _check_labels(logits, label)
    if logits.dtype not in FLOATS:
        raise DtypeError(f"logits must be floats, found {logits.dtype}")
    return Spec((logits.shape[0], 1), logits.dtype), logits


def _fill_loss(logits: Array, label: Array, loss: Array, probability: Array) -> bool:
    rows, classes = logits.shape
    if label.size != rows:
        return False
    for i in range(rows):
        k = label.flat[i]  # Numba takes a third of a second to compile `reshape`
        if k < 0 or k >= classes:
            return False
        top = logits[i, 0]
        for j in range(classes):
            if logits[i, j] > top:
                top = logits[i, j]
        total = lost = top * 0
        for first in range(0, classes, SUMMED):
            part = top * 0
            last = first + SUMMED if first + SUMMED < classes else classes
            for j in range(first, last):
                probability[i, j] = np.exp(logits[i, j] - top)
                part += probability[i, j]
            after = total + part
            lost += (total - (after - (after - total))) + (part - (after - total))
            total = after
        total += lost
        loss[i, 0] = np.log(total) - (logits[i, k] - top)
        for j in range(classes):
            probability[i, j] /= total
    return True


_LABELS = "labels must be valid classes, one for each example"


@public()
@operator(
    _infer_loss,
    lowering=Filling(_fill_loss, row_by_row=True, problem=_LABELS),
    outputs=("loss", "probability"),
    optional_gradients=True,
    checked=True,
)
def softmax_with_cross_entropy(logits: Array, label: Array) -> Results:
    """Cross entropy of each row, -log(softmax(logits)[label]), and the softmax."""
    rows = _rows(logits, label)
    shifted = logits - _of_rows(np.maximum, logits) if logits.size else logits
    e = np.exp(shifted)
    total = _of_rows(np.add, e)
    picked = shifted[np.arange(len(rows)), rows]
    return np.log(total) - picked[:, None], e / total


def _of_rows(ufunc: np.ufunc, x: Array) -> Array:
    """The sum or the maximum of each row, as a column."""
    if x.shape[1] > _FEW:
        return ufunc.reduce(x, 1, keepdims=True)
    columns = np.ascontiguousarray(x.T)  # reducing columns is faster if rows are short
    return ufunc.reduce(columns, 0)[:, None]


_FEW = 32


@softmax_with_cross_entropy.gradient_of("logits")
def _(label: Value, probability: Value, dloss: Value, dprobability: Value) -> Gradients:
    gradient = None
    if dloss is not None:
        gradient = (probability - one_hot_like(label, probability)) * dloss
    if dprobability is not None:
        weighted = dprobability * probability
        through = weighted - probability * sum_(weighted, axis=1, keepdim=True)
        gradient = through if gradient is None else gradient + through
    return gradient


def _infer_one_hot_like(label: Spec, like: Spec) -> Spec:
    _check_labels(like, label)
    return like


def _fill_one_hot(label: Array, like: Array, out: Array) -> bool:
    if label.size != out.shape[0]:
        return False
    for i in range(out.shape[0]):
        k = label.flat[i]
        for j in range(out.shape[1]):
            out[i, j] = 0
        if k < 0 or k >= out.shape[1]:
            return False
        out[i, k] = 1
    return True


@operator(_infer_one_hot_like, lowering=Filling(_fill_one_hot, row_by_row=True, problem=_LABELS), checked=True)
def one_hot_like(label: Array, like: Array) -> Results:
    """One-hot rows for labels, with the shape and type of `like`."""
    out = np.zeros(like.shape, like.dtype)
    out[np.arange(like.shape[0]), _rows(like, label)] = 1
    return out


@operator(lambda x, *, num_classes: Spec((*x.shape, num_classes), "float32"))
def one_hot(x: Array, *, num_classes: int) -> Results:
    """One-hot encoding: a new last axis of size `num_classes`, 1 at the index and 0 elsewhere."""
    _check_classes(x, num_classes)
    return (x[..., None] == np.arange(num_classes)).astype(np.float32)


@one_hot.in_onnx
def _(onnx: Any, x: Any, num_classes: int) -> Any:
    classes = np.arange(num_classes)
    return onnx.Cast(onnx.Equal(onnx.Cast(onnx.Unsqueeze(x, [-1]), to="int64"), classes), to="float32")


def _infer_index_sample(x: Spec, label: Spec) -> Spec:
    _check_labels(x, label)
    return Spec((x.shape[0], 1), x.dtype)


def _fill_index_sample(x: Array, label: Array, out: Array) -> bool:
    if label.size != x.shape[0]:
        return False
    for i in range(x.shape[0]):
        k = label.flat[i]
        if k < 0 or k >= x.shape[1]:
            return False
        out[i, 0] = x[i, k]
    return True


@operator(_infer_index_sample, lowering=Filling(_fill_index_sample, row_by_row=True, problem=_LABELS), checked=True)
def index_sample(x: Array, label: Array) -> Results:
    """The element of each row at its label."""
    return np.take_along_axis(x, _rows(x, label)[:, None], axis=1)


@index_sample.gradient_of("x")
def _(x_like: Value, label: Value, dout: Value) -> Gradients:
    return one_hot_like(label, x_like) * dout


def _infer_accuracy(x: Spec, label: Spec, *, k: int = 1) -> Spec:
    _check_labels(x, label)
    return Spec((), "float32")


def _fill_accuracy(x: Array, label: Array, out: Array, k: int) -> bool:
    rows, classes = x.shape
    if label.size != rows:
        return False
    hits = 0
    for i in range(rows):
        own = label.flat[i]
        if own < 0 or own >= classes:
            return False
        score, above = x[i, own], 0
        for j in range(classes):
            if not (x[i, j] < score or (x[i, j] == score and j >= own)):  # with NaN in a row, no label counts as best
                above += 1
        hits += above < k
    out[()] = hits / (rows or 1)
    return True


@public()
@operator(_infer_accuracy, lowering=Filling(_fill_accuracy, row_by_row=False, problem=_LABELS), checked=True)
def accuracy(x: Array, label: Array, *, k: int = 1) -> Results:
    """Top-k accuracy: the share of rows whose label is among the k largest values."""
    rows = _rows(x, label)
    if k == 1 and x.size:  # argmax returns the first maximum, and treats NaN as the maximum
        best = x.argmax(axis=1)
        largest = x[np.arange(len(rows)), best]
        return np.float32(np.count_nonzero((best == rows) & (largest == largest)) / len(rows))
    rows = rows[:, None]
    own = np.take_along_axis(x, rows, axis=1)
    behind = (x < own) | ((x == own) & (np.arange(x.shape[1]) >= rows))
    return np.mean(np.sum(~behind, axis=1) < k, dtype=np.float32)
