"""Symbolic sizes: expressions such as 2*n + 1 in named sizes such as n, whose values are known only at run time.

A size in a Spec is an integer or a Size. Arithmetic on sizes returns sizes, so shape inference uses ordinary
arithmetic. Named sizes are never negative.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Union

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
        least, most = bounds(self - other)
        if least is not None and least >= 0:
            return True
        if most is not None and most < 0:
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
        found = self.substitute(named)
        if isinstance(found, Size):
            raise UndecidedError(f"the size {found} is not known from {', '.join(named) or 'nothing'}")
        return found

    def substitute(self, named: Mapping[str, AnySize]) -> AnySize:
        """The size with named sizes replaced by other sizes."""
        total: AnySize = 0
        for term, count in self.terms:
            product: AnySize = count
            for factor in term:
                product = product * _replaced(factor, named)
            total = total + product
        return total

    @property
    def names(self) -> set[str]:
        """The named sizes that it depends on."""
        found: set[str] = set()
        for term, _ in self.terms:
            for factor in term:
                found |= {factor} if isinstance(factor, str) else set().union(*map(names_of, factor.sizes))
        return found

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


def _replaced(factor: Factor, named: Mapping[str, AnySize]) -> AnySize:
    if isinstance(factor, str):
        return named.get(factor, named_size(factor))
    return _FUNCTIONS[factor.name](*(s.substitute(named) if isinstance(s, Size) else s for s in factor.sizes))


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


def bounds(size: AnySize) -> tuple[int | None, int | None]:
    """The lower and the upper bound of a size; None for a bound that does not exist."""
    least: int | None = 0
    most: int | None = 0
    for term, count in _terms(size):
        low, high = _bounds_of(term)
        ends = [None if limit is None else limit * count for limit in ((low, high) if count > 0 else (high, low))]
        least = None if least is None or ends[0] is None else least + ends[0]
        most = None if most is None or ends[1] is None else most + ends[1]
    return least, most


def _bounds_of(term: Term) -> tuple[int | None, int | None]:
    """The bounds of a product."""
    low: int | None = 1
    high: int | None = 1
    for factor in term:
        least, most = (0, None) if isinstance(factor, str) else _bounds_of_function(factor)
        if least is None or least < 0:
            return (least, most) if len(term) == 1 else (None, None)
        low = None if low is None else low * least
        high = None if high is None or most is None else high * most
    return low, high


def _bounds_of_function(function: SizeFunction) -> tuple[int | None, int | None]:
    limits = [bounds(size) for size in function.sizes]
    leasts, mosts = [least for least, _ in limits], [most for _, most in limits]
    if function.name == "//":
        return (0, mosts[0]) if leasts[0] is not None and leasts[0] >= 0 else (None, None)
    choose, open_ends = (min, (leasts, mosts)) if function.name == "min" else (max, (mosts, leasts))
    of_all, of_any = open_ends
    all_known = None if None in of_all else choose(of_all)  # type: ignore[type-var]
    any_known = choose([limit for limit in of_any if limit is not None], default=None)
    return (all_known, any_known) if function.name == "min" else (any_known, all_known)


def is_at_least(size: AnySize, other: AnySize) -> bool:
    """Whether a size is known to be at least another."""
    least, _ = bounds(size - other)
    return least is not None and least >= 0


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


_FUNCTIONS: dict[str, Callable[..., AnySize]] = {"min": smaller, "max": larger, "//": quotient}


def length_of_slice(size: AnySize, item: slice) -> AnySize:
    """The number of elements that a slice selects from an axis of a size."""
    if isinstance(size, int):
        return len(range(*item.indices(size)))
    start, stop, step = item.start, item.stop, 1 if item.step is None else item.step
    if step == 0:
        raise ShapeError("the step of a slice cannot be zero")
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
