"""Paddle's guides and the Paddle book run unmodified, where checkouts of them are in the folder OPSMITH_TUTORIALS.

The folder holds github.com/PaddlePaddle/docs and github.com/PaddlePaddle/book, called `docs` and `book`.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
CHECKOUTS = Path(os.environ.get("OPSMITH_TUTORIALS", "-")).absolute()
needs_checkouts = pytest.mark.skipif(
    not (CHECKOUTS / "docs").is_dir() or not (CHECKOUTS / "book").is_dir(),
    reason="OPSMITH_TUTORIALS names no folder with checkouts of PaddlePaddle/docs and PaddlePaddle/book",
)


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


def run(arguments: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "app", "run", *arguments],
        cwd=folder,
        env={**os.environ, "OPSMITH_DATA": "sample", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
@needs_checkouts
@pytest.mark.parametrize("guide", GUIDES, ids=[Path(guide.path).stem for guide in GUIDES])
def test_a_guide_runs_unmodified(guide: Guide, tmp_path: Path):
    page = CHECKOUTS / "docs" / "docs" / "guides" / guide.path
    script = str(Path(__file__).with_name("in_blocks.py"))
    done = run([script, str(page), str(tmp_path), *map(str, guide.blocks)], tmp_path)
    assert done.returncode == 0, done.stderr
    refused = re.findall(r"refused in (\d+) at \d+: (.*)", done.stdout)
    assert [int(number) for number, _ in refused] == [number for number, _ in guide.refused]
    for (_, sentence), (_, words) in zip(refused, guide.refused, strict=True):
        assert words in sentence
    if guide.figure:
        low, high = guide.between
        assert low <= float(re.findall(guide.figure, done.stdout)[-1]) <= high


@needs_checkouts
@pytest.mark.parametrize(
    ("network", "least"),
    [("softmax_regression", 80.0), ("multilayer_perceptron", 86.0), ("convolutional_neural_network", 93.0)],
)
@pytest.mark.slow
def test_the_book_recognises_digits(network: str, least: float, tmp_path: Path):
    text = (CHECKOUTS / "book" / "02.recognize_digits" / "train.py").read_text(encoding="utf-8")
    program = tmp_path / "train.py"
    program.write_text(re.sub(r"(?m)^(\s*predict = ).*", rf"\g<1>{network!r}", text), encoding="utf-8")
    done = run([str(program), "--num_epochs", "1"], tmp_path)
    found = re.findall(r"classification accuracy is ([\d.]+)%", done.stdout)
    assert found, done.stderr
    assert float(found[0]) >= least
    assert "infer_3.png" in done.stderr  # the program then looks for a picture beside it
