"""The published tutorials of PyTorch run unmodified, where a checkout of them is named by OPSMITH_TUTORIALS."""

from __future__ import annotations

import importlib.util
import os
import re
from pathlib import Path

import pytest
from pytorch_tutorials import TUTORIALS, Tutorial, figure_of, make_data, run

CHECKOUTS = os.environ.get("OPSMITH_TUTORIALS", "")
needs_checkouts = pytest.mark.skipif(
    not CHECKOUTS, reason="OPSMITH_TUTORIALS names no folder with checkouts of pytorch/examples and pytorch/tutorials"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("tutorials")
    make_data(made)
    return made


@pytest.mark.slow
@needs_checkouts
@pytest.mark.parametrize("tutorial", TUTORIALS, ids=[tutorial.name for tutorial in TUTORIALS])
def test_a_tutorial_runs_unmodified(tutorial: Tutorial, folder: Path):
    for package in tutorial.needs:
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"it imports {package}, which comes with the extra `tutorials`")
    done = run(tutorial, Path(CHECKOUTS).resolve(), folder)
    assert done.returncode == 0, done.stderr
    refused = re.findall(r"refused in \d+ at \d+: (.*)", done.stdout)
    for sentence, words in zip(refused, tutorial.refused, strict=True):
        assert re.search(words, sentence)
    if tutorial.figure:
        figure, (low, high) = figure_of(tutorial, done.stdout), tutorial.between
        assert figure is not None
        assert low <= figure <= high


def test_the_data_is_where_tutorials_look(folder: Path):
    assert (folder / "run" / "data" / "FashionMNIST" / "raw" / "t10k-labels-idx1-ubyte").stat().st_size == 2008
    assert (folder / "run" / "data" / "mnist" / "mnist.pkl.gz").is_file()
