"""Operators in C99, compiled and compared with their Python functions."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from as_python import uncompiled
from derivative.array_programs import arguments_for, program
from derivative.kernels import KERNELS
from modules_of_text import module_of_text

import app
from app.bridge.out.c import write
from app.bridge.out.c_code import c_function
from app.custom.shelf.ema import ema
from app.custom.shelf.softmax import softmax
from app.custom.shelf.swish import swish
from app.derivative.scope import UnderivableError
from app.errors import ExportError
from tests.bridge.out.c_library import COMPILER, Library
from tests.bridge.out.operators import halvings, parts, picked, root, squashed, stepped
from tests.bridge.out.test_losses_and_numbers import A, N, decayed_powers
from tests.bridge.out.test_losses_and_numbers import X as POSITIVE
from tests.bridge.out.test_whole_arrays import SCALE, X, squared_deviation
from tests.bridge.out.written_files import assert_formatted, assert_passes_without

__all__ = ["uncompiled"]

needs_compiler = pytest.mark.skipif(not COMPILER, reason="needs a C compiler")
FEW = ("softmax", "conv1d", "topk", "gather")
SOME = (
    *("attention_rows", "bubble_sort", "conv1d_strided", "cosine", "ctc", "first_passage", "gather", "glu_whole"),
    *("logsumexp", "newton_sqrt", "resample", "soft_dtw", "soft_threshold", "spline"),
)
"""Kernels that have all that can be said in C."""


def matrix(seed: int = 0, shape: tuple[int, ...] = (4, 6)) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-2, 2, shape)


@needs_compiler
@pytest.mark.parametrize(
    ("names", "real", "near"),
    [
        pytest.param(FEW, "double", 1e-10, id="few, double"),
        pytest.param(SOME, "float", 1e-4, id="some, float", marks=pytest.mark.slow),
        pytest.param([*KERNELS], "double", 1e-10, id="all, double", marks=pytest.mark.soak),
        pytest.param([*KERNELS], "float", 1e-4, id="all, float", marks=pytest.mark.soak),
    ],
)
def test_kernels_and_their_derived_gradients_compile_without_a_warning_and_agree(
    names: Any, real: str, near: float, tmp_path: Path
) -> None:
    calls = []
    for name in names:
        function, values = KERNELS[name].function, KERNELS[name].small()
        derived = KERNELS[name].derived.function
        arriving = KERNELS[name].arguments_of(derived)
        calls.append((c_function(name, function, values), function, values))
        calls.append((c_function(f"{name}_gradient", derived, arriving), derived, arriving))
    library = Library([c for c, _, _ in calls], tmp_path, real)
    for c, function, values in calls:
        status, results, expected = library.call(c, function, values)
        assert status == 0, c.name
        for one, other in zip(results, expected, strict=True):
            np.testing.assert_allclose(one, other, near, near, err_msg=c.name)


@needs_compiler
@pytest.mark.slow
@pytest.mark.parametrize(
    "seeds",
    [(*range(12), 37), pytest.param(range(400), marks=pytest.mark.soak)],  # 37 has a size that is compared with itself
    ids=["few", "many"],
)
def test_random_functions_agree_or_give_a_status(seeds: Any, tmp_path: Path) -> None:
    calls = []
    for seed in seeds:
        function, values = module_of_text(program(seed)).f, arguments_for(seed)
        try:
            calls.append((c_function(f"f{seed}", function, values), function, values))
        except UnderivableError:
            continue
    library, agree = Library([c for c, _, _ in calls], tmp_path), 0
    for c, function, values in calls:
        with warnings.catch_warnings(), pytest.MonkeyPatch.context() as patch:
            warnings.simplefilter("ignore", RuntimeWarning)
            patch.setattr(np, "empty", lambda *a, **k: np.full(a[0], np.nan, *a[1:], **k))  # its elements mean nothing
            patch.setattr(np, "empty_like", lambda a, **k: np.full_like(a, np.nan if a.dtype.kind == "f" else 0, **k))
            try:
                status, results, expected = library.call(c, function, values)
            except (IndexError, UnboundLocalError, ValueError):  # it is no valid program
                continue
        if status == 0 and all(np.isfinite(e).all() for e in expected):
            agree += 1
            for one, other in zip(results, expected, strict=True):
                np.testing.assert_allclose(one, other, 1e-9, 1e-12, err_msg=c.text)
    assert agree > len(calls) // 2


def test_the_text_is_as_a_person_would_write_it() -> None:
    def smoothed(x, weight=0.5):
        y = np.empty_like(x)
        # each row on its own
        for i in range(x.shape[0]):
            state = x[i, 0]
            for j in range(x.shape[1]):
                state += weight * (x[i, j] - state)  # a step towards x
                y[i, j] = state
        return y

    assert (
        c_function("smoothed", smoothed, [matrix()]).text
        == """\
