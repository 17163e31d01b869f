"""Operators that leave: whether the tests that are written with them pass, and how fast they are. For docs/bridge.md.

python -m benchmarks.bridge [tests | speed | jax | mnist] (some ten minutes for all; it needs the extra bench)
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

import app
from app.bridge.out.writing import TARGETS, write
from app.errors import ExportError
from benchmarks import machine, report
from benchmarks.process import ROOT

sys.path.append(str(ROOT / "tests"))

PAGE = ROOT / "docs" / "bridge.md"
PARTS = ("tests", "speed", "jax", "mnist")
EPOCHS = 3
SECONDS = 3.0
"""How long each pair is timed."""
WITHOUT = (
    "import os, sys; os.environ['PYTEST_DISABLE_PLUGIN_AUTOLOAD'] = '1'; "
    "sys.modules['opsmith'] = sys.modules['app'] = None; "
    "import pytest; sys.exit(pytest.main(sys.argv[1:]))"
)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bridge", description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="by default all")
    parts = parser.parse_args().parts or PARTS
    made = {"tests": tests_table, "speed": speed_table, "jax": jax_table, "mnist": mnist_text}
    texts = {part: made[part]() for part in parts}
    texts["machine"] = report.machine_text(machine.describe(), sample=False)
    for name, text in texts.items():
        print(f"\n{text}")
        report.replace_between(PAGE, f"bridge: {name}", text)
    return 0


# Tests


def tests_table() -> str:
    from bridge.out.operators_that_leave import OPERATORS

    lines = [f"| Operator | {' | '.join(TARGETS.values())} |", "| --- |" + " --- |" * len(TARGETS)]
    for name, (operator, examples) in OPERATORS.items():
        cells = [_tried(target, operator, examples) for target in TARGETS]
        lines.append(f"| `{name}` | {' | '.join(cells)} |")
        print(lines[-1], flush=True)
    return "\n".join(lines)


def _tried(target: str, operator: Any, examples: Iterable[np.ndarray]) -> str:
    """What became of an operator: its form and how many of its tests passed."""
    try:
        written = write(target, operator, list(examples), (-2.0, 2.0), "")
    except ExportError as error:
        return f"refused: {error}"
    with tempfile.TemporaryDirectory() as folder:
        for name, text in written.files.items():
            Path(folder, name).write_text(text, encoding="utf-8")
        options = ["-q", "-p", "no:cacheprovider", "-p", "no:opsmith", "-c", "/dev/null", "--rootdir", ".", "."]
        command = [sys.executable, "-P", "-c", WITHOUT, *options]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    counts = re.findall(r"(\d+) (passed|failed|error|skipped)", done.stdout)
    print(done.stdout if done.returncode else "", end="")
    forms = [form for form in ("expressions", "kernel") if form in written.notes[0]]
    second = "; no second derivative" if any("no second derivative" in note for note in written.notes) else ""
    return ": ".join([*forms, ", ".join(" ".join(count) for count in counts)]) + second


# Speed


def ratio(one: Callable[[], Any], other: Callable[[], Any]) -> float:
    """The ratio of the shortest times of two functions, called in turn: other processes only add to a time."""
    for _ in range(5):
        one(), other()
    times: list[tuple[float, float]] = []
    start = time.perf_counter()
    while time.perf_counter() - start < SECONDS or len(times) < 15:
        first = time.perf_counter()
        one()
        second = time.perf_counter()
        other()
        times.append((second - first, time.perf_counter() - second))
    return min(t for t, _ in times) / min(t for _, t in times)


def speed_table() -> str:
    import torch
    from bridge.out.operators_that_leave import OPERATORS

    torch.set_num_threads(1)
    by_hand = functions_by_hand()
    lines = ["| Operator | | 16 numbers | 65,536 numbers |", "| --- | --- | ---: | ---: |"]
    for name, how in [
        ("swish", "eager"),
        ("swish", "compiled"),
        ("relu", "eager"),
        ("softmax", "eager"),
        ("ema", "eager"),
    ]:
        operator, examples = OPERATORS[name]
        ours, theirs = app.bridge.to_torch(operator, *examples), by_hand[name]
        if how == "compiled":
            ours, theirs = (torch.compile(f, fullgraph=True) for f in (ours, theirs))
        found = []
        for side in (4, 256):
            x = torch.randn(side, side, requires_grad=True)
            found.append(ratio(*[lambda f=f, x=x: f(x).backward(torch.ones_like(x)) for f in (ours, theirs)]))
        form = "kernel" if name in ("softmax", "ema") else "expressions"
        lines.append(f"| `{name}` | {form}, {how} | {found[0]:.2f} | {found[1]:.2f} |")
        print(lines[-1], flush=True)
    return "\n".join(lines)


def functions_by_hand() -> dict[str, Callable[..., Any]]:
    """Functions of PyTorch as people write them, to compare with."""
    import torch

    class Swish(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            s = torch.sigmoid(x)
            ctx.save_for_backward(x, s)
            return x * s

        @staticmethod
        def backward(ctx, dy):
            x, s = ctx.saved_tensors
            return dy * s * (1 + x * (1 - s))

    class Relu(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.clamp(min=0)

        @staticmethod
        def backward(ctx, dy):
            (x,) = ctx.saved_tensors
            dx = dy.clone()
            dx[x < 0] = 0
            return dx

    class Softmax(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            e = torch.exp(x - x.amax(1, keepdim=True))
            y = e / e.sum(1, keepdim=True)
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, dy):
            (y,) = ctx.saved_tensors
            return y * (dy - (dy * y).sum(1, keepdim=True))

    class Ema(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, alpha=0.3):
            ctx.alpha, states = alpha, [x[:, 0]]
            for t in range(x.shape[1]):
                states.append(alpha * x[:, t] + (1 - alpha) * states[-1])
            return torch.stack(states[1:], 1)

        @staticmethod
        def backward(ctx, dy):
            state, dx = torch.zeros_like(dy[:, 0]), []
            for t in range(dy.shape[1] - 1, -1, -1):
                state = state + dy[:, t]
                dx.append(ctx.alpha * state)
                state = (1 - ctx.alpha) * state
            dx[-1] = dx[-1] + state
            return torch.stack(dx[::-1], 1)

    return {"swish": Swish.apply, "relu": Relu.apply, "softmax": Softmax.apply, "ema": Ema.apply}


def jax_table() -> str:
    """Functions of JAX under jit, beside its own. It has to run before JAX has threads."""
    os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    import jax
    from bridge.out.operators_that_leave import OPERATORS

    def ema_by_scan(x, alpha=0.3):
        def step(state, value):
            state = alpha * value + (1 - alpha) * state
            return state, state

        return jax.lax.scan(step, x[:, 0], x.T)[1].T

    def both_ways(function):
        def run(x):
            y, pull = jax.vjp(function, x)
            return y, pull(jax.numpy.ones_like(y))

        return jax.jit(run)

    lines = ["| Operator | | 16 numbers | 65,536 numbers |", "| --- | --- | ---: | ---: |"]
    for name, own, theirs in [
        ("swish", "`jax.nn.silu`", jax.nn.silu),
        ("relu", "`jax.nn.relu`", jax.nn.relu),
        ("gelu", "`jax.nn.gelu`", lambda x: jax.nn.gelu(x, approximate=False)),
        ("softmax", "`jax.nn.softmax`", lambda x: jax.nn.softmax(x, axis=1)),
        ("ema", "`jax.lax.scan`", ema_by_scan),
    ]:
        operator, examples = OPERATORS[name]
        functions = [both_ways(f) for f in (app.bridge.to_jax(operator, *examples), theirs)]
        found = []
        for side in (4, 256):
            x = jax.numpy.asarray(np.random.default_rng(0).normal(size=(side, side)), "float32")
            found.append(ratio(*[lambda f=f, x=x: jax.block_until_ready(f(x)) for f in functions]))
        form = "kernel" if name in ("softmax", "ema") else "expressions"
        lines.append(f"| `{name}` | {form}, over {own} | {found[0]:.2f} | {found[1]:.2f} |")
        print(lines[-1], flush=True)
    return "\n".join(lines)


# MNIST


def mnist_text() -> str:
    import torch
    from bridge.out.operators_that_leave import relu

    torch.set_num_threads(1)
    data = app.data.load()
    images, test_images = (torch.tensor(i).float() / 255 for i in (data.train_images, data.test_images))
    labels, test_labels = torch.tensor(data.train_labels), torch.tensor(data.test_labels)
    networks = [_network(f) for f in (app.bridge.to_torch(relu), torch.relu)]
    times: list[list[float]] = [[], []]
    for epoch in range(EPOCHS):
        order = torch.randperm(len(images), generator=torch.Generator().manual_seed(epoch))
        for place, network in enumerate(networks):
            start = time.perf_counter()
            for batch in order.split(64):
                network.optimizer.zero_grad()
                torch.nn.functional.cross_entropy(network(images[batch]), labels[batch]).backward()
                network.optimizer.step()
            times[place].append(time.perf_counter() - start)
    accuracies = [(n(test_images).argmax(1) == test_labels).float().mean().item() for n in networks]
    same = all(torch.equal(a, b) for a, b in zip(*(n.parameters() for n in networks), strict=True))
    return (
        f"MNIST, 784-100-10, {EPOCHS} epochs in turn: an epoch takes {min(times[0]) / min(times[1]):.2f} times as long "
        f"as with `torch.relu`; test accuracies {100 * accuracies[0]:.2f} % and {100 * accuracies[1]:.2f} %, weights "
        f"{'equal bit for bit' if same else 'not equal'}."
    )


def _network(activation: Callable[..., Any]) -> Any:
    import torch

    class Network(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.hidden, self.out = torch.nn.Linear(784, 100), torch.nn.Linear(100, 10)

        def forward(self, x):
            return self.out(activation(self.hidden(x)))

    torch.manual_seed(0)
    network = Network()
    network.optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    return network


if __name__ == "__main__":
    sys.exit(main())
