"""torch.autograd.functional"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import app
from app.errors import OperatorError
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
    """The second derivatives, with respect to one Tensor, of a function with one number as its value."""
    if isinstance(inputs, tuple):
        raise OperatorError("hessian takes one Tensor, found a tuple; use torch.autograd.grad(..., create_graph=True)")

    def gradient(x: Any) -> Any:
        return gradients(func(x), [x], create_graph=True)[0]

    return jacobian(gradient, inputs, create_graph)


# torch.func: functions of functions


def grad(func: Callable[..., Any], argnums: Any = 0, has_aux: bool = False) -> Callable[..., Any]:
    """The function that computes the gradient of `func`, which returns one number, with respect to argument `argnums`.

    With `has_aux`, `func` returns a second value, which is returned beside the gradient.
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
