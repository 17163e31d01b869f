"""torch.autograd.functional"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import app
from app.tensor import grad


def _points(inputs: Any) -> tuple[Any, ...]:
    listed = inputs if isinstance(inputs, tuple) else (inputs,)
    return tuple(x.detach().requires_grad_() if x.stop_gradient else x for x in listed)


def jacobian(func: Callable[..., Any], inputs: Any, create_graph: bool = False) -> Any:
    """The derivatives of every output with respect to every element of every input."""
    points = _points(inputs)
    output = func(*points)
    flat = app.flatten(output) if output.ndim else app.reshape(output, [1])
    rows = [
        grad(flat[i], list(points), retain_graph=True, create_graph=create_graph, allow_unused=True)
        for i in range(len(flat))
    ]
    found = [
        app.reshape(
            app.stack([app.zeros_like(x) if row[j] is None else row[j] for row in rows]),
            [*output.shape, *x.shape],
        )
        for j, x in enumerate(points)
    ]
    return tuple(found) if isinstance(inputs, tuple) else found[0]


def hessian(func: Callable[..., Any], inputs: Any, create_graph: bool = False) -> Any:
    """The second derivatives of a function with one number as its value."""
    if isinstance(inputs, tuple) and len(inputs) > 1:
        return tuple(
            tuple(
                jacobian(lambda y, i=i, j=j: _gradient(func, (*inputs[:j], y, *inputs[j + 1 :]), i), inputs[j])
                for j in range(len(inputs))
            )
            for i in range(len(inputs))
        )
    return jacobian(lambda x: _gradient(func, (x,), 0), inputs, create_graph)


def _gradient(func: Callable[..., Any], inputs: tuple[Any, ...], index: int) -> Any:
    points = _points(inputs)
    return grad(func(*points), [points[index]], create_graph=True)[0]


def vjp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False) -> Any:
    """The outputs, and the gradients of their product with `v`."""
    points = _points(inputs)
    outputs = func(*points)
    found = grad(outputs, list(points), v, create_graph=create_graph, allow_unused=True)
    return outputs, tuple(found) if isinstance(inputs, tuple) else found[0]
