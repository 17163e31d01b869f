"""Random programs in Paddle's words, and what Paddle itself answers to them.

    python tests/compat/paddle_programs.py      # where the real Paddle is installed: record its answers again

Each program is a function of two float64 Tensors. Its answer is a few numbers: a weighted sum of the elements of its
result, and of the gradient of each input. One such number is enough to tell two arrays apart, and 2,000 programs fit
into a small file.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

ANSWERS = Path(__file__).with_name("paddle_answers.json")
RECORDED = 2000
"""The number of programs whose answers are kept."""
ONLY_PADDLE = re.compile(
    r"F\.(l1_loss|nll_loss|smooth_l1_loss)\(|paddle\.(cumsum|einsum|flip|fmax|index_select|lerp|nan_to_num|roll|sort|tile|topk)\("
)
"""Functions of Paddle that opsmith does not have; programs that call them are not compared."""

Shape = tuple[int, ...]
Offered = list[tuple[str, Shape]]
"""Expressions, each with the shape of its value."""


def _forms(text: str) -> list[str]:
    """The expressions in a text, in which {0} stands for a value."""
    return text.split()


UNARY = _forms("""
paddle.tanh({0}) paddle.sin({0}) paddle.cos({0}) paddle.abs({0}) paddle.square({0}) paddle.exp(-paddle.square({0}))
paddle.sqrt(paddle.square({0})+1) paddle.log1p(paddle.square({0})) paddle.rsqrt({0}*{0}+2) paddle.erf({0})
paddle.expm1({0}.clip(-2,2)) paddle.clip({0},-0.5,0.7) {0}.tanh() {0}.sigmoid() -{0} 2.5-{0} {0}**2 {0}**3 3.0*{0} {0}/4
F.relu({0}) F.sigmoid({0}) F.gelu({0}) F.gelu({0},approximate=True) F.silu({0}) F.softplus({0}) F.elu({0},alpha=0.7)
F.selu({0}) F.leaky_relu({0},negative_slope=0.2) F.hardtanh({0}) F.hardsigmoid({0}) F.hardswish({0}) F.mish({0})
F.softsign({0}) F.tanhshrink({0}) F.softshrink({0},threshold=0.3) F.hardshrink({0}) F.relu6({0}*3) F.log_sigmoid({0})
F.thresholded_relu({0},threshold=0.2) paddle.scale({0},scale=2.0,bias=0.5) paddle.nn.functional.swish({0})
paddle.reciprocal({0}*{0}+1) paddle.atan({0}) paddle.asinh({0}) paddle.sinh({0}.clip(-2,2)) paddle.trunc({0})+{0}
paddle.floor({0})*{0} paddle.round({0})+{0} paddle.sign({0})*{0} paddle.nan_to_num({0})
""")
BINARY = _forms("""
{0}+{1} {0}-{1} {0}*{1} {0}/({1}*{1}+1) paddle.maximum({0},{1}) paddle.minimum({0},{1}) paddle.fmax({0},{1})
paddle.where({0}>{1},{0},{1}*{0}) paddle.atan2({0},{1}*{1}+1) paddle.add({0},{1}) paddle.subtract({0},{1})
paddle.multiply({0},{1}) paddle.divide({0},{1}.abs()+1.5) paddle.pow({0}.abs()+0.5,{1}.clip(-2,2))
paddle.lerp({0},{1},0.3) paddle.remainder({0},{1}.abs()+1.25) (({0}<{1}).astype('float64'))*{0}
""")
REDUCED = _forms("""
paddle.sum({0}{1}) paddle.mean({0}{1}) paddle.max({0}{1}) paddle.min({0}{1}) paddle.logsumexp({0}{1}) {0}.sum({2})
{0}.mean({2}) paddle.amax({0}{1}) paddle.norm({0}+3,p=2{1}) paddle.std({0}{1}) paddle.var({0}{1}) paddle.prod({0}{1})
""")
ALONG = _forms("""
F.softmax({0},axis={1}) F.log_softmax({0},axis={1}) paddle.cumsum({0},axis={1}) paddle.flip({0},axis=[{1}])
paddle.roll({0},shifts=1,axis={1}) paddle.sort({0},axis={1}) ({0}+2)/paddle.norm({0}+2,p=2,axis={1},keepdim=True)
paddle.argsort({0},axis={1}).astype('float64')*{0} {0}.abs()*0.9+0.1/paddle.ones_like({0}).sum(axis=-1,keepdim=True)
""")


class Writer:
    """Writes the body of a program, and knows the shape of each of its values."""

    def __init__(self, seed: int):
        self.random = Random(seed)
        self.lines: list[str] = []
        self.shapes: dict[str, Shape] = {"x": (4, 3), "y": (4, 3), "w": (3,)}

    def source(self) -> str:
        self.let("w", "paddle.mean(y, axis=0)", (3,))
        for _ in range(self.random.randint(2, 7)):
            self.step()
        earlier = " + ".join(f"paddle.tanh({name}).mean()" for name in list(self.shapes)[2:-1]) or "0.0"
        self.lines.append(f"return {self.last} + ({earlier})")
        return "\n    ".join(["def program(x, y):", *self.lines])

    @property
    def last(self) -> str:
        return list(self.shapes)[-1]

    def let(self, name: str, expression: str, shape: Shape) -> None:
        self.lines.append(f"{name} = {expression}")
        self.shapes[name] = shape

    def choose(self) -> str:
        """A value, more often a late one."""
        return self.random.choice([self.last, *self.shapes])

    def step(self) -> None:
        """Add one of the expressions that a kind of statement offers for a value; it may offer none."""
        kinds = [self.unary, self.unary, self.binary, self.reduce, self.along, self.reshape, self.cut, self.join]
        kinds += [self.multiply, self.repeat, self.lose]
        name = self.choose()
        offered = self.random.choice(kinds)(name, self.shapes[name])
        if offered:
            self.let(f"v{len(self.shapes)}", *self.random.choice(offered))

    def unary(self, name: str, shape: Shape) -> Offered:
        return [(form.format(name), shape) for form in UNARY]

    def binary(self, name: str, shape: Shape) -> Offered:
        fitting = [n for n, other in self.shapes.items() if _broadcast(shape, other) is not None]
        other = self.random.choice(fitting)
        together = _broadcast(shape, self.shapes[other])
        assert together is not None
        return [(form.format(name, other), together) for form in BINARY]

    def reduce(self, name: str, shape: Shape) -> Offered:
        axis = self.axis(shape)
        if axis is None or shape[axis] < 2:
            return []
        keep = self.random.random() < 0.4
        arguments = f"axis={axis},keepdim={keep}"
        left = tuple(1 if i == axis % len(shape) else n for i, n in enumerate(shape) if keep or i != axis % len(shape))
        return [(form.format(name, f",{arguments}", arguments), left) for form in REDUCED]

    def along(self, name: str, shape: Shape) -> Offered:
        axis = self.axis(shape)
        return [] if axis is None else [(form.format(name, axis), shape) for form in ALONG]

    def axis(self, shape: Shape) -> int | None:
        return self.random.randrange(-len(shape), len(shape)) if shape else None

    def reshape(self, name: str, shape: Shape) -> Offered:
        total = math.prod(shape)
        offered = [
            (f"{name}.flatten()" if shape else f"paddle.reshape({name}, [1])", (total,)),
            (f"paddle.reshape({name}, [-1, 1])", (total, 1)),
            (f"paddle.unsqueeze({name}, axis=0)", (1, *shape)),
            (f"{name}.unsqueeze(-1)", (*shape, 1)),
            (f"paddle.squeeze({name})", tuple(n for n in shape if n != 1)),
        ]
        if total % 2 == 0:
            offered.append((f"{name}.reshape([2, -1])", (2, total // 2)))
        if len(shape) > 1:
            order = list(range(len(shape)))
            self.random.shuffle(order)
            offered.append((f"paddle.transpose({name}, perm={order})", tuple(shape[i] for i in order)))
        if len(shape) == 2:
            offered.append((f"{name}.t()", shape[::-1]))
        return offered

    def cut(self, name: str, shape: Shape) -> Offered:
        if not shape or shape[0] < 2:
            return []
        n, rest = shape[0], shape[1:]
        first = self.random.randrange(n)
        rows = [self.random.randrange(n) for _ in range(self.random.randint(1, 3))]
        return [
            (f"{name}[{first}]", rest),
            (f"{name}[{first}:]", (n - first, *rest)),
            (f"{name}[::2]", ((n + 1) // 2, *rest)),
            (f"{name}[-1:]", (1, *rest)),
            (f"paddle.gather({name}, paddle.to_tensor({rows}))", (len(rows), *rest)),
            (f"paddle.index_select({name}, paddle.to_tensor({rows}), axis=0)", (len(rows), *rest)),
            (f"{name}[paddle.to_tensor({rows})]", (len(rows), *rest)),
            (f"paddle.split({name}, [1, {n - 1}], axis=0)[1]", (n - 1, *rest)),
            (f"paddle.topk({name}, 1, axis=0)[0]", (1, *rest)),
            (f"{name}.max(axis=0, keepdim=True)", (1, *rest)),
        ]

    def join(self, name: str, shape: Shape) -> Offered:
        other = self.random.choice([n for n, other in self.shapes.items() if other == shape])
        offered = [(f"paddle.stack([{name}, {other}], axis=0)", (2, *shape))]
        if shape:
            offered.append((f"paddle.concat([{name}, {other}], axis=0)", (2 * shape[0], *shape[1:])))
            offered.append((f"paddle.concat([{name}, {other}, {name}], axis=-1)", (*shape[:-1], 3 * shape[-1])))
        return offered

    def multiply(self, name: str, shape: Shape) -> Offered:
        if len(shape) != 2 or math.prod(shape) > 200:
            return []
        other = self.random.choice([n for n, s in self.shapes.items() if len(s) == 2 and s[1] == shape[1]])
        forms = [
            f"paddle.matmul({name}, {other}, transpose_y=True)",
            f"{name} @ {other}.t()",
            f"paddle.mm({name}, paddle.transpose({other}, [1, 0]))",
            f"paddle.einsum('ij,kj->ik', {name}, {other})",
        ]
        return [(form, (shape[0], self.shapes[other][0])) for form in forms]

    def repeat(self, name: str, shape: Shape) -> Offered:
        if not shape or math.prod(shape) > 100:
            return []
        offered = [
            (f"paddle.tile({name}, [2])", (*shape[:-1], 2 * shape[-1])),
            (f"paddle.expand({name}, {[2, *shape]})", (2, *shape)),
            (f"paddle.broadcast_to({name}, {[3, *shape]})", (3, *shape)),
        ]
        return [*offered, *[(f"paddle.flip({name}, axis=[0, 1])", shape)] * (len(shape) > 1)]

    def lose(self, name: str, shape: Shape) -> Offered:
        """A loss: the classes are written out, as the shape is known."""
        if len(shape) != 2 or shape[1] < 2 or self.random.random() < 0.5:
            return []
        labels = [self.random.randrange(shape[1]) for _ in range(shape[0])]
        reduction = self.random.choice(["mean", "sum", "none"])
        left: Shape = () if reduction != "none" else shape
        same = self.random.choice([n for n, s in self.shapes.items() if s == shape])
        share, centered = f"F.softmax({same}).detach()", f"({name} - {name}.mean(-1, keepdim=True))"
        divergence = f"({share} * ({share}.log() - F.log_softmax({name})))"
        return [
            (f"F.mse_loss({name}, {same}, reduction='{reduction}')", left),
            (f"F.smooth_l1_loss({name}, {same}, reduction='{reduction}')", left),
            (f"F.l1_loss({name}, {same}, reduction='{reduction}')", left),
            (divergence + ("" if reduction == "none" else f".{reduction}()"), left),
            (f"{centered} * paddle.rsqrt(({centered} * {centered}).mean(-1, keepdim=True) + 1e-5)", shape),
            (f"F.cross_entropy({name}, paddle.to_tensor({labels}))", ()),
            (f"F.nll_loss(F.log_softmax({name}), paddle.to_tensor({labels}))", ()),
            (f"F.one_hot(paddle.to_tensor({labels}), {shape[1]}).astype('float64') * {name}", shape),
            (f"F.softmax_with_cross_entropy({name}, paddle.to_tensor({[[label] for label in labels]}))", (shape[0], 1)),
        ]


def _broadcast(one: Shape, other: Shape) -> Shape | None:
    try:
        return np.broadcast_shapes(one, other)
    except ValueError:
        return None


def program_of(seed: int) -> str:
    """The source of a program."""
    return Writer(seed).source()


def seeds() -> list[int]:
    """The programs that opsmith can run."""
    return [seed for seed in range(RECORDED) if not ONLY_PADDLE.search(program_of(seed))]


def inputs_of(seed: int) -> list[np.ndarray]:
    """What a program is given: numbers that are not at the edge of a function, as 0.5 is at one of hardshrink."""
    draw = np.random.default_rng(seed)
    return [draw.normal(size=(4, 3)).round(3) + 0.0003 for _ in range(2)]


def weighted(array: Any) -> float:
    """One number for an array: its elements, each with a weight of its own, added up."""
    flat = np.asarray(array, "float64").reshape(-1)
    return float(flat @ np.cos(np.arange(1.0, flat.size + 1)))


def answer(
    paddle: Any, source: str, inputs: Sequence[np.ndarray], change: Callable[[Any], Any] = lambda f: f
) -> list[float]:
    """What a program gives, with the real Paddle or with the façade; `change` may make another function of it."""
    names = {"paddle": paddle, "F": paddle.nn.functional}
    exec(compile(source, "program", "exec"), names)
    tensors = [paddle.to_tensor(array, stop_gradient=False) for array in inputs]
    result = change(names["program"])(*tensors)
    (result * result).sum().backward()
    gradients = [tensor.grad for tensor in tensors]
    return [weighted(value.numpy() if value is not None else 0.0) for value in (result, *gradients)]


def read_predictions() -> list[list[float]]:
    """What Paddle answered to each program."""
    answers: list[list[float]] = json.loads(ANSWERS.read_text(encoding="utf-8"))
    return answers


def record() -> None:
    """Ask the real Paddle."""
    import paddle

    answers = [answer(paddle, program_of(seed), inputs_of(seed)) for seed in range(RECORDED)]
    rounded = [[float(f"{number:.8g}") for number in numbers] for numbers in answers]
    ANSWERS.write_text(json.dumps(rounded).replace("], ", "],\n") + "\n", encoding="utf-8")


if __name__ == "__main__":
    record()
