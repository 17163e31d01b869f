"""Published tutorials run unmodified, where the folder OPSMITH_TUTORIALS holds checkouts of their repositories.

These are github.com/pytorch/tutorials, github.com/jcjohnson/pytorch-examples and github.com/PaddlePaddle/docs, under
their last names.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

CHECKOUTS = Path(os.environ.get("OPSMITH_TUTORIALS", "-")).absolute()
ROOT = Path(__file__).parents[2]
IN_BLOCKS = Path(__file__).with_name("in_blocks.py")


class Tutorial(NamedTuple):
    """A file, and the figure that it prints last."""

    path: str
    figure: str = ""
    """A pattern whose first group is the figure; the last match counts."""
    between: tuple[float, float] = (0.0, 0.0)
    """Where the figure lies. Tutorials start from random numbers, most without a seed."""
    refused: tuple[str, ...] = ()
    """Words of the errors of blocks that cannot run; such a file is run block by block."""


AUTOGRAD, TWO_LAYERS = "tutorials/beginner_source/examples_autograd/", "pytorch-examples/"
TUTORIALS = (
    Tutorial("tutorials/beginner_source/basics/autogradqs_tutorial.py"),
    Tutorial(AUTOGRAD + "polynomial_autograd.py", r"(?m)^1999 ([\d.]+)", (8.8, 30)),
    Tutorial(AUTOGRAD + "polynomial_custom_function.py", r"(?m)^1999 ([\d.]+)", (8.94, 8.95)),
    Tutorial(TWO_LAYERS + "tensor/two_layer_net_tensor.py", r"(?m)^499 ([\d.e-]+)", (0.0, 1.0)),
    Tutorial(TWO_LAYERS + "autograd/two_layer_net_autograd.py", r"(?m)^499 ([\d.e-]+)", (0.0, 1.0)),
    Tutorial(TWO_LAYERS + "autograd/two_layer_net_custom_function.py", r"(?m)^499 ([\d.e-]+)", (0.0, 1.0)),
    Tutorial("tutorials/advanced_source/numpy_extensions_tutorial.py", r"gradients correct:  (True)"),
    Tutorial(
        "tutorials/intermediate_source/custom_function_double_backward_tutorial.rst", refused=("torchviz",) * 5
    ),
    Tutorial(
        "docs/docs/guides/custom_op/new_python_op_cn.md",
        refused=("forward must return at least one Tensor", "SyntaxError", "SyntaxError"),
    ),
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("tutorial", TUTORIALS, ids=[Path(tutorial.path).stem for tutorial in TUTORIALS])
def test_a_published_tutorial_runs_unmodified(tutorial: Tutorial, tmp_path: Path):
    script = CHECKOUTS / tutorial.path
    if not script.is_file():
        pytest.skip(f"OPSMITH_TUTORIALS names no folder with {tutorial.path}")
    arguments = [str(IN_BLOCKS), str(script), str(tmp_path)] if tutorial.refused else [str(script)]
    done = subprocess.run(
        [sys.executable, "-m", "app", "run", *arguments],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    refused = re.findall(r"refused in \d+ at \d+: (.*)", done.stdout)
    for sentence, reason in zip(refused, tutorial.refused, strict=True):
        assert reason in sentence
    if tutorial.figure:
        figure = re.findall(tutorial.figure, done.stdout)[-1]
        assert figure == "True" or tutorial.between[0] <= float(figure) <= tutorial.between[1]
