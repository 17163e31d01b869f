"""The loop language: the code generated for a Program, as a tree of typed values and statements. Each kind of step
builds nodes of this tree. `emit` compiles it, and `printed` shows it as Python.

Functions that are printed alike share their machine code, so what is printed tells values and types apart exactly.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from app.engine.compiled.fingerprint import fingerprint
from app.ops.size import AnySize

INDEX = "index"
"""The type of indices: unsigned, so that LLVM vectorises the loops."""
COUNT = "count"
"""The type of sizes, and of the bounds of a thread's share: Python's integers."""
ANY = ""
"""The type of an operator's setting, inferred from its value."""

INDENT = "    "
WIDTH = 104
"""The longest line of arguments."""


# Values


@dataclass(frozen=True)
class Number:
    """A constant."""

    value: Any
    dtype: str

    def __str__(self) -> str:
        if self.dtype == "bool":
            return str(bool(self.value))
        if self.dtype in (ANY, COUNT):
            return _exact(self.value)
        text = repr(self.value)
        if text in ("inf", "-inf", "nan"):
            text = f"np.{text}" if text[0] != "-" else "-np.inf"
        return f"np.{self.dtype}({text})"


def _exact(setting: Any) -> str:
    """The text of a setting; that of an array, which `repr` rounds and shortens, has a hash of its content."""
    if isinstance(setting, tuple):
        return f"({', '.join(map(_exact, setting))},)"
    if isinstance(setting, (bool, int, float, complex, str, bytes, type(None), np.generic)):
        return repr(setting)
    shape = f" {setting.dtype}{list(setting.shape)}" if isinstance(setting, np.ndarray) else ""
    return f"<{type(setting).__name__}{shape} {fingerprint(setting)[:32]}>"


@dataclass(frozen=True)
class Extent:
    """A number of elements, such as n or 2 * n + 1."""

    size: AnySize
    dtype: str = COUNT

    def __str__(self) -> str:
        return str(self.size)


@dataclass(frozen=True)
class Local:
    """A scalar variable."""

    name: str
    dtype: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Element:
    """An element of an array; it can be read and written."""

    array: str
    index: tuple[Value, ...]
    dtype: str

    def __str__(self) -> str:
        return f"{self.array}[{', '.join(map(str, self.index)) or '0'}]"


@dataclass(frozen=True)
class Infix:
    """A binary operation."""

    left: Value
    operator: str
    right: Value
    dtype: str

    def __str__(self) -> str:
        own = _BINDING[self.operator]
        left = f"({self.left})" if _binding(self.left) < own else str(self.left)
        right = f"({self.right})" if _binding(self.right) <= own else str(self.right)
        return f"{left} {self.operator} {right}"


_BINDING = {"and": 1, "not": 2, "==": 3, "<": 3, "+": 4, "-": 4, "*": 5, "/": 5}
"""The precedence of operators."""


def _binding(value: Value) -> int:
    if isinstance(value, Infix):
        return _BINDING[value.operator]
    if isinstance(value, Not):
        return _BINDING["not"]
    if isinstance(value, Extent) and " " in str(value):
        return _BINDING["+"]
    return 9


@dataclass(frozen=True)
class Negative:
    """The negative of an element or a variable."""

    value: Value
    dtype: str

    def __str__(self) -> str:
        return f"-{self.value}"


@dataclass(frozen=True)
class Not:
    """The negation of a condition."""

    condition: Value
    dtype: str = "bool"

    def __str__(self) -> str:
        return f"not {self.condition}"


@dataclass(frozen=True)
class OtherShape:
    """Whether two arrays differ in shape."""

    one: Array
    other: Array
    dtype: str = "bool"

    def __str__(self) -> str:
        return f"{self.one}.shape != {self.other}.shape"


@dataclass(frozen=True)
class Cast:
    """A value converted to another type."""

    value: Value
    dtype: str

    def __str__(self) -> str:
        names = {"bool": "bool", INDEX: "u"}
        return f"{names.get(self.dtype) or f'np.{self.dtype}'}({self.value})"


@dataclass(frozen=True)
class Call:
    """A function call."""

    function: str
    arguments: tuple[Operand, ...]
    dtype: str = ANY

    def __str__(self) -> str:
        return f"{self.function}({', '.join(map(str, self.arguments))})"


@dataclass(frozen=True)
class Array:
    """An array, or some of its rows if bounds are given."""

    name: str
    rows: tuple[Value, Value] | None = None

    def __str__(self) -> str:
        if self.rows is None:
            return self.name
        low, high = map(str, self.rows)
        return f"{self.name}[{low} : {high}]" if " " in low + high else f"{self.name}[{low}:{high}]"


