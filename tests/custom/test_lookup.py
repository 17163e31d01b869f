"""From a name to an operator: built-in ones, those on the shelf, and those in a file of the user's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import app
from app import static
from app.custom.lookup import SHIPPED, built_in_names, find_operator, make_operator
from app.errors import AppError, ConfigError, OperatorError

OPERATORS = """
import numpy as np
import app
from app.autograd import PyLayer
from math import pi

runs = []
runs.append(1)


def function(x):
    return app.tanh(x)


@app.custom_op
def swish(x):
    return x / (1 + np.exp(-x))


@swish.backward
def _(x, y, dy):
    s = 1 / (1 + np.exp(-x))
    return dy * (y + s * (1 - y))


class Layer(PyLayer):
    @staticmethod
    def forward(ctx, x):
        return x * 3.0

    @staticmethod
    def backward(ctx, dy):
        return dy * 3.0


number = 3
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "my_ops.py"
    path.write_text(OPERATORS)
    return path


def error(name: str) -> str:
    with pytest.raises(AppError) as caught:
        find_operator(name)
    return str(caught.value)


# --- Built-in and shipped ---


@pytest.mark.parametrize("name", ["relu", "tanh", "sigmoid", "silu"])
def test_built_in_operators(name: str):
    assert find_operator(name) is getattr(app, name)


def test_every_built_in_name_is_an_operator_of_one_value_with_a_gradient():
    x = app.to_tensor([[0.5, 0.25], [0.125, 0.75]], stop_gradient=False)
    for name in built_in_names():
        y = find_operator(name)(x)
        assert y.shape == [2, 2]
        assert not y.stop_gradient
    assert not {"add", "matmul", "argmax", "fill_constant"} & set(built_in_names())


def test_shipped_operators_are_named_after_their_file():
    from app.custom.shelf.relu import relu

    assert "relu" in SHIPPED
    assert find_operator("custom.relu") is relu


@pytest.mark.parametrize(("name", "near"), [("rellu", "relu"), ("custom.rellu", "custom.relu"), ("sigmoyd", "sigmoid")])
def test_the_nearest_name_is_suggested(name: str, near: str):
    message = error(name)
    assert message.startswith(f"there is no operator {name!r}; did you mean {near!r}?")
    assert "There are " in message
    assert "custom.relu, custom.softplus" in message
    assert message.endswith(", and your own as path/to/file.py:name")


@pytest.mark.parametrize("name", ["zzz", "add", "matmul", "custom.zzz"])
def test_what_is_nothing_like_a_name_or_no_activation(name: str):
    with pytest.raises(ConfigError, match=rf"^there is no operator '{name}'[.;]"):
        find_operator(name)


# --- A file of the user's ---


@pytest.mark.parametrize(("name", "value", "slope"), [("function", np.tanh(0.5), None), ("Layer", 1.5, 3)])
def test_functions_and_classes_in_a_file(file: Path, name: str, value: float, slope: Any):
    operator = find_operator(f"{file}:{name}")
    x = app.to_tensor([0.5], "float64", stop_gradient=False)
    y = operator(x)
    y.backward()
    assert y.item() == pytest.approx(value)
    assert slope is None or x.grad.item() == slope


def test_custom_operators_in_a_file(file: Path):
    operator = find_operator(f"{file}:swish")
    assert app.autograd.gradcheck(operator, app.to_tensor([0.5, -1.0], "float64", stop_gradient=False))
    assert operator.where.startswith("my_ops.py:")


@pytest.mark.parametrize("name", ["function", "swish", "Layer"])
def test_each_of_them_is_an_activation_of_a_layer(file: Path, name: str):
    loss = app.mean(static.nn.fc(static.data("x", [None, 3]), 2, activation=f"{file}:{name}"))
    app.optimizer.SGD(0.1).minimize(loss)
    executor = static.Executor()
    executor.run(static.default_startup_program())
    feed = {"x": np.ones((2, 3), "float32")}
    first, second = (executor.run(feed=feed, fetch_list=[loss])[0] for _ in range(2))
    assert second < first


