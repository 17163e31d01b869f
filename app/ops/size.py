"""Symbolic sizes: expressions such as 2*n + 1 in named sizes such as n, whose values are known only at run time.

A size in a Spec is an integer or a Size. Arithmetic on sizes returns sizes, so shape inference uses ordinary
arithmetic. Named sizes are never negative.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from math import inf, prod
from typing import Any, NamedTuple, Union

from app.errors import ShapeError

AnySize = Union[int, "Size"]
Shape = tuple[AnySize, ...]


class UndecidedError(ShapeError):
    """A comparison of sizes whose result is known only at run time."""


class SizeFunction(NamedTuple):
    """A function of sizes that cannot be simplified: a minimum, a maximum or a floor division."""

    name: str
    sizes: tuple[AnySize, ...]

    def __str__(self) -> str:
        if self.name == "//":
            return " // ".join(str(s) if isinstance(s, int) or _is_one_factor(s) else f"({s})" for s in self.sizes)
        return f"{self.name}({', '.join(map(str, self.sizes))})"


Factor = str | SizeFunction
Term = tuple[Factor, ...]
"""A product of factors; the empty one is 1."""


class Size:
    """A polynomial in named sizes with integer coefficients."""

    __slots__ = ("terms",)

    terms: tuple[tuple[Term, int], ...]

    def __init__(self, terms: Mapping[Term, int]):
        self.terms = tuple(sorted(terms.items(), key=lambda item: (-len(item[0]), str(item[0]))))

    # Arithmetic

    def __add__(self, other: AnySize) -> AnySize:
        if not isinstance(other, (int, Size)):
            return NotImplemented
        terms = dict(self.terms)
        for term, count in _terms(other):
            terms[term] = terms.get(term, 0) + count
        return _simplest(terms)

    def __mul__(self, other: AnySize) -> AnySize:
        if not isinstance(other, (int, Size)):
            return NotImplemented
        terms: dict[Term, int] = {}
        for left, m in self.terms:
            for right, n in _terms(other):
                term = tuple(sorted((*left, *right), key=str))
                terms[term] = terms.get(term, 0) + m * n
        return _simplest(terms)

    __radd__, __rmul__ = __add__, __mul__

    def __neg__(self) -> AnySize:
        return Size({term: -count for term, count in self.terms})

    def __sub__(self, other: AnySize) -> AnySize:
        return self + -other

    def __rsub__(self, other: AnySize) -> AnySize:
        return -self + other

    def __floordiv__(self, other: AnySize) -> AnySize:
        return quotient(self, other)

    def __rfloordiv__(self, other: AnySize) -> AnySize:
        return quotient(other, self)

    def __mod__(self, other: AnySize) -> AnySize:
        return self - quotient(self, other) * other

    # Comparisons; an UndecidedError if the result is known only at run time

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Size) and self.terms == other.terms

    def __hash__(self) -> int:
        return hash(self.terms)

    def __lt__(self, other: AnySize) -> bool:
        return not self >= other

    def __ge__(self, other: AnySize) -> bool:
        if is_at_least(self, other):
            return True
        if is_at_least(other - 1, self):
            return False
        raise UndecidedError(f"whether {self} is less than {other} is known only at run time")

    def __gt__(self, other: AnySize) -> bool:
        return self >= other + 1

    def __le__(self, other: AnySize) -> bool:
        return not self > other

    def __bool__(self) -> bool:
        return self > 0

    def __index__(self) -> int:
        raise UndecidedError(f"the size {self} is known only at run time")

    __int__ = __float__ = __index__

    # Values at run time

    def at(self, **named: int) -> int:
        """The value for given values of the named sizes."""
        unknown = self.names.difference(named)
        if unknown:
            raise UndecidedError(f"the size {self} is not known from {', '.join(named) or 'nothing'}")
        value: int = on_numbers(self, named, _FUNCTIONS, int)
        return value

    @property
    def names(self) -> set[str]:
        """The named sizes that it depends on."""
        names: set[str] = set()
        for term, _ in self.terms:
            for factor in term:
                names |= {factor} if isinstance(factor, str) else set().union(*map(names_of, factor.sizes))
        return names

    def __str__(self) -> str:
        parts = [_format_term(term, count) for term, count in self.terms]
        return " + ".join(parts).replace("+ -", "- ")

    __repr__ = __str__


def _terms(size: AnySize) -> Sequence[tuple[Term, int]]:
    return size.terms if isinstance(size, Size) else [((), size)]


def _simplest(terms: Mapping[Term, int]) -> AnySize:
    left = {term: count for term, count in terms.items() if count}
    if not left:
        return 0
    return left[()] if left.keys() == {()} else Size(left)


def _format_term(term: Term, count: int) -> str:
    alone = len(term) == 1 and count == 1
    factors = [f"({f})" if isinstance(f, SizeFunction) and f.name == "//" and not alone else str(f) for f in term]
    if not factors or count not in (1, -1):
        return " * ".join([str(count), *factors])
    return ("-" if count < 0 else "") + " * ".join(factors)


def _is_one_factor(size: Size) -> bool:
    """Whether a size is a single name, minimum or maximum."""
    ((term, count), *more) = size.terms
    return not more and count == 1 and len(term) == 1 and not str(term[0]).count("//")


def _size_function(function: str, *sizes: AnySize) -> Size:
    return Size({(SizeFunction(function, sizes),): 1})


def named_size(name: str) -> Size:
    """The size of that name."""
    return Size({(name,): 1})


def names_of(size: AnySize) -> set[str]:
    """The named sizes that a size depends on."""
    return size.names if isinstance(size, Size) else set()


def least(size: AnySize) -> float:
    """The lower bound of a size; -inf if none is known."""
    total: float = 0
    for term, count in _terms(size):
        factors = [_least_of(factor) for factor in term]
        if term and (count < 0 or min(factors) < 0):
            return -inf
        total += count * prod(factors)
    return total


def _least_of(factor: Factor) -> float:
    if isinstance(factor, str):
        return 0
    leasts = [least(size) for size in factor.sizes]
    if factor.name == "//":
        return 0 if leasts[0] >= 0 else -inf
    return min(leasts) if factor.name == "min" else max(leasts)


def is_at_least(size: AnySize, other: AnySize) -> bool:
    """Whether a size is known to be at least another."""
    return least(size - other) >= 0


def on_numbers(
    size: AnySize, named: Mapping[str, Any], functions: Mapping[str, Callable[..., Any]], number: Callable[[int], Any]
) -> Any:
    """Compute a size in numbers of another kind, given those of its names, arithmetic on them and a constant's."""
    if not isinstance(size, Size):
        return number(size)
    total: Any = None
    for term, count in size.terms:
        product = number(count)
        for factor in term:
            if isinstance(factor, str):
                value = named[factor]
            else:
                value = functions[factor.name](*(on_numbers(s, named, functions, number) for s in factor.sizes))
            product = functions["*"](value, product)
        total = product if total is None else functions["+"](total, product)
    return total


