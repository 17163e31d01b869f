"""How operators are compiled: each definition has one of these lowerings, and the compiler handles only lowerings.

An operator without a lowering runs as a call of its Python kernel. The functions in lowerings use only what Numba
compiles. They take the values, and then the attributes of the operator in order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from app.ops.size import Shape
from app.ops.values import Attributes, Element, Number

Axes = Callable[[Attributes, Sequence[Shape]], Sequence[int]]
"""A function of attributes and input shapes that returns the axes of the first shape to reduce."""


@dataclass(frozen=True)
class Elementwise:
    """Elementwise: each output element is `function` of the elements of the broadcast inputs at the same index."""

    function: Callable[..., Element]
    takes: tuple[int, ...] | None = None
    """The inputs that the function takes; of the others only the shape is used. None: all inputs."""
    settings: bool = True
    """Whether the function takes the attributes too."""
    integers: Callable[..., Element] | None = None
    """The function for integers, if it differs."""
    raises: bool = False
    """Whether the function raises an error for some numbers."""


@dataclass(frozen=True)
class Constant:
    """An output filled with one number, a function of the attributes."""

    value: Callable[[Attributes], Number]


@dataclass(frozen=True)
class Reduction:
    """A reduction of the first input along `axes`, from the initial value `start`.

    Of other inputs only the shape is used.
    """

    axes: Axes
    start: Callable[[str], Number]
    combine: Callable[[Element, Element], Element] | None = None
    """The function that combines two values; None: addition."""
    mean: bool = False
    takes: tuple[int, ...] = (0,)


@dataclass(frozen=True)
class Spread:
    """The transpose of a reduction: the first input is broadcast along `axes` of the output."""

    axes: Axes
    share: Callable[[Attributes], bool]
    takes: tuple[int, ...] = (0,)


@dataclass(frozen=True)
class Alias:
    """The elements of the first input in the same order, with another shape."""


@dataclass(frozen=True)
class Unchanged:
    """Each output is the input at its place; only the gradient is the operator's own. A pass removes it."""

    places: tuple[int, ...]


@dataclass(frozen=True)
class Joining:
    """The inputs one after the other along the attribute `axis`."""


@dataclass(frozen=True)
class Splitting:
    """The parts of the first input along the attribute `axis`."""

    takes: tuple[int, ...] = (0,)


@dataclass(frozen=True)
class Drawing:
    """Random numbers, drawn by the kernel, which compiled code calls.

    The kernel reads only the shapes and types of its inputs. `number` gives the one number that all elements are, for
    attributes with which nothing is random.
    """

    number: Callable[[Attributes], Number | None]
    takes: tuple[int, ...] = ()


@dataclass(frozen=True)
class Product:
    """A product of two matrices; with `step`, `c - scale * x @ y` for the inputs (c, scale, x, y)."""

    transposes: tuple[str, str]
    """The attributes that transpose each of the matrices first."""
    step: bool = False


@dataclass(frozen=True)
class TransposedBytes:
    """The bytes of a batch column by column, in blocks of 64 rows. Rows of the last block beyond the batch are not
    read."""


@dataclass(frozen=True)
class ByteProduct:
    """`(scale * bytes + shift) @ y`, with the bytes of a batch, or `transposed` ones, first among the matrices.

    `scale` and `shift` are attributes. With `step`, `c - rate * product` of the inputs (c, rate, bytes, y).
    """

    transposed: bool = False
    step: bool = False


@dataclass(frozen=True)
class Convolution:
    """A derivative of `sum(conv2d(x, weight) * y)` with respect to `gives` (see `opsmith.ops.convolution`).

    The inputs are the other two, in the order x, weight, y, and for x and the weight a value of the output's shape.
    """

    gives: Literal["x", "weight", "y"]
    takes: tuple[int, ...] = (0, 1)


@dataclass(frozen=True)
class Pooling:
    """The maximum of each window of images, or its gradient: see `opsmith.ops.pooling`."""

    does: Literal["max", "scatter"]
    takes: tuple[int, ...] = (0,)


@dataclass(frozen=True)
class SumsOfTiles:
    """The same as `of`, a sum over a batch of images, for each tile of a few images: one row for each."""

    of: Convolution | Reduction

    @property
    def takes(self) -> tuple[int, ...]:
        return self.of.takes


@dataclass(frozen=True)
class Filling:
    """`function` takes the inputs and then the output arrays, which it fills; it returns False if `problem` occurs."""

    function: Callable[..., bool]
    row_by_row: bool
    problem: str = ""
    fits: Callable[[Attributes, int], bool] = lambda attributes, rank: True
    """Whether the function supports these attributes and that number of axes of the first input."""


@dataclass(frozen=True)
class Returning:
    """`function`, a user's Numba function, takes the inputs and returns the outputs as new arrays."""

    function: Callable[..., Any]
    takes: tuple[int, ...] | None = None
    row_by_row: bool = False
    """Whether each row of the outputs depends only on the same row of the inputs."""


@dataclass(frozen=True)
class Choice:
    """The first input selects which of two bodies runs on the other inputs; the fields name the attributes."""

    if_true: str = "true"
    if_false: str = "false"
    first: int = 1
    """The position of the first input of the bodies."""


@dataclass(frozen=True)
class Loop:
    """While the condition body is true, the loop body computes new values of the first inputs.

    The outputs are the last ones, and the number of iterations.
    """

    condition: str = "cond"
    body: str = "body"
    first: int = 0


@dataclass(frozen=True)
class LoopGradient:
    """The loop body runs as often as the first input says, and then the gradient body, backwards.

    The gradient body reads the values with which an iteration began, and computes new values of the last inputs.
    """

    body: str = "body"
    gradient: str = "gradient"
    first: int = 1


@dataclass(frozen=True)
class InPlace:
    """A Python function, called from compiled code, that changes its inputs in place; any outputs are its inputs.

    Such operators run in the order of the Program, on the thread that runs it.
    """

    calls: Callable[..., Callable[[], None]]
    """Takes a list of the input arrays and then the attributes; returns the function to call when the operator runs."""


@dataclass(frozen=True)
class Fused:
    """A chain of elementwise operators, in order, that runs in one loop."""

    body: tuple[Any, ...]
    dtypes: Mapping[str, str]
    """The types of the variables that the operators compute."""


@dataclass(frozen=True)
class Accumulates:
    """An update of the form `base - scale * term`; the fields are the names of these inputs."""

    base: str
    scale: str
    term: str

    def places(self, inputs: Sequence[str]) -> tuple[int, int, int]:
        """The positions of these inputs."""
        return inputs.index(self.base), inputs.index(self.scale), inputs.index(self.term)