int smoothed(const real *restrict x, int64_t x_0, int64_t x_1, double weight, real *restrict y) {
    /* each row on its own */
    for (int64_t i = 0; i < x_0; i++) {
        double state = x[i * x_1];
        for (int64_t j = 0; j < x_1; j++) {
            state += weight * (x[i * x_1 + j] - state);  /* a step towards x */
            y[i * x_1 + j] = state;
        }
    }
    return 0;
}"""
    )


@needs_compiler
def test_integers_divide_and_indices_count_from_the_end_as_in_python(tmp_path: Path) -> None:
    def places(x, index, register=2):
        total = np.zeros(4)
        for i in range(len(index)):
            total[0] += x[index[i]] * 10**i
            total[1] += (index[i] - 3) // register
            total[2] += (index[i] - 3) % register
            total[3] += index[i] / register + round(2.5 * index[i]) + int(-1.5 * index[i]) + 2**i
        return total

    values = [np.arange(1.0, 6.0), np.array([-1, 0, -5, 4])]
    c = c_function("places", places, values)
    status, (result,), (expected,) = Library([c], tmp_path).call(c, places, values)
    assert (status, result.tolist()) == (0, expected.tolist())


@needs_compiler
def test_remainders_and_quotients_of_floats_are_those_of_numpy_at_every_multiple(tmp_path: Path) -> None:
    def divided(x, steps):
        return x % steps, x // steps

    steps = np.array([0.7, 0.1, -0.3, np.inf, -np.inf, 0.0, 1e-3, np.nan])
    x = (np.arange(-60, 61)[:, None] * steps[:3]).reshape(-1, 1)
    values = [np.vstack([x, [[0.0], [np.inf], [-np.inf], [np.nan], [1e30], [-1e-30]]]) + 0 * np.ones(8), steps]
    c = c_function("divided", divided, values)
    with np.errstate(all="ignore"):
        status, results, expected = Library([c], tmp_path).call(c, divided, values)
    assert status == 0
    for one, other in zip(results, expected, strict=True):
        np.testing.assert_array_equal(one, other)


def test_an_operator_with_the_name_of_a_function_of_c_has_another_there() -> None:
    operator = app.custom_op(elementwise=True, name="tanh")(lambda x: 2 / (1 + np.exp(-2 * x)) - 1)
    written = write(operator, [matrix()], (-2, 2), "")
    assert "int tanh_forward(const real" in written.files["tanh.c"]
    assert written.notes == ["Made of two functions of C99, tanh_forward and tanh_gradient."]


@needs_compiler
def test_what_raises_in_python_is_a_status_in_c(tmp_path: Path) -> None:
    def logs(x):
        if x[0] < 0:
            raise ValueError("negative")
        return np.log(x)

    c = c_function("logs", logs, [np.ones(3)])
    library = Library([c], tmp_path)
    assert library.call(c, logs, [np.ones(3)])[0] == 0
    assert library.call(c, np.abs, [-np.ones(3)])[0] == 2
    assert "/* negative */" in c.text


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("assert x[0] > 0\n    return x * 2", r"`assert x\[0\] > 0` cannot be written out"),
        ("if x[0] < 0:\n        raise KeyError('a')\n    return x * 2", r"`raise KeyError\('a'\)` cannot be written"),
        ("return np.sort(x)", r"np.sort\(x\)"),
        ("x[0] = 1.0\n    return x * 2", "changes an input in place"),
    ],
)
def test_what_cannot_be_said_in_c_is_refused_with_its_line(body: str, message: str) -> None:
    function = module_of_text(f"import numpy as np\n\ndef f(x):\n    {body}\n").f
    with pytest.raises(UnderivableError, match=r":\d+: .*" + message):
        c_function("f", function, [np.ones(3)])


def test_the_export_of_what_cannot_be_written_is_an_error() -> None:
    @app.custom_op
    def cubed(x):
        return np.linalg.matrix_power(x, 3)

    @cubed.backward
    def cubed_grad(x, dy):
        return dy

    with pytest.raises(ExportError, match=r"cubed .*cannot be written in C: test_to_c.py:\d+"):
        write(cubed, [matrix(0, (3, 3))], (-2, 2), "")


@app.custom_op(elementwise=True)
def awkward(n, restrict=2.0, mode="double", on=True):
    return n * restrict if on and mode == "double" else n


CASES = [
    (parts, [matrix(), matrix(0, (6,))]),
    *((operator, [matrix()]) for operator in (squashed, stepped, halvings, softmax)),
    (picked, [matrix(), np.array([3, 0, 3])]),
]
MORE = [(operator, [matrix()]) for operator in (swish, root, ema)]


@needs_compiler
@pytest.mark.slow
@pytest.mark.parametrize("cases", [CASES, pytest.param(MORE, marks=pytest.mark.soak)], ids=["few", "more"])
def test_the_written_tests_pass_without_opsmith_and_are_as_a_formatter_leaves_them(
    cases: Any, tmp_path: Path, uncompiled: None
) -> None:
    def write_files(operator: Any, examples: Any, within: tuple[float, float] = (-2, 2)) -> None:
        for name, text in write(operator, examples, within, "1 passed").files.items():
            (tmp_path / name).write_text(text, encoding="utf-8")

    for case in cases:
        write_files(*case)
    assert_formatted(tmp_path)
    # a formatter would change quotes, and divide a line
    write_files(awkward, [X])
    write_files(squared_deviation, [X, SCALE], (-1, 1))
    write_files(decayed_powers, [POSITIVE, N, A], (0.4, 1.1))
    assert_passes_without(tmp_path, "opsmith", "app", "numba")
