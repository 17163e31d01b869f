"""Losses against formulas written out in NumPy, eagerly and in Programs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import special

import app
from app import nn, static, to_tensor
from app.errors import OperatorError, ShapeError
from app.nn import functional as F  # noqa: N812 - the name that every tutorial uses


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


def log_shares(scores: np.ndarray, axis: int = 1) -> np.ndarray:
    return scores - np.log(np.exp(scores).sum(axis, keepdims=True))


SCORES = np.array([[2.0, -1.0, 0.5], [0.0, 3.0, 0.0], [1.0, 1.0, -4.0], [-2.0, 0.3, 0.2]])
LABELS = np.array([0, 2, 1, 2])
TARGETS = np.array([[1.0, 0.0, 0.5], [0.0, 1.0, 0.0], [2.0, -1.0, 3.0], [0.0, 0.0, 0.0]])
WEIGHTS = np.array([1.0, 2.0, 3.0])
SHARES = np.array([[0.2, 0.3, 0.5], [1.0, 0.0, 0.0], [0.0, 0.5, 0.5], [0.1, 0.8, 0.1]])
SMOOTH = np.eye(3)[LABELS] * 0.9 + 0.1 / 3
LOG = log_shares(SCORES)
OF_LABELS = -LOG[np.arange(4), LABELS]
OF_SHARES = -(SHARES * LOG).sum(1, keepdims=True)
COUNTS = (SHARES * WEIGHTS).sum(1, keepdims=True)
PLACES = np.stack([SCORES, -SCORES], axis=2)  # (examples, classes, places)
LABELS_OF_PLACES = np.stack([LABELS, LABELS[::-1]], axis=1)
OF_PLACES = -np.take_along_axis(log_shares(PLACES), LABELS_OF_PLACES[:, None], 1)[:, 0]
P = 1 / (1 + np.exp(-SCORES))
YES = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
BINARY = -(YES * np.log(P) + (1 - YES) * np.log(1 - P))
WEIGHED = -(WEIGHTS * YES * np.log(P) + (1 - YES) * np.log(1 - P))


def cross_entropy(**settings: Any) -> Callable[[str], Any]:
    return lambda reduction: nn.CrossEntropyLoss(reduction=reduction, **settings)


def ignoring(label: int, dtype: str) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray, int]:
    """A row of the table where some labels are ignored."""
    labels = np.array([0, label, 1, 2], dtype)
    is_counted = labels != label
    each = np.where(is_counted, -LOG[np.arange(4), labels * is_counted], 0)
    return cross_entropy(ignore_index=label), SCORES, labels, each, is_counted.sum()


CLASS_WEIGHTS = WEIGHTS[LABELS]
KEPT_WEIGHTS = CLASS_WEIGHTS * (LABELS != 1)

LOSSES: dict[str, tuple[Any, np.ndarray, np.ndarray, np.ndarray, Any]] = {
    "labels": (cross_entropy(), SCORES, LABELS, OF_LABELS, 4),
    "a column of labels": (cross_entropy(), SCORES, LABELS[:, None], OF_LABELS[:, None], 4),
    **{f"ignored {i} {dtype}": ignoring(i, dtype) for i in (0, 1, 2, 255) for dtype in ("int64", "uint8")},
    "weights": (
        cross_entropy(weight=WEIGHTS), SCORES, LABELS, CLASS_WEIGHTS * OF_LABELS, CLASS_WEIGHTS.sum()
    ),
    "probabilities": (cross_entropy(use_softmax=False), np.exp(LOG), LABELS, OF_LABELS, 4),
    "another axis": (cross_entropy(axis=1), PLACES, LABELS_OF_PLACES, OF_PLACES, 8),
    "shares": (cross_entropy(soft_label=True), SCORES, SHARES, OF_SHARES, 4),
    "shares of probabilities": (
        cross_entropy(soft_label=True, use_softmax=False), np.exp(LOG), SHARES, OF_SHARES, 4
    ),
    "shares and weights": (
        cross_entropy(soft_label=True, weight=WEIGHTS), SCORES, SHARES, OF_SHARES * COUNTS, COUNTS.sum()
    ),
    "smoothed labels": (cross_entropy(label_smoothing=0.1), SCORES, LABELS, -(SMOOTH * LOG).sum(1, keepdims=True), 4),
    "a column of smoothed labels": (
        cross_entropy(label_smoothing=0.1), SCORES, LABELS[:, None], -(SMOOTH * LOG).sum(1, keepdims=True), 4
    ),
    "weights and ignored labels": (
        cross_entropy(weight=WEIGHTS, ignore_index=1), SCORES, LABELS, KEPT_WEIGHTS * OF_LABELS, KEPT_WEIGHTS.sum()
    ),
    "MSELoss": (nn.MSELoss, SCORES, TARGETS, (SCORES - TARGETS) ** 2, 12),
    "BCEWithLogitsLoss": (lambda r: nn.BCEWithLogitsLoss(reduction=r), SCORES, YES, BINARY, 12),
    "pos_weight": (lambda r: nn.BCEWithLogitsLoss(reduction=r, pos_weight=WEIGHTS), SCORES, YES, WEIGHED, 12),
}  # fmt: skip
"""Of a loss, by its reduction: itself, its arguments, the loss of each element, and what the mean divides by."""


@both
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("name", LOSSES)
def test_losses_are_those_of_the_formulas(compute: Any, name: str, reduction: str):
    make, x, y, each, count = LOSSES[name]
    expected = {"mean": each.sum() / count, "sum": each.sum(), "none": each}[reduction]
    actual = compute(make(reduction), x, y)
    assert actual.shape == np.shape(expected)
    np.testing.assert_allclose(actual, expected, rtol=1e-6 if "smoothed" in name else 1e-10)


@pytest.mark.parametrize(
    ("engine", "weight"),
    [
        ("reference", None),
        ("reference", WEIGHTS),
        ("compiled", WEIGHTS),
        pytest.param("compiled", None, marks=pytest.mark.soak),
    ],
)
def test_labels_of_minus_100_are_ignored_by_default_in_both_modes(engine: str, weight: Any):
    labels, rows = np.array([[0], [-100], [1], [-100]]), np.array([0, 2])
    counts = np.ones(2) if weight is None else weight[:2]
    expected = (-LOG[rows, [0, 1]] * counts).sum() / counts.sum()
    scores = to_tensor(SCORES, stop_gradient=False)
    eager = F.cross_entropy(scores, to_tensor(labels), None if weight is None else to_tensor(weight))
    eager.backward()
    main = static.Program()
    with static.program_guard(main, static.Program()):
        x, y = static.data("x", [None, 3], "float64"), static.data("y", [None, 1], "int64")
        x.stop_gradient = False
        loss = F.cross_entropy(x, y, weight)
        fetch = [loss, *static.gradients(loss, x)]
    value, gradient = static.Executor(engine=engine).run(main, {"x": SCORES, "y": labels}, fetch)
    np.testing.assert_allclose([eager.item(), value], [expected, expected], rtol=1e-12)
    np.testing.assert_allclose(gradient, scores.grad.numpy(), rtol=1e-12)


def test_gradients_of_probabilities_and_of_large_scores():
    share = to_tensor(np.array([[0.2, 0.8], [0.5, 0.5]]), stop_gradient=False)
    F.cross_entropy(share, to_tensor([0, 1]), use_softmax=False, reduction="sum").backward()
    np.testing.assert_allclose(share.grad.numpy(), [[-5.0, 0.0], [0.0, -2.0]])
    shares = to_tensor(np.array([[[1.0], [0.0]]]), stop_gradient=False)
    F.cross_entropy(shares, to_tensor([[0]]), use_softmax=False, axis=1).backward()
    assert shares.grad.numpy().ravel().tolist() == [-1.0, 0.0]
    scores = to_tensor(np.array([[1000.0, 0.0], [0.0, -1000.0]], "float32"), stop_gradient=False)
    loss = F.cross_entropy(scores, to_tensor([1, 1]), reduction="none")
    loss.sum().backward()
    assert loss.tolist() == [1000.0, 1000.0]
    np.testing.assert_array_equal(scores.grad.numpy(), [[1.0, -1.0], [1.0, -1.0]])


def test_softmax_with_cross_entropy_returns_the_softmax_too():
    losses, share = F.softmax_with_cross_entropy(to_tensor(SCORES), to_tensor(LABELS[:, None]), return_softmax=True)
    np.testing.assert_allclose(losses.numpy()[:, 0], OF_LABELS, rtol=1e-12)
    np.testing.assert_allclose(share.numpy(), np.exp(LOG), rtol=1e-12)


# Errors


@both
@pytest.mark.parametrize(("scores", "labels", "axis"), [([3], [1], 0), ([2, 3, 4], [2, 4], 1), ([2, 4, 3], [2, 4], -1)])
@pytest.mark.parametrize("use_softmax", [True, False])
def test_a_label_out_of_range_is_an_error_along_any_axis(
    compute: Any, scores: list[int], labels: list[int], axis: int, use_softmax: bool
):
    loss = nn.CrossEntropyLoss(axis=axis, use_softmax=use_softmax, ignore_index=None)
    with pytest.raises(OperatorError, match=r"labels must be in 0\.\.2, found -1\.\.-1"):
        compute(loss, np.ones(scores), np.full(labels, -1))


RANGE = np.array([0, -100, 1, 2])
OTHER_SHAPE = r"labels of shape \[(4|-1), 2\] for an input of shape \[(4|-1), 3\]"
ERRORS = {
    "no label ignored": (cross_entropy(ignore_index=None)("mean"), RANGE, r"must be in 0\.\.2, found -100\.\.2"),
    "another ignored": (cross_entropy(ignore_index=-1)("mean"), RANGE, r"must be in 0\.\.2, found -100\.\.2"),
    "reduction": (cross_entropy()("median"), LABELS, "reduction is 'mean', 'sum' or 'none', not 'median'"),
    "reduction of MSELoss": (nn.MSELoss("median"), TARGETS, "reduction is 'mean', 'sum' or 'none', not 'median'"),
    "smoothing": (cross_entropy(axis=0, label_smoothing=0.1)("mean"), LABELS[:3], "needs the classes along the last"),
    "smoothing and ignored labels": (
        cross_entropy(label_smoothing=0.1, ignore_index=1)("mean"),
        LABELS,
        "with label_smoothing every label counts, found ignore_index=1; leave it out",
    ),
    "ignored soft labels": (
        cross_entropy(soft_label=True, ignore_index=0)("mean"),
        np.full_like(SCORES, 0.25),
        "with soft_label every label counts, found ignore_index=0; leave it out",
    ),
    "smoothing of soft labels": (
        cross_entropy(axis=0, soft_label=True, label_smoothing=0.1)("mean"),
        np.full_like(SCORES, 0.25),
        "needs the classes along the last",
    ),
    "shape with logits": (F.binary_cross_entropy_with_logits, SHARES[:, :2], OTHER_SHAPE),
    "shape of soft labels": (cross_entropy(soft_label=True)("mean"), SHARES[:, :2], f"soft {OTHER_SHAPE}"),
}


@both
@pytest.mark.parametrize("name", ERRORS)
def test_wrong_arguments_are_errors(compute: Any, name: str):
    loss, y, message = ERRORS[name]
    with pytest.raises(ShapeError if "shape" in name else OperatorError, match=message):
        compute(loss, SCORES, y)


@pytest.mark.parametrize(("score", "label"), [(-20.0, 1.0), (-60.0, 1.0), (20.0, 0.0), (-20.0, 0.0), (20.0, 1.0)])
def test_gradients_of_confident_scores_keep_their_digits(score: float, label: float):
    from_scores = app.to_tensor([score], "float32", stop_gradient=False)
    F.binary_cross_entropy_with_logits(from_scores, app.to_tensor([label])).backward()
    expected = special.expit(score) if label == 0 else -special.expit(-score)
    assert from_scores.grad.item() == pytest.approx(expected, rel=1e-6)
