"""Names of operators: built-in ones, those on the shelf, and those in a file of the user."""

from __future__ import annotations

import os
import re
from pathlib import Path

import numpy as np
import pytest

import app
from app import static
from app.custom.lookup import SHIPPED, built_in_names, find_operator, make_operator
from app.custom.shelf.relu import relu
from app.errors import ConfigError, OperatorError

OPERATORS = """
import numpy as np
import app
from app.autograd import PyLayer
from math import pi


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


class Kept:
    @app.custom_op(elementwise=True)
    def inside(x):
        return x * 4.0


number = 3
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of operators in the working folder."""
    path = tmp_path / "my_ops.py"
    path.write_text(OPERATORS)
    monkeypatch.chdir(tmp_path)
    return path


# --- Built-in and shipped ---


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_every_built_in_name_is_an_operator_of_one_value_with_a_gradient():
    x = app.to_tensor([[0.5, 0.25], [0.125, 0.75]], stop_gradient=False)
    for name in built_in_names():
        y = find_operator(name)(x)
        assert y.shape == [2, 2]
        assert not y.stop_gradient
    assert {"relu", "tanh", "sigmoid", "silu"} <= set(built_in_names())
    assert not {"add", "matmul", "argmax", "fill_constant"} & set(built_in_names())
    assert find_operator("relu") is app.relu
    assert find_operator("custom.relu") is relu
    assert "relu" in SHIPPED


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("rellu", "; did you mean 'relu'?"),
        ("custom.rellu", "; did you mean 'custom.relu'?"),
        *((name, "") for name in ("zzz", "add", "matmul")),
    ],
)
def test_an_unknown_name_is_an_error_that_lists_the_names_and_suggests_the_nearest(name: str, near: str):
    names = "custom.relu, custom.softmax, custom.softplus"
    message = rf"^there is no operator '{name}'{re.escape(near)}.*There are .*{names}.*"
    with pytest.raises(ConfigError, match=message + ", and your own as path/to/file.py:name$") as caught:
        find_operator(name)
    assert ("did you mean" in str(caught.value)) == bool(near)


# --- A file of the user's ---


@pytest.mark.parametrize("name", ["function", "swish", "Layer", "Kept.inside"])
def test_functions_operators_and_classes_of_a_file_are_activations(file: Path, name: str):
    loss = app.mean(static.nn.fc(static.data("x", [None, 3]), 2, activation=f"{file}:{name}"))
    app.optimizer.SGD(0.1).minimize(loss)
    executor = static.Executor()
    executor.run(static.default_startup_program())
    feed = {"x": np.ones((2, 3), "float32")}
    first, second = (executor.run(feed=feed, fetch_list=[loss])[0] for _ in range(2))
    assert second < first


def test_a_file_runs_once_until_it_changes(file: Path, monkeypatch: pytest.MonkeyPatch):
    first = find_operator(f"{file}:swish")
    assert first.where.startswith("my_ops.py:")
    assert find_operator("my_ops.py:swish") is first
    monkeypatch.setenv("HOME", str(file.parent))
    assert find_operator("~/my_ops.py:swish") is first
    file.write_text(OPERATORS.replace("x / (1", "2 * x / (1"))
    assert find_operator(f"{file}:swish")(np.array([0.0, 1.0]))[1] == pytest.approx(2 / (1 + np.exp(-1)))
    before = file.stat()
    file.write_text(OPERATORS.replace("x / (1", "3 * x / (1"))
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))  # as copies, and coarse clocks, leave it
    assert find_operator(f"{file}:swish")(np.array([0.0, 1.0]))[1] == pytest.approx(3 / (1 + np.exp(-1)))


def test_files_of_one_name_in_two_folders_are_different(file: Path, tmp_path: Path):
    (tmp_path / "other").mkdir()
    other = tmp_path / "other" / file.name
    other.write_text(OPERATORS.replace("x * 3.0", "x * 5.0"))
    x = app.to_tensor([1.0])
    assert [find_operator(f"{one}:Layer")(x).item() for one in (file, other)] == [3, 5]


