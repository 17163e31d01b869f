"""Losses against formulas written out in NumPy, eagerly and in Programs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from app import nn, static, to_tensor
from app.errors import OperatorError, ShapeError
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
@pytest.mark.parametrize(("reduction", "reduce"), [("mean", np.mean), ("sum", np.sum), ("none", lambda losses: losses)])
def test_cross_entropy(compute: Any, shape: list[int], reduction: str, reduce: Any):
    found = compute(nn.CrossEntropyLoss(reduction=reduction), SCORES, LABELS.reshape(shape))
    expected = reduce(row_losses(SCORES, LABELS))
    np.testing.assert_allclose(found, expected.reshape(shape) if reduction == "none" else expected, rtol=1e-12)


@both
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("ignored", [0, 1, 2, 255])
@pytest.mark.parametrize("dtype", ["int64", "uint8"])
def test_labels_that_are_ignored_count_in_no_way(compute: Any, reduction: str, ignored: int, dtype: str):
    labels = np.array([0, ignored, 1, 2], dtype)
    kept = labels != ignored
    losses = np.zeros(4)
    losses[kept] = row_losses(SCORES[kept], labels[kept].astype(int))
    expected = {"mean": losses.sum() / kept.sum(), "sum": losses.sum(), "none": losses}[reduction]
    found = compute(nn.CrossEntropyLoss(ignore_index=ignored, reduction=reduction), SCORES, labels)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("engine", "weight"),
    [
        ("reference", None),
        ("reference", [0.5, 2.0, 3.0]),
        ("compiled", [0.5, 2.0, 3.0]),
        pytest.param("compiled", None, marks=pytest.mark.soak),
    ],
)
def test_labels_are_ignored_by_default_in_both_modes(engine: str, weight: Any):
    labels = np.array([[0], [-100], [1], [-100]])
    weights = None if weight is None else np.array(weight)
    scores = to_tensor(SCORES, stop_gradient=False)
    eager = F.cross_entropy(scores, to_tensor(labels), None if weights is None else to_tensor(weights))
    eager.backward()
    main = static.Program()
    with static.program_guard(main, static.Program()):
        x, y = static.data("x", [None, 3], "float64"), static.data("y", [None, 1], "int64")
        x.stop_gradient = False
        loss = F.cross_entropy(x, y, weights)
        fetch = [loss, *static.gradients(loss, x)]
    found, gradient = static.Executor(engine=engine).run(main, {"x": SCORES, "y": labels}, fetch)
    np.testing.assert_allclose(found, eager.numpy(), rtol=1e-12)
    np.testing.assert_allclose(gradient, scores.grad.numpy(), rtol=1e-12)


@both
def test_a_label_that_names_no_class_is_refused_where_none_is_ignored(compute: Any):
    with pytest.raises(OperatorError, match=r"labels must be in 0\.\.2, found -100\.\.2"):
        compute(nn.CrossEntropyLoss(ignore_index=None), SCORES, np.array([0, -100, 1, 2]))


@both
@pytest.mark.parametrize(("scores", "labels", "axis"), [([3], [1], 0), ([2, 3, 4], [2, 4], 1), ([2, 4, 3], [2, 4], -1)])
@pytest.mark.parametrize("use_softmax", [True, False])
def test_a_label_that_names_no_class_is_refused_along_any_axis(
    compute: Any, scores: list[int], labels: list[int], axis: int, use_softmax: bool
):
    loss = nn.CrossEntropyLoss(axis=axis, use_softmax=use_softmax, ignore_index=None)
    with pytest.raises(OperatorError, match=r"labels must be in 0\.\.2, found -1\.\.-1"):
        compute(loss, np.ones(scores), np.full(labels, -1))


def test_a_negative_ignore_index_holds_for_tensors():
    labels = to_tensor([0, -100, 1, 2])
    expected = row_losses(SCORES[[0, 2, 3]], np.array([0, 1, 2])).mean()
    np.testing.assert_allclose(F.cross_entropy(to_tensor(SCORES), labels).item(), expected)
    with pytest.raises(OperatorError, match=r"labels must be in 0\.\.2, found -100\.\.2"):
        F.cross_entropy(to_tensor(SCORES), labels, ignore_index=-1)


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
    assert loss.tolist() == [1000.0, 1000.0]
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


# Weights, soft labels, other axes


WEIGHTS = np.array([1.0, 2.0, 3.0])
SHARES = np.array([[0.2, 0.3, 0.5], [1.0, 0.0, 0.0], [0.0, 0.5, 0.5], [0.1, 0.8, 0.1]])


def log_shares(scores: np.ndarray, axis: int = 1) -> np.ndarray:
    return scores - np.log(np.exp(scores).sum(axis, keepdims=True))


@both
def test_classes_can_have_weights(compute: Any):
    each = WEIGHTS[LABELS] * row_losses(SCORES, LABELS)
    weights = to_tensor(WEIGHTS) if compute is eager else WEIGHTS
    for reduction, expected in {"none": each, "sum": each.sum(), "mean": each.sum() / WEIGHTS[LABELS].sum()}.items():
        found = compute(lambda x, y, r=reduction: F.cross_entropy(x, y, weights, reduction=r), SCORES, LABELS)
        np.testing.assert_allclose(found, expected, rtol=1e-12)


@both
@pytest.mark.parametrize("use_softmax", [True, False])
def test_labels_can_be_shares(compute: Any, use_softmax: bool):
    scores = SCORES if use_softmax else np.exp(log_shares(SCORES))
    each = -(SHARES * log_shares(SCORES)).sum(1, keepdims=True)
    for reduction, expected in {"none": each, "sum": each.sum(), "mean": each.mean()}.items():
        loss = nn.CrossEntropyLoss(soft_label=True, reduction=reduction, use_softmax=use_softmax)
        np.testing.assert_allclose(compute(loss, scores, SHARES), expected, rtol=1e-12)


def test_shares_and_weights_of_classes():
    counts = (SHARES * WEIGHTS).sum(1)
    each = -(SHARES * log_shares(SCORES)).sum(1) * counts
    found = F.cross_entropy(to_tensor(SCORES), to_tensor(SHARES), to_tensor(WEIGHTS), soft_label=True)
    np.testing.assert_allclose(found.item(), each.sum() / counts.sum(), rtol=1e-12)


@both
@pytest.mark.parametrize("shape", [[4], [4, 1]])
def test_labels_can_be_smoothed(compute: Any, shape: list[int]):
    smooth = np.eye(3)[LABELS] * 0.9 + 0.1 / 3
    found = compute(nn.CrossEntropyLoss(label_smoothing=0.1), SCORES, LABELS.reshape(shape))
    np.testing.assert_allclose(found, -(smooth * log_shares(SCORES)).sum(1).mean(), rtol=1e-6)


@both
def test_classes_can_be_along_another_axis(compute: Any):
    scores = np.stack([SCORES, -SCORES], axis=2)  # (examples, classes, places)
    labels = np.stack([LABELS, LABELS[::-1]], axis=1)
    picked = np.take_along_axis(log_shares(scores), labels[:, None], 1)[:, 0]
    found = compute(lambda x, y: F.cross_entropy(x, y, axis=1, reduction="none"), scores, labels)
    np.testing.assert_allclose(found, -picked, rtol=1e-12)


def test_smoothing_needs_the_classes_along_the_last_axis():
    with pytest.raises(OperatorError, match="needs the classes along the last axis"):
        F.cross_entropy(to_tensor(np.ones((2, 3, 4))), to_tensor(np.zeros((2, 4), int)), axis=1, label_smoothing=0.1)


def test_soft_labels_of_another_shape_are_refused():
    with pytest.raises(ShapeError, match=r"soft labels of shape \[4, 2\] for an input of shape \[4, 3\]"):
        F.cross_entropy(to_tensor(SCORES), to_tensor(SHARES[:, :2]), soft_label=True)


def test_softmax_with_cross_entropy_gives_a_loss_for_each_row_and_the_softmax():
    losses, share = F.softmax_with_cross_entropy(to_tensor(SCORES), to_tensor(LABELS[:, None]), return_softmax=True)
    np.testing.assert_allclose(losses.numpy()[:, 0], row_losses(SCORES, LABELS), rtol=1e-12)
    np.testing.assert_allclose(share.numpy(), np.exp(log_shares(SCORES)), rtol=1e-12)


@both
def test_nll_with_weights_and_ignored_labels(compute: Any):
    labels = np.array([0, 2, 1, 1])
    counts = WEIGHTS[labels] * (labels != 1)
    expected = (-log_shares(SCORES)[np.arange(4), labels] * counts).sum() / counts.sum()
    weights = to_tensor(WEIGHTS) if compute is eager else WEIGHTS
    found = compute(lambda x, y: F.nll_loss(x, y, weights, ignore_index=1), log_shares(SCORES), labels)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


# Numbers against numbers

P = 1 / (1 + np.exp(-SCORES))
YES = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
SIGN = np.where(YES > 0, 1.0, -1.0)
D = np.abs(SCORES - TARGETS)
HUBER = np.where(D < 0.7, 0.5 * D**2, 0.7 * (D - 0.35))
BINARY = -(YES * np.log(P) + (1 - YES) * np.log(1 - P))

PAIRS: dict[str, tuple[Any, np.ndarray, np.ndarray, np.ndarray]] = {
    "L1Loss": (nn.L1Loss, SCORES, TARGETS, D),
    "SmoothL1Loss": (lambda r: nn.SmoothL1Loss(r, delta=0.7), SCORES, TARGETS, HUBER),
    "not Huber": (lambda r: nn.SmoothL1Loss(r, 0.7, is_huber=False), SCORES, TARGETS, HUBER / 0.7),
    "BCELoss": (lambda r: nn.BCELoss(reduction=r), P, YES, BINARY),
    "BCEWithLogitsLoss": (lambda r: nn.BCEWithLogitsLoss(reduction=r), SCORES, YES, BINARY),
    "pos_weight": (
        lambda r: nn.BCEWithLogitsLoss(reduction=r, pos_weight=np.array([1.0, 2.0, 3.0])),
        SCORES,
        YES,
        -(WEIGHTS * YES * np.log(P) + (1 - YES) * np.log(1 - P)),
    ),
    "KLDivLoss": (
        nn.KLDivLoss,
        log_shares(SCORES),
        SHARES,
        SHARES * (np.log(np.where(SHARES > 0, SHARES, 1)) - log_shares(SCORES)),
    ),
}


@both
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("name", PAIRS)
def test_loss(compute: Any, name: str, reduction: str):
    make, x, y, each = PAIRS[name]
    expected = {"mean": each.mean(), "sum": each.sum(), "none": each}[reduction]
    np.testing.assert_allclose(compute(make(reduction), x, y), expected, rtol=1e-10)


def test_binary_cross_entropy_of_certainties_is_finite():
    assert nn.BCELoss()(to_tensor([0.0, 1.0]), to_tensor([1.0, 1.0])).item() == 50.0


@pytest.mark.parametrize("loss", [F.binary_cross_entropy, F.binary_cross_entropy_with_logits])
def test_binary_cross_entropy_refuses_labels_of_another_shape(loss: Any):
    with pytest.raises(ShapeError, match=r"labels of shape \[2\] for an input of shape \[3, 2\]"):
        loss(to_tensor(np.full((3, 2), 0.5)), to_tensor([0.0, 1.0]))


def test_smooth_l1_loss_with_a_threshold_of_zero_is_the_absolute_difference():
    found = F.smooth_l1_loss(to_tensor([1.0, 2.0]), to_tensor([1.5, 0.0]), "none", 0.0, is_huber=False)
    assert found.tolist() == [0.5, 2.0]
    with pytest.raises(OperatorError, match="the threshold is 0 or more, found -1"):
        F.smooth_l1_loss(to_tensor([1.0]), to_tensor([1.5]), delta=-1.0)


def test_kl_div_over_the_batch():
    each = PAIRS["KLDivLoss"][3]
    found = F.kl_div(to_tensor(log_shares(SCORES)), to_tensor(SHARES), "batchmean")
    np.testing.assert_allclose(found.item(), each.sum() / 4, rtol=1e-12)


@both
def test_nll_refuses_a_label_that_names_no_class(compute: Any):
    with pytest.raises(OperatorError, match="labels must"):
        compute(lambda x, y: F.nll_loss(x, y, ignore_index=None), log_shares(SCORES), np.array([0, 1, -1, 2]))


def test_a_probability_of_zero_elsewhere_has_no_gradient():
    shares = to_tensor(np.array([[[1.0], [0.0]]]), stop_gradient=False)
    F.cross_entropy(shares, to_tensor([[0]]), use_softmax=False, axis=1).backward()
    assert shares.grad.numpy().ravel().tolist() == [-1.0, 0.0]
