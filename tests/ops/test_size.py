"""Arithmetic with sizes that are known only at run time agrees with arithmetic with their values."""

from __future__ import annotations

from random import Random

import pytest

from app.ops.size import UndecidedError, larger, least, length_of_slice, named_size, quotient, smaller

n, m = named_size("n"), named_size("m")


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (n + 1, "n + 1"),
        (2 * n - 3, "2 * n - 3"),
        (n * m * 4, "4 * m * n"),
        ((6 * n + 3) // 3, "2 * n + 1"),
        (n * m // m, "n"),
        (n // 2, "n // 2"),
        (smaller(n, 1), "min(n, 1)"),
        (larger(n - 1, 0), "max(n - 1, 0)"),
        *((zero, "0") for zero in (n - n, 0 * n, (n + 2) - n - 2, smaller(n, 0), n % 1)),
    ],
)
def test_sizes_have_their_simplest_form(size, text):
    assert str(size) == text
    assert isinstance(size, int) == (text == "0")


def test_comparisons_of_sizes_are_decided_where_every_run_agrees():
    assert n + 3 > 2
    assert n >= 0
    assert not n < 0
    assert larger(n, 0) is n
    assert smaller(n + 2, 1) == 1
    for undecided in (lambda: n > 5, lambda: n < m, lambda: bool(n), lambda: max(n, 1)):
        with pytest.raises(UndecidedError, match="known only at run time"):
            undecided()


def test_an_unknown_size_is_not_a_number():
    for use in (range, int, float, lambda size: [0][size], lambda size: "a" * size):
        with pytest.raises((UndecidedError, TypeError)):
            use(n)


SLICES = [slice(a, b, c) for a in (None, 0, 1, 3, -1, -3) for b in (None, 0, 1, 2, 4, -1, -2) for c in (None, 2, 3)]


@pytest.mark.parametrize("item", [*SLICES, slice(None, None, -1), slice(None, None, -2)], ids=str)
def test_the_length_of_a_slice_agrees_with_a_list(item: slice):
    for base in (n, n + 2, 2 * n, smaller(n, 3)):
        size = length_of_slice(base, item)
        for rows in range(8):
            actual = base.at(n=rows)
            length = size if isinstance(size, int) else size.at(n=rows)
            assert length == len(range(actual)[item]), (str(base), str(size), rows)


def test_arithmetic_of_sizes_agrees_with_numbers():
    for seed in range(100):
        random = Random(seed)
        rows, columns = random.randint(0, 9), random.randint(0, 9)
        pairs = [(n, rows), (m, columns), (3, 3), (1, 1)]
        for _ in range(6):
            (a, x), (b, y) = random.choice(pairs), random.choice(pairs)
            candidates = [(a + b, x + y), (a * b, x * y), (smaller(a, b), min(x, y)), (larger(a, b), max(x, y))]
            candidates.append((quotient(a, 3), x // 3))
            if y > 0 and b != 0:
                candidates.append((quotient(a * b, b), x))
            candidates.append((larger(a - b, 0), max(x - y, 0)))
            pairs.append(random.choice(candidates))
        size, number = pairs[-1]
        assert (size if isinstance(size, int) else size.at(n=rows, m=columns)) == number, str(size)
        assert least(size) <= number
        if not isinstance(size, int):
            assert eval(str(size), {"n": rows, "m": columns, "min": min, "max": max}) == number
