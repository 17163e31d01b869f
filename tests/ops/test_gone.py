"""Removed names are refused with what to write instead, and that is right."""

from __future__ import annotations

import pkgutil
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
def test_a_removed_name_says_what_to_write_instead(name: str):
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
        *((f"app.compat.{facade}", "quantile") for facade in ("torch", "paddle")),
        *((f"app.compat.{facade}.linalg", "svd") for facade in ("torch", "paddle")),
        ("app.compat.torch.optim", "NAdam"),
        ("app.compat.paddle.optimizer", "NAdam"),
    ],
)
def test_modules_and_facades_say_what_to_write_instead_of_their_names(module: str, name: str):
    owner = module.replace("app.compat.", "the façade ")
    with pytest.raises(AttributeError, match=f"^{owner} no longer has '{name}': {re.escape(INSTEAD[name])}"):
        getattr(pkgutil.resolve_name(module), name)


@pytest.mark.parametrize(
    ("statement", "name"),
    [
        ("import torch.multiprocessing", "multiprocessing"),
        ("from torch.utils.data import ChainDataset", "ChainDataset"),
    ],
)
def test_an_import_from_a_facade_says_what_to_write_instead(statement: str, name: str):
    done = subprocess.run(
        [sys.executable, "-c", f"from app.compat import importing; importing.install(); {statement}"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert f" no longer has '{name}': {INSTEAD[name]}" in done.stderr


def test_the_changelog_lists_removed_names():
    other_names = {"inverse", "logdet", "pinverse", "solve_triangular", "histc"}  # PyTorch's, or older ones
    listed = set(re.findall(r"`(?:[a-z]+\.)*(\w+)`", CHANGES))
    assert set(INSTEAD) - other_names | set(OF_PACKAGE) <= listed


def test_suggested_replacements_give_the_same_values():
    x = app.to_tensor([[1.0, float("nan"), 0.0], [-2.0, 3.0, 4.0]])
    assert app.sum(app.where(app.isnan(x), 0.0, x)).item() == np.nansum(x.numpy())
    step = app.where(x == 0, app.full([], 0.5), app.cast(x > 0, x.dtype))
    np.testing.assert_array_equal(step.numpy()[1], np.heaviside(x.numpy(), 0.5)[1])
    assert app.sort(app.to_tensor([3.0, 1.0, 2.0, 4.0]))[(4 - 1) // 2].item() == 2.0


@pytest.mark.parametrize("p", [2, -2, "nuc"])
def test_norms_that_need_singular_values_are_refused(p: object):
    x = app.to_tensor(np.eye(3))
    with pytest.raises(OperatorError, match=rf"not {p!r}; np.linalg.norm\(x.numpy\(\), {p!r}\) computes it"):
        app.linalg.matrix_norm(x, p)
    with pytest.raises(ShapeError, match=r"matrix_norm needs two axes, found \[-2, -1\] of shape \[3\]"):
        app.linalg.matrix_norm(x[0], p)
