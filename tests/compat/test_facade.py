"""Façades: modules are made from rows of names, missing names and misspelt keywords are errors, and lists are right."""

from __future__ import annotations

import difflib
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from timeit import timeit
from typing import Any

import pytest

import app
from app.__main__ import main
from app.compat import fluid, paddle, torch
from app.compat.coverage import coverage, listing
from app.compat.facade import make_modules
from app.compat.importing import FACADES
from app.compat.missing import MissingNameError
from app.compat.torch import nn, optim
from app.errors import AppError

ROOT = Path(__file__).parents[2]
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
    del app.compat.shelf
    for name in [name for name in sys.modules if name.startswith("app.compat.shelf")]:
        del sys.modules[name]


def test_a_module_has_the_names_of_its_rows(shelf: Any):
    assert shelf.books.__all__ == ["Dataset", "Part", "get_worker_info"]
    assert shelf.books.Part is app.io.Subset
    assert "vector_norm" in shelf.__all__
    assert {"books", "copies", "functions"} <= set(shelf.__all__)
    assert shelf.copies.__all__ == shelf.books.__all__
    assert shelf.functions.__all__ == ["L1Decay", "L2Decay", "make_modules"]  # what a module lists or defines
    with pytest.raises(MissingNameError, match=r"shelf.books has no 'Datasets' .*; closest: shelf.books.Da"):
        shelf.books.Datasets  # noqa: B018


@pytest.mark.parametrize("module", [torch, nn, nn.functional, nn.init, optim, torch.utils.data, torch.autograd])
def test_every_name_that_is_listed_is_there(module: Any):
    assert all(hasattr(module, name) for name in module.__all__)
    assert len(set(module.__all__)) == len(module.__all__)


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
def test_classes_that_compute_are_those_of_the_library(kind: type, below: type):
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


# Names that are missing


@pytest.mark.parametrize(
    ("module", "name", "closest"),
    [
        (paddle, "tanhh", "closest: paddle.tanh"),
        (paddle, "Linear", "closest: paddle.nn.Linear, paddle.base.dygraph.Linear"),
        (paddle.nn, "linear", "closest: paddle.nn.functional.linear"),
        (paddle.nn, "RELU", "closest: paddle.nn.ReLU"),
        (paddle.nn, "xyzzy", "`python -m app run --coverage paddle` lists what is there"),
        (fluid.metrics, "Recall", "closest: paddle.metric.Recall"),
        (torch, "fft", ""),
        (nn, "Liner", "closest: torch.nn.Linear"),
        (torch.ones(1), "squeese", "closest: squeeze"),
    ],
    ids=lambda part: part if isinstance(part, str) else "",
)
def test_a_missing_name_is_an_error_that_says_what_is_closest(module: object, name: str, closest: str):
    with pytest.raises(AttributeError, match=f"has no '{name}' in this façade") as caught:
        getattr(module, name)
    assert str(caught.value).split("in this façade; ")[1].startswith(closest)
    assert isinstance(caught.value, (AppError, MissingNameError))


def test_hasattr_works_and_is_fast():
    """Optimisers and programs ask Tensors for attributes that these need not have."""
    assert hasattr(paddle, "tanh")
    assert not hasattr(paddle, "cuda")
    assert getattr(paddle, "cuda", None) is None
    x = torch.ones(1)
    asked = timeit(lambda: hasattr(x, "squeese"), number=1000)
    assert asked < 1000 * timeit(lambda: difflib.get_close_matches("squeese", dir(x)), number=3) / 30


def test_a_missing_name_in_a_traced_function_is_an_error_with_its_line():
    @paddle.jit.to_static
    def function(x: object) -> object:
        return paddle.xyzzy(x)

    with pytest.raises(AttributeError, match=r"(?s)paddle has no 'xyzzy'.*test_facade.py:\d+: return paddle.xyzzy"):
        function(paddle.ones([1]))


# Arguments

X, P = torch.ones(1, 2), paddle.ones([1, 2])
MISSPELT: list[Callable[[], Any]] = [
    lambda: torch.sum(X, mispelt=0),
    lambda: X.mean(mispelt=0),
    lambda: torch.cat([X], mispelt=0),
    lambda: torch.zeros(2, mispelt=1),
    lambda: X.to(mispelt=1),
    lambda: nn.Linear(1, 1).to(mispelt=1),
    lambda: nn.functional.relu(X, mispelt=1),
    lambda: nn.functional.mse_loss(X, X, mispelt=1),
    lambda: nn.functional.embedding(torch.tensor([0]), X, max_norm=1.0),
    lambda: torch.optim.Adam([X], mispelt=0.1),
    lambda: paddle.sum(P, mispelt=0),
    lambda: paddle.nn.functional.dropout(P, mispelt=0.5),
    lambda: paddle.nn.functional.embedding(paddle.to_tensor([0]), P, max_norm=1.0),
    lambda: fluid.layers.softmax(P, mispelt=1),
    lambda: fluid.layers.reduce_sum(P, mispelt=0),
    lambda: fluid.layers.cross_entropy(input=P, labels=P),
    lambda: paddle.static.CompiledProgram(paddle.static.Program()).with_data_parallel(mispelt=1),
]


@pytest.mark.parametrize("call", MISSPELT, ids=map(str, range(len(MISSPELT))))
def test_a_misspelt_keyword_is_an_error(call: Callable[[], Any]):
    with pytest.raises((TypeError, ValueError, AppError), match=r"mispelt|max_norm|'label'"):
        call()


TAKE_ANY_KEYWORD = {"Identity", "Tensor", "init_process_group"}
NEED_A_SIZE = {"ones", "zeros", "rand", "randn", "empty"}


@pytest.mark.parametrize("root", FACADES)
def test_every_function_and_class_refuses_a_misspelt_keyword_alone(root: str):
    for module, names in coverage(root).items():
        for name in {*names} - TAKE_ANY_KEYWORD - NEED_A_SIZE:
            value = getattr(sys.modules[f"app.compat.{module}"], name)
            if callable(value) and not (isinstance(value, type) and issubclass(value, BaseException)):
                with pytest.raises((TypeError, ValueError, AppError)) as caught:
                    value(mispelt=1)
                assert re.search("mispelt|missing|needs its input|takes? no|not part of", str(caught.value)), name


# Lists of names


@pytest.mark.parametrize("root", FACADES)
def test_the_command_and_the_documentation_list_every_module_with_its_names(
    root: str, capsys: pytest.CaptureFixture[str]
):
    assert main(["run", "--coverage", root]) == 0
    shown = capsys.readouterr().out
    names = coverage(root)
    assert next(iter(names)).partition(".")[0] == root
    for module, offered in names.items():
        assert f"\n{module} ({len(offered)})\n" in f"\n{shown}"
        assert len(set(offered)) == len(offered)
    text = (ROOT / "docs" / "coverage" / f"{root}.txt").read_text(encoding="utf-8")
    assert text == listing(root) + "\n", f"run: python -m app run --coverage {root} > docs/coverage/{root}.txt"


def test_the_list_has_names_that_programs_of_each_kind_use():
    names = coverage("paddle")
    assert {"to_tensor", "no_grad", "enable_static", "batch"} <= set(names["paddle"])
    assert {"Linear", "Layer", "Sequential"} <= set(names["paddle.nn"])
    assert {"fc", "py_func", "cross_entropy", "accuracy"} <= set(names["paddle.fluid.layers"])
