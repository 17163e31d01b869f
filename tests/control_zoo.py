"""Control flow over one value or two, for Tensors and Variables alike: choices, loops, and each inside the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import custom_zoo

import app
from app.static.nn import cond, while_loop

CUSTOM = (
    "PyLayer",
    "elementwise two outputs",
    *(f"py_func {which}" for which in ("plain", "numba", "half numba", "numba forward")),
)
ABOVE = 0.01
"""What sums are compared with: some are 0 but for rounding, which engines do in another order."""


def zero(x: Any) -> Any:
    """A counter, from the mode that the value is of."""
    return (app.sum(x) * 0.0).astype("int64")


def repeated(times: int, step: Callable[..., Any], *values: Any) -> Any:
    """The first of some values after `times` steps, each of which gets the number of the step, too."""
    return while_loop(lambda i, *v: i < times, lambda i, *v: [i + 1, *step(i, *v)], [zero(values[0]), *values])[1]


def halve(x: Any) -> Any:
    """Halves a value until it is small; a large one takes more iterations."""
    return while_loop(lambda v: app.max(app.abs(v)) > 0.3, lambda v: [v * 0.5 * app.tanh(v * v + 0.9)], [x])[0]


ONE: dict[str, Callable[[Any], Any]] = {
    "choice": lambda x: cond(app.sum(x) > 0.1, lambda: app.tanh(x) * x, lambda: x * 0.5),
    "choice of constants": lambda x: x * cond(app.mean(x) > ABOVE, lambda: app.sum(x), lambda: app.sum(x) * 0.0 + 2.0),
    "choice of rows": lambda x: cond(app.max(x) > 0.4, lambda: app.sum(x, axis=0), lambda: app.mean(x, axis=0)),
    "choice in a choice": lambda x: cond(
        app.sum(x) > 1.0,
        lambda: app.exp(app.tanh(x)),
        lambda: cond(app.sum(x) > ABOVE, lambda: x * x, lambda: -x),
    ),
    "choice that one branch ignores": lambda x: x * cond(app.sum(x) > ABOVE, lambda: x * x, lambda: app.ones_like(x)),
    "choice of several values": lambda x: app.add_n(
        cond(app.sum(x) > ABOVE, lambda: [x * x, x, app.tanh(x)], lambda: [x, app.sin(x), x * 2.0])
    ),
    "choice of itself": lambda x: cond(app.sum(x) > ABOVE, lambda: x, lambda: app.sin(x)),
    "loop": lambda x: repeated(3, lambda i, v: [app.sin(v) * x + v * 0.5], x),
    "loop of two": lambda x: repeated(3, lambda i, v, w: [w * 0.5, app.tanh(v + x)], x, x * 0.5),
    "loop of nothing": lambda x: repeated(0, lambda i, v: [app.exp(v)], x),
    "loop from constants": lambda x: repeated(2, lambda i, v: [v * x + x], app.zeros_like(x)),
    "linear loop": lambda x: repeated(3, lambda i, v: [v * 2.0 + x], x),
    "loop over data": halve,
    "choice in a loop": lambda x: repeated(
        3, lambda i, v: [cond(i % 2 == 0, lambda: app.tanh(v) + x, lambda: v * x)], x
    ),
    "loop in a choice": lambda x: cond(app.sum(x) > ABOVE, lambda: halve(x * 2.0), lambda: app.tanh(x)),
    "loop in a loop": lambda x: repeated(
        3,
        lambda i, v: [app.tanh(while_loop(lambda j, w: j < i, lambda j, w: [j + 1, app.sin(w) + x], [zero(x), v])[1])],
        x,
    ),
    "softmax in a loop": lambda x: repeated(2, lambda i, v: [app.nn.functional.softmax(v + x)], x),
    "loop of values that trade places": lambda x: repeated(2, lambda i, a, b, c: [b, c, a + b], x, x * 2.0, -x),
    **{
        f"{name} in a choice": lambda x, custom=custom_zoo.ONE[name]: cond(
            app.sum(x) > ABOVE, lambda: app.exp(custom(x) * 0.2), lambda: app.tanh(x)
        )
        for name in CUSTOM
    },
    **{
        f"{name} in a loop": lambda x, custom=custom_zoo.ONE[name]: repeated(
            2, lambda i, v: [app.sin(custom(v)) * x], x
        )
        for name in CUSTOM
    },
}
TWO: dict[str, Callable[[Any, Any], Any]] = {
    "choice of two": lambda x, y: cond(
        app.sum(x) > app.sum(y) + 0.0123,  # two softmaxes have equal sums, but for rounding
        lambda: x + y,
        lambda: (x + y) * app.tanh(x * y),
    ),
    "products in a choice": lambda x, y: cond(
        app.sum(x) > ABOVE, lambda: app.tanh(app.matmul(x, y)), lambda: app.matmul(x, y) * 0.1
    ),
    "products in a loop": lambda x, y: repeated(3, lambda i, v: [app.tanh(app.matmul(v, y) + x)], x),
}
