"""Modules are made from rows of names; what computes belongs to the library."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pytest

import app
from app.compat import torch
from app.compat.facade import make_modules
from app.compat.missing import MissingNameError
from app.compat.torch import nn, optim

ROWS = """
shelf.books app.io Dataset Part=Subset
    get_worker_info
shelf app.compat.torch._matrices:LINALG *
shelf.copies shelf.books *
shelf.functions app.compat.facade *
shelf.functions app.regularizer *
"""


@pytest.fixture
def shelf() -> Iterator[Any]:
    make_modules(ROWS)
    yield sys.modules["app.compat.shelf"]
    del app.compat.shelf  # type: ignore[attr-defined]
    for name in [name for name in sys.modules if name.startswith("app.compat.shelf")]:
        del sys.modules[name]


def test_a_module_has_the_names_of_its_rows(shelf: Any):
    assert shelf.books.__all__ == ["Dataset", "Part", "get_worker_info"]
    assert shelf.books.Part is app.io.Subset
    assert "vector_norm" in shelf.__all__
    assert {"books", "copies", "functions"} <= set(shelf.__all__)


def test_a_row_can_take_over_another_module(shelf: Any):
    assert shelf.copies.__all__ == shelf.books.__all__


def test_all_of_a_module_is_what_it_lists_or_defines(shelf: Any):
    assert shelf.functions.__all__ == ["L1Decay", "L2Decay", "make_modules"]


def test_a_name_that_is_not_there_is_told(shelf: Any):
    with pytest.raises(
        MissingNameError, match=r"shelf.books has no 'Datasets' in this façade; closest: shelf.books.Da"
    ):
        shelf.books.Datasets  # noqa: B018


@pytest.mark.parametrize(
    ("kind", "below"),
    [
        (nn.Linear, app.nn.Linear),
        (nn.Embedding, app.nn.Embedding),
        (nn.Dropout, app.nn.Dropout),
        (nn.LayerNorm, app.nn.LayerNorm),
        (nn.BatchNorm1d, app.nn.BatchNorm1D),
        (nn.BatchNorm2d, app.nn.BatchNorm2D),
        (nn.Conv2d, app.nn.Conv2D),
        (nn.Sequential, app.nn.Sequential),
        (nn.ModuleList, app.nn.LayerList),
        (nn.ModuleDict, app.nn.LayerDict),
        (optim.Adam, app.optimizer.Optimizer),
        (torch.utils.data.DataLoader, app.io.DataLoader),
        (torch.utils.data.RandomSampler, app.io.RandomSampler),
    ],
)
def test_what_computes_is_the_librarys(kind: type, below: type):
    assert issubclass(kind, below)


def test_a_norm_can_average_all_batches():
    layer = nn.BatchNorm1d(1, momentum=None)
    for value in (1.0, 2.0, 6.0):
        layer(torch.tensor([[value - 1.0], [value + 1.0]]))
    assert layer.running_mean.item() == pytest.approx(3.0)
    assert layer.running_var.item() == pytest.approx(2.0)


def test_a_padding_row_keeps_its_values_and_gets_no_gradient():
    layer = nn.Embedding(3, 2, padding_idx=1)
    assert layer.weight[1].tolist() == [0.0, 0.0]
    weight = torch.ones(3, 2, requires_grad=True)
    rows = nn.functional.embedding(torch.tensor([1, 0]), weight, padding_idx=1)
    rows.sum().backward()
    assert rows.tolist() == [[1.0, 1.0], [1.0, 1.0]]
    assert weight.grad.tolist() == [[1.0, 1.0], [0.0, 0.0], [0.0, 0.0]]
