"""Exported layers, functions, Programs, saved models and control flow give the results that they give here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

import app
from app import nn, static
from app.nn import functional


def open_session(path: Path) -> Any:
    return onnxruntime.InferenceSession(str(path))


def fed(session: Any, *arrays: np.ndarray) -> list[np.ndarray]:
    return session.run(None, {i.name: a for i, a in zip(session.get_inputs(), arrays, strict=True)})


def assert_same(path: Path, function: Any, *arrays: np.ndarray) -> None:
    """The exported network gives what the function gives on Tensors."""
    expected = function(*(app.to_tensor(a) for a in arrays))
    results = fed(open_session(path), *arrays)
    listed = expected if isinstance(expected, (list, tuple)) else [expected]
    for result, tensor in zip(results, listed, strict=True):
        np.testing.assert_allclose(result, tensor.numpy(), rtol=1e-5, atol=1e-5)


class Block(nn.Layer):
    """Most of what dense networks are made of."""

    def __init__(self) -> None:
        super().__init__()
        self.table = self.create_parameter([7, 6])
        self.first = nn.Linear(6, 8)
        self.batch_norm, self.dropout = nn.BatchNorm1D(8), nn.Dropout(0.5)
        self.last = nn.Linear(8, 3)

    def forward(self, words: Any, weights: Any) -> Any:
        mixed = app.matmul(weights.unsqueeze(1), app.gather(self.table, words.flatten()).reshape([-1, 5, 6])).squeeze(1)
        hidden = functional.gelu(self.first(mixed))
        hidden = self.dropout(self.batch_norm(hidden)) + app.concat([hidden[:, 4:], hidden[:, :4]], axis=1)
        return functional.softmax(self.last(hidden)), hidden.mean(axis=1)


SPECS = [static.InputSpec([None, 5], "int64"), static.InputSpec([None, 5], "float32")]


def test_a_network_of_convolutions_is_exported(tmp_path: Path):
    net = nn.Sequential(
        nn.Conv2D(2, 4, 3, padding="same", stride=2),
        nn.BatchNorm2D(4),
        nn.ReLU(),
        nn.MaxPool2D(3, 2, padding=1, ceil_mode=True),
        nn.Conv2D(4, 4, (2, 3), padding=[1, 0, 2, 1], groups=2),
        nn.AvgPool2D(2, 1, padding=1, exclusive=False),
        nn.Flatten(),
        nn.Linear(120, 3),
    )
    images = np.random.default_rng(0).normal(size=(5, 2, 13, 12)).astype("float32")
    net(app.to_tensor(images))
    path = app.onnx.export(net, tmp_path / "images", [static.InputSpec([None, 2, 13, 12], "float32")])
    net.eval()
    assert_same(path, net, images)
    assert_same(path, net, images[:1])
    kinds = [node.op_type for node in onnx.load(path).graph.node]
    assert kinds.count("Conv") == 2
    assert "MaxPool" in kinds


@pytest.mark.parametrize("batch", [1, 4])
def test_a_layer_is_exported_in_evaluation_mode(batch: int, tmp_path: Path):
    layer, random = Block(), np.random.default_rng(0)
    layer(app.to_tensor(random.integers(0, 7, (9, 5))), app.to_tensor(random.random((9, 5)).astype("float32")))
    path = app.onnx.export(layer, tmp_path / "block", SPECS)
    assert layer.training
    assert layer.dropout.training
    layer.eval()
    assert_same(path, layer, random.integers(0, 7, (batch, 5)), random.random((batch, 5)).astype("float32"))


def test_the_file_has_names_a_producer_and_an_open_batch(tmp_path: Path):
    path = app.onnx.export(nn.Linear(3, 2), str(tmp_path / "linear.onnx"), [static.InputSpec([-1, 3], name="features")])
    model = onnx.load(path)
    assert (path.name, model.producer_name, model.opset_import[0].version) == ("linear.onnx", "opsmith", app.onnx.OPSET)
    session = open_session(path)
    assert [(i.name, i.shape) for i in session.get_inputs()] == [("features", ["batch", 3])]
    assert [(o.name, o.shape) for o in session.get_outputs()] == [("output", ["batch", 2])]
    path = app.onnx.export(app.tanh, tmp_path / "tanh", [app.ones([2, 3])])  # a Tensor in place of its spec
    assert [i.shape for i in open_session(path).get_inputs()] == [[2, 3]]


@pytest.mark.parametrize("names", [("b", "a"), (None, "a"), ("sub.out_0", "b"), ("w", "a")])
def test_inputs_get_the_names_of_their_specs_whatever_else_has_them(names: tuple[str | None, str], tmp_path: Path):
    weights = app.to_tensor([1.0, 2.0])
    weights.name = "w"

    def difference(a: Any, b: Any) -> Any:
        return (a - 2.0 * b) * weights, a

    path = app.onnx.export(difference, tmp_path / "named", [static.InputSpec([2], name=name) for name in names])
    session = open_session(path)
    input_names = [each.name for each in session.get_inputs()]
    assert [name for name, wish in zip(input_names, names, strict=True) if wish not in (None, name)] == []
    one, other = np.float32([1, 2]), np.float32([5, 7])
    scaled, first = session.run(None, dict(zip(input_names, (one, other), strict=True)))
    assert (scaled.tolist(), first.tolist()) == ([-9.0, -24.0], [1.0, 2.0])


def test_a_program_is_exported_with_the_values_of_a_scope_and_a_saved_model_by_its_path(tmp_path: Path):
    main, startup = static.Program(), static.Program()
    with static.program_guard(main, startup):
        x, label = static.data("x", [None, 4]), static.data("label", [None, 1], "int64")
        scores = static.nn.fc(x, 3, activation="relu")
        app.optimizer.Adam(0.1).minimize(functional.cross_entropy(scores, label))
    executor = static.Executor()
    executor.run(startup)
    array, labels = np.ones([2, 4], "float32"), np.zeros([2, 1], "int64")
    executor.run(main, {"x": array, "label": labels}, [])
    path = app.onnx.export(main, tmp_path / "program", feed=x, fetch=[scores])
    (expected,) = executor.run(main.clone(for_test=True), {"x": array, "label": labels}, [scores])
    np.testing.assert_allclose(open_session(path).run([scores.name], {"x": array})[0], expected, rtol=1e-5)
    static.save_inference_model(str(tmp_path / "saved"), [x], [scores], program=main)
    path = app.onnx.export(tmp_path / "saved", tmp_path / "exported")
    np.testing.assert_allclose(fed(open_session(path), array)[0], expected, rtol=1e-5)


def test_open_sizes_are_independent_and_an_output_may_be_an_input_or_another_output(tmp_path: Path):
    path = app.onnx.export(lambda a, b: (a.sum(0), b.sum(0)), tmp_path / "two", [static.InputSpec([None])] * 2)
    assert_same(path, lambda a, b: (a.sum(0), b.sum(0)), np.ones(2, "float32"), np.ones(5, "float32"))
    path = app.onnx.export(lambda x: (x, x + 1.0, x * 2.0), tmp_path / "some", [static.InputSpec([None, 2])])
    assert [o.name for o in open_session(path).get_outputs()] == ["output_0", "output_1", "output_2"]
    program, x = static.default_main_program(), static.data("x", [None, 2])
    doubled = x * 2.0
    path = app.onnx.export(program, tmp_path / "again", feed=[x], fetch=[x, doubled, doubled])
    results = fed(open_session(path), np.ones([1, 2], "float32"))
    assert [r.tolist() for r in results] == [[[1, 1]], [[2, 2]], [[2, 2]]]


# Control flow


def newton(x: Any, steps: Any) -> Any:
    """A root, by as many steps as are asked for; from half of the number where it is large."""
    guess = x * 0.5 if x.sum() > 10.0 else x + 1.0
    i = app.zeros([], "int64")
    while i < steps:
        guess = 0.5 * (guess + x / guess)
        i = i + 1
    return guess, i


def test_python_control_flow_over_tensors_becomes_if_and_loop(tmp_path: Path):
    specs = [static.InputSpec([None]), static.InputSpec([], "int64")]
    path = app.onnx.export(app.jit.to_static(newton), tmp_path / "newton", specs)
    assert {"If", "Loop"} <= {node.op_type for node in onnx.load(path).graph.node}
    for x in (np.array([2.0, 3.0], "float32"), np.array([40.0], "float32")):
        for steps in (0, 1, 6):
            assert_same(path, newton, x, np.array(steps))


def test_blocks_of_a_program_become_graphs_inside(tmp_path: Path):
    x = static.data("x", [None, 2])
    total = static.nn.cond(app.sum(x) > 0, lambda: app.sum(x * 2.0), lambda: static.nn.cond(
        app.sum(x) < -5, lambda: app.sum(x), lambda: app.sum(x * 0.0)
    ))  # fmt: skip
    path = app.onnx.export(static.default_main_program(), tmp_path / "blocks", feed=x, fetch=total)
    for number, expected in ((1.0, 4.0), (-1.0, 0.0), (-4.0, -8.0)):
        assert fed(open_session(path), np.full([1, 2], number, "float32"))[0] == expected
