"""Freed memory is kept where training is to come, and nowhere else: it is the process of whoever imports this."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from app.tensor.memory import keep_freed_memory

ROOT = Path(__file__).parents[2]


STATEMENTS = """
import app
from app.tensor.memory import keep_freed_memory as keep

def asked():
    print(keep.cache_info().currsize, end="")
    keep.cache_clear()

app.to_tensor([1.0], stop_gradient=False).backward(), asked()
app.enable_static(), app.optimizer.SGD(0.1), app.disable_static(), asked()
app.optimizer.SGD(0.1, parameters=app.nn.Linear(1, 1).parameters()), asked()
from app.compat import torch
torch.optim.SGD(torch.nn.Linear(1, 1).parameters(), 0.1), asked()
"""


def test_an_optimiser_of_tensors_asks_for_it():
    done = subprocess.run([sys.executable, "-c", STATEMENTS], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "0011"


@pytest.mark.parametrize(
    ("name", "value"), [("MALLOC_ARENA_MAX", "1"), ("GLIBC_TUNABLES", "glibc.malloc.trim_threshold=1")]
)
def test_what_the_environment_sets_is_left_as_it_is(monkeypatch: pytest.MonkeyPatch, name: str, value: str):
    monkeypatch.setenv(name, value)
    assert keep_freed_memory.__wrapped__() is False


def test_another_c_library_is_left_as_it_is(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("app.tensor.memory.ctypes.CDLL", lambda name: object())
    assert keep_freed_memory.__wrapped__() is False
