"""An epoch of LeNet beside other frameworks: `python -m benchmarks --lenet`.

Everyone trains the network of configs/lenet.yaml with plain SGD on pixels from 0 to 1, from batches picked in a random
order, in a process of its own; the processes take turns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.process import in_turns, run
from benchmarks.work import CLASSES, Data, Epoch, Work, run_epochs

BATCHES = 64, 256
EPOCHS = 3
"""In the first of which everyone compiles or warms up: it is not counted."""
RATE = 0.05


# Contenders: each gives the epochs of some work


def ours(data: Data, work: Work, operator: str = "custom.relu") -> Iterator[Epoch]:
    from app.data import Batches, epoch_order
    from app.run.activation import find_activation
    from app.run.config import load_config
    from app.run.learners import make_learner
    from app.run.options import CONFIGS

    settings = [f"seed={work.seed}", f"train.batch_size={work.batch}", f"train.learning_rate={work.rate}"]
    settings += ["report=false", "train.optimizer=sgd", "train.schedule=constant", "train.momentum=0"]
    config = load_config(CONFIGS / "lenet.yaml", [*settings, "train.weight_decay=0"])
    learner = make_learner(config, find_activation(operator), (28, 28))
    tests = Batches(data.test_images, data.test_labels, None, 1000)
    orders = (epoch_order(work.seed, epoch, len(data.train_images)) for epoch in range(work.epochs))

    def train() -> None:
        learner.train(Batches(data.train_images, data.train_labels, next(orders), work.batch))

    return run_epochs(work, train, lambda: float(learner.measure(tests)[1].mean()))


def torch_eager(data: Data, work: Work, prepare: Callable[[Any], Any] = lambda step: step) -> Iterator[Epoch]:
    import torch
    from torch import nn

    torch.manual_seed(work.seed)
    images, tests = torch.from_numpy(pictures(data.train_images)), torch.from_numpy(pictures(data.test_images))
    labels, truth = torch.from_numpy(data.train_labels), torch.from_numpy(data.test_labels)
    model = nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, CLASSES),
    )  # fmt: skip
    loss, optimizer = nn.CrossEntropyLoss(), torch.optim.SGD(model.parameters(), lr=work.rate)

    @prepare
    def step(image: Any, label: Any) -> None:
        optimizer.zero_grad()
        loss(model(image), label).backward()
        optimizer.step()

    def train() -> None:
        for rows in torch.randperm(len(images)).split(work.batch):
            step(images.index_select(0, rows), labels.index_select(0, rows))

    def test() -> float:
        with torch.no_grad():
            return float((model(tests).argmax(1) == truth).float().mean())

    return run_epochs(work, train, test)


def torch_compile(data: Data, work: Work) -> Iterator[Epoch]:
    import torch

    return torch_eager(data, work, prepare=torch.compile(dynamic=False))


def jax(data: Data, work: Work) -> Iterator[Epoch]:
    import jax
    import jax.numpy as jnp

    images, tests = jnp.asarray(pictures(data.train_images)), jnp.asarray(pictures(data.test_images))
    labels, truth = jnp.asarray(data.train_labels), jnp.asarray(data.test_labels)
    random = np.random.default_rng(work.seed)
    shapes = [(6, 1, 5, 5), (16, 6, 5, 5), (400, 120), (120, 84), (84, CLASSES)]
    layers: Any = [(_kaiming(random, shape), jnp.zeros(shape[0 if len(shape) == 4 else 1])) for shape in shapes]

    def scores(layers: Any, x: Any) -> Any:
        for (w, b), padding in zip(layers[:2], ("SAME", "VALID"), strict=True):
            x = jax.nn.relu(jax.lax.conv_general_dilated(x, w, (1, 1), padding) + b[:, None, None])
            x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")
        x = x.reshape(len(x), -1)
        for w, b in layers[2:-1]:
            x = jax.nn.relu(x @ w + b)
        w, b = layers[-1]
        return x @ w + b

    def loss(layers: Any, image: Any, label: Any) -> Any:
        logs = jax.nn.log_softmax(scores(layers, image))
        return -jnp.take_along_axis(logs, label[:, None], axis=1).mean()

    @partial(jax.jit, donate_argnums=0)
    def step(layers: Any, images: Any, labels: Any, rows: Any) -> Any:
        gradients = jax.grad(loss)(layers, images[rows], labels[rows])
        return jax.tree.map(lambda value, gradient: value - work.rate * gradient, layers, gradients)

    @jax.jit
    def accuracy(layers: Any) -> Any:
        return (scores(layers, tests).argmax(1) == truth).mean()

    def train() -> None:
        nonlocal layers
        for rows in _orders(random, data, work):
            layers = step(layers, images, labels, rows)
        jax.block_until_ready(layers)

    return run_epochs(work, train, lambda: float(accuracy(layers)))


def paddle(data: Data, work: Work) -> Iterator[Epoch]:
    import paddle

    paddle.enable_static()
    paddle.seed(work.seed)
    images, labels, tests = pictures(data.train_images), data.train_labels[:, None], pictures(data.test_images)
    random = np.random.default_rng(work.seed)
    training, testing, startup = paddle.static.Program(), paddle.static.Program(), paddle.static.Program()

    def network() -> Any:
        x = paddle.static.data("image", [None, 1, 28, 28], "float32")
        for inputs, channels, padding in ((1, 6, 2), (6, 16, 0)):
            names = {"weight_attr": f"conv{channels}.w", "bias_attr": f"conv{channels}.b"}
            x = paddle.nn.functional.relu(paddle.nn.Conv2D(inputs, channels, 5, padding=padding, **names)(x))
            x = paddle.nn.functional.max_pool2d(x, 2, 2)
        for width in (120, 84, CLASSES):
            names = {"weight_attr": f"fc{width}.w", "bias_attr": f"fc{width}.b"}
            x = paddle.static.nn.fc(x, width, activation=None if width == CLASSES else "relu", **names)
        return x

    with paddle.static.program_guard(training, startup):
        label = paddle.static.data("label", [None, 1], "int64")
        loss = paddle.nn.functional.cross_entropy(network(), label)
        paddle.optimizer.SGD(work.rate).minimize(loss)
    with paddle.static.program_guard(testing, paddle.static.Program()):
        scores = network()  # parameters of the same names, so the same weights
    executor = paddle.static.Executor(paddle.CPUPlace())
    executor.run(startup)

    def train() -> None:
        for rows in _orders(random, data, work):
            executor.run(training, feed={"image": images[rows], "label": labels[rows]}, fetch_list=[loss])

    def test() -> float:
        (found,) = executor.run(testing, feed={"image": tests}, fetch_list=[scores])
        return float((found.argmax(1) == data.test_labels).mean())

    return run_epochs(work, train, test)


CONTENDERS: dict[str, tuple[str, Callable[[Data, Work], Iterator[Epoch]]]] = {
    "ours": ("**This project**, custom ReLU", ours),
    "ours_builtin": ("**This project**, built-in ReLU", partial(ours, operator="relu")),
    "torch_eager": ("PyTorch eager", torch_eager),
    "torch_compile": ("PyTorch, the whole step through torch.compile", torch_compile),
    "jax": ("JAX, one jit call per step", jax),
    "paddle": ("Paddle static graph", paddle),
}


def pictures(images: np.ndarray) -> np.ndarray:
    """Pixels 0 to 255 as float32 from 0 to 1, of one channel."""
    return np.multiply(images, np.float32(1 / 255), dtype=np.float32).reshape(-1, 1, 28, 28)


def _kaiming(random: np.random.Generator, shape: Sequence[int]) -> np.ndarray:
    inputs = int(np.prod(shape[1:])) if len(shape) == 4 else shape[0]
    return random.normal(0, (2 / inputs) ** 0.5, shape).astype(np.float32)


def _orders(random: np.random.Generator, data: Data, work: Work) -> Iterator[np.ndarray]:
    order = random.permutation(len(data.train_images))
    return (order[first : first + work.batch] for first in range(0, len(order), work.batch))


# Taking turns


def measure(folder: Path, rounds: int) -> list[dict[str, Any]]:
    """A row for each contender: the seconds of its epochs at each batch, less the first, and its last accuracy."""
    rows = [{"name": n, "title": title, "problem": "", "seconds": {}} for n, (title, _) in CONTENDERS.items()]
    for turn, row in in_turns(rounds, rows):
        for batch in BATCHES:
            found = run(row["name"], folder, Work(batch=batch, rate=RATE, epochs=EPOCHS, lenet=True))
            row["problem"] = found.problem
            if not found.problem:
                row["seconds"].setdefault(str(batch), []).extend(found.seconds[1:])
                row["accuracy"] = found.accuracies[-1]
        print(f"  {turn}: {row['name']}: {row['problem'] or described(row)}", flush=True)
    return rows


def described(row: dict[str, Any]) -> str:
    return ", ".join(f"batch {batch}: {min(seconds):.2f} s" for batch, seconds in row["seconds"].items())


def table(rows: Sequence[dict[str, Any]]) -> str:
    """The best epoch of each contender, and how many times as long as ours that is."""
    out = ["| | " + " | ".join(f"batch {b} | times ours" for b in BATCHES) + " | accuracy |"]
    out.append("| --- |" + " ---: |" * (2 * len(BATCHES) + 1))
    best = {(row["name"], b): min(row["seconds"].get(str(b)) or [np.nan]) for row in rows for b in BATCHES}
    for row in rows:
        if row["problem"]:
            out.append(f"| {row['title']} | {row['problem']} |" + " |" * 2 * len(BATCHES))
            continue
        times = [f"{best[row['name'], b]:.2f} s | {best[row['name'], b] / best['ours', b]:.2f}" for b in BATCHES]
        out.append(f"| {row['title']} | {' | '.join(times)} | {row['accuracy']:.2%} |")
    return "\n".join(out)