@pytest.mark.parametrize("module", ["factor_a.py", "factor_b/__init__.py", "factor_c/number.py"])
def test_a_file_does_not_import_the_neighbour_of_another_file_for_its_own(tmp_path: Path, module: str):
    name = module.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    for folder, factor in {"anna": 2.0, "ben": 5.0}.items():
        (tmp_path / folder / module).parent.mkdir(parents=True)
        (tmp_path / folder / module).write_text(f"FACTOR = {factor}\n")
        (tmp_path / folder / "ops.py").write_text(f"from {name} import FACTOR\ndef scaled(x): return x * FACTOR\n")
    x, anna = app.to_tensor([1.0]), tmp_path / "anna" / "ops.py"
    assert find_operator(f"{anna}:scaled")(x).item() == 2
    with pytest.raises(OperatorError, match=rf"ben/ops.py:1: factor_. would be imported from {anna.parent}/factor_"):
        find_operator(f"{tmp_path / 'ben' / 'ops.py'}:scaled")
    anna.write_text(anna.read_text() + "# edited\n")
    assert find_operator(f"{anna}:scaled")(x).item() == 2, "what was imported before is there again"


def test_files_of_two_folders_share_a_neighbour_that_is_the_same_file(tmp_path: Path):
    (tmp_path / "shared_factor.py").write_text("FACTOR = 2.0\n")
    for folder in ("anna", "ben"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "shared_factor.py").symlink_to(tmp_path / "shared_factor.py")
        (tmp_path / folder / "ops.py").write_text("import shared_factor as s\ndef scaled(x): return x * s.FACTOR\n")
        assert find_operator(f"{tmp_path / folder / 'ops.py'}:scaled")(app.to_tensor([1.0])).item() == 2


FILES = {
    "bare.py": "from math import sin\nx = 1\n",
    "fails.py": "1 / 0",
    "no_python.py": "def",
    "imports.py": "import zzz",
    "attribute.py": "import opsmith\n\n@opsmith.custom_opp\ndef f(x): return x",
    "variable.py": "import numpy\nf = nunpy.exp",
    "wrong.py": "import app\nf = app.custom_op(3)\n",
    "ops.txt": "x = 1",
}


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("gone.py:swish", "^there is no file .*/gone.py$"),
        ("my_ops.py:swich", "^my_ops.py has no 'swich'; did you mean 'swish'. It has function, swish, Layer, Kept$"),
        ("my_ops.py:zzz", "^my_ops.py has no 'zzz'. It has"),
        ("my_ops.py:number", "^my_ops.py:number is int, expected an operator or a function of one value$"),
        ("bare.py:y", "^bare.py has no 'y'. It has no functions of its own$"),
        ("fails.py:f", "/fails.py:1: running the file raised ZeroDivisionError"),
        ("no_python.py:f", "/no_python.py:1: running the file raised SyntaxError"),
        ("imports.py:f", "/imports.py:1: running the file raised ModuleNotFoundError: No module named 'zzz'"),
        ("attribute.py:f", "/attribute.py:3: running the file raised AttributeError.*; did you mean 'custom_op'"),
        ("variable.py:f", "/variable.py:2: running the file raised NameError.*; did you mean 'numpy'"),
        ("wrong.py:f", r"/wrong\.py:2: operator int \(wrong\.py:2\): what custom_op decorates must be"),
        ("ops.txt:x", "ops.txt is not a Python file; its name must end in .py$"),
    ],
)
def test_wrong_files_and_names_are_errors(file: Path, name: str, message: str):
    for other, text in FILES.items():
        Path(other).write_text(text)
    with pytest.raises((ConfigError, OperatorError), match=message):
        find_operator(name)


def test_an_operator_may_be_given_in_place_of_a_name():
    program = static.Program()
    with static.program_guard(program, static.Program()):
        static.nn.fc(static.data("x", [None, 4]), 3, activation=lambda value: app.tanh(value))
    assert program.global_block().ops[-1].type == "tanh"
    assert make_operator(app.tanh) is app.tanh
    assert isinstance(make_operator(app.nn.ReLU), app.nn.ReLU)
    with pytest.raises(ConfigError, match="an operator or its name is expected, found 5"):
        make_operator(5)  # type: ignore[arg-type]
