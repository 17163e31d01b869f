"""Operators of every kind in files of the user's, and the errors of those that cannot be used."""

import pytest

pytestmark = pytest.mark.slow

OPERATORS = """
import numpy as np
from numba import njit
import app


def forward(x):
    return x / (1 + np.exp(-x))


def backward(x, dout):
    s = 1 / (1 + np.exp(-x))
    return dout * (s + x * s * (1 - s))


plain_function = app.custom_op(forward)
plain_function.backward(backward)
numba_function = app.custom_op(njit(forward))
numba_function.backward(njit(backward))
of_one_number = app.custom_op(forward, elementwise=True)
of_one_number.backward(backward)


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


def of_values(x):
    return x * app.sigmoid(x)


def hooked(x):
    out = app.static.InputSpec.from_tensor(x)
    return app.static.py_func(forward, x, out=out, backward_func=lambda x, y, dy: backward(x, dy))


a_layer = app.nn.Silu()
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


one_way = app.custom_op(forward)
calls = 0


@app.custom_op
def fails_later(x):
    global calls
    calls += len(x) == 8
    if calls > 5:
        raise ValueError("five is enough")
    return x


fails_later.backward(lambda dout: dout)
"""


@pytest.fixture
def train_mine(train, tmp_path):
    (tmp_path / "my_ops.py").write_text(OPERATORS)
    return lambda name, *words: train(f"model.activation=my_ops.py:{name}", *words)


KINDS = ["plain_function", "numba_function", "of_one_number", "Layer", "of_values", "hooked", "a_layer"]


@pytest.mark.parametrize(
    ("name", "engine"), [*((name, "reference") for name in KINDS), ("plain_function", "eager"), ("Layer", "eager")]
)
def test_every_kind_of_operator_trains_like_the_built_in_one(train_mine, name, engine):
    run = train_mine(name, "baseline=silu", f"engine={engine}")
    assert run.status == 0
    mine = run.column(f"my_ops.py:{name}", "iteration", "loss")
    assert mine == pytest.approx(run.column("silu", "iteration", "loss"), rel=1e-5)
    assert (run.folder / f"weights-my_ops.py-{name}.safetensors").exists()


HINT = "; a function on NumPy arrays becomes an operator with @app.custom_op"
ERRORS = {
    "nothing": f"my_ops.py:nothing made a NoneType of a Variable, expected a Variable{HINT}\n",
    "raises": "my_ops.py:raises raised RuntimeError: boom",
    "takes_two": "my_ops.py:takes_two raised TypeError: takes_two() missing 1 required positional argument: 'y'",
    "undecorated": "my_ops.py:undecorated raised TypingError: ",
    "one_way": "no gradient comes back through my_ops.py:one_way, so layers.0.weight, layers.0.bias would never be",
    "not_one": "my_ops.py:not_one is int, expected an operator or a function of one value",
    "absent": "my_ops.py has no 'absent'",
}


@pytest.mark.parametrize(
    ("name", "engine"), [*((name, "reference") for name in ERRORS), ("nothing", "eager"), ("one_way", "eager")]
)
def test_an_unusable_operator_is_an_error_of_one_line_that_leaves_nothing(train_mine, name, engine):
    run = train_mine(name, f"engine={engine}")
    assert run.status in (1, 2)
    assert run.err.startswith("error: ")
    assert ERRORS[name].replace("Variable", "Tensor" if engine == "eager" else "Variable") in run.err
    assert run.err.count("\n") == 1
    assert not run.folder.exists()
    if name == "undecorated":
        assert run.err.endswith(f"{HINT}\n")


@pytest.mark.parametrize("engine", ["reference", "eager"])
def test_an_operator_that_raises_in_training_ends_it_and_what_was_trained_is_kept(train_mine, engine):
    run = train_mine("fails_later", f"engine={engine}")
    assert run.status == 1
    assert "its function fails_later raised ValueError: five is enough" in run.err
    assert run.err.count("\n") == 2  # the second says in which iteration
    assert "The run was stopped early. Finished epochs, out of 2: my_ops.py:fails_later 0, relu 0." in run.out
    assert run.column("my_ops.py:fails_later", "iteration", "iteration") == [0, 3]
    assert (run.folder / "weights-my_ops.py-fails_later.safetensors").exists()