@dataclass(frozen=True)
class View:
    """The first elements of a buffer as an array of a shape."""

    memory: str
    shape: tuple[AnySize, ...]

    def __str__(self) -> str:
        total: AnySize = 1
        for size in self.shape:
            total = total * size
        shaped = f".reshape({', '.join(map(str, self.shape))})" if len(self.shape) > 1 else ""
        return f"{self.memory}[: {total}]{shaped}"


@dataclass(frozen=True)
class Length:
    """The number of elements of an array."""

    array: str
    dtype: str = COUNT

    def __str__(self) -> str:
        return f"{self.array}.size"


@dataclass(frozen=True)
class Flat:
    """An array as one-dimensional."""

    array: str

    def __str__(self) -> str:
        return f"{self.array}.reshape({self.array}.size)"


Value = Number | Extent | Length | Local | Element | Infix | Negative | Not | OtherShape | Cast | Call
Operand = Value | Array | View | Flat


# Statements


@dataclass
class Comment:
    """A comment."""

    text: str


@dataclass
class Blank:
    """An empty line."""


@dataclass
class Assign:
    """An assignment to variables or elements. A single call may have several targets."""

    targets: Sequence[Local | Element | Array]
    values: Sequence[Operand]


@dataclass
class For:
    """A loop over an index, from `low` to `high`."""

    index: str
    low: Value | None
    high: Value
    body: list[Statement] = field(default_factory=list)


@dataclass
class If:
    """A conditional statement."""

    condition: Value
    body: list[Statement] = field(default_factory=list)
    otherwise: list[Statement] = field(default_factory=list)


@dataclass
class Forever:
    """An endless loop, left by `Break`."""

    body: list[Statement] = field(default_factory=list)


@dataclass
class Break:
    """Leave the loop."""


@dataclass
class Do:
    """A call whose result is not used."""

    call: Call


@dataclass
class Return:
    """Return from a function; True tells the caller to abort."""

    give_up: bool


Statement = Comment | Blank | Assign | For | If | Forever | Break | Do | Return


@dataclass(frozen=True)
class Parameter:
    """A number or a row-major array that a function takes. Sizes of an array that are not declared are None."""

    name: str
    dtype: str = COUNT
    shape: tuple[int | None, ...] | None = None

    def __str__(self) -> str:
        if self.shape is None:
            return self.name if self.dtype == COUNT else f"{self.name}: {self.dtype}"
        sizes = ", ".join(":" if size is None else str(size) for size in self.shape)
        return f"{self.name}: {self.dtype}[{sizes}]"


@dataclass
class Function:
    """A function of the source. One that Python calls begins with the thread's number and the number of threads."""

    name: str
    parameters: Sequence[Parameter]
    body: list[Statement]
    is_called_by_python: bool = True
    """Whether Python calls it; other functions are called from generated code."""


# Printing


def printed(function: Function) -> Iterator[str]:
    """The lines of a function."""
    yield f"def {function.name}("
    line = ""
    for parameter in map(str, function.parameters):
        if len(line) + len(parameter) > WIDTH:
            yield INDENT + line.rstrip()
            line = ""
        line += parameter + ", "
    yield INDENT + line.rstrip()
    yield "):"
    yield from _block(function.body, 1)


def _block(statements: Iterable[Statement], depth: int) -> Iterator[str]:
    indent = INDENT * depth
    for statement in statements:
        if isinstance(statement, Blank):
            yield ""
        elif isinstance(statement, Assign):
            yield f"{indent}{', '.join(map(str, statement.targets))} = {', '.join(map(str, statement.values))}"
        elif isinstance(statement, For):
            bounds = [str(bound) for bound in (statement.low, statement.high) if bound is not None]
            yield f"{indent}for {statement.index} in range({', '.join(bounds)}):"
            yield from _body(statement.body, depth + 1)
        elif isinstance(statement, If):
            yield f"{indent}if {statement.condition}:"
            yield from _body(statement.body, depth + 1)
            if statement.otherwise:
                yield f"{indent}else:"
                yield from _body(statement.otherwise, depth + 1)
        elif isinstance(statement, Forever):
            yield f"{indent}while True:"
            yield from _body(statement.body, depth + 1)
        else:
            yield indent + _line(statement)


def _body(statements: Sequence[Statement], depth: int) -> Iterator[str]:
    """The lines of a block inside a statement, which Python wants to have one that does something."""
    yield from _block(statements, depth)
    if all(isinstance(statement, (Blank, Comment)) for statement in statements):
        yield f"{INDENT * depth}pass"


def _line(statement: Comment | Break | Do | Return) -> str:
    if isinstance(statement, Comment):
        return f"# {statement.text}"
    if isinstance(statement, Do):
        return str(statement.call)
    return "break" if isinstance(statement, Break) else f"return {statement.give_up}"
