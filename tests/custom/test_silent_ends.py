"""An exception that would end the program without a message is, in an operator, an error that names the operator."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from layers import layer

import app
from app import nn, static
from app.__main__ import main
from app.autograd import Function
from app.custom import custom_op, gradcheck
from app.custom.lookup import find_operator
from app.errors import OperatorError
from app.ops.spec import spec_of
from app.run.activation import Activation

ONES = np.ones((2, 3), "float32")


class OwnError(BaseException):
    """As a user may derive one, so that no `except Exception` catches it."""


def end_by_exit() -> None:
    sys.exit(0)


def end_by_own() -> None:
    raise OwnError("done")


def end_by_generator_exit() -> None:
    raise GeneratorExit


Way = Callable[[], None]
ways = pytest.mark.parametrize("end", [end_by_exit, end_by_own, end_by_generator_exit])
RAISED = "raised (SystemExit: 0|OwnError: done|GeneratorExit: )"


def operator(end: Way, forward: bool) -> Any:
    ending = custom_op(lambda x: end() if forward else x * 1, name="ending", infer=lambda x: x)
    ending.backward(lambda dout: end())
    return ending


def function(end: Way, forward: bool) -> Any:
    return layer(lambda ctx, x: end() if forward else x * 1, lambda ctx, dy: end(), Function).apply


def by_py_func(end: Way, forward: bool) -> Any:
    return lambda x: static.py_func(
        lambda a: end() if forward else a * 1, x, spec_of(x), backward_func=lambda x, y, dy: end()
    )


kinds = pytest.mark.parametrize("make", [operator, function, by_py_func])
passes = pytest.mark.parametrize("forward", [True, False], ids=["forward", "backward"])


@ways
@kinds
@passes
def test_an_operator_on_tensors_that_ends_the_program_is_an_error(make: Callable[..., Any], forward: bool, end: Way):
    x = app.to_tensor(ONES, stop_gradient=False)
    with pytest.raises(OperatorError, match=RAISED):
        app.sum(make(end, forward)(x)).backward()


@kinds
@passes
@pytest.mark.parametrize("engine", ["reference", "compiled"])
def test_an_operator_in_a_program_that_ends_it_is_an_error(make: Callable[..., Any], forward: bool, engine: str):
    with pytest.raises(OperatorError, match="raised SystemExit: 0"):  # noqa: PT012
        x = static.data("x", [None, 3])
        x.stop_gradient = False
        fetched = app.sum(make(end_by_exit, forward)(x))
        if not forward:
            (fetched,) = static.gradients(fetched, x)
        static.Executor(engine=engine).run(feed={"x": ONES}, fetch_list=[fetched])


@ways
def test_other_functions_of_the_user_that_end_the_program_are_errors(end: Way):
    x = app.to_tensor(ONES, stop_gradient=False)
    with pytest.raises(OperatorError, match=RAISED):
        app.jit.to_static(operator(end, True))(x)
    with pytest.raises(OperatorError, match=f"my function {RAISED}"):
        Activation("my function", lambda x: end())(x)
    for register in ("register_forward_pre_hook", "register_forward_post_hook"):
        inner = nn.Linear(3, 3)
        getattr(inner, register)(lambda *values: end())
        with pytest.raises(OperatorError, match=f"hook <lambda> {RAISED}"):
            inner(x)
    inferred = custom_op(lambda x: x, name="inferred", infer=lambda x: end())
    with pytest.raises(OperatorError, match=r"SystemExit: 0|OwnError: done|GeneratorExit"):
        inferred(static.data("x", [2]))
    x.register_hook(lambda gradient: end())
    with pytest.raises(OperatorError, match=f"hook <lambda> {RAISED}"):
        app.sum(x * 2).backward()


def test_the_error_is_no_system_exit_and_names_the_line():
    with pytest.raises(OperatorError) as raised:
        operator(end_by_exit, True)(app.to_tensor(ONES))
    line = end_by_exit.__code__.co_firstlineno + 1
    assert not isinstance(raised.value, SystemExit)
    assert isinstance(raised.value.__cause__, SystemExit)
    assert str(raised.value).endswith(f"(test_silent_ends.py:{line}); only the program around an operator may end it")


def test_a_keyboard_interrupt_is_not_caught():
    def interrupt() -> None:
        raise KeyboardInterrupt

    x = app.to_tensor(ONES.astype("float64"), stop_gradient=False)
    for apply in (operator(interrupt, True), function(interrupt, False)):
        with pytest.raises(KeyboardInterrupt):
            app.sum(apply(x)).backward()
    with pytest.raises(KeyboardInterrupt):
        gradcheck(function(interrupt, True), x)


FILE = """
import sys
import app

def plain(x):
    sys.exit(0)

def network():
    sys.exit(0)

class Layer(app.nn.Layer):
    def __init__(self):
        sys.exit(0)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (["check", "my_ops.py:plain"], 1, "SystemExit: 0"),
        (["check", "my_ops.py:Layer"], 2, "SystemExit: 0"),
        (["inspect", "my_ops.py:network"], 1, "network raised SystemExit: 0"),
    ],
)
def test_commands_report_the_end(
    words: list[str], status: int, message: str, tmp_path: Path, monkeypatch: Any, capsys: pytest.CaptureFixture[str]
):
    (tmp_path / "my_ops.py").write_text(FILE)
    monkeypatch.chdir(tmp_path)
    assert main(words) == status
    printed = capsys.readouterr()
    assert message in printed.out + printed.err


@pytest.mark.parametrize("line", ["sys.exit(0)", "raise GeneratorExit"])
def test_a_file_that_ends_the_program_is_an_error(line: str, tmp_path: Path):
    (tmp_path / "my_ops.py").write_text(f"import sys\n{line}\n")
    with pytest.raises(OperatorError, match=r"my_ops.py:\d+: running the file raised (SystemExit|GeneratorExit)"):
        find_operator(f"{tmp_path}/my_ops.py:ending")
