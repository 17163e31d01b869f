"""What an operator is made of, and the source of its kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from as_python import uncompiled
from modules_of_text import module_of_text
from numba import njit

import app
from app.bridge.out.description import describe
from app.bridge.out.kernels import Kernels
from app.bridge.out.names import Names
from app.bridge.out.writing import loaded
from app.custom.shelf.ema import ema
from app.custom.shelf.gated import gated
from app.custom.shelf.leaky_relu import leaky_relu
from app.custom.shelf.softmax import softmax
from app.errors import ExportError
from app.ops.spec import Spec

__all__ = ["uncompiled"]

MATRIX = Spec((4, 6), "float64")
TABLE = np.array([0.25, 0.5])
OFFSET = 0.5


@njit
def shifted(v):
    return v + OFFSET


@app.custom_op
@njit
def total(x, dy_scale=2.0):
    # of each row
    y = np.empty(x.shape[0], x.dtype)
    for i in range(x.shape[0]):
        y[i] = shifted(x[i].sum()) * dy_scale * TABLE[1]  # a comment
    return y


@total.backward
@njit
def total_grad(dout, x, dy_scale):
    dx = np.empty_like(x)
    for i in range(x.shape[0]):
        dx[i] = dout[i] * dy_scale * TABLE[1]
    return dx


def kernels_of(operator: Any, *specs: Spec) -> Kernels:
    kernels = Kernels(Names(["_forward", "_gradient", "_second"]))
    for name, part in zip(("_forward", "_gradient", "_second"), describe(operator, specs).parts, strict=False):
        kernels.add(part.function, name, part.options, part.parameters)
    return kernels


@pytest.mark.slow
def test_a_derived_gradient_takes_the_inputs_and_the_gradients_of_the_outputs(uncompiled: None) -> None:
    description = describe(softmax, [MATRIX])
    assert description.gradient is not None
    assert description.second is not None
    assert description.gradient.derived
    assert not description.elementwise
    assert description.gradient.sources == (("input", 0), ("dout", 0))
    assert description.second.sources == (("input", 0), ("input", 1), ("dout", 0))


@pytest.mark.slow
def test_a_written_backward_takes_what_its_parameters_name(uncompiled: None) -> None:
    gradient = describe(total, [MATRIX]).gradient
    assert gradient is not None
    assert not gradient.derived
    assert gradient.takes == ("dout", "x")
    assert gradient.sources == (("dout", 0), ("input", 0))
    assert gradient.parameters == ["dout", "x", "dy_scale"]


def test_arithmetic_on_whole_arrays_is_of_single_numbers() -> None:
    assert describe(leaky_relu).elementwise
    assert describe(gated).elementwise


def test_an_operator_on_arrays_needs_examples_of_its_inputs() -> None:
    with pytest.raises(ExportError, match="call it once"):
        describe(app.custom_op(module_of_text("def f(x):\n    return x.cumsum()\n").f))


@pytest.mark.parametrize("thing", [print, app.nn.Linear, app.autograd.PyLayer])
def test_other_things_cannot_leave(thing: Any) -> None:
    with pytest.raises(ExportError, match="custom_op or py_func"):
        describe(thing)


@pytest.mark.slow
def test_kernels_run_as_text_with_what_they_read(uncompiled: None) -> None:
    kernels = kernels_of(total, MATRIX)
    text = "import numpy as np\nfrom numba import njit\n" + "\n".join(
        f"{name} = {value}" for name, value in kernels.constants.items()
    )
    module = loaded(f"{text}\n{kernels.source}\n", "kernels")
    x, dy = np.random.default_rng(0).normal(size=(3, 4)), np.arange(3.0)
    np.testing.assert_allclose(module._forward(x, 3.0), (x.sum(axis=1) + OFFSET) * 3.0 * TABLE[1], rtol=1e-14)
    np.testing.assert_array_equal(module._gradient(dy, x, 3.0), np.outer(dy, np.ones(4)) * 3.0 * TABLE[1])
    (note,) = describe(total, [MATRIX]).notes
    assert "no second derivative" in note
    assert "TABLE" in note


@pytest.mark.slow
def test_kernels_keep_the_comments_and_the_options_of_the_source(uncompiled: None) -> None:
    source = kernels_of(total, MATRIX).source
    assert "    # of each row\n    y = np.empty" in source
    assert "  # a comment\n" in source
    assert "error_model" not in source.partition("def _forward")[0]
    assert '@njit(nogil=True, error_model="numpy")\ndef _gradient(x, dy, alpha):' in kernels_of(ema, MATRIX).source


@pytest.mark.slow
def test_two_helpers_of_one_name_get_two_names(uncompiled: None) -> None:
    one = module_of_text("@njit\ndef helper(v):\n    return v + 1\n", njit=njit).helper
    text = "@njit\ndef helper(v):\n    return one(v) * 2\n@njit\ndef f(x):\n    return helper(x)\n"
    operator = app.custom_op(elementwise=True)(module_of_text(text, njit=njit, one=one).f)
    kernels = kernels_of(operator)
    assert loaded(f"from numba import njit\n{kernels.source}\n", "helpers")._forward(1.0) == 4.0


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("table", np.arange(100.0), "at most 64"),
        ("table", [1, 2], "is list"),
        ("module", pytest, "of the module pytest"),
    ],
)
def test_what_cannot_leave_with_a_kernel_is_named_with_its_line(name: str, value: Any, message: str) -> None:
    read = "module.ONE" if name == "module" else "table[k]"
    text = f"def f(x):\n    for k in range(2):\n        x = x + {read}\n    return x\n"
    function = module_of_text(text, **{name: value}).f
    with pytest.raises(ExportError) as raised:
        Kernels(Names()).add(function, "_forward", {}, ["x"])
    assert message in str(raised.value)
    assert ".py:3" in str(raised.value)


def test_numbers_that_are_not_finite_are_those_of_math() -> None:
    kernels = Kernels(Names())
    kernels.add(module_of_text("LOW = -1e999\ndef f(x):\n    return max(x, LOW)\n").f, "_forward", {}, ["x"])
    assert kernels.constants == {"LOW": "-math.inf"}


def test_a_function_on_one_line_reads_its_own_constant() -> None:
    first = module_of_text("SCALE = 2.0\ndef first(x): return x * SCALE\n").first
    text = "SCALE = 3.0\ndef f(x):\n    return first(x) * SCALE\n"
    kernels = Kernels(Names(["_forward"]))
    kernels.add(module_of_text(text, first=first).f, "_forward", None, ["x"])
    space: dict[str, Any] = {"njit": lambda **_: lambda f: f}
    exec("\n".join([*(f"{k} = {v}" for k, v in kernels.constants.items()), kernels.source]), space)
    assert space["_forward"](1.0) == 6.0
