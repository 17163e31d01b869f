"""What a PyLayer tells of errors: those of a user's own code pass as they are, with a note of where that was."""

from __future__ import annotations

from typing import Any

import pytest
from layers import data, layer

import app
from app.autograd import Function, PyLayer
from app.errors import OperatorError, ShapeError, add_note

PLACE = r"\((layers|test_pylayer_errors)\.py:\d+\)"


def same(ctx: Any, x: Any) -> Any:
    return x * 1.0


class MineError(Exception):
    """An error with more than words in it."""

    def __init__(self, code: int, text: str):
        super().__init__(code, text)
        self.code = code


# --- Errors of a user's own code ---


@pytest.mark.parametrize("base", [PyLayer, Function])
@pytest.mark.parametrize(
    "error",
    [
        KeyError("gone"),
        ZeroDivisionError("gone"),
        NotImplementedError(),
        AssertionError(),
        OSError(2, "gone"),
        MineError(3, "a"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_in_a_users_function_passes_as_it_is(base: type[PyLayer], error: Exception):
    def fails(ctx, *values):
        raise error

    with pytest.raises(type(error)) as caught:
        layer(fails, fails, base).apply(data(1.0))
    assert caught.value is error
    with pytest.raises(type(error)) as caught:
        layer(same, fails, base).apply(data(1.0)).backward()
    assert caught.value is error
    assert app.is_grad_enabled()


def test_a_note_names_the_operator_and_the_function():
    def fails(ctx, *values):
        raise KeyError("gone")

    with pytest.raises(KeyError) as caught:
        layer(fails, fails).apply(data(1.0))
    place = f"layers.py:{layer.__code__.co_firstlineno + 2}"
    assert caught.value.__notes__ == [f"operator cus ({place}): raised in its function fails"]
    with pytest.raises(KeyError) as caught:
        layer(same, fails).apply(data(1.0)).backward()
    assert caught.value.__notes__ == [
        f"Error message in backward of operator cus ({place}): raised in its function fails"
    ]


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


def test_a_backward_with_another_number_of_parameters():
    cus = layer(lambda ctx, x: (x * 1.0, x * 2.0), lambda ctx, dy: dy)
    with pytest.raises(TypeError, match=r"takes 2 positional arguments but 3 were given"):
        cus.apply(data(1.0))[0].backward()


def test_arguments_that_forward_does_not_take():
    cus = layer(same, same)
    with pytest.raises(OperatorError, match=rf"operator cus {PLACE}: forward got wrong arguments: .*'z'"):
        cus.apply(data(1.0), z=1)
    with pytest.raises(TypeError, match=r"takes 2 positional arguments but 3 were given"):
        cus.apply(data(1.0), 2)


# --- Errors of the framework inside a user's function ---


@pytest.mark.parametrize("base", [PyLayer, Function])
def test_what_an_operator_says_inside_is_told_with_the_class(base: type[PyLayer]):
    def wrong(ctx, x):
        return x + app.ones([7])

    two = data(1.0, 2.0)
    with pytest.raises(ShapeError, match=rf"^operator cus {PLACE}: in its function wrong: operator add of"):
        layer(wrong, same, base).apply(two)
    with pytest.raises(
        ShapeError, match=rf"^Error message in backward of operator cus {PLACE}: in its function wrong:"
    ):
        layer(same, wrong, base).apply(two).sum().backward()


@pytest.mark.parametrize("kind", [OperatorError, NotImplementedError, OSError, ValueError, RuntimeError])
def test_a_missing_function_is_an_error_of_many_kinds(kind: type[Exception]):
    with pytest.raises(kind, match=rf"operator Empty {PLACE}: .*needs a static method forward\(ctx, \.\.\.\)"):
        type("Empty", (PyLayer,), {}).apply(data(1.0))
    y = type("Half", (PyLayer,), {"forward": staticmethod(same)}).apply(data(1.0))
    with pytest.raises(kind, match=rf"operator Half {PLACE}: .*needs a static method backward\(ctx, \.\.\.\)"):
        y.backward()


def test_the_place_is_that_of_the_class():
    class Here(PyLayer):
        @staticmethod
        def forward(ctx, x):
            return None

    line = test_the_place_is_that_of_the_class.__code__.co_firstlineno + 1
    with pytest.raises(OperatorError, match=rf"operator Here \(test_pylayer_errors\.py:{line}\)"):
        Here.apply(data(1.0))
