"""Published tutorials run unmodified, where the folder OPSMITH_TUTORIALS holds checkouts of their repositories.

These are github.com/pytorch/examples and tutorials, and github.com/PaddlePaddle/docs and book, under their last names.
"""

from __future__ import annotations

import importlib.util
import os
import re
from pathlib import Path
from typing import NamedTuple

import pytest
from pytorch_tutorials import IN_BLOCKS, TUTORIALS, Tutorial, figure_of, make_data, run, run_script

CHECKOUTS = Path(os.environ.get("OPSMITH_TUTORIALS", "-")).absolute()


def needs(*names: str) -> pytest.MarkDecorator:
    """Skip a test without these checkouts."""
    missing = [name for name in names if not (CHECKOUTS / name).is_dir()]
    return pytest.mark.skipif(bool(missing), reason=f"OPSMITH_TUTORIALS names no folder with checkouts of {missing}")


def assert_between(figure: float | None, between: tuple[float, float]) -> None:
    low, high = between
    assert figure is not None
    assert low <= figure <= high


# PyTorch


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("tutorials")
    make_data(made)
    return made


@pytest.mark.slow
@needs("examples", "tutorials")
@pytest.mark.parametrize("tutorial", TUTORIALS, ids=[tutorial.name for tutorial in TUTORIALS])
def test_a_tutorial_of_pytorch_runs_unmodified(tutorial: Tutorial, folder: Path):
    for package in tutorial.needs:
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"it imports {package}, which comes with the extra `tutorials`")
    done = run(tutorial, CHECKOUTS, folder)
    assert done.returncode == 0, done.stderr
    refused = re.findall(r"refused in \d+ at \d+: (.*)", done.stdout)
    for sentence, words in zip(refused, tutorial.refused, strict=True):
        assert re.search(words, sentence)
    if tutorial.figure:
        assert_between(figure_of(tutorial.figure, done.stdout), tutorial.between)


def test_the_data_is_where_tutorials_look(folder: Path):
    assert (folder / "run" / "data" / "FashionMNIST" / "raw" / "t10k-labels-idx1-ubyte").stat().st_size == 2008
    assert (folder / "run" / "data" / "mnist" / "mnist.pkl.gz").is_file()


# Paddle


class Guide(NamedTuple):
    """A page of the guides."""

    path: str
    refused: tuple[tuple[int, str], ...] = ()
    """The blocks that fail, with words of the errors."""
    blocks: tuple[int, int] = (0, 1000)
    figure: str = ""
    between: tuple[float, float] = (0.0, 0.0)


GUIDES = (
    Guide("beginner/quick_start_cn.ipynb", (), (3, 3), r"- acc: ([\d.]+)", (0.9, 1.0)),
    Guide(
        "custom_op/new_python_op_cn.md",
        ((5, "forward must return at least one Tensor"), (9, "SyntaxError"), (10, "SyntaxError")),
    ),
    Guide(
        "jit/basic_usage_cn.md",
        (
            (8, "there is no file"), (18, "'image' is not defined"), (21, "'train_step' is not defined"),
            (24, "has no input_spec"), (25, "no 'resnet50' in this façade"),
        ),
    ),
)  # fmt: skip


@pytest.mark.slow
@needs("docs", "book")
@pytest.mark.parametrize("guide", GUIDES, ids=[Path(guide.path).stem for guide in GUIDES])
def test_a_guide_of_paddle_runs_unmodified(guide: Guide, tmp_path: Path):
    page = CHECKOUTS / "docs" / "docs" / "guides" / guide.path
    done = run_script([str(IN_BLOCKS), str(page), str(tmp_path), *map(str, guide.blocks)], tmp_path)
    assert done.returncode == 0, done.stderr
    refused = re.findall(r"refused in (\d+) at \d+: (.*)", done.stdout)
    assert [int(number) for number, _ in refused] == [number for number, _ in guide.refused]
    for (_, sentence), (_, words) in zip(refused, guide.refused, strict=True):
        assert words in sentence
    if guide.figure:
        assert_between(figure_of(guide.figure, done.stdout), guide.between)


@pytest.mark.slow
@needs("docs", "book")
@pytest.mark.parametrize(
    ("network", "least"),
    [("softmax_regression", 80.0), ("multilayer_perceptron", 86.0), ("convolutional_neural_network", 93.0)],
)
def test_the_book_of_paddle_recognises_digits(network: str, least: float, tmp_path: Path):
    text = (CHECKOUTS / "book" / "02.recognize_digits" / "train.py").read_text(encoding="utf-8")
    program = tmp_path / "train.py"
    program.write_text(re.sub(r"(?m)^(\s*predict = ).*", rf"\g<1>{network!r}", text), encoding="utf-8")
    done = run_script([str(program), "--num_epochs", "1"], tmp_path)
    assert_between(figure_of(r"classification accuracy is ([\d.]+)%", done.stdout), (least, 100.0))
    assert "infer_3.png" in done.stderr  # the program then looks for a picture beside it
