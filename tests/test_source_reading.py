"""Reading a user's function: its tree is what Python runs, or an error is raised; its parameters are its own."""

from __future__ import annotations

import ast
import doctest
import functools
import gc
import importlib.util
import linecache
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numba import njit

import app
from app import static
from app.custom.on_numbers import parse
from app.engine.compiled.fingerprint import fingerprint
from app.errors import AppError, OperatorError
from app.jit import to_static
from app.reading import (
    ChangedSourceError,
    NoSourceError,
    UnreadableSourceError,
    _parsed,
    definition_in,
    definition_of,
    parameters_of,
    place,
    signature_of,
    source_text,
)

traced = functools.partial(to_static, backend="reference")  # which compiles nothing
EDITED = "def f(x):\n    if x.sum() > 0:\n        return x * 2\n    return x\n"


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Writes a file, and imports it."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def write(text: str, name: str = "read_ops") -> Any:
        file = tmp_path / f"{name}.py"
        file.write_text(text)
        spec = importlib.util.spec_from_file_location(name, file)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return write


def edit(module: Any, old: str, new: str) -> None:
    file = Path(module.__file__)
    file.write_text(file.read_text().replace(old, new))


def text_of(function: Any) -> str:
    node = definition_of(function)
    return ast.unparse(node.body if isinstance(node, ast.Lambda) else node.body[-1])


def test_functions_of_every_kind_are_read(written: Callable[[str], Any]):
    module = written(
        "import functools\n"
        "def outer(k):\n    @functools.lru_cache\n    def inner(x):\n        return x * k\n    return inner\n"
        "class C:\n    def __secret(self):\n        return self.__n\n"
        "    @property\n    def p(self):\n        return 3\n"
        "first, second = lambda x: x + 1, lambda x: x + 2\n"
        "async def later():\n    return 4\n"
    )
    functions = [module.outer(2).__wrapped__, module.C._C__secret, module.C.p.fget, module.later]
    assert list(map(text_of, functions)) == ["return x * k", "return self.__n", "return 3", "return 4"]
    assert [text_of(module.first), text_of(module.second)] == ["x + 1", "x + 2"]
    assert definition_of(module.outer).lineno == 2

    def asserting(x: Any) -> Any:
        assert x.sum() > 0, "positive"
        return x

    rewritten = (*asserting.__code__.co_names, *asserting.__code__.co_varnames)  # by pytest
    assert any(name.startswith("@") for name in rewritten)
    assert text_of(asserting) == "return x"


def test_functions_without_a_file_run_unread_and_those_in_linecache_are_read():
    names: dict[str, Any] = {}
    exec("def f(x):\n    return x * 2\n", names)
    with pytest.raises(NoSourceError, match=r"the source of f cannot be read \(<string>\); define it in a file"):
        definition_of(names["f"])
    assert (
        traced(names["f"])(app.to_tensor([1.0])).item() == app.custom_op(names["f"])(app.to_tensor([1.0])).item() == 2
    )
    cell = "from __future__ import annotations\ndef f(x: int):\n    return x * 3\n"
    linecache.cache["<cell 1>"] = (len(cell), None, cell.splitlines(keepends=True), "<cell 1>")
    exec(compile(cell, "<cell 1>", "exec"), names)
    assert text_of(names["f"]) == "return x * 3"
    example = ">>> def f(x):\n...     return x * 5\n>>> text_of(f)\n'return x * 5'\n"
    test = doctest.DocTestParser().get_doctest(example, {"text_of": text_of}, "example", None, 0)
    assert doctest.DocTestRunner().run(test).failed == 0


def test_an_edited_file_is_an_error_unless_the_function_was_converted_before(written: Callable[..., Any]):
    x, module = app.to_tensor(np.ones(2, "float32")), written(EDITED + "def g(x):\n    return f(x) + 1\n")
    assert traced(module.f)(x).tolist() == [2, 2]
    edit(module, "* 2", "* 77")
    assert traced(module.g)(x).tolist() == [3, 3]
    module = written(EDITED, "other_ops")
    edit(module, "* 2", "* 77")
    with pytest.raises(ChangedSourceError, match=r"other_ops.py has changed since f was imported .* restart"):
        traced(module.f)(x)


