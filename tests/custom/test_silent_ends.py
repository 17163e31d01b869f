"""What would end a program without a word, raised inside an operator, is an error that names the operator."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import app
from app import nn, static
from app.__main__ import main
from app.custom import custom_op, gradcheck
from app.custom.lookup import find_operator
from app.errors import OperatorError
from app.run.network import Activation

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


def operator_ending_in_forward(end: Way) -> Any:
    @custom_op(infer=lambda x: x)
    def ending(x: Any) -> Any:
        end()

    return ending


def operator_ending_in_backward(end: Way) -> Any:
    @custom_op
    def ending(x: Any) -> Any:
        return x * 1

    @ending.backward
    def _(dout: Any) -> Any:
        end()

    return ending


def layer_ending_in_forward(end: Way) -> Any:
    class Ending(app.autograd.PyLayer):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            if x.shape[0] == 2:
                end()
            return x * 1

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            return dy

    return Ending.apply


def layer_ending_in_backward(end: Way) -> Any:
    class Ending(app.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 1

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            end()

    return Ending.apply


def like(x: Any) -> Any:
    """A place for the output of a py_func."""
    return app.zeros_like(x) if isinstance(x, app.Tensor) else x.block.create_var("out", x.shape, x.dtype)


def py_func_ending_in_forward(end: Way) -> Any:
    return lambda x: static.py_func(lambda a: end(), x, like(x))


def py_func_ending_in_backward(end: Way) -> Any:
    return lambda x: static.py_func(lambda a: a * 1, x, like(x), backward_func=lambda x, y, dy: end())


kinds = pytest.mark.parametrize(
    "make",
    [
        operator_ending_in_forward,
        operator_ending_in_backward,
        layer_ending_in_forward,
        layer_ending_in_backward,
        py_func_ending_in_forward,
        py_func_ending_in_backward,
    ],
)


@ways
@kinds
def test_on_tensors(make: Callable[[Way], Any], end: Way):
    x = app.to_tensor(ONES, stop_gradient=False)
    with pytest.raises(OperatorError, match=RAISED):
        app.sum(make(end)(x)).backward()


@kinds
@pytest.mark.parametrize("engine", ["reference", "compiled"])
def test_in_programs(make: Callable[[Way], Any], engine: str):
    program = static.Program()
    with static.program_guard(program), pytest.raises(OperatorError, match="raised SystemExit: 0"):  # noqa: PT012
        x = static.data("x", [None, 3])
        x.stop_gradient = False
        fetched = app.sum(make(end_by_exit)(x))
        if "backward" in make.__name__:
            (fetched,) = static.gradients(fetched, x)
        static.Executor(engine=engine).run(program, feed={"x": ONES}, fetch_list=[fetched])


@ways
def test_in_a_traced_function(end: Way):
    traced = app.jit.to_static(operator_ending_in_forward(end))
    with pytest.raises(OperatorError, match=RAISED):
        traced(app.to_tensor(ONES))


@ways
def test_in_hooks(end: Way):
    x = app.to_tensor(ONES, stop_gradient=False)
    x.register_hook(lambda gradient: end())
    with pytest.raises(OperatorError, match=f"hook <lambda> {RAISED}"):
        app.sum(x * 2).backward()
    layer = nn.Linear(3, 3)
    handle = layer.register_forward_pre_hook(lambda layer, inputs: end())
    with pytest.raises(OperatorError, match=f"hook <lambda> {RAISED}"):
        layer(x)
    handle.remove()
    layer.register_forward_post_hook(lambda layer, inputs, output: end())
    with pytest.raises(OperatorError, match=f"hook <lambda> {RAISED}"):
        layer(x)


@ways
def test_in_what_infers_shapes(end: Way):
    operator = custom_op(lambda x: x, name="told", infer=lambda x: end())
    with pytest.raises(OperatorError, match=r"SystemExit: 0|OwnError: done|GeneratorExit"):
        operator(static.data("x", [2]))


@ways
def test_in_a_plain_function_between_two_layers(end: Way):
    with pytest.raises(OperatorError, match=f"my function {RAISED}"):
        Activation("my function", lambda x: end())(app.to_tensor(ONES))


def test_it_is_no_system_exit_any_more():
    with pytest.raises(OperatorError) as raised:
        operator_ending_in_forward(end_by_exit)(app.to_tensor(ONES))
    line = end_by_exit.__code__.co_firstlineno + 1
    assert not isinstance(raised.value, SystemExit)
    assert isinstance(raised.value.__cause__, SystemExit)
    assert str(raised.value).endswith(f"(test_silent_ends.py:{line}); only the program around an operator may end it")


def test_ctrl_c_stays_what_it_is():
    def interrupt() -> None:
        raise KeyboardInterrupt

    x = app.to_tensor(ONES, stop_gradient=False)
    for make in (operator_ending_in_forward, layer_ending_in_backward):
        with pytest.raises(KeyboardInterrupt):
            app.sum(make(interrupt)(x)).backward()
    with pytest.raises(KeyboardInterrupt):
        gradcheck(layer_ending_in_forward(interrupt), app.to_tensor(ONES.astype("float64"), stop_gradient=False))


FILE = """
import sys
import app

def plain(x):
    sys.exit(0)

@app.custom_op
def ending(x):
    sys.exit(0)

class Layer(app.nn.Layer):
    def __init__(self):
        sys.exit(0)

def network():
    sys.exit(0)
"""


@pytest.mark.slow
@pytest.mark.parametrize(("name", "status"), [("plain", 1), ("ending", 1), ("Layer", 2)])
def test_check_tells_it(name: str, status: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "my_ops.py").write_text(FILE)
    assert main(["check", f"{tmp_path}/my_ops.py:{name}"]) == status
    printed = capsys.readouterr()
    assert "SystemExit: 0" in printed.out + printed.err


def test_inspect_tells_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "my_ops.py").write_text(FILE)
    assert main(["inspect", f"{tmp_path}/my_ops.py:network"]) == 1
    assert "network raised SystemExit: 0" in capsys.readouterr().err


@pytest.mark.parametrize("line", ["sys.exit(0)", "raise GeneratorExit"])
def test_a_file_that_ends_the_program_when_it_is_run_is_named(line: str, tmp_path: Path):
    (tmp_path / "my_ops.py").write_text(f"import sys\n{line}\n")
    with pytest.raises(OperatorError, match=r"my_ops.py:\d+: running the file raised (SystemExit|GeneratorExit)"):
        find_operator(f"{tmp_path}/my_ops.py:ending")
