"""Random functions of arrays that NumPy's broadcasting stretches, with inputs for them."""

from __future__ import annotations

from random import Random

import numpy as np

NAMES = ["x", "a", "b", "w"]
SHAPES = [(3, 4), (2, 3, 4), (4, 4)]
EXPRESSIONS = [
    "({0} + {1})",
    "({0} - {1})",
    "({0} * {1})",
    "({0} / (2 + {1} * {1}))",
    "np.exp(-{0} * {0})",
    "np.tanh({0})",
    "np.where({0} > {1}, {0}, {2})",
    "np.maximum({0}, {1})",
    "np.abs({0})",
    "({0} * {1}.sum(axis=-1, keepdims=True))",
    "({0} + {1}.mean(axis=0, keepdims=True))",
    "({0} - {1}.max(axis=-1, keepdims=True))",
    "({0} * {1}.sum())",
    "({0} * {1}.shape[-1])",
    "{0}[::-1]",
    "({0} * {1}[..., :1])",
    "(2.5 * {0} ** 2)",
    "{0}.copy()",
]
ARRANGED = [
    "np.swapaxes({0}, 0, -1)", "{0}.T", "np.moveaxis({0}, 0, -1)", "np.flip({0}, -1)", "np.roll({0}, 1, axis=0)",
    "np.expand_dims({0}, 1)", "({0} + np.broadcast_to({1}, {0}.shape))", "{0}.reshape(-1)", "np.ravel({0} * {1})",
    "{0}.reshape(-1, {0}.shape[-1])", "({0} * {1}.reshape({0}.shape))", "{0}.flatten()", "{0}[1:].copy().reshape(-1)",
    "np.take({0}, 0, axis=-1)", "np.take({0}, [1, 0, 1], axis=0)", "np.tril({0})", "np.triu({0}, 1)", "{0}[..., ::2]",
    "np.repeat({0}, 2, axis=-1)", "np.tile({0}, (2, 1))", "np.concatenate([{0}, {1}], axis=-1)",
    "np.hstack([{0}, {1}])",
    "np.stack([{0}, {1} * 2], axis=1)", "np.vstack([{0}, {1}])", "np.pad({0}, 1)", "({0} * np.arange({0}.shape[-1]))",
    "({0} * np.linspace(0.5, {1}.sum(), {0}.shape[-1]))", "({0} @ np.eye({0}.shape[-1]))", "np.cumsum({0}, axis=0)",
    "np.cumprod({0}, axis=-1)", "np.einsum('ij,kj->ik', {0}, {1})", "np.einsum('ij->j', {0})",
    "np.select([{0} > 1, {0} > 0], [{0}, 2 * {0}], 0.5)", "({0} - {0}.mean()) / np.std({1})", "np.var({0}, -1)",
    "({0} / np.linalg.norm({0}, axis=-1, keepdims=True))", "np.diff({0})", "np.ptp({0}, 0)", "{0}.clip(-0.5, {1})",
    "np.split({0}, 2, axis=-1)[1]", "np.diag({0})", "np.sum({0}, axis=(0, 1))", "({0} * np.any({1} > 1.5))",
    "{0}[[0, 1], [1, 0]]", "{0}[..., [2, 0, 2]]", "{0}[1:, None]", "({0} if {1}.sum() > 0 else 2 * {0})",
    "({0} * ({1} > 0).astype(np.float64))", "np.average({0}, axis=0)", "{0}[::3].sum(axis=0)", "np.fliplr({0})",
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
    ["y = {0} * 2.0", "y[y < 1] *= 0.1", "y[y > 3] = 0.5", "return y + {1}"],
    ["y = z = {0} + 0.0", "y[0] = 2 * z[0]", "return z * {1}"],
    ["y = np.zeros_like(x)", "r = y.reshape(-1)", "y[0] = {0}.sum()", "return r * {1}.sum()"],
    ["y = {0} + 0.0", "p = (y, y * 2, {1})", "y[0] = 0.5", "return p[0] * p[1] + p[2]"],
    ["y = {0} + 0.0", "r = np.asarray(y)", "d = y[0]", "r[0] = 2 * y[-1]", "return y * d"],
    ["y = {0} + 0.0", "for i in range(2):", "    t = y * 1.0", "    y = t * x", "return y + {1}"],
    ["y = {0} + 0.0", "if {1}.sum() > 0:", "    y[0] *= 2", "else:", "    y = y * 3", "return y"],
    ["y = {0} + 0.0", "d = np.diag(y)", "t = y.T", "y[0] *= 2.0", "return t * d, {1}"],
    ["p = [{0}, {1} * 2]", "q = p[0] + 0.0", "q[-1] = p[1].sum()", "return q * p[0]"],
]


class Writer:
    """Writes functions of x, a, b and w."""

    def __init__(self, seed: int):
        self.random = Random(seed)
        self.names = [*NAMES]
        self.arranged = seed % 3 / 4
        """How often elements are put into other places."""

    def expression(self, depth: int) -> str:
        if not depth:
            return self.random.choice(self.names)
        form = self.random.choice(ARRANGED if self.random.random() < self.arranged else EXPRESSIONS)
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
