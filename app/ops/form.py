"""How an operator can be compiled: a definition states one of these forms, and a compiler knows the forms alone.

An operator without a form runs as a Python call. The functions that forms hold are kept inside what Numba
compiles; settings of the operator follow the values, in the order of its attributes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from app.ops.size import Shape

Axes = Callable[[Mapping[str, Any], Sequence[Shape]], Sequence[int]]
"""The axes of the first of some shapes that an operator with these attributes reduces."""


@dataclass(frozen=True)
class Elementwise:
    """Each element of the outputs is `function` of the elements at the same place of the inputs, which broadcast."""

    function: Callable[..., Any]
    takes: tuple[int, ...] | None = None
    """Which of the inputs the function takes; the rest only lend their shape. None: all."""
    settings: bool = True
    """Whether the function takes the operator's attributes, too."""
    integers: Callable[..., Any] | None = None
    """The function for whole numbers, where it is another one."""
    raises: bool = False
    """Whether a function refuses some numbers."""


@dataclass(frozen=True)
class Constant:
    """The same number everywhere, given by the attributes."""

    value: Callable[[Mapping[str, Any]], Any]


@dataclass(frozen=True)
class Reduction:
    """Each element of the output is folded, from `start`, out of the first input's elements along `axes`.

    Other inputs only lend their shape.
    """

    axes: Axes
    start: Callable[[str], Any]
    combine: Callable[[Any, Any], Any] | None = None
    """What a value and one more become; None: they are added."""
    mean: bool = False
    takes: tuple[int, ...] = (0,)


@dataclass(frozen=True)
class Spread:
    """The counterpart of a reduction: each element of the first input, for all elements along `axes` of the output."""

    axes: Axes
    share: Callable[[Mapping[str, Any]], bool]
    takes: tuple[int, ...] = (0,)


@dataclass(frozen=True)
class Alias:
    """The elements of the first input in the same order, under another shape."""


@dataclass(frozen=True)
class Product:
    """A product of two matrices; with `step`, `c - scale * x @ y` of the inputs (c, scale, x, y)."""

    transposes: tuple[str, str]
    """The attributes that say whether each of the matrices is transposed first."""
    step: bool = False


@dataclass(frozen=True)
class TurnedBytes:
    """The bytes of a batch column by column, in blocks of 64 rows, of which the last is filled up with zeros."""


@dataclass(frozen=True)
class ByteProduct:
    """`(scale * bytes + shift) @ y`, with the bytes of a batch, or `turned` ones, first among the matrices.

    `scale` and `shift` are attributes. With `step`, `c - rate * product` of the inputs (c, rate, bytes, y).
    """

    turned: bool = False
    step: bool = False


@dataclass(frozen=True)
class Convolution:
    """One of the derivatives of `sum(convolution of x by weight, times y)`: see `app.ops.convolution`.

    The inputs are the other two, in the order x, weight, y, and for x and the weight a value of the output's shape.
    """

    gives: Literal["x", "weight", "y"]
    takes: tuple[int, ...] = (0, 1)


@dataclass(frozen=True)
class Pooling:
    """Windows of images to one number each, or the counterpart of that: see `app.ops.pooling`."""

    does: Literal["max", "scatter", "pick", "mean", "spread"]
    takes: tuple[int, ...] = (0,)


@dataclass(frozen=True)
class Filling:
    """`function` takes the inputs, then arrays to fill with the outputs; False means that `problem` was met."""

    function: Callable[..., bool]
    row_by_row: bool
    problem: str = ""
    fits: Callable[[Mapping[str, Any], int], bool] = lambda attributes, rank: True
    """Whether the function covers a call with these attributes, whose first input has that many axes."""


@dataclass(frozen=True)
class OnNumbers:
    """A function on arrays of one shape as one on single numbers."""

    function: Callable[..., Any]
    axes: int | None = None
    """How many axes the arrays must have for it to be the same; None: any number."""
    keeps_type: bool = False
    """Whether what it returns surely has the element type of what it is given."""


@dataclass(frozen=True)
class Returning:
    """`function` takes the inputs and returns the outputs as new arrays: a Numba function of a user's."""

    function: Callable[..., Any]
    takes: tuple[int, ...] | None = None
    row_by_row: bool = False
    """Whether each row of the outputs depends on the same row of the inputs alone."""
    exact: bool = False
    """Whether the outputs must have the declared types, and are not cast to them."""
    on_numbers: OnNumbers | None = None
    """The function for single numbers, where it is one on arrays of one shape; None: it is not known to be."""


@dataclass(frozen=True)
class Choice:
    """The first input says which of two bodies runs on the other inputs: the operator's attributes name them."""

    holds: str = "true"
    fails: str = "false"


@dataclass(frozen=True)
class Loop:
    """While one body says so, another makes new values of the first inputs, as many as the attribute `results` says.

    What that body gives besides is kept of every iteration: the outputs after the results.
    """

    says: str = "cond"
    makes: str = "body"


@dataclass(frozen=True)
class InPlace:
    """Python that compiled code calls, which changes values where they lie; the inputs are the outputs, if it has any.

    Such operators run in the order of the Program, and on the thread that runs it.
    """

    calls: Callable[..., Callable[[], None]]
    """Given a list of the inputs' arrays, and then the settings: what is to be called whenever the operator runs."""


@dataclass(frozen=True)
class Fused:
    """A chain of elementwise operators that is run in one loop: the operators, in order."""

    body: tuple[Any, ...]
    dtypes: Mapping[str, str]
    """The types of the variables that the operators make."""


@dataclass(frozen=True)
class Accumulates:
    """Of an update: it is `base - scale * term`, named as inputs of the operator."""

    base: str
    scale: str
    term: str

    def places(self, inputs: Sequence[str]) -> tuple[int, int, int]:
        """Which of the operator's inputs these are."""
        return inputs.index(self.base), inputs.index(self.scale), inputs.index(self.term)
