"""After a global or closed-over variable of an operator's functions changes, the next call has the new value."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
from modules_of_text import module_of_text

import app
from app import static
from app.engine.compiled.frozen import Frozen
from app.errors import AppError

pytestmark = pytest.mark.slow

TEXT = """
from types import SimpleNamespace
import numpy as np
import app
from numba import njit

FACTOR = 2.0
CHOICE = np.maximum
PAIR = np.array([1.0]), np.array([2.0])
SETTINGS = SimpleNamespace(factor=2.0)
TABLE = np.array([2.0, 2.0])

@njit
def helper(x):
    return x * FACTOR

@njit
def squared(x):
    return x * x * FACTOR

@app.custom_op(elementwise=True)
def of_numbers(x):
    return x * FACTOR

@app.custom_op(elementwise=True)
def through_a_helper(x):
    return helper(x)

@app.custom_op
def of_arrays(x):
    return x * FACTOR

@app.custom_op
@njit(error_model="numpy")
def by_a_loop(x):
    y = np.empty_like(x)
    for i in range(len(x)):
        y[len(x) - 1 - i] = helper(x[i])
    return y

@app.custom_op
@njit
def by_a_choice(x):
    y = np.empty_like(x)
    for i in range(len(x)):
        y[i] = CHOICE(x[i], 3.0) * PAIR[0][0]
    return y

@app.custom_op
def square(x):
    return FACTOR * x * x

@square.backward
def gradient(x, dy):
    return 2 * FACTOR * x * dy

@app.custom_op
def of_an_object(x):
    return SETTINGS.factor * x * x

@of_an_object.backward
def gradient(x, dy):
    return 2 * SETTINGS.factor * x * dy

for array_operator in (of_arrays, by_a_loop, by_a_choice):
    @array_operator.backward
    def gradient(x, dy):
        return dy * TABLE[0]
"""


@pytest.fixture
def module() -> Any:
    return module_of_text(TEXT)


def change(module: Any, factor: float) -> None:
    module.FACTOR = factor
    module.TABLE[:] = factor


def eagerly(operator: Any) -> Callable[[], list[float]]:
    def run() -> list[float]:
        x = app.to_tensor(np.ones(2), stop_gradient=False)
        y = operator(x)
        y.sum().backward()
        return [float(y[0]), float(x.grad[0])]

    return run


def by_engine(engine: str) -> Callable[[Any], Callable[[], list[float]]]:
    def program(operator: Any) -> Callable[[], list[float]]:
        x = static.data("x", [2], "float64")
        x.stop_gradient = False
        y = operator(x)
        fetched = [y, *static.gradients(y, [x])]
        executor = static.Executor(engine=engine)
        main = static.default_main_program()
        return lambda: [float(each[0]) for each in executor.run(main, {"x": np.ones(2)}, fetched)]

    return program


def traced(operator: Any) -> Callable[[], list[float]]:
    return eagerly(app.jit.to_static(lambda x: operator(x)))


WAYS = [eagerly, traced, by_engine("compiled"), by_engine("reference")]
FEW_WAYS = [eagerly, WAYS[2]]


@pytest.mark.parametrize(
    ("name", "way"),
    [
        ("of_numbers", eagerly),
        *(("of_numbers", way) for way in WAYS[2:]),
        *(("of_arrays", way) for way in WAYS),
        ("through_a_helper", WAYS[2]),
    ],
)
def test_the_next_call_has_the_new_value(name: str, way: Any, module: Any):
    run = way(getattr(module, name))
    for factor in (2.0, 5.0, 2.0):
        change(module, factor)
        assert run() == [factor, factor]


def test_the_next_call_has_the_new_function_and_the_new_numbers_in_a_tuple(module: Any):
    run = eagerly(module.by_a_choice)
    assert run()[0] == 3.0
    module.CHOICE = np.minimum
    assert run()[0] == 1.0
    module.PAIR[0][:] = 5.0
    assert run()[0] == 5.0


def test_a_value_that_comes_back_counts_after_a_program_was_compiled_with_another(module: Any):
    eager, program = eagerly(module.by_a_loop), by_engine("compiled")(module.by_a_loop)
    for factor in (2.0, 5.0, 2.0):
        change(module, factor)
        assert factor == 5.0 or eager() == [factor, factor]
        assert program() == [factor, factor]


def test_a_helper_that_was_compiled_before_its_operator_is_compiled_again(module: Any):
    assert module.helper(1.0) == 2.0
    change(module, 7.0)
    assert eagerly(module.through_a_helper)() == [7.0, 7.0]


TWO_SHAPES = """
import numpy as np
import app
from numba import njit

