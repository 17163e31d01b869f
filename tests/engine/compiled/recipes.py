"""Random networks as recipes: steps that make values out of earlier ones, for Tensors and Variables alike.

Values are rows of three columns, or what broadcasts against such; a step that does not fit its values is left out
while the Program is built, and for Tensors, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import control_zoo
import custom_zoo
import numpy as np
import steps_over_rows
from hypothesis import strategies as st
from steps_over_rows import COLUMNS, Step, steps_of

import app
from app import optimizer, static
from app.errors import AppError
from app.graph import names

softmax = app.nn.functional.softmax

ONE: dict[str, Callable[[Any], Any]] = {
    **steps_over_rows.ONE,
    "log": lambda x: app.log(app.square(x) + 1.0),
    "sqrt": lambda x: app.sqrt(app.abs(x) + 0.5),
    "power": lambda x: (app.abs(x) + 0.5) ** 1.5,
    "leaky_relu": lambda x: app.leaky_relu(x, negative_slope=0.2),
    "softplus": app.softplus,
    "silu": app.silu,
    "elu": lambda x: app.elu(x, alpha=0.5),
    "log_softmax": app.log_softmax,
    "softmax of columns": lambda x: softmax(x, axis=0),
    "round": lambda x: x + app.round(x * 4.0 + 0.3),
    "sum of columns": lambda x: app.tanh(app.sum(x, axis=-1, keepdim=True)),
    "mean of rows": lambda x: app.mean(x, axis=0),
    "min of rows": lambda x: x - app.min(x, axis=0),
    "max of all": lambda x: x - app.max(x),
    "sum of both": lambda x: x * app.tanh(app.sum(x, axis=[0, 1])),
    "flatten": lambda x: app.reshape(app.flatten(x) * 2.0, [-1, COLUMNS]),
    "three axes": lambda x: app.sum(app.unsqueeze(x, axis=1) * app.reshape(x, [-1, COLUMNS, 1]), axis=1),
    "reduce the middle": lambda x: app.mean(app.unsqueeze(x, axis=2) - app.unsqueeze(x, axis=1), axis=[1]),
    "gram": lambda x: app.matmul(x, app.tanh(app.matmul(x, x, transpose_x=True)), transpose_y=True),
    "first row": lambda x: x[0:1] - x,
    "product": lambda x: app.tanh(app.prod(x, axis=1, keepdim=True)),
    "whole numbers": lambda x: (x * 8.0 + 0.3).astype("int32").astype(str(x.dtype)) * x,
    "bytes": lambda x: ((app.tanh(x) + 2.0) * 20.0).astype("uint8").astype(str(x.dtype)) / 40.0 * x,
    "truth": lambda x: (x > 0.1).astype(str(x.dtype)) * x,
    "how many": lambda x: x + app.sum(x > 0.1, axis=1, keepdim=True).astype(str(x.dtype)),
    "expand": lambda x: app.expand(app.sum(x, axis=0, keepdim=True), [2, COLUMNS])[:1],
    "detach": lambda x: x * app.tanh(x).detach(),
    "constants": lambda x: x * (app.ones_like(x) + 0.5) + app.zeros_like(x),
    **custom_zoo.ONE,
    **control_zoo.ONE,
}
TWO: dict[str, Callable[[Any, Any], Any]] = {
    **steps_over_rows.TWO,
    "minimum": app.minimum,
    "logic": lambda x, y: app.where(app.logical_and(x > 0.1, y <= 0.2), x, y),
    "matmul": lambda x, y: app.tanh(app.matmul(x, y)),
    "matmul turned": lambda x, y: app.tanh(app.matmul(x, y, transpose_y=True)),
    "matmul both turned": lambda x, y: app.tanh(app.matmul(app.matmul(x, y, True, True), y)),
    "concat rows": lambda x, y: app.tanh(app.sum(app.concat([x, app.sum(y, axis=0, keepdim=True)], axis=0), axis=0)),
    **custom_zoo.TWO,
    **control_zoo.TWO,
}
OPTIMIZERS: dict[str, Callable[..., Any]] = {
    "SGD": lambda **k: optimizer.SGD(0.1, **k),
    "SGD with decay": lambda **k: optimizer.SGD(0.1, weight_decay=0.1, **k),
    "Momentum": lambda **k: optimizer.Momentum(0.1, 0.5, **k),
    "Nesterov": lambda **k: optimizer.Momentum(0.1, 0.5, use_nesterov=True, **k),
    "Adam": lambda **k: optimizer.Adam(0.01, **k),
}
PARAMETERS = {"w": (COLUMNS, COLUMNS), "v": (COLUMNS, COLUMNS), "b": (COLUMNS,), "row": (1, COLUMNS), "s": (1,)}
SHAPES = ((-1, COLUMNS), (-1, 1), (COLUMNS, COLUMNS), (1, COLUMNS), (COLUMNS,), (1,), ())


@dataclass(frozen=True)
class Recipe:
    """Everything that a random network is made of."""

    steps: tuple[Step, ...]
    optimizer: str
    dtype: str
    taps: frozenset[int]
    reads_all: bool = False
    """Whether the loss depends on the value of each step."""


def recipes(longest: int = 6) -> st.SearchStrategy[Recipe]:
    """Recipes with that many steps."""
    return st.builds(
        Recipe,
        st.lists(steps_of(ONE, TWO), min_size=1, max_size=longest).map(tuple),
        st.sampled_from(sorted(OPTIMIZERS)),
        st.sampled_from(["float64", "float64", "float32"]),
        st.frozensets(st.integers(0, longest), max_size=1),
    )


def inputs(values: dict[str, Any], dtype: str) -> list[Any]:
    """What the steps begin with, the parameters first and bytes made numbers."""
    image = values["image"].astype(dtype) / 255.0
    return [*(values[name] for name in PARAMETERS), image, values["x"], app.matmul(values["x"], values["w"])]


def loss_of(recipe: Recipe, values: Sequence[Any], rows: int, label: Any) -> Any:
    """A number that depends on a parameter, on the last two values and on one that has rows."""
    parameter, before, last = values[0], *values[-2:]
    total = app.mean(parameter * 0.125) + app.mean(app.tanh(last) * last) + app.mean(app.tanh(before * 0.5))
    if recipe.reads_all:
        total = total + app.add_n([app.mean(app.tanh(value)) for value in values])
    return total + app.mean(app.softmax_with_cross_entropy(values[rows], label)[0])


def start(recipe: Recipe) -> dict[str, np.ndarray]:
    """First values of the parameters."""
    rng = np.random.default_rng(7)
    return {name: rng.uniform(-1, 1, shape).astype(recipe.dtype) for name, shape in PARAMETERS.items()}


def batch(recipe: Recipe, seed: int, rows: int) -> dict[str, np.ndarray]:
    """Values of the data."""
    rng = np.random.default_rng(seed)
    return {
        "x": rng.uniform(-1, 1, (rows, COLUMNS)).astype(recipe.dtype),
        "image": rng.integers(0, 256, (rows, COLUMNS)).astype("uint8"),
        "label": rng.integers(0, COLUMNS, (rows, 1)),
    }


@dataclass
class Built:
    """A recipe as a Program."""

    recipe: Recipe
    program: static.Program
    startup: static.Program
    fetch: list[str]
    steps: list[Step] = field(default_factory=list)
    """The steps that fitted."""
    seen: list[np.ndarray] = field(default_factory=list)
    """What taps have seen."""
    rows: int = 0
    """The last value that has a row for each of the batch."""

    def scope(self) -> static.Scope:
        """First values of everything that persists."""
        scope = static.Scope()
        static.Executor().run(self.startup, scope=scope)
        scope.values.update(start(self.recipe))
        return scope


def build(recipe: Recipe) -> Built:
    """The Program of a recipe: forward, backward and update."""
    program, startup = static.Program(), static.Program()
    built = Built(recipe, program, startup, [])
    with names.guard(), static.program_guard(program, startup):
        block = program.global_block()
        variables: dict[str, Any] = {
            name: block.create_parameter(name, shape, recipe.dtype) for name, shape in PARAMETERS.items()
        }
        variables["x"] = static.data("x", [None, COLUMNS], recipe.dtype)
        variables["image"] = static.data("image", [None, COLUMNS], "uint8")
        label = static.data("label", [None, 1], "int64")
        values = inputs(variables, recipe.dtype)
        tried = inputs({k: app.to_tensor(v) for k, v in {**start(recipe), **batch(recipe, 0, 4)}.items()}, recipe.dtype)
        for index, step in enumerate(recipe.steps):
            before = len(block.ops)
            try:
                tensor, value = step.apply(tried), step.apply(values)
            except AppError:
                del block.ops[before:]
                continue
            if value.shape not in SHAPES:
                del block.ops[before:]
                continue
            built.steps.append(step)
            values.append(value)
            tried.append(tensor)
            if index in recipe.taps:
                static.py_func(lambda x: built.seen.append(np.array(x)), value, None)
        built.rows = max(i for i, v in enumerate(values) if v.shape == (-1, COLUMNS))
        loss = loss_of(recipe, values, built.rows, label)
        _, pairs = OPTIMIZERS[recipe.optimizer]().minimize(loss)
        built.fetch = [loss.name, *(v.name for v in values[-2:]), *(g.name for _, g in pairs)]
    return built


def run(
    engine: Any, built: Built, batches: Sequence[dict[str, np.ndarray]], scope: static.Scope | None = None
) -> list[np.ndarray]:
    """What an engine fetches at every batch, then everything that persists."""
    scope = scope or built.scope()
    executor = static.Executor(engine="reference")
    executor._engine = engine
    fetched = [
        value for feed in batches for value in executor.run(built.program, feed, fetch_list=built.fetch, scope=scope)
    ]
    return fetched + [scope.values[name] for name in sorted(scope.values)]


def run_eagerly(built: Built, batches: Sequence[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """The parameters after the same steps on Tensors."""
    recipe = built.recipe
    parameters = {name: app.to_tensor(value, stop_gradient=False) for name, value in start(recipe).items()}
    stepper = OPTIMIZERS[recipe.optimizer](parameters=list(parameters.values()))
    for feed in batches:
        values = inputs(
            {**parameters, "x": app.to_tensor(feed["x"]), "image": app.to_tensor(feed["image"])}, recipe.dtype
        )
        for step in built.steps:
            values.append(step.apply(values))
        loss = loss_of(recipe, values, built.rows, app.to_tensor(feed["label"]))
        loss.backward()
        stepper.step()
        stepper.clear_grad()
    return {name: tensor.numpy() for name, tensor in parameters.items()}
