"""Run the published tutorials of PyTorch, unmodified, here and with PyTorch itself, on the same small data.

    python tests/tutorials/pytorch_tutorials.py FOLDER [PYTHON [NAME ...]]

prints the figures of the table in docs/tutorials.md, or of the tutorials named. FOLDER holds checkouts of
github.com/pytorch/examples and github.com/pytorch/tutorials, called `examples` and `tutorials`; PYTHON is a Python that
has torch and torchvision.
"""

from __future__ import annotations

import gzip
import os
import pickle
import re
import struct
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np

ROOT = Path(__file__).parents[2]
IN_BLOCKS = Path(__file__).with_name("in_blocks.py")


class Tutorial(NamedTuple):
    """A file, the arguments that make it quick, and the figure that it prints last."""

    path: str
    arguments: tuple[str, ...] = ()
    figure: str = ""
    """A pattern whose first group is the figure; the last match counts."""
    between: tuple[float, float] = (0.0, 0.0)
    """Where the figure lies, here and in PyTorch. Tutorials start from random numbers, most without a seed."""
    refused: tuple[str, ...] = ()
    """Words of the sentences with which blocks are refused; such a file is run block by block."""
    needs: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """What to call it."""
        path = Path(self.path)
        return path.parent.name if path.stem == "main" else path.stem.removesuffix("_tutorial")


BASICS, BLITZ = "tutorials/beginner_source/basics/", "tutorials/beginner_source/blitz/"
AUTOGRAD, NN = "tutorials/beginner_source/examples_autograd/", "tutorials/beginner_source/examples_nn/"
LOSS = r"(?m)^1999 ([\d.]+)"
NO_NETWORK = "is not part of this façade, which has no trained networks"
TUTORIALS = (
    Tutorial("examples/mnist/main.py", ("--epochs", "1"), r"Accuracy: \d+/\d+ \((\d+)%\)", (93, 99)),
    Tutorial(
        "examples/mnist_forward_forward/main.py",
        ("--epochs", "150", "--train_size", "1000", "--test_size", "1000"),
        r"test error: ([\d.]+)",
        (0.1, 0.9),
    ),
    Tutorial(BASICS + "quickstart_tutorial.py", (), r"Avg loss: ([\d.]+)", (1.9, 2.3)),
    Tutorial(BASICS + "tensorqs_tutorial.py"),
    Tutorial(BASICS + "data_tutorial.py", needs=("pandas",)),
    Tutorial(BASICS + "transforms_tutorial.py"),
    Tutorial(BASICS + "buildmodel_tutorial.py"),
    Tutorial(BASICS + "autogradqs_tutorial.py"),
    Tutorial(BASICS + "optimization_tutorial.py", (), r"Avg loss: ([\d.]+)", (1.9, 2.3)),
    Tutorial(
        BASICS + "saveloadrun_tutorial.py",
        refused=(NO_NETWORK, NO_NETWORK, "'model' is not defined", "no file model.pth"),
    ),
    Tutorial("tutorials/beginner_source/nn_tutorial.py", (), r"(?m)^1 ([\d.]+)$", (0.15, 2.31), needs=("IPython",)),
    Tutorial(AUTOGRAD + "polynomial_autograd.py", (), LOSS, (8.8, 30)),
    Tutorial(AUTOGRAD + "polynomial_custom_function.py", (), LOSS, (8.94, 8.95)),
    Tutorial(NN + "polynomial_nn.py", (), LOSS, (8.8, 30)),
    Tutorial(NN + "polynomial_optim.py", (), LOSS, (8.8, 10)),
    Tutorial(NN + "polynomial_module.py", (), LOSS, (8.8, 30)),
    Tutorial(NN + "dynamic_net.py", (), r"(?m)^29999 ([\d.]+)", (8, 60)),
    Tutorial(
        BLITZ + "autograd_tutorial.py",
        refused=(
            NO_NETWORK, "'model' is not defined", "'prediction' is not defined", "'model' is not defined",
            "'optim' is not defined", NO_NETWORK, "'model' is not defined", "'model' is not defined",
        ),
    ),
    Tutorial(BLITZ + "neural_networks_tutorial.py"),
    Tutorial(BLITZ + "tensor_tutorial.py"),
    Tutorial("tutorials/advanced_source/numpy_extensions_tutorial.py"),
    Tutorial("tutorials/advanced_source/python_custom_ops.py", needs=("IPython",)),
    Tutorial(
        "tutorials/intermediate_source/custom_function_double_backward_tutorial.rst",
        refused=("torchviz",) * 5,
    ),
)  # fmt: skip


