"""The operators on the shelf pass all checks, are short and documented, and agree with their page."""

from __future__ import annotations

import ast
import inspect
import re
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from as_python import as_python, only_engines_compile, uncompiled
from hypothesis import example, given, settings
from hypothesis import strategies as st

import app
from app import static
from app.checking.checks import examine
from app.checking.examples import inputs_for
from app.checking.operators import find
from app.custom import shelf
from app.custom.lookup import SHIPPED, find_operator, make_operator, on_the_shelf, values_taken
from app.custom.shelf import relu as relu_module
from app.custom.shelf import tap as tapping
from app.custom.shelf.gated import gated
from app.custom.shelf.prelu import PReLU
from app.errors import ConfigError
from app.run.activation import find_activation

__all__ = ["uncompiled"]

pytestmark = pytest.mark.slow

FOLDER = Path(shelf.__file__).parent
PAGE = (FOLDER.parents[2] / "docs" / "shelf.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| \[`custom\.(\w+)`\]\((\S+)\) \| (.+?) \| (.+?) \|$", PAGE, re.MULTILINE)


LIKE_ANOTHER = {"leaky_relu": pytest.mark.soak}
"""It is made as `custom.swish` is."""


@pytest.mark.parametrize(
    "running", [only_engines_compile, pytest.param(nullcontext, marks=pytest.mark.soak)], ids=["as Python", "by Numba"]
)
@pytest.mark.parametrize("name", [pytest.param(name, marks=LIKE_ANOTHER.get(name, ())) for name in SHIPPED])
def test_every_check_holds_and_the_engine_does_what_the_page_says(name: str, running: Any):
    (operator,) = find(f"custom.{name}")
    with running():
        verdicts = list(examine(inputs_for(operator)))
    assert len(verdicts) >= 13
    assert [v for v in verdicts if v.failed] == []
    (expected,) = [row[3] for row in ROWS if row[0] == name]
    engine = [v.words for v in verdicts if v.check == "inlined"]
    if expected == "as its operators":
        assert engine == ["it consists of the framework's operators, which are compiled"]
    else:
        assert len(engine) == 2
        assert all(re.match(rf"\S+: {expected}: ", words) for words in engine)


def test_the_page_has_a_row_for_each_operator_and_files_are_short_and_say_when_to_use_them():
    assert sorted(row[0] for row in ROWS) == sorted(SHIPPED)
    assert all(link == f"../app/custom/shelf/{name}.py" for name, link, *_ in ROWS)
    assert len({way for _, _, way, _ in ROWS}) == len(ROWS)
    for name in SHIPPED:
        text = (FOLDER / f"{name}.py").read_text(encoding="utf-8")
        docstring = ast.get_docstring(ast.parse(text)) or ""
        assert len(text.splitlines()) <= 55, name
        assert re.search(r"Use (this way|it)|shortest way", docstring), name
        assert len(docstring.splitlines()) >= 3, name


@pytest.mark.usefixtures("uncompiled")
@pytest.mark.parametrize("name", SHIPPED)
def test_a_file_of_the_shelf_works_where_a_user_copies_it_to(name: str, tmp_path: Path):
    copy = tmp_path / f"my_{name}.py"
    copy.write_text((FOLDER / f"{name}.py").read_text(encoding="utf-8"), encoding="utf-8")
    x = np.linspace(-2, 2, 6, dtype="float32").reshape(2, 3)
    values = [app.to_tensor(x)] * max(len(values_taken(on_the_shelf(f"custom.{name}"))), 1)
    operator, shipped = make_operator(f"{copy}:{name}"), make_operator(f"custom.{name}")
    assert np.array_equal(operator(*values).numpy(), shipped(*values).numpy())


def test_classes_become_what_a_network_can_use():
    x = app.to_tensor([0.0, 1.0])
    assert find_operator("custom.exp")(x).numpy() == pytest.approx([1, np.e])
    assert find_operator("custom.prelu") is PReLU
    assert isinstance(make_operator("custom.prelu"), PReLU)
    assert make_operator("custom.prelu") is not make_operator("custom.prelu")


def test_an_operator_of_two_inputs_is_not_an_activation():
    with pytest.raises(
        ConfigError, match=r"^custom\.gated takes 2 values \(x, gate\), and between two layers there is"
    ):
        find_activation("custom.gated")
    with pytest.raises(ConfigError) as error:
        find_activation("custom.gatd")
    assert "did you mean 'custom.gated'?" in str(error.value)
    assert "custom.gated," not in str(error.value)
    assert "custom.exp, custom.leaky_relu, custom.legendre3, custom.prelu, custom.relu," in str(error.value)


def test_a_gate_multiplies_by_the_sigmoid_of_its_second_input():
    y = gated(app.to_tensor([3.0, 3.0, 3.0]), app.to_tensor([30.0, -30.0, 0.0]))
    assert y.numpy() == pytest.approx([3, 0, 1.5], abs=1e-6)


# --- The tap ---


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, object]]:
    """What the tap keeps, from nothing on."""
    values: list[dict[str, object]] = []
    monkeypatch.setattr(tapping, "seen", values)
    tapping._calls.clear()
    return values