def test_a_path_may_be_relative(file: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(file.parent)
    assert find_operator("my_ops.py:swish") is find_operator(f"{file}:swish")


def test_a_file_is_run_once_for_as_long_as_it_does_not_change(file: Path):
    first = find_operator(f"{file}:swish")
    assert find_operator(f"{file}:swish") is first
    file.write_text(OPERATORS.replace("x / (1", "2 * x / (1"))
    assert find_operator(f"{file}:swish")(np.array([0.0, 1.0]))[1] == pytest.approx(2 / (1 + np.exp(-1)))


def test_files_of_the_same_name_in_other_folders_are_other_files(file: Path, tmp_path: Path):
    (tmp_path / "other").mkdir()
    other = tmp_path / "other" / file.name
    other.write_text(OPERATORS.replace("x * 3.0", "x * 5.0"))
    x = app.to_tensor([1.0])
    assert find_operator(f"{file}:Layer")(x).item() == 3
    assert find_operator(f"{other}:Layer")(x).item() == 5


def test_a_file_that_is_not_there(tmp_path: Path):
    missing = tmp_path / "gone.py"
    assert error(f"{missing}:swish") == f"{missing}:swish: there is no file {missing}"


def test_a_name_that_is_not_in_the_file(file: Path):
    message = error(f"{file}:swich")
    assert message.startswith(f"{file} has no 'swich'; did you mean 'swish'? It has ")
    assert message.endswith("It has function, swish, Layer")
    assert error(f"{file}:zzz").startswith(f"{file} has no 'zzz'. It has")


def test_a_file_without_functions(tmp_path: Path):
    file = tmp_path / "bare.py"
    file.write_text("from math import sin\nx = 1\n")
    assert error(f"{file}:y") == f"{file} has no 'y'. It has no functions of its own"


def test_what_is_no_operator(file: Path):
    assert error(f"{file}:number") == f"{file}:number is int, expected an operator or a function of one value"


@pytest.mark.parametrize(
    ("source", "message"), [("1 / 0", "raised ZeroDivisionError"), ("def", "raised SyntaxError"), ("import zzz", "zzz")]
)
def test_a_file_that_fails(tmp_path: Path, source: str, message: str):
    file = tmp_path / "broken.py"
    file.write_text(source)
    assert message in error(f"{file}:f")
    assert error(f"{file}:f").startswith(str(file))


def test_a_file_that_registers_an_operator_wrongly(tmp_path: Path):
    file = tmp_path / "wrong.py"
    file.write_text("import app\nf = app.custom_op(3)\n")
    with pytest.raises(
        OperatorError, match=r"wrong\.py:2: operator int \(wrong\.py:2\): what custom_op decorates must be"
    ):
        find_operator(f"{file}:f")


def test_a_file_that_is_not_python(tmp_path: Path):
    file = tmp_path / "ops.txt"
    file.write_text("x = 1")
    assert error(f"{file}:x").endswith("ops.txt is not a Python file; its name must end in .py")


def test_a_tilde_is_the_home_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "mine.py").write_text("def twice(x):\n    return x * 2\n")
    assert find_operator("~/mine.py:twice")(3) == 6


def test_a_place_for_a_name_takes_the_operator_itself():
    program = static.Program()
    with static.program_guard(program, static.Program()):
        static.nn.fc(static.data("x", [None, 4]), 3, activation=lambda value: app.tanh(value))
    assert program.global_block().ops[-1].type == "tanh"
    assert make_operator(app.tanh) is app.tanh
    assert isinstance(make_operator(app.nn.ReLU), app.nn.ReLU)
    with pytest.raises(ConfigError, match="an operator or its name is expected, found 5"):
        make_operator(5)  # type: ignore[arg-type]
