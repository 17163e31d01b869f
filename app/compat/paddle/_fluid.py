"""paddle.fluid: the names of Paddle 1 that a program with operators of its own uses, as one dictionary."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import app as _package
from app import engine, graph, static
from app.graph import dynamic_mode, static_unless_chosen
from app.nn import functional, initializer

app: Any = _package  # operators are created on import, invisible to a type checker


class Fetched(np.ndarray):
    """An array that converts to a number with one element of any shape; NumPy requires shape ()."""

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())


class Executor(engine.Executor):
    """Runs Programs, as the framework's Executor does."""

    def run(self, *args: Any, **kwargs: Any) -> list[Any]:
        """Run a Program once with `feed`; return the values of the variables in `fetch_list`."""
        return [value.view(Fetched) for value in super().run(*args, **kwargs)]


# Operators. A reduction to one number has the shape [1].


def mean(x: Any) -> Any:
    """The mean of all elements."""
    return app.mean(x).reshape([1])


def _reduction(function: Callable[..., Any]) -> Callable[..., Any]:
    def reduce(input: Any, dim: Any = None, keep_dim: bool = False) -> Any:
        result = function(input, axis=dim, keepdim=keep_dim)
        return result if len(result.shape) else result.reshape([1])

    reduce.__doc__ = function.__doc__
    return reduce


def accuracy(input: Any, label: Any, k: int = 1) -> Any:
    """The share of rows whose label is among the k largest scores."""
    return app.accuracy(input, label, k).reshape([1])


def cross_entropy(input: Any, label: Any, soft_label: bool = False, ignore_index: int = -100) -> Any:
    """The cross entropy of each row of probabilities."""
    return functional.cross_entropy(input, label, None, ignore_index, "none", soft_label, use_softmax=False)


def softmax_with_cross_entropy(logits: Any, label: Any, soft_label: bool = False, ignore_index: int = -100) -> Any:
    """The cross entropy of each row of scores."""
    return functional.cross_entropy(logits, label, None, ignore_index, "none", soft_label)


def concat(input: Any, axis: int = 0) -> Any:
    """The values joined along an axis."""
    return app.concat(input, axis)


@static_unless_chosen()
def fill_constant(shape: Any, dtype: Any, value: float) -> Any:
    """The same number everywhere."""
    return app.full(shape, value, dtype)


def zeros(shape: Any, dtype: Any) -> Any:
    """Zeros."""
    return fill_constant(shape, dtype, 0.0)


def ones(shape: Any, dtype: Any) -> Any:
    """Ones."""
    return fill_constant(shape, dtype, 1.0)


# Layers and optimisers


def data(name: str, shape: Sequence[int | None], dtype: Any = "float32", append_batch_size: bool = True) -> Any:
    """An input of the Program; unless told otherwise, an axis for the batch is put before the shape."""
    return static.data(name, [None, *shape] if append_batch_size else shape, dtype)


def fc(
    input: Any,
    size: int,
    num_flatten_dims: int = 1,
    param_attr: Any = None,
    bias_attr: Any = None,
    act: str | None = None,
    name: str | None = None,
) -> Any:
    """A fully connected layer with an activation."""
    return static.nn.fc(input, size, num_flatten_dims, param_attr, bias_attr, act, name)


class Linear(app.nn.Linear):  # type: ignore[misc]
    """A fully connected layer with an activation."""

    def __init__(
        self, input_dim: int, output_dim: int, param_attr: Any = None, bias_attr: Any = None, act: str | None = None
    ):
        super().__init__(input_dim, output_dim, param_attr, bias_attr)
        self._act = act

    def forward(self, x: Any) -> Any:
        """Apply the layer."""
        return static.nn.activated(super().forward(x), self._act)


def to_variable(value: Any) -> Any:
    """Convert an array to a Tensor; return a Tensor unchanged."""
    return value if app.is_tensor(value) else app.to_tensor(value)


def guard(place: Any = None) -> Any:
    """Run operators eagerly inside the block."""
    app.set_device(place or "cpu")
    return dynamic_mode()


def _optimizer(kind: Callable[..., Any]) -> Callable[..., Any]:
    def make(*numbers: float, parameter_list: Any = None, regularization: Any = None, **settings: Any) -> Any:
        return kind(*numbers, parameters=parameter_list, weight_decay=regularization, **settings)

    make.__doc__ = kind.__doc__
    return make


_OPTIMIZERS = {name: _optimizer(getattr(app.optimizer, name)) for name in ("SGD", "Momentum", "Adam")}
_SAME = """abs cast exp log matmul pow reshape scale sigmoid sign sqrt square tanh transpose
    elementwise_add=add elementwise_sub=subtract elementwise_mul=multiply elementwise_div=divide
    elementwise_max=maximum elementwise_min=minimum"""
FLUID: dict[str, Any] = {
    **{name: getattr(static, name) for name in static.__all__},
    "Executor": Executor,
    "CPUPlace": app.CPUPlace,
    "ParamAttr": app.ParamAttr,
    "core": {"Scope": static.Scope},
    "backward": {"append_backward": graph.append_backward, "gradients": graph.gradients},
    "dygraph": {"guard": guard, "Linear": Linear, "to_variable": to_variable},
    "initializer": {name: getattr(initializer, name) for name in ("Constant", "Normal", "Uniform")},
    "layers": {
        **{name: getattr(app, old or name) for name, _, old in (word.partition("=") for word in _SAME.split())},
        **{name: getattr(functional, name) for name in ("relu", "softmax", "square_error_cost")},
        **{f"reduce_{name}": _reduction(getattr(app, name)) for name in ("sum", "mean", "max", "min", "prod")},
        **{name: getattr(static.nn, name) for name in ("cond", "while_loop")},
        **{f.__name__: f for f in (accuracy, concat, cross_entropy, data, fc, fill_constant, mean, ones)},
        "py_func": static.py_func,
        "softmax_with_cross_entropy": softmax_with_cross_entropy,
        "zeros": zeros,
    },
    "optimizer": {**_OPTIMIZERS, **{f"{name}Optimizer": make for name, make in _OPTIMIZERS.items()}},
}
"""The names of `paddle.fluid`; a dictionary inside is a module."""
