"""Names that were here once are refused with what to write instead, which is right."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import app
from app.errors import OperatorError, ShapeError
from app.ops.gone import INSTEAD, OF_PACKAGE

CHANGES = (Path(__file__).parents[2] / "CHANGELOG.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", sorted(INSTEAD))
def test_a_name_that_left_says_what_to_write_instead(name: str):
    owners = [owner for owner in (app, app.linalg, app.optimizer) if not hasattr(owner, name)]
    if name in OF_PACKAGE:  # `app.cond` chose between functions
        owners.remove(app)
    assert len(owners) >= 2
    for owner in owners:
        with pytest.raises(AttributeError) as caught:
            getattr(owner, name)
        assert str(caught.value) == f"{owner.__name__} no longer has {name!r}: {INSTEAD[name]}"
    for function in re.findall(r"np\.([\w.]+)\(", INSTEAD[name]):
        found = np
        for part in function.split("."):
            found = getattr(found, part)
        assert callable(found)


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("app.io", "ChainDataset"),
        ("app.metric", "Auc"),
        ("app.model.callbacks", "EarlyStopping"),
        ("app.nn", "Bilinear"),
        ("app.nn.functional", "maxout"),
        ("app.nn.initializer", "Orthogonal"),
        ("app.nn.utils", "parameters_to_vector"),
        ("app.optimizer.lr", "NoamDecay"),
        ("app.static", "device_guard"),
    ],
)
def test_so_does_its_module(module: str, name: str):
    with pytest.raises(AttributeError, match=f"^{module} no longer has '{name}': {re.escape(INSTEAD[name])}"):
        getattr(importlib.import_module(module), name)


@pytest.mark.parametrize(
    ("statement", "name"),
    [
        ("import torch.multiprocessing", "multiprocessing"),
        ("from torch.utils.data import ChainDataset", "ChainDataset"),
    ],
)
def test_so_does_an_import_from_a_facade(statement: str, name: str):
    done = subprocess.run(
        [sys.executable, "-c", f"from app.compat import importing; importing.install(); {statement}"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert f" no longer has '{name}': {INSTEAD[name]}" in done.stderr


@pytest.mark.parametrize("facade", ["torch", "paddle"])
def test_so_do_the_facades(facade: str):
    module = __import__(f"app.compat.{facade}", fromlist=["linalg"])
    with pytest.raises(AttributeError, match=rf"{facade} no longer has 'quantile': np.quantile\(x.numpy\(\)\)"):
        _ = module.quantile
    with pytest.raises(AttributeError, match=rf"{facade}.linalg no longer has 'svd': np.linalg.svd"):
        _ = module.linalg.svd
    optimizers = __import__(f"app.compat.{facade}", fromlist=["x"])
    optimizers = getattr(optimizers, "optim" if facade == "torch" else "optimizer")
    with pytest.raises(AttributeError, match=r"no longer has 'NAdam': Adam is the nearest to it; SGD, Momentum, Adam"):
        _ = optimizers.NAdam


def test_the_changelog_lists_them():
    other_names = {"inverse", "logdet", "pinverse", "solve_triangular", "histc"}  # PyTorch's, or older ones
    listed = set(re.findall(r"`(?:[a-z]+\.)*(\w+)`", CHANGES))
    assert set(INSTEAD) - other_names | set(OF_PACKAGE) <= listed


def test_what_is_written_instead_gives_the_same():
    x = app.to_tensor([[1.0, float("nan"), 0.0], [-2.0, 3.0, 4.0]])
    assert app.sum(app.where(app.isnan(x), 0.0, x)).item() == np.nansum(x.numpy())
    step = app.where(x == 0, app.full([], 0.5), app.cast(x > 0, x.dtype))
    np.testing.assert_array_equal(step.numpy()[1], np.heaviside(x.numpy(), 0.5)[1])
    assert app.sort(app.to_tensor([3.0, 1.0, 2.0, 4.0]))[(4 - 1) // 2].item() == 2.0
    upper, sides = np.array([[2.0, 1.0], [0.5, 3.0]]), np.array([[1.0], [6.0]])
    np.testing.assert_allclose(np.triu(upper) @ np.linalg.solve(np.triu(upper), sides), sides)


@pytest.mark.parametrize("p", [2, -2, "nuc"])
def test_norms_that_need_singular_values_are_refused(p: object):
    x = app.to_tensor(np.eye(3))
    with pytest.raises(OperatorError, match=rf"not {p!r}; np.linalg.norm\(x.numpy\(\), {p!r}\) computes it"):
        app.linalg.matrix_norm(x, p)
    with pytest.raises(ShapeError, match=r"matrix_norm needs two axes, found \[-2, -1\] of shape \[3\]"):
        app.linalg.matrix_norm(x[0], p)