def make_data(folder: Path) -> None:
    """Put the project's sample of MNIST where each tutorial looks for its data."""
    with np.load(ROOT / "data" / "mnist-sample.npz") as sample:
        parts = {
            begin: (sample[f"{part}_images"].reshape(-1, 28, 28), sample[f"{part}_labels"].astype("uint8"))
            for begin, part in (("train", "train"), ("t10k", "test"))
        }
    for data, name in product((folder / "data", folder / "run" / "data"), ("MNIST", "FashionMNIST")):
        raw = data / name / "raw"
        raw.mkdir(parents=True)
        for begin, (images, labels) in parts.items():
            header = struct.pack(">BBBB3I", 0, 0, 8, 3, *images.shape)
            (raw / f"{begin}-images-idx3-ubyte").write_bytes(header + images.tobytes())
            header = struct.pack(">BBBBI", 0, 0, 8, 1, len(labels))
            (raw / f"{begin}-labels-idx1-ubyte").write_bytes(header + labels.tobytes())
    pickled = folder / "run" / "data" / "mnist" / "mnist.pkl.gz"
    pickled.parent.mkdir()
    flat = [
        (images.reshape(-1, 784).astype("float32") / 256, labels.astype("int64")) for images, labels in parts.values()
    ]
    with gzip.open(pickled, "wb", compresslevel=1) as file:
        pickle.dump((*flat, None), file, protocol=2)


def run_script(arguments: Sequence[str], folder: Path, python: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run a script in a folder: here, or with another Python."""
    command = [sys.executable, "-m", "app", "run"] if python is None else [python, "-W", "ignore"]
    path = str(ROOT) if python is None else ""
    return subprocess.run(
        [*command, *arguments],
        cwd=folder,
        env={**os.environ, "OPSMITH_DATA": "sample", "MPLBACKEND": "agg", "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )


def run(
    tutorial: Tutorial, checkouts: Path, folder: Path, python: str | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a tutorial in a folder that `make_data` filled: here, or with the PyTorch of another Python."""
    script = str(checkouts / tutorial.path)
    in_blocks = [str(IN_BLOCKS), script, str(folder)]
    return run_script(in_blocks if tutorial.refused else [script, *tutorial.arguments], folder / "run", python)


def figure_of(pattern: str, printed: str) -> float | None:
    """The figure that a tutorial printed last."""
    found = re.findall(pattern, printed) if pattern else []
    return float(found[-1]) if found else None


def main(checkouts: Path, python: str, names: Sequence[str]) -> None:
    """Print a row for each tutorial."""
    with tempfile.TemporaryDirectory() as there:
        make_data(Path(there))
        for tutorial in TUTORIALS:
            if names and tutorial.name not in names:
                continue
            here = run(tutorial, checkouts, Path(there))
            real = run(tutorial, checkouts, Path(there), python) if python else None
            figures = [figure_of(tutorial.figure, done.stdout) for done in (here, real) if done is not None]
            refused = here.stdout.count("refused in")
            print(f"| {tutorial.name} | {here.returncode or 'runs'}, {refused} refused | {figures} |", flush=True)
            print(here.stderr[-500:], end="")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), "".join(sys.argv[2:3]), sys.argv[3:])