FACTOR = 2.0

@app.custom_op
@njit
def scaled(x, w):
    y = np.empty_like(x)
    for i in range(len(x)):
        y[i] = x[i] * w[0] * FACTOR
    return y
"""


def test_the_next_call_on_arrays_of_different_shapes_has_the_new_value():
    module = module_of_text(TWO_SHAPES)
    for factor in (2.0, 5.0, 2.0):
        module.FACTOR = factor
        x = app.to_tensor(np.ones(2), stop_gradient=False)
        y = module.scaled(x, np.ones(1))
        y.sum().backward()
        assert [*y.numpy(), *x.grad.numpy()] == [factor] * 4


DECLARED = """
import numpy as np
import app
from numba import njit

FACTOR = 2.0

@njit("float64(float64)")
def declared(x):
    return x * FACTOR

@njit
def helper(x):
    return x * FACTOR

@app.custom_op(elementwise=True)
def by_a_declared_helper(x):
    return declared(x)

@app.custom_op
@njit
def by_a_helper(x):
    y = np.empty_like(x)
    for i in range(len(x)):
        y[i] = helper(x[i])
    return y
"""


@pytest.mark.parametrize("name", ["by_a_declared_helper", "by_a_helper"])
@pytest.mark.filterwarnings("ignore:.*is called for each element:RuntimeWarning")
def test_a_value_that_numba_cannot_compile_is_an_error_until_it_changes(name: str):
    module = module_of_text(DECLARED)
    for factor in (2.0, "two", "two", 3.0):
        module.FACTOR = factor
        with pytest.raises(AppError) if factor == "two" else nullcontext():
            assert getattr(module, name)(app.to_tensor([1.0], "float64")).tolist() == [factor]


@pytest.mark.parametrize("way", FEW_WAYS)
def test_the_next_call_has_the_new_value_of_a_closed_over_variable(way: Any):
    step = 3.0

    @app.custom_op(elementwise=True)
    def around(x):
        return x * step

    run = way(around)
    assert run() == [3.0, 3.0]
    step = 4.0
    assert run() == [4.0, 4.0]


REPLACED = """
import math
import numpy as np
import app
from numba import njit

FACTOR, UFUNC, BUILTIN, TYPE, MODULE, TABLES = 2.0, np.negative, math.ceil, np.float64, math, (np.array([2.0]),)

@njit
def with_a_default(x, table=TABLES[0]):
    return x * table[0]

@njit("int64(float64)")
def of_a_signature(x):
    return x * FACTOR

triple = njit(lambda x: x * 3)
other = type(math)("other")
other.ceil = math.floor

def change():
    global FACTOR, UFUNC, BUILTIN, TYPE, MODULE, abs
    FACTOR, UFUNC, BUILTIN, TYPE, MODULE, abs = 3.0, np.square, math.floor, np.int64, other, triple
    TABLES[0][0] = 3.0

@app.custom_op(elementwise=True)
def operator(x):
    return {expression}
"""


@pytest.mark.parametrize("name", ["eagerly", pytest.param("compiled", marks=pytest.mark.soak)])
@pytest.mark.parametrize(
    ("expression", "before", "after"),
    [
        ("UFUNC(x)", -1.25, 1.5625),
        pytest.param("BUILTIN(x)", 2.0, 1.0, marks=pytest.mark.soak),
        pytest.param("TYPE(x)", 1.25, 1.0, marks=pytest.mark.soak),
        ("MODULE.ceil(x)", 2.0, 1.0),
        ("abs(x)", 1.25, 3.75),
        ("x * TABLES[0][0]", 2.5, 3.75),
        ("with_a_default(x)", 2.5, 3.75),
        ("of_a_signature(x)", 2.0, 3.0),
    ],
)
def test_the_next_call_has_the_new_value_of_anything_that_a_function_reads(
    name: str, expression: str, before: float, after: float
):
    module = module_of_text(REPLACED.replace("{expression}", expression))
    x = np.array([1.25, 1.25])
    program = static.Program()
    with static.program_guard(program):
        y = module.operator(static.data("x", [None], "float64"))

    def run() -> list[float]:
        if name == "eagerly":
            return module.operator(app.to_tensor(x)).tolist()
        return static.Executor(engine="compiled").run(program, {"x": x}, [y])[0].tolist()

    assert run() == [before, before]
    module.change()
    assert run() == [after, after]


COMPILED_ONCE = """
import app
from numba import stencil, vectorize

