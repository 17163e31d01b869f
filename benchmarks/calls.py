"""What one call of a custom operator costs where every call is made from Python: tanh of 16 numbers, and back."""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

from benchmarks.process import in_turns, lines

SAMPLES, CALLS = 20, 1000


def numpy_alone() -> Callable[[], object]:
    import numpy as np

    x = np.random.default_rng(0).standard_normal((1, 16), np.float32)
    gradient = np.ones((1, 16), np.float32)

    def call() -> object:
        y = np.tanh(x)
        return np.multiply(gradient, np.subtract(1, np.square(y)))

    return call


def ours() -> Callable[[], object]:
    import app

    return _with_pylayer(app)


def paddle() -> Callable[[], object]:
    import paddle

    return _with_pylayer(paddle)


def _with_pylayer(framework: Any) -> Callable[[], object]:
    class Tanh(framework.autograd.PyLayer):
        @staticmethod
        def forward(ctx, x):
            y = framework.tanh(x)
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, dy):
            (y,) = ctx.saved_tensor()
            return dy * (1 - framework.square(y))

    x = framework.randn([1, 16], dtype="float32")
    x.stop_gradient = False
    gradient = framework.ones([1, 16])
    return lambda: Tanh.apply(x).backward(gradient)


def torch_function() -> Callable[[], object]:
    import torch

    class Tanh(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = torch.tanh(x)
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, dy):
            (y,) = ctx.saved_tensors
            return dy * (1 - torch.square(y))

    x = torch.randn(1, 16, requires_grad=True)
    gradient = torch.ones(1, 16)
    return lambda: Tanh.apply(x).backward(gradient)


CALLERS = {
    "The four NumPy functions of it alone, without a framework": numpy_alone,
    "**This project**, PyLayer": ours,
    "Paddle, PyLayer": paddle,
    "PyTorch, autograd.Function": torch_function,
}


def measure(rounds: int) -> list[dict[str, Any]]:
    """A row for each caller: microseconds of a call, in samples of many calls, in processes that take turns."""
    rows: list[dict[str, Any]] = [{"title": title, "problem": "", "us": []} for title in CALLERS]
    for turn, row in in_turns(rounds, rows):
        said, row["problem"] = lines(["benchmarks.calls", row["title"]])
        row["us"] += [us for _, line in said for us in line["us"]]
        found = row["problem"] or f"{statistics.median(row['us']):.1f} µs"
        print(f"  {turn}: {row['title']}: {found}", flush=True)
    return rows


def main(title: str) -> None:
    try:
        call = CALLERS[title]()
    except ModuleNotFoundError as error:
        print(json.dumps({"missing": error.name}))
        return
    _seconds(call)  # warms up
    print(json.dumps({"us": [_seconds(call) / CALLS * 1e6 for _ in range(SAMPLES)]}))


def _seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    for _ in range(CALLS):
        call()
    return time.perf_counter() - start


if __name__ == "__main__":
    main(*sys.argv[1:])
