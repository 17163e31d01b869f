"""Metrics over several batches, against the figures of all examples at once."""

from __future__ import annotations

import numpy as np
import pytest

from app import metric, to_tensor
from app.errors import ShapeError

SCORES = np.array([[0.1, 0.7, 0.2], [0.5, 0.3, 0.2], [0.2, 0.2, 0.6], [0.3, 0.4, 0.3]])
LABELS = np.array([1, 1, 0, 1])
YES = np.array([0.9, 0.4, 0.6, 0.2, 0.5])
SO = np.array([1, 1, 0, 0, 1])


@pytest.mark.parametrize("shape", ["flat", "column", "one-hot"])
def test_accuracy(shape: str):
    labels = {"flat": LABELS, "column": LABELS[:, None], "one-hot": np.eye(3)[LABELS]}[shape]
    accuracy = metric.Accuracy()
    for part in (slice(0, 3), slice(3, 4)):
        found = accuracy.update(accuracy.compute(to_tensor(SCORES[part]), to_tensor(labels[part])))
    assert (found, accuracy.accumulate(), accuracy.name()) == (1.0, 0.5, ["acc"])
    accuracy.reset()
    assert accuracy.accumulate() == 0.0


def test_accuracy_of_several_labels_for_each_example():
    scores, labels = np.stack([SCORES, SCORES[::-1]]), np.stack([LABELS, LABELS[::-1]])
    found = metric.Accuracy().compute(to_tensor(scores), to_tensor(labels))
    np.testing.assert_array_equal(found.numpy()[:, :, 0], scores.argmax(-1) == labels)


@pytest.mark.parametrize("shape", [(1, 4), (4, 2), (1, 3), (2, 2, 1)])
def test_labels_of_another_shape_are_an_error(shape: tuple[int, ...]):
    labels = np.zeros(shape, "int64")
    with pytest.raises(ShapeError, match=r"scores of shape \[4, 3\] need labels of shape \[4\], .* found "):
        metric.Accuracy().compute(to_tensor(SCORES), to_tensor(labels))
    with pytest.raises(ShapeError, match=r"need labels of shape \[2, 4\], .* found \[2, 1\]"):
        metric.Accuracy().compute(to_tensor(np.stack([SCORES, SCORES])), to_tensor(labels.reshape(-1)[:2, None]))


def test_accuracy_among_the_best():
    accuracy = metric.Accuracy(topk=(1, 2), name="hit")
    found = accuracy.update(accuracy.compute(to_tensor(SCORES), to_tensor(LABELS)))
    assert (found, accuracy.accumulate(), accuracy.name()) == ([0.5, 1.0], [0.5, 1.0], ["hit_top1", "hit_top2"])
    assert metric.accuracy(to_tensor(SCORES), to_tensor(LABELS[:, None]), k=2).item() == 1.0


@pytest.mark.parametrize("k", [1, 2])
def test_nan_is_no_hit(k: int):
    scores, labels = np.array([[np.nan] * 3, [np.nan, 2, 1], [0, np.nan, 1]]), np.array([0, 1, 1])
    accuracy = metric.Accuracy(topk=(k,))
    accuracy.update(accuracy.compute(to_tensor(scores), to_tensor(labels)))
    expected = metric.accuracy(to_tensor(scores), to_tensor(labels[:, None]), k=k).item()
    assert accuracy.accumulate() == pytest.approx(expected) == pytest.approx((k - 1) / 3)


def test_precision_and_recall():
    for made, expected in ((metric.Precision(), 2 / 3), (metric.Recall(), 1 / 3)):
        assert made.accumulate() == 0.0
        for part in (slice(0, 2), slice(2, 5)):
            made.update(YES[part], SO[part])
        assert made.accumulate() == pytest.approx(expected)
    assert (metric.Precision().name(), metric.Recall("r").name()) == ("precision", "r")
    with pytest.raises(ShapeError, match="Recall: 2 probabilities, but 1 labels"):
        metric.Recall().update(YES[:2], SO[:1])


def test_a_probability_of_a_half_is_positive_for_precision_and_negative_for_recall_as_in_paddle():
    for made, expected in ((metric.Precision(), (1, 1, 0)), (metric.Recall(), (0, 0, 1))):
        made.update(np.array([0.5, 0.5, 0.1]), np.array([1, 0, 0]))
        assert (made.tp, made.fp, made.fn) == expected


def test_a_metric_of_ones_own_needs_its_methods():
    for method in ("reset", "update", "accumulate", "name"):
        with pytest.raises(NotImplementedError, match=f"Metric needs a method {method}"):
            getattr(metric.Metric(), method)()
    assert metric.Metric().compute(1, 2) == (1, 2)
