"""Random functions of arrays that NumPy's broadcasting stretches, with inputs for them."""

from __future__ import annotations

from random import Random

import numpy as np

NAMES = ["x", "a", "b", "w"]
SHAPES = [(3, 4), (2, 3, 4), (4, 4)]
EXPRESSIONS = [
    "({0} + {1})", "({0} - {1})", "({0} * {1})", "({0} / (2 + {1} * {1}))", "np.exp(-{0} * {0})", "np.tanh({0})",
    "np.where({0} > {1}, {0}, {2})", "np.maximum({0}, {1})", "np.abs({0})", "({0} * {1}.sum(axis=-1, keepdims=True))",
    "({0} + {1}.mean(axis=0, keepdims=True))", "({0} - {1}.max(axis=-1, keepdims=True))", "({0} * {1}.sum())",
    "({0} * {1}.shape[-1])", "{0}[::-1]", "({0} * {1}[..., :1])", "(2.5 * {0} ** 2)", "{0}.copy()",
]  # fmt: skip
LAST = [
    ["return {0}"],
    ["return {0} * x + {1}"],
    ["y = {0} + np.zeros_like(x)", "y += {1}", "return y"],
    ["y = np.zeros(({0} + {1} + x).shape)", "y[:] = {0}", "y *= {1}", "return y"],
    ["return ({0} * {1}).sum()"],
    ["return {0}, {1} * x"],
    ["y = x * {0}", "for i in range(y.shape[0]):", "    y[i] = y[i] * i + {1}.sum()", "return y"],
    ["return (x * {0}).sum(axis=0), {1}"],
]


class Writer:
    """Writes functions of x, a, b and w."""

    def __init__(self, seed: int):
        self.random = Random(seed)
        self.names = [*NAMES]

    def expression(self, depth: int) -> str:
        if not depth:
            return self.random.choice(self.names)
        form = self.random.choice(EXPRESSIONS)
        return form.format(*(self.expression(self.random.randrange(depth)) for _ in range(3)))

    def function(self) -> str:
        lines = []
        for name in ("s", "t"):
            lines.append(f"{name} = {self.expression(2)}")
            self.names.append(name)
        lines += [line.format(self.expression(2), self.expression(1)) for line in self.random.choice(LAST)]
        return "\n    ".join(["import numpy as np\ndef f(x, a, b, w):", *lines]) + "\n"


def stretched_arguments(seed: int) -> list[np.ndarray]:
    """Arrays that can be broadcast together, some with fewer axes, and with axes of size 1."""
    random = np.random.default_rng(seed)
    whole = SHAPES[seed % len(SHAPES)]
    shapes = [[size if random.random() < 0.6 else 1 for size in whole[random.integers(len(whole)) :]] for _ in NAMES]
    return [random.uniform(0.3, 1.7, shape) * random.choice([-1, 1], shape) for shape in shapes]