@pytest.mark.parametrize("engine", ["eager", "reference", "compiled"])
def test_a_tap_sees_every_pass_in_every_engine(engine: str, seen: list[dict[str, object]]):
    array = np.array([[-1, 0], [3, 2]], "float32")
    if engine == "eager":
        x = app.to_tensor(array, stop_gradient=False)
        (tapping.tap(x, label="here") * 2).sum().backward()
        assert x.grad.numpy().tolist() == [[2, 2], [2, 2]]
    else:
        x = static.data("x", [None, 2])
        x.stop_gradient = False
        y = tapping.tap(x, label="here") * 2
        fetched = [y, *static.gradients(y, x)]
        _, gradient = static.Executor(engine=engine).run(feed={"x": array}, fetch_list=fetched)
        assert gradient.tolist() == [[2, 2], [2, 2]]
    forward, backward = seen
    assert forward == {
        "label": "here",
        "way": "forward",
        "call": 0,
        "mean": 1.0,
        "min": -1.0,
        "max": 3.0,
        "zeros": 0.25,
        "std": pytest.approx(np.std([-1, 0, 3, 2])),
        "not finite": 0,
    }
    assert (backward["way"], backward["mean"], backward["std"]) == ("backward", 2.0, 0.0)


def test_a_tap_prints_each_hundredth_call_and_every_alarm(
    seen: list[dict[str, object]], capsys: pytest.CaptureFixture[str]
):
    x = app.to_tensor([1.0, 2.0])
    for _ in range(201):
        tapping.tap(x)
    tapping.tap(app.to_tensor([1.0, np.nan, np.inf]), every=0)
    tapping.tap(x, every=0)
    printed = capsys.readouterr()
    calls = [re.search(r"call (\d+) .* not finite (\d+)$", line) for line in printed.err.splitlines()]
    assert [call and call.groups() for call in calls] == [("0", "0"), ("100", "0"), ("200", "0"), ("201", "2")]
    assert printed.out == ""
    assert len(seen) == 203
    assert tapping.tap(app.zeros([0, 3])).shape == [0, 3]


# --- relu ---

custom_relu = find_operator("custom.relu")
"""It is the built-in relu in every bit, and shares no code with it."""

SPECIAL = [0.0, -0.0, float("nan"), float("inf"), float("-inf"), 1e-45, -1e-45, 1.0, -1.0]
LAYOUTS = {
    "as it is": lambda a: a,
    "transposed": lambda a: a.T,
    "reversed, every other": lambda a: a[::-1, ::2],
    "one number": lambda a: a.reshape(-1)[:1].reshape(()) if a.size else np.zeros((), a.dtype),
}


@st.composite
def arrays(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    """Two arrays of one shape and layout, with every kind of number in them."""
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    shape = draw(st.sampled_from([(0, 3), (1, 1), (3, 0), (7, 9), (33, 5)]))
    layout = draw(st.sampled_from(sorted(LAYOUTS)))
    dtype = "float32" if layout != "as it is" else draw(st.sampled_from(["float32", "float64"]))
    both = np.where(rng.random((2, *shape)) < 0.5, rng.choice(SPECIAL, (2, *shape)), rng.normal(size=(2, *shape)))
    x, dy = (LAYOUTS[layout](a) for a in both.astype(dtype))
    return x, dy


def bits(array: np.ndarray) -> Any:
    return array.dtype, array.shape, array.tobytes()


@settings(max_examples=60, deadline=None)
@given(arrays())
@example((np.array([SPECIAL], "float32"), np.array([SPECIAL[::-1]], "float32")))
def test_values_and_gradients_of_relu_are_those_of_the_built_in_one_bit_for_bit(pair: tuple[np.ndarray, np.ndarray]):
    x, dy = app.Tensor(pair[0], stop_gradient=False), app.Tensor(pair[1])
    with as_python(pair[0].ndim != 2 or x.dtype != "float32"):  # Numba compiles for each number of axes, and each type
        actual, expected = custom_relu(x), app.relu(x)
        assert bits(actual.numpy()) == bits(expected.numpy())
        assert bits(app.grad(actual, x, dy)[0].numpy()) == bits(app.grad(expected, x, dy)[0].numpy())


@pytest.mark.usefixtures("uncompiled")
@pytest.mark.parametrize("dtype", ["int64", "float16"])
def test_relu_keeps_whole_numbers_and_half_precision(dtype: str):
    x = app.to_tensor(np.array([3, -2, 0], dtype), stop_gradient=dtype != "float16")
    out = custom_relu(x)
    assert (out.dtype, out.tolist()) == (dtype, [3, 0, 0])
    if dtype == "float16":
        out.sum().backward()
        assert (x.grad.dtype, x.grad.tolist()) == (dtype, [1, 0, 0])


def test_relu_is_made_of_two_numba_functions_with_py_func():
    source = inspect.getsource(relu_module)
    assert "py_func(relu_forward" in source
    assert "app.ops.activation" not in source
    assert all(hasattr(f, "py_func") for f in (relu_module.relu_forward, relu_module.relu_backward))
    custom_relu(static.data("x", [None, 3]))
    assert "py_func.relu_forward(x)  // relu.py:" in str(static.default_main_program())
