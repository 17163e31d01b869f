"""An epoch of the seed's network (784-100-10, batches of 256) as a Program, and in the forms of `to_static`.

    python benchmarks/traced.py

The forms take turns, and each is compared with the Program's epoch of the same round, so that a machine whose speed
drifts slows all alike. The images are random numbers: how long an epoch takes does not depend on them.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import app
from app.data import Batches
from app.data.batches import epoch_order
from app.graph import Program, program_guard, static_mode
from app.nn import functional

ROUNDS = 12
IMAGES, BATCH = 60_000, 256


class Net(app.nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.hidden, self.scores = app.nn.Linear(784, 100), app.nn.Linear(100, 10)

    def forward(self, image: Any) -> Any:
        return self.scores(functional.relu(self.hidden(image.astype("float32") / 127.5 - 1.0)))


def made() -> tuple[Net, Any]:
    net = Net()
    return net, app.optimizer.SGD(0.1, parameters=net.parameters())


def as_program(batches: Batches) -> Callable[[], Any]:
    """The network built as a Program, an epoch in one call of the Executor."""
    main, startup = Program(), Program()
    with program_guard(main, startup), static_mode():
        image, label = app.static.data("image", [None, 784], "uint8"), app.static.data("label", [None], "int64")
        loss = functional.cross_entropy(Net()(image), label)
        app.optimizer.SGD(0.1).minimize(loss)
    executor, scope = app.static.Executor(engine="compiled"), app.static.Scope()
    executor.run(startup, scope=scope)
    return lambda: executor.train_from_dataset(main, batches, [image, label], [loss], scope)


def steps(net: Net, optimizer: Any) -> Callable[[Any, Any], Any]:
    """One step of training, as eager code has it."""

    def step(image: Any, label: Any) -> Any:
        loss = functional.cross_entropy(net(image), label)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        return loss

    return step


def main() -> None:
    draw = np.random.default_rng(0)
    images, labels = draw.integers(0, 256, (IMAGES, 784), dtype=np.uint8), draw.integers(0, 10, IMAGES)
    batches = Batches(images, labels, epoch_order(0, 0, IMAGES), BATCH)
    step = app.jit.to_static(steps(*made()))
    net, optimizer = made()
    on_the_tape = steps(app.jit.to_static(net), optimizer)
    forms: dict[str, Callable[[], Any]] = {
        "Program, an epoch in one call": as_program(batches),
        "to_static(step), called for each batch": lambda: [step(*map(app.to_tensor, batch)) for batch in batches],
        "to_static(net), eager loss and optimiser": lambda: [on_the_tape(*map(app.to_tensor, b)) for b in batches],
    }
    seconds: dict[str, list[float]] = {name: [] for name in forms}
    for run in forms.values():
        run()  # compiles
    for _ in range(ROUNDS):
        for name, run in forms.items():
            start = time.perf_counter()
            run()
            seconds[name].append(time.perf_counter() - start)
    first = next(iter(seconds.values()))
    print(f"{'form':42}{'best':>8}{'median':>8}  over the Program")
    for name, each in seconds.items():
        ratio = statistics.median(own / base for own, base in zip(each, first, strict=True))
        print(f"{name:42}{min(each):8.3f}{statistics.median(each):8.3f}  {ratio:.2f}")


if __name__ == "__main__":
    main()
