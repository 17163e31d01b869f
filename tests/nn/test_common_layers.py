"""Dropout, Embedding and the other layers that are neither activation, normalisation nor loss."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import app
from app import nn, static, to_tensor
from app.errors import OperatorError, ShapeError
from app.graph.defaults import static_mode
from app.nn import functional as F  # noqa: N812 - the name that every tutorial uses

ONES = np.ones((200, 50), "float32")


def test_dropout_keeps_the_mean_in_training_and_everything_in_use():
    app.seed(1)
    layer = nn.Dropout(0.25)
    found = layer(to_tensor(ONES)).numpy()
    assert set(np.unique(found).tolist()) == {0.0, np.float32(1 / 0.75)}
    assert abs(found.mean() - 1) < 0.02
    layer.eval()
    np.testing.assert_array_equal(layer(to_tensor(ONES)).numpy(), ONES)


def test_dropout_can_scale_in_use_instead():
    layer = nn.Dropout(0.25, mode="downscale_in_infer")
    assert set(np.unique(layer(to_tensor(ONES)).numpy()).tolist()) == {0.0, 1.0}
    layer.eval()
    np.testing.assert_array_equal(layer(to_tensor(ONES)).numpy(), ONES * np.float32(0.75))


def test_dropout_draws_anew_each_time_and_the_same_after_the_same_seed():
    def masks() -> list[Any]:
        app.seed(3)
        return [F.dropout(to_tensor(ONES)).tolist() for _ in range(2)]

    first, second = masks()
    assert first != second
    assert masks() == [first, second]


def test_the_gradient_of_dropout_goes_where_values_went():
    x = to_tensor(ONES, stop_gradient=False)
    out = F.dropout(x, 0.5)
    out.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), out.numpy())


def test_a_program_drops_at_every_run_and_its_clone_for_testing_never():
    main = static.Program()
    with static_mode(), static.program_guard(main, static.Program()):
        out = nn.Dropout(0.5)(static.data("x", [-1, 50]))
        test = main.clone(for_test=True)
    executor = static.Executor()
    first, second = (executor.run(main, {"x": ONES}, [out])[0] for _ in range(2))
    assert not np.array_equal(first, second)
    assert 0.4 < (first == 0).mean() < 0.6
    np.testing.assert_array_equal(executor.run(test, {"x": ONES}, [out])[0], ONES)


def test_dropout_says_what_it_cannot():
    with pytest.raises(OperatorError, match=r"p is a probability, not 1\.5"):
        F.dropout(to_tensor(ONES), 1.5)
    with pytest.raises(OperatorError, match="mode is 'upscale_in_train' or 'downscale_in_infer', not 'up'"):
        F.dropout(to_tensor(ONES), 0.5, mode="up")


def test_embedding_gives_rows_and_its_gradient_counts_them():
    layer = nn.Embedding(4, 2)
    rows = layer(to_tensor([[1, 3], [3, 3]]))
    np.testing.assert_array_equal(rows.numpy(), layer.weight.numpy()[[[1, 3], [3, 3]]])
    rows.sum().backward()
    assert layer.weight.grad.tolist() == [[0, 0], [1, 1], [0, 0], [3, 3]]


def test_the_row_for_padding_is_zero_and_stays_so():
    layer = nn.Embedding(4, 2, padding_idx=-1)
    rows = layer(to_tensor([3, 0]))
    assert rows[0].tolist() == [0.0, 0.0]
    rows.sum().backward()
    assert layer.weight.grad.tolist() == [[1, 1], [0, 0], [0, 0], [0, 0]]
    with pytest.raises(ShapeError, match="padding_idx 4 is out of range for 4 rows"):
        nn.Embedding(4, 2, padding_idx=4)


def test_layers_that_only_pass_on_or_reshape():
    x = to_tensor(np.arange(24.0).reshape(2, 3, 4))
    assert nn.Identity(5, a=1)(x) is x
    assert nn.Flatten()(x).shape == [2, 12]


def test_indices_of_embedding_are_not_negative():
    def rows(x):
        return nn.functional.embedding(x, app.ones([3, 2]))

    with pytest.raises(IndexError, match="indices are 0 or more, found -1"):
        rows(to_tensor([1, -1]))
    with pytest.raises(OperatorError, match="indices are 0 or more"):
        app.jit.to_static(rows)(to_tensor([1, -1]))


@pytest.mark.parametrize("label", [-1, 2])
def test_one_hot_refuses_a_label_that_names_no_class(label: int):
    with pytest.raises(OperatorError, match=r"labels must be in 0\.\.1, found"):
        nn.functional.one_hot(to_tensor([0, label]), 2)


def test_one_hot_counts_classes_on_demand():
    assert F.one_hot(to_tensor([1, 0]), 3).tolist() == [[0, 1, 0], [1, 0, 0]]
    assert F.one_hot(to_tensor([1, 0])).tolist() == [[0, 1], [1, 0]]
    assert F.label_smooth(F.one_hot(to_tensor([1]), 2), epsilon=0.5).tolist() == [[0.25, 0.75]]


@pytest.mark.parametrize(
    ("pad", "expected"), [([1, 2], [(0, 0), (1, 2)]), ([1, 0, 0, 2], [(1, 0), (0, 2)]), ([2], None)]
)
def test_pad(pad: list[int], expected: Any):
    x = np.arange(6.0).reshape(2, 3)
    if expected is None:
        with pytest.raises(ShapeError, match="expected two widths for each of at most 2 axes, found 1 widths"):
            F.pad(to_tensor(x), pad)
        return
    np.testing.assert_array_equal(F.pad(to_tensor(x), pad, value=7.0).numpy(), np.pad(x, expected, constant_values=7))
