"""Random functions in PyTorch's words: traced, they give the values and gradients of the eager run to the last bit."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from torch_programs import Program

import app
from app.compat import torch


def outcome(program: Program, file: str, backend: str | None) -> list[Any]:
    """The results of a function and the gradients of its leaves; with a backend, of the traced function."""
    names, leaves = program.made(program.source, file)
    function = names["function"] if backend is None else app.jit.to_static(names["function"], backend=backend)
    for _ in range(2):  # the second call of a traced function does not trace
        for leaf in leaves.values():
            leaf.grad = None
        loss, *results = function(leaves["x"], leaves["y"])
        if loss.requires_grad:
            loss.backward()
    assert all(isinstance(value, torch.Tensor) for value in results)
    gradients = [None if leaf.grad is None else leaf.grad.numpy() for leaf in leaves.values()]
    return [*(value.detach().numpy() for value in (loss, *results)), *gradients]


def check(seed: int, backend: str = "reference", exact: bool = True) -> None:
    """A function gives the same eagerly and traced."""
    program = Program(seed)
    with TemporaryDirectory() as folder:
        file = Path(folder) / f"program_{seed}.py"
        file.write_text(program.source)
        expected, found = (outcome(program, str(file), b) for b in (None, backend))
    for a, b in zip(expected, found, strict=True):
        missing = np.float32(0)  # a gradient of zeros may be missing eagerly, where no operator was recorded
        a, b = (missing if v is None else v for v in (a, b))
        if exact:
            np.testing.assert_array_equal(b, a, err_msg=program.source)
        else:
            np.testing.assert_allclose(b, a, rtol=1e-4, atol=1e-5, err_msg=program.source)


@pytest.mark.parametrize("first", range(0, 40, 10))
def test_traced_functions_give_what_eager_ones_give(first: int):
    for seed in range(first, first + 10):
        check(seed)


def test_so_do_compiled_ones():
    check(3, "compiled", exact=False)
