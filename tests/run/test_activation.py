"""The user's own operators of every kind, and what is said of those that cannot be used."""

import pytest

pytestmark = pytest.mark.slow

OPERATORS = """
import numpy as np
from numba import njit
import app


@app.custom_op
def plain_function(x):
    return x / (1 + np.exp(-x))


@plain_function.backward
def _(x, dout):
    s = 1 / (1 + np.exp(-x))
    return dout * (s + x * s * (1 - s))


@app.custom_op
@njit
def numba_function(x):
    return x / (1 + np.exp(-x))


@numba_function.backward
@njit
def _(x, dout):
    s = 1 / (1 + np.exp(-x))
    return dout * (s + x * s * (1 - s))


@app.custom_op(elementwise=True)
def of_one_number(x):
    return x / (1 + np.exp(-x))


@of_one_number.backward
def _(x, dout):
    s = 1 / (1 + np.exp(-x))
    return dout * (s + x * s * (1 - s))


class Layer(app.autograd.PyLayer):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * app.sigmoid(x)

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensor()
        s = app.sigmoid(x)
        return dy * (s + x * s * (1 - s))


class OfPyTorch(app.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * app.sigmoid(x)

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensors
        s = app.sigmoid(x)
        return dy * (s + x * s * (1 - s))


def of_values(x):
    return x * app.sigmoid(x)


def hooked(x):
    return app.static.py_func(_forward, x, out=app.static.InputSpec.from_tensor(x), backward_func=_backward)


def _forward(x):
    return x / (1 + np.exp(-x))


def _backward(x, y, dy):
    s = 1 / (1 + np.exp(-x))
    return dy * (s + x * s * (1 - s))


a_layer = app.nn.ReLU()
not_one = 3


def nothing(x):
    pass


def raises(x):
    raise RuntimeError("boom")


def takes_two(x, y):
    return x + y


@njit
def undecorated(x):
    return np.maximum(x, 0)


@app.custom_op
def one_way(x):
    return np.maximum(x, 0)


@app.custom_op
def narrows(x):
    return x[:, :2]


@narrows.backward
def _(x, dout):
    return np.zeros_like(x)


calls = 0


@app.custom_op
def fails_later(x):
    global calls
    calls += len(x) == 8
    if calls > 5:
        raise ValueError("five is enough")
    return x


@fails_later.backward
def _(dout):
    return dout
"""


@pytest.fixture
def train_mine(train, tmp_path):
    (tmp_path / "my_ops.py").write_text(OPERATORS)
    return lambda name, *words: train(f"model.activation=my_ops.py:{name}", *words)


KINDS = ["plain_function", "numba_function", "of_one_number", "Layer", "OfPyTorch", "of_values", "hooked"]


@pytest.mark.parametrize(
    ("name", "engine"), [*((name, "reference") for name in KINDS), ("plain_function", "eager"), ("Layer", "eager")]
)
def test_every_kind_of_operator_trains_like_the_built_in_one(train_mine, name, engine):
    run = train_mine(name, "baseline=silu", f"engine={engine}")
    assert run.status == 0
    mine = run.column(f"my_ops.py:{name}", "iteration", "loss")
    assert mine == pytest.approx(run.column("silu", "iteration", "loss"), rel=1e-5)
    assert (run.folder / f"weights-my_ops.py-{name}.safetensors").exists()


def test_a_layer_object_can_be_one(train_mine):
    assert train_mine("a_layer").status == 0


HINT = "; a function on NumPy arrays becomes an operator with @app.custom_op"
MISTAKES = {
    "nothing": f"my_ops.py:nothing made a NoneType of a Variable, expected a Variable{HINT}",
    "raises": "my_ops.py:raises raised RuntimeError: boom",
    "takes_two": "my_ops.py:takes_two raised TypeError: takes_two() missing 1 required positional argument: 'y'",
    "undecorated": "my_ops.py:undecorated raised TypingError: ",
    "one_way": "no gradient comes back through my_ops.py:one_way, so layers.0.weight, layers.0.bias would never be",
    "narrows": "between two layers an operator keeps the shape",
    "not_one": "my_ops.py:not_one is int, expected an operator or a function of one value",
    "absent": "my_ops.py has no 'absent'",
    "fails_later": "its function fails_later raised ValueError: five is enough",
}


@pytest.mark.parametrize(
    ("name", "engine"),
    [*((name, "reference") for name in MISTAKES), *((n, "eager") for n in ("nothing", "one_way", "fails_later"))],
)
def test_a_mistake_is_told_in_one_line(train_mine, name, engine):
    run = train_mine(name, f"engine={engine}")
    assert run.status in (1, 2)
    assert run.err.startswith("error: ")
    kind = "Tensor" if engine == "eager" else "Variable"
    assert MISTAKES[name].replace("Variable", kind) in run.err
    assert run.err.count("\n") == (2 if name == "fails_later" else 1)  # the second says in which iteration
    assert run.folder.exists() == (name == "fails_later")  # what fails at once leaves nothing to clear away
    if name == "fails_later":
        assert "The run was stopped early. Finished epochs, out of 2: my_ops.py:fails_later 0, relu 0." in run.out
        assert run.column("my_ops.py:fails_later", "iteration", "iteration") == [0, 3]
        assert (run.folder / "weights-my_ops.py-fails_later.safetensors").exists()
    if name == "undecorated":
        assert run.err.endswith(f"{HINT}\n")


def test_two_operators_of_one_file(train_mine):
    run = train_mine("Layer", "baseline=my_ops.py:OfPyTorch")
    assert run.status == 0
    losses = [run.column(f"my_ops.py:{name}", "epoch", "test_loss") for name in ("Layer", "OfPyTorch")]
    assert losses[0] == losses[1]


def test_an_operator_is_found_from_the_folder_that_the_user_is_in(train, tmp_path):
    (tmp_path / "a folder").mkdir()
    (tmp_path / "a folder" / "größe.py").write_text("def größe(x):\n    return x * 1.5\n", encoding="utf-8")
    run = train("model.activation=a folder/größe.py:größe")
    assert run.status == 0
    assert (run.folder / "weights-a-folder-größe.py-größe.safetensors").exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def f(:\n", "raised SyntaxError: invalid syntax"),
        ("import no_such_module\n", "raised ModuleNotFoundError: No module named 'no_such_module'"),
        ("raise KeyError('x')\n", "raised KeyError: 'x'"),
    ],
)
def test_a_file_that_cannot_be_run(train, tmp_path, text, message):
    (tmp_path / "my_ops.py").write_text(text)
    run = train("model.activation=my_ops.py:f")
    assert (run.status, run.out) == (1, "")
    assert message in run.err