FACTOR = 2.0

@vectorize
def scaled(x):
    return x * FACTOR

@stencil
def neighbour(x):
    return x[0] * FACTOR

@app.custom_op(elementwise=True)
def by_vectorize(x):
    return scaled(x)

def by_a_stencil(x):
    return neighbour(x)
"""
ONCE = "other values of the variables that it reads, .* compile a {} again"


@pytest.mark.parametrize("engine", ["eager", "compiled"])
def test_what_numba_cannot_compile_again_is_an_error_after_a_change(engine: str):
    module, x = module_of_text(COMPILED_ONCE), np.array([3.0])
    y = module.by_vectorize(static.data("x", [None], "float64"))
    for factor in (2.0, 5.0, 2.0):
        module.FACTOR = factor
        with nullcontext() if factor == 2.0 else pytest.raises(AppError, match=ONCE.format("DUFunc")):
            if engine == "eager":
                result = module.by_vectorize(app.to_tensor(x))
            else:
                (result,) = static.Executor(engine=engine).run(feed={"x": x}, fetch_list=[y])
            assert result.tolist() == [6.0]


def test_a_stencil_is_refused_so_too():
    module = module_of_text(COMPILED_ONCE)
    Frozen(module.by_a_stencil)
    module.FACTOR = 5.0
    with pytest.raises(AppError, match=ONCE.format("StencilFunc")):
        Frozen(module.by_a_stencil)


def test_the_next_run_has_the_new_code_of_a_function_that_ipython_reloads():
    def function(x):
        return x * 4**-1  # it is changed for Numba, whose integers have no negative powers

    def edited(x):
        return x * x * 2**-1

    x = static.data("x", [None], "float64")
    x.stop_gradient = False
    y = app.custom_op(function, elementwise=True)(x)
    fetched = [y, *static.gradients(y, x)]
    for code, expected in ((function.__code__, [0.75, 0.25]), (edited.__code__, [4.5, 3.0])):
        function.__code__ = code
        for engine in ("compiled", "reference"):
            results = static.Executor(engine=engine).run(feed={"x": np.array([3.0])}, fetch_list=fetched)
            assert [float(result[0]) for result in results] == expected


def second_of(operator: Any) -> float:
    x = app.to_tensor(np.ones(2), stop_gradient=False)
    (first,) = app.grad(operator(x).sum(), x, create_graph=True)
    return float(app.grad(first.sum(), x)[0][0])


@pytest.mark.parametrize("way", FEW_WAYS)
def test_a_derived_gradient_follows_a_helper_that_is_replaced(way: Any, module: Any):
    operator = module.through_a_helper
    run = way(operator)
    assert run() == [2.0, 2.0]
    module.helper = module.squared
    assert run() == [2.0, 4.0]
    assert "squared" in operator.gradient_source


def test_second_derivatives_follow_a_replaced_helper_and_a_changed_variable(module: Any):
    operators = (module.through_a_helper, module.square)
    assert [second_of(operator) for operator in operators] == [0.0, 4.0]
    module.helper, module.FACTOR = module.squared, 5.0
    assert [second_of(operator) for operator in operators] == [10.0, 10.0]


def test_second_derivatives_follow_an_attribute_of_an_object(module: Any):
    assert second_of(module.of_an_object) == 4.0
    module.SETTINGS.factor = 5.0
    assert second_of(module.of_an_object) == 10.0


def test_each_call_is_an_error_while_no_gradient_can_be_derived(module: Any):
    x = app.to_tensor(np.ones(2), stop_gradient=False)
    app.grad(module.through_a_helper(x).sum(), x)
    module.helper = lambda number: np.linalg.norm([number])
    for _ in range(2):
        with pytest.raises(AppError, match=r"none can be derived: .* calls something without a known slope"):
            app.grad(module.through_a_helper(x).sum(), x)