def test_the_lines_of_a_function_or_a_class_are_those_that_run_also_after_an_edit(written: Callable[..., Any]):
    parts = ["f, g = lambda x: x, lambda x: 2\n"]
    parts.append("class C:\n    slope = 3\n\n    @staticmethod\n    def forward(x):\n        return x\n")
    parts.append("@dataclasses.dataclass\nclass D:\n    size: int = 3\n")
    parts.append("@functools.cache\ndef h(x):\n    def inner():\n        return 1\n    return inner\n")
    module = written("import dataclasses, functools\n" + "\n".join(parts))
    sys.modules[module.__name__] = module
    things = (module.f, module.C, module.D, module.h)
    assert list(map(source_text, things)) == parts
    assert [source_text(thing) for thing in (len, 3, np.tanh)] == ["", "", ""]
    edit(module, "import", "\n\nimport")
    assert list(map(source_text, (module.C, module.h))) == [parts[1], parts[3]]  # it was read before
    module = written("import dataclasses, functools\n" + "\n".join(parts), "other_ops")
    edit(module, "import", "\n\nimport")
    assert [source_text(thing) for thing in (module.f, module.C, module.h)] == ["", "", ""]
    del sys.modules["read_ops"]


def test_functions_of_an_edited_file_are_not_read(written: Callable[..., Any]):
    module = written("def f(x):\n    return x\ndef g(x):\n    return x\n")
    edit(module, "def g", "\ndef g")
    assert text_of(module.f) == "return x"
    with pytest.raises(ChangedSourceError):
        definition_in(module.g.__code__, {})
    edit(module, "return x", "return )")
    with pytest.raises(UnreadableSourceError, match=r"the source of g, .*read_ops.py, cannot be read: "):
        definition_of(module.g)
    text = "import numpy as np\nfrom numba import njit\n@njit\ndef f(x):\n    return np.tanh(x)\n"
    module = written(text)
    edit(module, "tanh", "sinh")
    assert parse(module.f) is None
    assert parse(written(text).f) is not None


def test_errors_in_a_copy_of_a_converted_function_name_the_file_of_the_copy(written: Callable[..., Any]):
    text = "def f(x):\n    if x.sum() > 0:\n        x = x.reshape([7])\n    return x\n"
    for name in ("first_ops", "second_ops"):
        with pytest.raises(AppError) as caught:
            traced(written(text, name).f)(app.to_tensor(np.ones(2, "float32")))
        assert f"\n  at {name}.py:3: x = x.reshape([7])" in str(caught.value)


def test_a_deep_expression_is_the_same_error_for_every_reader(written: Callable[[str], Any]):
    deep = " + ".join(["x * x"] * 900)
    module = written(f"from numba import njit\ndef f(x):\n    y = x\n    return {deep}\ng = njit(f)\n")
    message = r"^read_ops.py:4: an expression is nested too deeply \(9\d\d levels\) to be read; compute parts of it in"
    for read in (definition_of, lambda f: traced(f)(app.to_tensor([1.0]))):
        with pytest.raises(AppError, match=message):
            read(module.f)
    assert parse(module.g) is None


# Parameters


def wrapped(function: Any) -> Any:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return wrapper


def renamed(function: Any) -> Any:
    @functools.wraps(function)
    def wrapper(a: Any, b: Any = 3.0) -> Any:
        return function(a, b)

    return wrapper


def in_order(function: Any) -> Any:
    @functools.wraps(function)
    def wrapper(*args: Any) -> Any:
        return function(*args)

    return wrapper


def scaled(x: Any, by: Any = 2.0) -> Any:
    return x * by


class Scaled:
    @wrapped
    def run(self, x: Any, by: Any) -> Any:
        return x * by


