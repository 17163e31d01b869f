"""Removed names are refused with what to write instead, and that is right."""

from __future__ import annotations

import pkgutil
import re
from pathlib import Path

import numpy as np
import pytest

import app
from app.compat.importing import FacadeFinder
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
    ("path", "name"),
    [("torch.multiprocessing", "multiprocessing"), ("app.compat.torch.utils.data.ChainDataset", "ChainDataset")],
    ids=["import", "from"],
)
def test_an_import_from_a_facade_says_what_to_write_instead(path: str, name: str):
    with pytest.raises(ImportError, match=f" no longer has '{name}': {re.escape(INSTEAD[name])}"):
        FacadeFinder().find_spec(path)


def test_the_changelog_lists_removed_names():
    other_names = {"inverse", "logdet", "pinverse", "solve_triangular", "histc"}  # PyTorch's, or older ones
    listed = set(re.findall(r"`(?:[a-z]+\.)*(\w+)`", CHANGES))
    assert set(INSTEAD) - other_names | set(OF_PACKAGE) <= listed


@pytest.mark.parametrize("p", [2, -2, "nuc"])
def test_norms_that_need_singular_values_are_refused(p: object):
    x = app.to_tensor(np.eye(3))
    with pytest.raises(OperatorError, match=rf"not {p!r}; np.linalg.norm\(x.numpy\(\), {p!r}\) computes it"):
        app.linalg.matrix_norm(x, p)
    with pytest.raises(ShapeError, match=r"matrix_norm needs two axes, found \[-2, -1\] of shape \[3\]"):
        app.linalg.matrix_norm(x[0], p)
