"""Errors of PyLayers: those of a user's own code pass unchanged, with a note that names the operator."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from layers import data, layer, variable

import app
from app.autograd import Function, PyLayer
from app.errors import OperatorError, ShapeError, add_note

PLACE = r"\((layers|test_pylayer_errors)\.py:\d+\)"
HERE = r"\(test_pylayer_errors\.py:\d+\)"


def same(ctx: Any, x: Any) -> Any:
    return x * 1.0


def total(ctx: Any, x1: Any, x2: Any) -> Any:
    return x1 + x2


def same_list(ctx: Any, x: Any) -> Any:
    ctx.save_for_backward([1])
    return x * 1.0


def saves_twice(ctx: Any, x: Any) -> Any:
    ctx.save_for_backward(x)
    ctx.save_for_backward(x)


def saves(ctx: Any, dy: Any) -> Any:
    ctx.save_for_backward(dy)


# --- Wrong arguments and results ---

BACKWARD = [
    (total, lambda ctx, dy: (dy, dy), "a Tensor as gradient 1, expected None, as that input has stop_gradient=True"),
    (total, lambda ctx, dy: (dy,) * 3, "3 gradients, but forward had 2 Tensors as input"),
    (total, lambda ctx, dy: dy, "1 gradient, but forward had 2 Tensors as input"),
    (same, lambda ctx, dy: "x", "str as gradient 0, expected a Tensor or None"),
    (same, lambda ctx, dy: dy[0], r"shape \[\] as gradient 0, but expected shape \[2\], that of the input"),
]


@pytest.mark.parametrize(("forward", "backward", "message"), BACKWARD)
def test_wrong_results_of_backward_are_errors(mode: Any, forward: Any, backward: Any, message: str):
    inputs = [mode.input([1.0, 2.0]), mode.input([1.0, 2.0], stop_gradient=True)][: 2 if forward is total else 1]
    result = layer(forward, backward).apply(*inputs)
    with pytest.raises((OperatorError, ShapeError), match=rf"operator cus {PLACE}: backward returned {message}") as e:
        mode.gradients(result, inputs[:1])
    assert isinstance(e.value, ValueError)


NO_TENSOR = "forward must return at least one Tensor, found "
ON_TENSORS = [
    (lambda: layer(lambda ctx, x: None, same).apply(data(1.0)), NO_TENSOR + "NoneType"),
    (lambda: layer(lambda ctx, x: x.shape, same).apply(data(1.0)), NO_TENSOR + "int"),
    (lambda: layer(same, same).apply(3), "at least one argument of apply must be a Tensor"),
    (lambda: layer(same, same).apply(data(1.0), z=1), "forward got wrong arguments: .*'z'"),
    (
        lambda: layer(same, lambda ctx, dy: (dy, dy), Function).apply(data(1.0)).backward(),
        "backward returned 2 gradients, but forward had 1 Tensor as input",
    ),
    (
        lambda: layer(saves_twice, same).apply(data(1.0)),
        "in its function saves_twice: save_for_backward was called a second time; pass it all tensors at once",
    ),
    (
        lambda: layer(same_list, same).apply(data(1.0)),
        "in its function same_list: save_for_backward takes Tensors, found list; keep other values as attributes of",
    ),
    (
        lambda: layer(same, saves).apply(data(1.0)).backward(),
        "in its function saves: save_for_backward can only be called in forward",
    ),
]
NO_NUMBERS = "use py_func or custom_op for this part"
CONSTANT = app.ones([2])


def forward(function: Any) -> Any:
    return lambda x: layer(function, same).apply(x)


def backward(function: Any) -> Any:
    return lambda x: app.static.gradients(layer(same, function).apply(x), x)


IN_A_PROGRAM = [
    (forward(lambda ctx, x: None), NO_TENSOR + "NoneType"),
    (
        forward(lambda ctx, x: [np.sort(x.numpy())]),
        rf"its forward {HERE} .*'numpy'; {NO_NUMBERS}",
    ),
    (
        forward(lambda ctx, x: x * float(x[0])),
        rf"its forward {HERE} .*a number of it.*{NO_NUMBERS}",
    ),
    (
        forward(lambda ctx, x: x if x[0] > 0 else -x),
        rf"its forward {HERE} .*branch.*{NO_NUMBERS}",
    ),
    (forward(lambda ctx, x: np.sort(x)), rf"its forward {HERE} .*an array of it.*{NO_NUMBERS}"),
    (
        backward(lambda ctx, dy: app.to_tensor(dy.numpy())),
        rf"its backward {HERE} .*'numpy'; .*{NO_NUMBERS}",
    ),
    (
        backward(lambda ctx, dy: CONSTANT),
        rf"backward returned a Tensor as gradient 0, expected a Variable or None; {NO_NUMBERS}",
    ),
    (forward(lambda ctx, x: (ctx.mark_dirty(x), x)[1]), "forward changes an input in place"),
    (forward(lambda ctx, x: x.add_(1.0)), rf"its forward {HERE} .*'add_'; {NO_NUMBERS}"),
    (forward(lambda ctx, x: 1 / 0), "its function <lambda> raised ZeroDivisionError: division by zero"),
    (backward(lambda ctx, dy: 1 / 0), "its function <lambda> raised ZeroDivisionError: division by zero"),
    (lambda x: layer(total, same).apply(x, CONSTANT), "a Tensor and a Variable were mixed in one"),
]


@pytest.mark.parametrize(("call", "message"), ON_TENSORS)
def test_wrong_calls_on_tensors_are_errors(call: Any, message: str):
    with pytest.raises(OperatorError, match=rf"operator cus {PLACE}: {message}"):
        call()


@pytest.mark.parametrize(("call", "message"), IN_A_PROGRAM)
def test_wrong_calls_in_a_program_are_errors(call: Any, message: str):
    with pytest.raises(OperatorError, match=rf"operator cus {PLACE}: {message}"):
        call(variable("x", 2))


def test_a_wrong_number_of_arguments_is_pythons_own_error():
    with pytest.raises(TypeError, match=r"takes 2 positional arguments but 3 were given"):
        layer(same, same).apply(data(1.0), 2)
    with pytest.raises(TypeError, match=r"takes 2 positional arguments but 3 were given"):
        layer(lambda ctx, x: (x * 1.0, x * 2.0), same).apply(data(1.0))[0].backward()


@pytest.mark.parametrize("kind", [OperatorError, NotImplementedError, OSError, ValueError, RuntimeError])
def test_a_missing_function_is_an_error_of_many_kinds(kind: type[Exception]):
    with pytest.raises(kind, match=rf"operator Empty {PLACE}: .*needs a static method forward\(ctx, \.\.\.\)"):
        type("Empty", (PyLayer,), {}).apply(data(1.0))
    y = type("Half", (PyLayer,), {"forward": staticmethod(same)}).apply(data(1.0))
    with pytest.raises(kind, match=rf"operator Half {PLACE}: .*needs a static method backward\(ctx, \.\.\.\)"):
        y.backward()


def test_errors_name_the_line_of_the_class():
    class Here(PyLayer):
        @staticmethod
        def forward(ctx, x):
            return None

    line = test_errors_name_the_line_of_the_class.__code__.co_firstlineno + 1
    with pytest.raises(OperatorError, match=rf"operator Here \(test_pylayer_errors\.py:{line}\)"):
        Here.apply(data(1.0))


# --- Errors of a user's own code ---


class MineError(Exception):
    """An error with two arguments."""

    def __init__(self, code: int, text: str):
        super().__init__(code, text)
        self.code = code


@pytest.mark.parametrize("base", [PyLayer, Function])
@pytest.mark.parametrize(
    "error",
    [KeyError("gone"), NotImplementedError(), AssertionError(), OSError(2, "gone"), MineError(3, "a")],
    ids=lambda error: type(error).__name__,
)
def test_an_error_in_a_users_function_passes_unchanged_with_a_note(base: type[PyLayer], error: Exception):
    def fails(ctx, *values):
        raise error

    place = f"operator cus (layers.py:{layer.__code__.co_firstlineno + 2}): raised in its function fails"
    for forward, start in ((fails, ""), (same, "Error message in backward of ")):
        error.__notes__ = []
        with pytest.raises(type(error)) as caught:
            layer(forward, fails, base).apply(data(1.0)).backward()
        assert caught.value is error
        assert error.__notes__ == [start + place]
        assert app.is_grad_enabled()


def test_each_layer_on_the_way_adds_its_note():
    inner = layer(same, lambda ctx, dy: {}["gone"])

    def outer(ctx, dy):
        with app.enable_grad():
            inner.apply(data(1.0)).backward()

    with pytest.raises(KeyError) as caught:
        layer(same, outer).apply(data(1.0)).backward()
    assert [note.rpartition(" ")[2] for note in caught.value.__notes__] == ["<lambda>", "outer"]


def test_notes_are_kept_where_python_has_no_such_method():
    class OldError(Exception):
        add_note = property(lambda self: (_ for _ in ()).throw(AttributeError))

    error = OldError("words")
    add_note(error, "first")
    add_note(error, "second")
    assert error.__notes__ == ["first", "second"]


@pytest.mark.parametrize("base", [PyLayer, Function])
def test_an_error_of_an_operator_inside_names_the_class(base: type[PyLayer]):
    def wrong(ctx, x):
        return x + app.ones([7])

    start = rf"operator cus {PLACE}: in its function wrong: operator add of"
    with pytest.raises(ShapeError, match=f"^{start}"):
        layer(wrong, same, base).apply(data(1.0, 2.0))
    with pytest.raises(ShapeError, match=f"^Error message in backward of {start}"):
        layer(same, wrong, base).apply(data(1.0, 2.0)).sum().backward()
