"""torch.autograd.functional"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import app
from app.tensor import grad as gradients


def _points(inputs: Any) -> tuple[Any, ...]:
    listed = inputs if isinstance(inputs, tuple) else (inputs,)
    return tuple(x.detach().requires_grad_() if x.stop_gradient else x for x in listed)


def jacobian(func: Callable[..., Any], inputs: Any, create_graph: bool = False) -> Any:
    """The derivatives of every output with respect to every element of every input."""
    points = _points(inputs)
    output = func(*points)
    flat = app.flatten(output) if output.ndim else app.reshape(output, [1])
    rows = [
        gradients(flat[i], list(points), retain_graph=True, create_graph=create_graph, allow_unused=True)
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
    return gradients(func(*points), [points[index]], create_graph=True)[0]


def vjp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False) -> Any:
    """The outputs, and the gradients of their product with `v`."""
    points = _points(inputs)
    outputs = func(*points)
    found = gradients(outputs, list(points), v, create_graph=create_graph, allow_unused=True)
    return outputs, tuple(found) if isinstance(inputs, tuple) else found[0]


# torch.func: functions of functions


def grad(func: Callable[..., Any], argnums: Any = 0, has_aux: bool = False) -> Callable[..., Any]:
    """The function that computes the gradient of `func`, whose value is one number, by the argument `argnums`.

    With `has_aux`, `func` returns something more, which is returned beside the gradient.
    """
    wanted = (argnums,) if isinstance(argnums, int) else tuple(argnums)

    def gradient(*args: Any, **kwargs: Any) -> Any:
        points = [
            x.detach().requires_grad_() if x.is_leaf and x.stop_gradient else x for x in (args[i] for i in wanted)
        ]
        given = list(args)
        for place, point in zip(wanted, points, strict=True):
            given[place] = point
        with app.enable_grad():
            result = func(*given, **kwargs)
            value = result[0] if has_aux else result
            graph = any(not args[i].stop_gradient for i in wanted)
            found = gradients(value, list(points), create_graph=graph)
        answer = found[0] if isinstance(argnums, int) else tuple(found)
        if not has_aux:
            return answer
        more = result[1]
        return answer, more.detach() if hasattr(more, "detach") and not graph else more

    return gradient


def jacrev(func: Callable[..., Any], argnums: int = 0) -> Callable[..., Any]:
    """The function that computes the derivatives of every output of `func` by every element of an argument."""
    return lambda *args: jacobian(lambda x: func(*args[:argnums], x, *args[argnums + 1 :]), args[argnums])


def hessian_of(func: Callable[..., Any], argnums: int = 0) -> Callable[..., Any]:
    """The function that computes the second derivatives of `func` by an argument."""
    return lambda *args: hessian(lambda x: func(*args[:argnums], x, *args[argnums + 1 :]), args[argnums])
