"""Losses against formulas written out in NumPy, eagerly and in Programs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from app import nn, static, to_tensor
from app.errors import OperatorError
from app.nn import functional as F  # noqa: N812 - the name that every tutorial uses

SCORES = np.array([[2.0, -1.0, 0.5], [0.0, 3.0, 0.0], [1.0, 1.0, -4.0], [-2.0, 0.3, 0.2]])
LABELS = np.array([0, 2, 1, 2])
TARGETS = np.array([[1.0, 0.0, 0.5], [0.0, 1.0, 0.0], [2.0, -1.0, 3.0], [0.0, 0.0, 0.0]])


def eager(function: Callable[..., Any], *arrays: np.ndarray) -> np.ndarray:
    return function(*map(to_tensor, arrays)).numpy()


def in_program(function: Callable[..., Any], *arrays: np.ndarray) -> np.ndarray:
    program = static.Program()
    with static.program_guard(program, static.Program()):
        feeds = [static.data(f"x{i}", [-1, *a.shape[1:]], a.dtype.name) for i, a in enumerate(arrays)]
        result = function(*feeds)
        assert result.program is program
        return static.Executor().run(program, {f"x{i}": a for i, a in enumerate(arrays)}, [result])[0]


both = pytest.mark.parametrize("compute", [eager, in_program])


def row_losses(scores: np.ndarray, labels: np.ndarray) -> np.ndarray:
    log_share = scores - np.log(np.exp(scores).sum(1, keepdims=True))
    return -log_share[np.arange(len(labels)), labels]


@both
@pytest.mark.parametrize("shape", [[4], [4, 1]])
@pytest.mark.parametrize(
    ("reduction", "reduce"), [("mean", np.mean), ("sum", np.sum), ("none", lambda losses: losses[:, None])]
)
def test_cross_entropy(compute: Any, shape: list[int], reduction: str, reduce: Any):
    found = compute(nn.CrossEntropyLoss(reduction=reduction), SCORES, LABELS.reshape(shape))
    np.testing.assert_allclose(found, reduce(row_losses(SCORES, LABELS)), rtol=1e-12)


@both
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("ignored", [0, 1, 2, 255])
@pytest.mark.parametrize("dtype", ["int64", "uint8"])
def test_labels_that_are_ignored_count_in_no_way(compute: Any, reduction: str, ignored: int, dtype: str):
    labels = np.array([0, ignored, 1, 2], dtype)
    kept = labels != ignored
    losses = np.zeros(4)
    losses[kept] = row_losses(SCORES[kept], labels[kept].astype(int))
    expected = {"mean": losses.sum() / kept.sum(), "sum": losses.sum(), "none": losses[:, None]}[reduction]
    found = compute(nn.CrossEntropyLoss(ignore_index=ignored, reduction=reduction), SCORES, labels)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_no_gradient_reaches_rows_that_are_ignored():
    scores = to_tensor(SCORES, stop_gradient=False)
    F.cross_entropy(scores, to_tensor(np.array([0, 255, 1, 255])), ignore_index=255).backward()
    share = np.exp(SCORES) / np.exp(SCORES).sum(1, keepdims=True)
    expected = (share - np.eye(3)[[0, 0, 1, 0]]) / 2
    expected[[1, 3]] = 0
    np.testing.assert_allclose(scores.grad.numpy(), expected, rtol=1e-12)


def test_a_negative_ignore_index_ignores_nothing():
    with pytest.raises(OperatorError, match=r"labels must lie in 0\.\.2, found -1\.\.2"):
        F.cross_entropy(to_tensor(SCORES), to_tensor([0, -1, 1, 2]), ignore_index=-1)


@both
def test_cross_entropy_of_probabilities(compute: Any):
    share = np.exp(SCORES) / np.exp(SCORES).sum(1, keepdims=True)
    found = compute(nn.CrossEntropyLoss(use_softmax=False), share, LABELS)
    np.testing.assert_allclose(found, row_losses(SCORES, LABELS).mean(), rtol=1e-12)


def test_cross_entropy_of_probabilities_has_its_own_gradient():
    share = to_tensor(np.array([[0.2, 0.8], [0.5, 0.5]]), stop_gradient=False)
    F.cross_entropy(share, to_tensor([0, 1]), use_softmax=False, reduction="sum").backward()
    np.testing.assert_allclose(share.grad.numpy(), [[-5.0, 0.0], [0.0, -2.0]])


def test_cross_entropy_of_scores_that_overflow_exp():
    scores = to_tensor(np.array([[1000.0, 0.0], [0.0, -1000.0]], "float32"), stop_gradient=False)
    loss = F.cross_entropy(scores, to_tensor([1, 1]), reduction="none")
    loss.sum().backward()
    assert loss.tolist() == [[1000.0], [1000.0]]
    np.testing.assert_array_equal(scores.grad.numpy(), [[1.0, -1.0], [1.0, -1.0]])


@both
@pytest.mark.parametrize(
    ("reduction", "reduce"), [("mean", np.mean), ("sum", np.sum), ("none", lambda squares: squares)]
)
def test_mse(compute: Any, reduction: str, reduce: Any):
    found = compute(nn.MSELoss(reduction), SCORES, TARGETS)
    np.testing.assert_allclose(found, reduce((SCORES - TARGETS) ** 2), rtol=1e-12)


@pytest.mark.parametrize("loss", [F.cross_entropy, F.mse_loss])
def test_another_reduction_is_refused(loss: Any):
    labels = to_tensor(LABELS if loss is F.cross_entropy else TARGETS)
    with pytest.raises(OperatorError, match="reduction is 'mean', 'sum' or 'none', not 'median'"):
        loss(to_tensor(SCORES), labels, reduction="median")


@pytest.mark.parametrize("settings", [{"weight": [1.0]}, {"soft_label": True}, {"axis": 0}])
def test_cross_entropy_says_what_it_cannot(settings: dict[str, Any]):
    with pytest.raises(OperatorError, match="rows of scores and hard labels, without weights of classes"):
        F.cross_entropy(to_tensor(SCORES), to_tensor(LABELS), **settings)