def test_a_wrapper_has_its_own_parameters_unless_it_passes_all_on():
    assert list(parameters_of(wrapped(scaled))) == ["x", "by"]
    assert list(parameters_of(wrapped(renamed(scaled)))) == ["a", "b"]
    assert list(parameters_of(in_order(scaled))) == ["args"]
    assert list(parameters_of(Scaled().run)) == ["x", "by"]
    assert str(signature_of(functools.partial(scaled, by=4.0))) == "(x: 'Any', *, by: 'Any' = 4.0) -> 'Any'"
    x = app.to_tensor([1.0, 2.0])
    assert app.custom_op(wrapped(scaled))(x, by=5.0).tolist() == [5, 10]
    assert app.custom_op(renamed(scaled))(x, b=5.0).tolist() == [5, 10]
    assert app.custom_op(renamed(scaled), elementwise=True)(x).tolist() == [3, 6]
    with pytest.raises(OperatorError, match=r"its function must name its parameters; 'args' takes any number"):
        app.custom_op(in_order(scaled))


def test_a_wrapped_backward_gets_what_it_names():
    @app.custom_op
    def double(x: Any) -> Any:
        return x * 2

    def written_for_another(x: Any, gradient: Any) -> Any:
        return gradient * 7

    @double.backward
    @functools.wraps(written_for_another)
    def double_grad(x: Any, dy: Any) -> Any:
        return written_for_another(x, dy)

    x = app.to_tensor([1.0], stop_gradient=False)
    assert app.grad(double(x), x)[0].tolist() == [7]


def test_a_layer_with_a_wrapped_forward_gets_its_keywords():
    def times(ctx: Any, x: Any, factor: Any) -> Any:
        ctx.factor = factor
        return x * factor

    class Times(app.autograd.PyLayer):
        @staticmethod
        @functools.wraps(times)
        def forward(ctx: Any, x: Any, by: Any = 1.0) -> Any:
            return times(ctx, x, by)

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            return dy * ctx.factor

    x = app.to_tensor([1.0], stop_gradient=False)
    assert app.grad(Times.apply(x, by=3.0), x)[0].tolist() == [3]
    assert app.grad(Times.apply(x, 4.0), x)[0].tolist() == [4]


# Users' values are never compared, nor hashed


class Odd:
    """A value that can be neither compared, nor hashed, nor asked whether it is true."""

    __hash__ = None

    def __eq__(self, other: object) -> bool:
        raise ValueError("ambiguous")

    def __bool__(self) -> bool:
        raise ValueError("ambiguous")

    def __call__(self, *args: Any) -> Any:
        return args[0]


COEFFS, ODD = np.array([0.5, 2.0]), Odd()


@njit
def horner(x):
    y = np.empty_like(x)
    for i in range(x.size):
        s = 0.0
        for c in COEFFS:
            s = s * x.flat[i] + c
        y.flat[i] = s
    return y


@njit
def odd_rows(x):
    y = np.empty_like(x)
    for i in range(x.size):
        y.flat[i] = ODD(x.flat[i])
    return y


@njit
def odd_arithmetic(x):
    return ODD(x) * ODD + COEFFS


def odd(x):
    return ODD(x)


def test_global_values_that_cannot_be_compared_are_taken_until_a_gradient_is_derived():
    assert app.custom_op(horner)(app.to_tensor(np.array([[1.0, 2.0]]))).tolist() == [[2.5, 3.0]]
    assert all(callable(app.custom_op(function)) for function in (odd_rows, odd_arithmetic))
    with pytest.raises(AppError, match=r"calls something without a known slope"):
        _ = app.custom_op(odd, elementwise=True).gradient_source


@pytest.mark.slow
def test_threads_read_sources_at_the_same_time():
    body = "".join(f"    x = {'(' * 20}x{')' * 20} + {i} * (x - (x + (x * (x))))\n" for i in range(80))
    before, threshold = sys.getswitchinterval(), gc.get_threshold()

    def give_way(*_: Any) -> None:
        """Python that runs while a tree is made, so that another thread may have its turn."""
        sum(range(200))

    sys.setswitchinterval(1e-6)
    gc.set_threshold(50)
    gc.callbacks.append(give_way)
    try:
        with ThreadPoolExecutor(4) as threads:
            texts = [f"def f(x):\n{body}# {number}\n" for number in range(12)]
            assert len(list(threads.map(lambda text: _parsed(text, 0), texts))) == len(texts)
    finally:
        sys.setswitchinterval(before)
        gc.set_threshold(*threshold)
        gc.callbacks.remove(give_way)