# Functions of sizes


def quotient(size: AnySize, by: AnySize) -> AnySize:
    """Floor division of sizes; simplified if every term is divisible."""
    if isinstance(size, int) and isinstance(by, int):
        return size // by
    divisors = _terms(by)
    if len(divisors) == 1:
        (divisor, count), terms = divisors[0], {}
        for term, number in _terms(size):
            rest = Counter(term)
            rest.subtract(divisor)
            if number % count or min(rest.values(), default=0) < 0:
                break
            terms[tuple(sorted(rest.elements(), key=str))] = number // count
        else:
            return _simplest(terms)
    return _size_function("//", size, by)


def smaller(one: AnySize, other: AnySize) -> AnySize:
    """The smaller of two sizes."""
    if is_at_least(other, one):
        return one
    return other if is_at_least(one, other) else _size_function("min", *sorted((one, other), key=str, reverse=True))


def larger(one: AnySize, other: AnySize) -> AnySize:
    """The larger of two sizes."""
    if is_at_least(one, other):
        return one
    return other if is_at_least(other, one) else _size_function("max", *sorted((one, other), key=str, reverse=True))


_FUNCTIONS: dict[str, Callable[..., AnySize]] = {
    "+": operator.add, "*": operator.mul, "min": smaller, "max": larger, "//": quotient,
}  # fmt: skip


def length_of_slice(size: AnySize, item: slice) -> AnySize:
    """The number of elements that a slice selects from an axis of a size."""
    if isinstance(size, int):
        return len(range(*item.indices(size)))
    start, stop, step = item.start, item.stop, 1 if item.step is None else item.step
    if step < 0:
        return _backwards(size, item, step)
    from_end = stop is None or stop < 0
    end = size if stop is None else size + stop
    if start is None or start == 0:
        length = larger(end, 0) if from_end else smaller(stop, size)
    elif start > 0:
        length = larger(end - start, 0) if from_end else larger(smaller(stop, size) - start, 0)
    elif stop is None:
        length = smaller(-start, size)
    else:
        first = larger(size + start, 0)
        length = larger((larger(end, 0) if from_end else smaller(stop, size)) - first, 0)
    return quotient(length + step - 1, step) if step > 1 else length


def _backwards(size: Size, item: slice, step: int) -> AnySize:
    if item.start is None and item.stop is None:
        return quotient(size - step - 1, -step)
    raise UndecidedError(f"how many of {size} elements the slice {item} takes is known only at run time")
