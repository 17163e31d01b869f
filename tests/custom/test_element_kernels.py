"""Kernels of functions of single numbers: made once for a source, whatever its settings; where none can be, told so."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import app
from app.custom import elementwise
from app.engine.compiled import native_code, objects

pytestmark = pytest.mark.slow

X = np.array([-1.0, 0.5, 2.0], "float32")


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The key of each loop that is made in the test."""
    made: list[str] = []
    monkeypatch.setattr(native_code, "_loaded", type(native_code._loaded)())
    make = native_code.NativeCode.__init__
    monkeypatch.setattr(
        native_code.NativeCode, "__init__", lambda code, key, *given: made.append(key) or make(code, key, *given)
    )
    return made


def scaled(scale, **options):
    @app.custom_op(elementwise=True, **options)
    def operator(x, temperature=1.0, steps=1):
        return x / temperature * scale + steps

    return operator


def test_a_setting_that_varies_needs_no_new_kernel_forward_or_back(compiled):
    operator, x = scaled(2.0), app.to_tensor(X)
    x.stop_gradient = False
    for temperature in (1.0, 0.5, 0.25):
        y = operator(x, temperature=temperature)
        np.testing.assert_allclose(y.numpy(), X / temperature * 2 + 1)
        (gradient,) = app.grad([app.sum(y)], [x])
        np.testing.assert_allclose(gradient.numpy(), np.full(3, 2 / temperature, "float32"))
    assert len(compiled) == 2  # one for each pass


def test_the_same_source_made_again_is_the_same_kernel_and_another_constant_is_not(compiled):
    for scale, kernels in ((2.0, 1), (2.0, 1), (3.0, 2)):
        assert scaled(scale)(app.to_tensor(X)).tolist() == (X * scale + 1).tolist()
        assert len(compiled) == kernels


def test_settings_that_are_no_numbers_are_part_of_the_kernel_and_few_of_these_are_kept(compiled, monkeypatch):
    monkeypatch.setattr(native_code, "LOADED", 1)
    monkeypatch.setattr(elementwise, "KEPT", 1)

    @app.custom_op(elementwise=True)
    def weighted(x, weights=(1.0,)):
        return x // weights[0]

    for weights, result in (((1,), [-1, 0, 2]), ((2.0,), [-1, 0, 1]), ((1.0,), [-1, 0, 2])):
        assert weighted(app.to_tensor(X), weights=weights).tolist() == result
    assert len(set(compiled)) == 3
    assert len(native_code._loaded) == 1


def test_a_kernel_is_kept_on_disk_for_other_processes(compiled, monkeypatch):
    operator = scaled(5.0)
    assert operator(app.to_tensor(X)).tolist() == (X * 5 + 1).tolist()
    native_code._loaded.clear()
    monkeypatch.setattr(objects, "compiled", None)
    assert scaled(5.0)(app.to_tensor(X)).tolist() == (X * 5 + 1).tolist()
    assert len(compiled) == 2


def test_a_function_that_numba_cannot_compile_says_so_once_with_its_reason_and_line():
    @app.custom_op(elementwise=True)
    def of_text(x, digits=1):
        return float(f"{x:.{digits}f}")

    x = app.to_tensor(X)
    with pytest.warns(
        RuntimeWarning, match=r"of_text is called for each element .*float32, Numba cannot compile of_text: .+"
    ):
        assert of_text(x).tolist() == X.tolist()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert of_text(x, digits=2).tolist() == X.tolist()
