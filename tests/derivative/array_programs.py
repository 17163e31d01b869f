"""Functions on arrays made at random, of all that a derived gradient knows: loops, branches, rows, changes in place.

They are meant to be nasty: indices that wrap around, slices that end beyond the array, arrays of one element that are
broadcast, two names for one array, rows that are changed while others read them, loops without an iteration, variables
that only one branch defines, values that are needed after they were overwritten, parts of arrays that have no name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

import numpy as np

HEAD = """
import math

import numpy as np


def bend(u, v=0.7):
    if u > v:
        return math.tanh(u) * v
    return u * 0.5 + v * u * u


def mix(row, other):
    total = 0.0
    for k in range(len(row)):
        total += row[k] * np.sin(other[k])
    return total


def shift(row, by):
    out = np.empty_like(row)
    for k in range(row.shape[0]):
        out[k] = row[k - 1] * by
    return out


def fill(row, value):
    for k in range(row.shape[0]):
        row[k] = row[k] * 0.5 + value
"""

SIZES = ("n", "m")


@dataclass
class Scope:
    """What a statement may use."""

    scalars: list[str]
    ints: list[str]
    arrays: dict[str, tuple[str, ...]]
    """The sizes of each array that may be read; `1` is a size of one."""
    writable: list[str]
    loops: dict[str, str] = field(default_factory=dict)
    """The variables of the loops around, each with the size that it goes over."""

    def inner(self, **loops: str) -> Scope:
        arrays = dict(self.arrays)
        return Scope([*self.scalars], [*self.ints], arrays, [*self.writable], {**self.loops, **loops})


class ArrayWriter:
    """Writes one function of x (n, m), w (m), v (n), b (1) and p, which are n integers from -n to n - 1."""

    def __init__(self, random: Random):
        self.random = random
        self.names = 0
        self.depth = 0
        nasty = ["wrap", "beyond", "one", "alias", "row alias", "swap", "in place row", "zero trip", "one branch"]
        nasty += ["while", "break", "gather", "whole", "helper", "in place helper", "overlap", "late", "columns"]
        nasty += ["buffer", "rows of", "bounds", "view", "new and old", "transposed", "integers", "part"]
        self.features = set(random.sample(nasty, random.randint(2, 7)))

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def has(self, feature: str, probability: float = 0.5) -> bool:
        return feature in self.features and self.chance(probability)

    def new(self, wish: str) -> str:
        self.names += 1
        return f"{wish}{self.names}"

    # Indices

    def index(self, scope: Scope, size: str) -> str:
        """An index into an axis of this size."""
        over = [name for name, of in scope.loops.items() if of == size]
        choices = ["0", f"{size} - 1"] if not over or self.chance(0.2) else over * 3
        if size == "1":
            return "0"
        if over:
            one = self.random.choice(over)
            choices += [f"{size} - 1 - {one}", f"({one} + 1) % {size}"]
            if "wrap" in self.features:
                choices += [f"{one} - 1"] * 2
        if "wrap" in self.features:
            choices.append("-1")
        if scope.ints:
            choices.append(f"{self.random.choice(scope.ints)} % {size}")
        if size == "n" and "gather" in self.features:
            choices += [f"p[{self.random.choice([*over, '0', '1'])}]"] * 2
        return self.random.choice(choices)

    def element(self, scope: Scope, name: str) -> str:
        return f"{name}[{', '.join(self.index(scope, size) for size in scope.arrays[name])}]"

    def named(self, scope: Scope, sizes: tuple[str, ...], writable: bool = False) -> str | None:
        """An array of this shape."""
        names = [name for name, of in scope.arrays.items() if of == sizes and (not writable or name in scope.writable)]
        return self.random.choice(names) if names else None

    # Expressions

    def number(self, scope: Scope, depth: int = 2) -> str:
        kinds = ["scalar", "element", "element", "constant"]
        if depth > 0:
            kinds += ["sum", "product", "quotient", "sine", "extreme", "choice", "bend", "square", "difference"]
            kinds += ["reduction"] * ("whole" in self.features)
        kind = self.random.choice(kinds)
        if kind == "constant":
            return f"{self.random.uniform(0.3, 1.2):.2f}"
        if kind == "scalar":
            return self.random.choice([*scope.scalars, "c"])
        if kind == "element":
            return self.element(scope, self.random.choice(list(scope.arrays)))
        if kind == "reduction":
            row = self.row(scope, self.random.choice(SIZES), 1)
            return self.random.choice([f"np.sum({row})", f"({row}).max()", f"({row}).mean()", f"np.min({row})"])
        if kind == "bend":
            return f"bend({self.number(scope, depth - 1)})" if "helper" in self.features else self.number(scope, 1)
        one, two = self.number(scope, depth - 1), self.number(scope, depth - 1)
        extreme = self.random.choice(["max", "min", "np.maximum", "np.minimum"])
        forms = {
            "sum": f"({one} + {two})",
            "difference": f"({one} - {two})",
            "product": f"{one} * {two}",
            "quotient": f"{one} / (1.5 + ({two}) ** 2)",
            "sine": f"{self.random.choice(['np.sin', 'math.sin', 'math.tanh', 'np.cos'])}({one})",
            "extreme": f"{extreme}({one}, {two})",
            "choice": f"({one} if {two} > {self.random.uniform(0.2, 0.8):.2f} else 0.5 * {two})",
            "square": f"({one}) ** 2",
        }
        return forms[kind]

    def bounded(self, scope: Scope) -> str:
        """A number between -0.7 and 0.7."""
        return f"0.7 * {self.random.choice(['np.sin', 'math.sin', 'np.tanh'])}({self.number(scope)})"

    def row(self, scope: Scope, size: str, depth: int = 2) -> str:
        """An expression of one axis."""
        kinds = ["name", "name", "of two"]
        kinds += ["column"] if "columns" in self.features else []
        kinds += ["reverse", "shift"] if "wrap" in self.features and depth > 0 else []
        if depth > 0:
            kinds += ["scaled", "scaled", "sine", "combined", "combined", "chosen", "extreme"]
            kinds += ["product", "summed"] if "whole" in self.features else []
            kinds += ["one"] if "one" in self.features else []
        kind = self.random.choice(kinds)
        if kind == "shift" and "helper" in self.features:
            return f"shift({self.row(scope, size, 0)}, {self.number(scope, 0)})"
        if kind == "one":
            return f"({self.row(scope, size, depth - 1)} {self.random.choice('+*')} {self.named(scope, ('1',))})"
        if kind == "of two" and self.named(scope, ("n", "m")):
            name = self.named(scope, ("n", "m"))
            if size == "m":
                return f"{name}[{self.index(scope, 'n')}]"
            return f"{name}[:, {self.index(scope, 'm')}]"
        if kind == "column" and self.named(scope, (size, size)):
            return f"{self.named(scope, (size, size))}[:, {self.index(scope, size)}]"
        if kind == "reverse":
            return f"{self.row(scope, size, 0)}[::-1]" if self.chance(0.3) else self.row(scope, size, 0)
        if kind == "product":
            return f"x @ {self.row(scope, 'm', 0)}" if size == "n" else f"{self.row(scope, 'n', 0)} @ x"
        if kind == "summed":
            return f"x.sum(axis={1 if size == 'n' else 0})"
        if kind in ("scaled", "sine", "combined", "chosen", "extreme"):
            one, two = self.row(scope, size, depth - 1), self.row(scope, size, depth - 1)
            number = self.number(scope, 1)
            forms = {
                "scaled": f"({one} * ({number}))",
                "sine": f"{self.random.choice(['np.sin', 'np.tanh', 'np.cos'])}({one})",
                "combined": f"({one} {self.random.choice('+-*')} {two})",
                "chosen": f"np.where({one} > 0.5, {one}, {two})",
                "extreme": f"np.maximum({one}, {self.random.choice([two, '0.4'])})",
            }
            return forms[kind]
        return self.named(scope, (size,)) or ("w" if size == "m" else "v")

    def whole(self, scope: Scope) -> str:
        """An expression of two axes."""
        one = self.named(scope, ("n", "m")) or "x"
        forms = [
            f"{one} * {self.row(scope, 'm', 1)}",
            f"np.sin({one})",
            f"{one} + ({self.row(scope, 'n', 1)})[:, None]",
        ]
        forms += [f"{one} * x", f"x / (1.5 + {one} ** 2)", f"np.outer({self.row(scope, 'n', 0)}, w)"]
        forms += [f"{one} * {one}.sum(axis=1)[:, None]", f"{one} * ({self.number(scope, 1)})"]
        if "one" in self.features:
            forms.append(f"{one} * {self.named(scope, ('1',))}")
        return self.random.choice(forms)

    def test(self, scope: Scope) -> str:
        test = f"{self.number(scope, 1)} > {self.random.uniform(0.2, 0.8):.2f}"
        if scope.loops and self.chance(0.3):
            one = self.random.choice(list(scope.loops))
            test = self.random.choice([f"{one} > 0", f"{one} % 2 == 0", f"{one} == 1", f"{one} > 0 and {test}"])
        return test

    # Statements

    def block(self, scope: Scope, count: int) -> list[str]:
        return [line for _ in range(count) for line in self.statement(scope)]

    def statement(self, scope: Scope) -> list[str]:
        kinds = ["number", "number", "augmented", "element", "element", "element augmented", "row", "int", "pair"]
        if self.depth < 3:
            kinds += ["loop", "loop", "if", "loop"]
        kinds += ["in place row", "augmented row"] if "in place row" in self.features else []
        kinds += [
            f
            for f in ("alias", "row alias", "swap", "overlap", "beyond", "gather", "in place helper")
            if f in self.features
        ]
        kinds += ["while"] if "while" in self.features and self.depth < 2 else []
        kinds += ["leave"] if "break" in self.features and scope.loops else []
        kinds += ["whole"] if "whole" in self.features and self.depth < 2 else []
        kinds += ["one branch"] if "one branch" in self.features else []
        if self.depth < 2:
            kinds += [f for f in ("buffer", "rows of", "bounds", "new and old") if f in self.features]
        kinds += [f for f in ("view", "transposed", "integers", "part") if f in self.features]
        return getattr(self, "_" + self.random.choice(kinds).replace(" ", "_"))(scope)

    def _number(self, scope: Scope) -> list[str]:
        name = self.random.choice(scope.scalars)
        if self.depth == 0 and self.chance(0.3):
            name = self.new("s")
            lines = [f"{name} = {self.bounded(scope)}"]
            scope.scalars.append(name)
            return lines
        return [f"{name} = {self.bounded(scope)}"]

    def _augmented(self, scope: Scope) -> list[str]:
        name, how = self.random.choice(scope.scalars), self.random.choice(["+=", "-=", "*="])
        return [f"{name} {how} {self.bounded(scope)}"]

    def _pair(self, scope: Scope) -> list[str]:
        one, two = self.random.sample(scope.scalars, 2)
        return [f"{one}, {two} = {two}, {self.bounded(scope)}"]

    def _int(self, scope: Scope) -> list[str]:
        loops = [*scope.loops]
        name = "k"
        value = self.random.choice([*loops, "k + 1", "p[0]", "n - 1", "k * 2 + 1"])
        if self.has("whole"):
            value = f"np.argmax({self.row(scope, 'm', 0)})"
        return [f"{name} = {value}"]

    def _target(self, scope: Scope) -> str | None:
        return self.random.choice(scope.writable) if scope.writable else None

    def _element(self, scope: Scope) -> list[str]:
        name = self._target(scope)
        return [f"{self.element(scope, name)} = {self.bounded(scope)}"] if name else ["pass"]

    def _element_augmented(self, scope: Scope) -> list[str]:
        name, how = self._target(scope), self.random.choice(["+=", "-=", "*=", "/="])
        if name is None:
            return ["pass"]
        value = f"(1.5 + {self.bounded(scope)})" if how == "/=" else self.bounded(scope)
        return [f"{self.element(scope, name)} {how} {value}"]

    def _row(self, scope: Scope) -> list[str]:
        size = self.random.choice(SIZES)
        two = self.named(scope, ("n", "m"), writable=True)
        value = f"np.sin({self.row(scope, size)})"
        if two and self.chance(0.6):
            place = f"{two}[{self.index(scope, 'n')}]" if size == "m" else f"{two}[:, {self.index(scope, 'm')}]"
            return [f"{place} {self.random.choice(['=', '=', '+='])} {value}"]
        if self.depth == 0 and self.chance(0.5):
            name = self.new("t")
            lines = [
                f"{name} = {self.random.choice([value, f'{self.row(scope, size, 0)}.copy()', f'np.zeros({size})'])}"
            ]
            scope.arrays[name] = (size,)
            scope.writable.append(name)
            return lines
        name = self.named(scope, (size,), writable=True)
        if name is None:
            return ["pass"]
        return [self.random.choice([f"{name} = {value}", f"{name}[:] = {value}", f"{name} = {name} + {value}"])]

    def _in_place_row(self, scope: Scope) -> list[str]:
        two, size = self.named(scope, ("n", "m"), writable=True), self.random.choice(SIZES)
        if two is None:
            return ["pass"]
        place = f"{two}[{self.index(scope, 'n')}]" if size == "m" else f"{two}[:, {self.index(scope, 'm')}]"
        value = self.random.choice([f"np.sin({place})", f"{place} * {self.row(scope, size, 1)}", self.row(scope, size)])
        how = self.random.choice(["=", "+=", "*=", "-="])
        return [f"{place} {how} 0.5 * np.tanh({value})"]

    def _augmented_row(self, scope: Scope) -> list[str]:
        size = self.random.choice(SIZES)
        name, how = self.named(scope, (size,), writable=True), self.random.choice(["+=", "*=", "-="])
        if name is None:
            return ["pass"]
        value = self.random.choice([self.row(scope, size), self.bounded(scope)])
        return [f"{name} {how} np.sin({value})"]

    def _overlap(self, scope: Scope) -> list[str]:
        size = self.random.choice(SIZES)
        name = self.named(scope, (size,), writable=True)
        if name is None:
            return ["pass"]
        pair = self.random.choice([("[1:]", "[:-1]"), ("[:-1]", "[1:]"), (f"[1:{size}]", f"[0:{size} - 1]")])
        how = self.random.choice(["=", "=", "+="])
        return [f"{name}{pair[0]} {how} {self.random.choice(['0.5 *', 'np.sin', ''])}({name}{pair[1]})"]

    def _beyond(self, scope: Scope) -> list[str]:
        size = self.random.choice(SIZES)
        name, other = self.named(scope, (size,), writable=True), self.row(scope, size, 0)
        first = self.random.choice(["0", "1", "-2", "-1"])
        last = self.random.choice([f"{size} + 2", "9", "", f"{size}"])
        if name is None:
            return ["pass"]
        return [f"{name}[{first}:{last}] {self.random.choice(['=', '+='])} np.sin({other}[{first}:{last}])"]

    def _gather(self, scope: Scope) -> list[str]:
        name = self.named(scope, ("n", "m"), writable=True)
        if name is None:
            return ["pass"]
        i = self.new("i")
        inner = scope.inner(**{i: "n"})
        how = self.random.choice(["+=", "+=", "="])
        return [f"for {i} in range(n):", f"    {name}[p[{i}]] {how} 0.5 * np.sin({self.row(inner, 'm', 1)})"]

    def _alias(self, scope: Scope) -> list[str]:
        name = self._target(scope)
        if name is None:
            return ["pass"]
        other = self.new("z")
        lines = [f"{other} = {name}"]
        scope.arrays[other] = scope.arrays[name]
        if self.depth == 0:
            scope.writable.append(other)
        lines.append(f"{self.element(scope, self.random.choice([name, other]))} = {self.bounded(scope)}")
        if self.depth > 0:
            del scope.arrays[other]
        return lines

    def _row_alias(self, scope: Scope) -> list[str]:
        two = self.named(scope, ("n", "m"), writable=self.chance(0.7))
        if two is None:
            return ["pass"]
        row = self.new("row")
        lines = [f"{row} = {two}[{self.index(scope, 'n')}]"]
        inner = scope.inner()
        inner.arrays[row] = ("m",)
        if two in scope.writable:
            inner.writable += [row] * 3
        self.depth += 1
        lines += self.block(inner, self.random.randint(1, 3))
        self.depth -= 1
        if two in scope.writable:
            value = self.random.choice([f"{self.element(inner, row)}", f"np.sum({row})"])
            lines.append(f"{self.element(scope, two)} = 0.5 * np.sin({value})")
        return lines

    def _view(self, scope: Scope) -> list[str]:
        """A row under a name that had an array of its own before."""
        name = self.named(scope, ("m",), writable=True)
        two = self.named(scope, ("n", "m"), writable=self.chance(0.8))
        if name is None or two is None:
            return ["pass"]
        return [f"{name} = {two}[{self.index(scope, 'n')}]", f"{self.element(scope, name)} += {self.bounded(scope)}"]

    def _buffer(self, scope: Scope) -> list[str]:
        """A row that every iteration fills anew, or in part."""
        name, i, j = self.new("r"), self.new("i"), self.new("j")
        inner = scope.inner(**{i: "n", j: "m"})
        inner.arrays[name] = ("m",)
        filled = self.random.choice(["range(m)", "range(m - 1, -1, -1)", "range(1, m)", "range(0, m, 2)"])
        two = self.named(scope, ("n", "m"), writable=True) or "y"
        lines = [f"{name} = np.{self.random.choice(['zeros', 'ones', 'empty'])}(m)", f"for {i} in range(n):"]
        lines += [f"    for {j} in {filled}:", f"        {name}[{j}] = {self.bounded(scope.inner(**{i: 'n', j: 'm'}))}"]
        if self.chance(0.5):
            lines += [
                f"    for {j} in range(1, m):",
                f"        {name}[{j}] {self.random.choice(['+=', '*='])} {name}[{j} - 1]",
            ]
        change = [
            f"    {two}[{i}] += 0.5 * {name}",
            f"    for {j} in range(m):",
            f"        {two}[{i}, {j}] = np.sin({name}[{j}])",
        ]
        return [*lines, *(change[:1] if self.chance(0.5) else change[1:])]

    def _rows_of(self, scope: Scope) -> list[str]:
        """A loop over the rows of an array, which it changes."""
        two, row = self.named(scope, ("n", "m"), writable=True), self.new("row")
        if two is None:
            return ["pass"]
        inner = scope.inner()
        inner.arrays[row] = ("m",)
        inner.writable += [row] * 4
        self.depth += 1
        lines = self.block(inner, 2)
        self.depth -= 1
        changes = [
            f"{row} -= 0.3 * np.sin({row}.max())",
            f"{row} *= {self.bounded(inner)}",
            f"{row}[:] = np.sin({row})",
        ]
        return [f"for {row} in {two}:", *indented([self.random.choice(changes), *lines])]

    def _bounds(self, scope: Scope) -> list[str]:
        """A loop that changes its variable and what its end was computed from."""
        end, j = self.new("end"), self.new("j")
        inner = scope.inner(**{j: "m"})
        body = self.nested(inner, 2)
        return [f"{end} = m", f"for {j} in range({end}):", f"    {end} = 1", *body, f"    {j} = {j} + 1"]

    def _new_and_old(self, scope: Scope) -> list[str]:
        """A recurrence over whole rows, with two arrays that take turns."""
        name, new, i, j = self.named(scope, ("m",), writable=True), self.new("new"), self.new("i"), self.new("j")
        if name is None:
            return ["pass"]
        inner = scope.inner(**{i: "n", j: "m"})
        expression = self.random.choice(["np.empty(m)", "np.zeros(m)", f"np.empty_like({name})", f"{name}.copy()"])
        lines = [f"for {i} in range(n):", f"    {new} = {expression}", f"    for {j} in range(m):"]
        lines += [f"        {new}[{j}] = 0.7 * np.sin({name}[{j} - 1] + {self.number(inner, 1)})"]
        return [*lines, f"    {name} = {self.random.choice([new, f'{new} * 0.9', new])}"]

    def _transposed(self, scope: Scope) -> list[str]:
        two, name = self.named(scope, ("n", "m"), writable=True), self.new("tr")
        if two is None:
            return ["pass"]
        change = f"{name}[{self.index(scope, 'm')}, {self.index(scope, 'n')}] = {self.bounded(scope)}"
        read = f"{self.random.choice(scope.scalars)} = 0.5 * np.sin({name}[{self.index(scope, 'm')}].sum())"
        return [f"{name} = {two}.T", change if self.chance(0.4) else read]

    def _part(self, scope: Scope) -> list[str]:
        """A part of an array that has no name, or one of its elements in another order; it is changed."""
        name = self.new("part")
        arrays = ["x.copy()", "np.outer(v, w)", "x @ np.outer(w, w)", f"np.sin({self.whole(scope)})", "y.copy()"]
        row = ["x.sum(axis=0)", "v @ x", "x.max(axis=0)", "w.copy()", f"np.sin({self.row(scope, 'm', 1)})"]
        whole, row = self.random.choice(arrays), self.random.choice(row)
        part, sizes = self.random.choice([
            (f"({whole})[::-1]", SIZES), (f"({whole})[:, ::-1]", SIZES), (f"({whole}).T", ("m", "n")),
            (f"({whole})[{self.index(scope, 'n')}]", ("m",)), (f"({whole})[:, {self.index(scope, 'm')}]", ("n",)),
            (f"({row})[::-1]", ("m",)), (f"({row})[:1]", ("1",)), (f"{row}", ("m",)),
        ])  # fmt: skip
        inner = scope.inner()
        inner.arrays[name] = sizes
        lines = [f"{name} = {part}", f"{self.element(inner, name)} = {self.bounded(inner)}"]
        if self.depth == 0 and sizes != ("m", "n"):
            scope.arrays[name] = sizes
            scope.writable.append(name)
            return lines
        return [*lines, f"{self.random.choice(scope.scalars)} = 0.5 * np.sin({self.element(inner, name)})"]

    def _integers(self, scope: Scope) -> list[str]:
        """Whole numbers that are computed from others and from comparisons, and used as factors and indices."""
        name, two = self.random.choice(scope.scalars), self.named(scope, ("n", "m"), writable=True) or "y"
        lines = [f"k += int({self.number(scope, 1)} > 0.5)", f"{name} = {name} * (k % 3) / 2"]
        lines.append(f"{two}[k % n, (k + p[0]) % m] += {self.bounded(scope)}")
        return self.random.sample(lines, 2)

    def _swap(self, scope: Scope) -> list[str]:
        size = self.random.choice(SIZES)
        names = [name for name in scope.writable if scope.arrays[name] == (size,) and not name.startswith("row")]
        if len(set(names)) < 2:
            return ["pass"]
        one, two = self.random.sample(sorted(set(names)), 2)
        return [f"{one}, {two} = {two}, {one}"]

    def _in_place_helper(self, scope: Scope) -> list[str]:
        name = self.named(scope, ("m",), writable=True)
        two = self.named(scope, ("n", "m"), writable=True)
        place = f"{two}[{self.index(scope, 'n')}]" if two and self.chance(0.5) else name
        if place is None:
            return ["pass"]
        if self.chance(0.3):
            return [
                f"{self.random.choice(scope.scalars)} = 0.3 * np.sin(mix({place}, {self.random.choice([place, 'w'])}))"
            ]
        return [f"fill({place}, {self.bounded(scope)})"]

    def _whole(self, scope: Scope) -> list[str]:
        name = self.named(scope, ("n", "m"), writable=True)
        value = f"0.7 * np.sin({self.whole(scope)})"
        if name is None:
            return ["pass"]
        forms = [f"{name} = {value}", f"{name}[:] = {value}", f"{name} += {value}", f"{name} *= {value}"]
        forms.append(f"{name}[:, :] = {value}")
        return [self.random.choice(forms)]

    def _one_branch(self, scope: Scope) -> list[str]:
        name, test = self.new("u"), self.test(scope)
        lines = [f"if {test}:", f"    {name} = {self.bounded(scope)}"]
        if self.chance(0.5):
            inner = scope.inner()
            inner.scalars.append(name)
            return [*lines, "else:", f"    {name} = {self.bounded(scope)}", *self._augmented(inner)]
        flag = self.new("f")
        used = f"{self.random.choice(scope.scalars)} = {name} * {self.bounded(scope)}"
        return [f"{flag} = False", *lines, f"    {flag} = True", *self._element(scope), f"if {flag}:", f"    {used}"]

    def _leave(self, scope: Scope) -> list[str]:
        word = self.random.choice(["break", "continue"])
        return [
            f"if {self.test(scope)}:",
            *indented(self.block(scope.inner(), self.random.randint(0, 1))),
            f"    {word}",
        ]

    def _if(self, scope: Scope) -> list[str]:
        lines = [f"if {self.test(scope)}:", *self.nested(scope.inner(), 2)]
        if self.chance(0.3):
            lines += [f"elif {self.test(scope)}:", *self.nested(scope.inner(), 1)]
        if self.chance(0.5):
            lines += ["else:", *self.nested(scope.inner(), 2)]
        return lines

    def _while(self, scope: Scope) -> list[str]:
        count = self.new("q")
        name = self.random.choice(scope.scalars)
        test = self.random.choice([f"{count} < 3", f"{name} < 1.3 and {count} < 4"])
        inner = scope.inner()
        return [f"{count} = 0", f"while {test}:", f"    {count} += 1", *self.nested(inner, 2)]

    def _loop(self, scope: Scope) -> list[str]:
        size = self.random.choice(SIZES)
        one = self.random.choice("ij") if not scope.loops and self.chance(0.5) else self.new("j")
        two = self.named(scope, ("n", "m"))
        ranges = [f"range({size})"] * 4 + [f"range(1, {size})", f"range({size} - 1, -1, -1)", f"range(0, {size}, 2)"]
        ranges += [f"range({size} - 1)", f"range({size} - 2, 0, -1)"]
        if "zero trip" in self.features:
            ranges += [f"range({size}, {size})", "range(0)", f"range({size} - 4)", f"range(2, {size} - 1)"]
        others = [loop for loop, of in scope.loops.items() if of == size]
        ranges += [f"range({others[0]})", f"range({others[0]} + 1, {size})"] if others else []
        inner = scope.inner(**{one: size})
        head = f"for {one} in {self.random.choice(ranges)}:"
        if two and two not in scope.writable and self.chance(0.2):
            row = self.new("row")
            inner = scope.inner(**{one: "n"})
            inner.arrays[row] = ("m",)
            head = self.random.choice([f"for {one}, {row} in enumerate({two}):", f"for {row} in {two}:"])
            if "enumerate" not in head:
                inner.loops.pop(one)
        lines = [head, *self.nested(inner, 3)]
        if self.has("late", 0.4) and "range" in head:
            return [f"{one} = 0", *lines, f"{self.random.choice(scope.scalars)} += 0.1 * {one}", f"k = {one}"]
        return lines

    def nested(self, scope: Scope, most: int) -> list[str]:
        self.depth += 1
        lines = self.block(scope, self.random.randint(1, most))
        self.depth -= 1
        return indented(lines)

    def _filled(self) -> list[str]:
        """An array that is not initialised before it is filled."""
        new = self.random.choice(["np.empty((n, m))", "np.empty_like(x)"])
        fills = [
            "y[:] = np.cos(x)",
            "for i in range(n):\n        for j in range(m):\n            y[i, j] = x[i, j] * w[j]",
        ]
        fills.append("for j in range(m - 1, -1, -1):\n        y[:, j] = x[:, j] * v")
        return [f"y = {new}", self.random.choice(fills)]

    # The function

    def function(self) -> str:
        scope = Scope(["a", "d", "e"], ["k"], {"x": SIZES, "w": ("m",), "v": ("n",), "b": ("1",)}, [])
        lines = ["n, m = x.shape", "a, d, e, k = 0.3, x[0, 0] * w[0], 1.0, 1"]
        makers = ["np.zeros((n, m))", "np.ones((n, m))", "x.copy()", "np.zeros_like(x)", "x * w", "np.sin(x)"]
        lines.append(f"y = {self.random.choice(makers)}")
        if self.chance(0.15):
            lines[-1:] = self._filled()
        if self.chance(0.01):
            lines[-1:] = ["y = x"]  # a write to it must be refused
        row = self.random.choice(["np.zeros(m)", "w * 0.5", "w.copy()", "np.ones_like(w)", "x[0].copy()"])
        lines.append(f"t = {row}")
        scope.arrays |= {"y": SIZES, "t": ("m",)}
        scope.writable += ["y", "y", "t"]
        if "swap" in self.features:
            lines.append("u = np.sin(w)")
            scope.arrays["u"] = ("m",)
            scope.writable.append("u")
        if "one" in self.features:
            lines.append("g = np.ones(1)")
            scope.arrays["g"] = ("1",)
            scope.writable.append("g")
        lines += self.block(scope, self.random.randint(3, 6))
        lines.append("y[0, 0] += a * d + e * t[0] + t[m - 1]")
        results = ["y", "y", "y", "y, t", "t, y", "y * t", "y, y", "y[::-1]", "y[:1], t", "y.T, t[:1]", "y[:, 0], y"]
        lines.append(f"return {self.random.choice(results)}")
        return "\n    ".join(["def f(x, w, v, b, p, c=0.6):", *lines]) + "\n"


def indented(lines: Sequence[str]) -> list[str]:
    return ["    " + line for line in lines]


def program(seed: int) -> str:
    """The text of a module with a function `f`."""
    return HEAD + "\n\n" + ArrayWriter(Random(seed)).function()


def arguments_for(seed: int) -> list[np.ndarray]:
    random = np.random.default_rng(seed)
    n, m = [(3, 4), (2, 3), (3, 3), (1, 2), (4, 1)][random.choice(5, p=[0.4, 0.25, 0.2, 0.1, 0.05])]
    floats = [random.uniform(0.3, 1.1, shape) for shape in ((n, m), (m,), (n,), (1,))]
    return [*floats, random.integers(-n, n, n)]