CELL = """import app
@app.custom_op
def root(x):
    return x.nothing

def sign(x):
    if x.sum() > 0:
        return x, x
    return x
"""


def test_a_cell_of_a_notebook_is_named_by_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    from IPython.core.compilerop import CachingCompiler  # imported late: a third of a second

    compiler = CachingCompiler()
    shell = SimpleNamespace(compile=compiler)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    cell: dict[str, Any] = {}
    exec(compile(CELL, compiler.cache(CELL, 3), "exec"), cell)
    assert "root (Cell In[3], line 2)" in cell["root"].label
    with pytest.raises(OperatorError, match=r"no attribute 'nothing' \(Cell In\[3\], line 4\)"):
        cell["root"](app.ones([2]))
    with pytest.raises(AppError, match=r"Cell In\[3\], line 7: return values of the same kind"):
        traced(cell["sign"])(app.ones([2]))


def test_a_line_of_a_derived_function_is_named_by_the_function_and_what_it_is_derived_from():
    assert place("<rms_gradient 3, derived from my_ops.py:7>", 5) == "line 5 of rms_gradient, derived from my_ops.py:7"
    assert place("/home/me/my_ops.py", 5) == "my_ops.py:5"


def operator_before_its_helper(elementwise: bool, then: Any) -> Any:
    """What a function gives that gets an operator whose helper is assigned later in the function around it."""

    @app.custom_op(elementwise=elementwise)
    def ramp(x):
        return x if x.sum() > 0 else helper(x)

    result = then(ramp)

    def helper(x):
        return 2 * x

    return result


NO_VALUE = (
    r"ramp uses helper, a variable of the function around it, which has no value yet "
    r"\(test_source_reading.py:\d+\); assign it before the operator is applied"
)


@pytest.mark.parametrize("elementwise", [False, True])
@pytest.mark.filterwarnings("ignore:ramp is called for each element")
def test_a_variable_without_a_value_is_named_where_a_gradient_is_derived(elementwise: bool):
    x = app.to_tensor(np.ones(3), stop_gradient=False)
    y = operator_before_its_helper(elementwise, lambda ramp: ramp(x))
    with pytest.raises(OperatorError, match=NO_VALUE):
        operator_before_its_helper(elementwise, lambda ramp: ramp(x).sum().backward())
    y.sum().backward()  # the helper has a value now
    assert x.grad.tolist() == [1.0, 1.0, 1.0]


def test_a_variable_without_a_value_is_why_a_function_is_called_for_each_element():
    with pytest.warns(RuntimeWarning, match=NO_VALUE):
        operator_before_its_helper(True, lambda ramp: ramp(app.to_tensor(np.ones(3))))


def test_a_function_on_arrays_with_a_variable_without_a_value_runs_in_a_program():
    def run(ramp: Any) -> Any:
        program = static.Program()
        with static.program_guard(program):
            y = ramp(static.data("x", [-1, 2], "float64"))
        return static.Executor(engine="compiled").run(program, {"x": np.ones((3, 2))}, [y])

    assert operator_before_its_helper(False, run)[0].tolist() == np.ones((3, 2)).tolist()


def test_a_function_that_numba_ran_under_a_profiler_is_read_and_is_the_same_one():
    @njit
    def doubled(x):
        total = x
        for _ in range(1):
            total += x
        return total

    before = fingerprint(doubled)
    former = sys.getprofile()
    sys.setprofile(lambda *_: None)
    try:
        doubled(1.0)  # Numba changes the flags of the function's code
    finally:
        sys.setprofile(former)
    assert definition_of(doubled.py_func).name == "doubled"
    assert fingerprint(doubled) == before
