"""How a compiler may treat a user's function on arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from app.custom.numba_functions import by_position, is_compiled
from app.custom.proofs import on_numbers, works_row_by_row
from app.custom.untouched import for_any_types
from app.ops.form import Returning


def returning(
    function: Any, order: Sequence[str], takes: tuple[int, ...] | None, row_by_row: bool, exact: bool = False
) -> Returning | None:
    """The form of a function of Numba's, with what its source proves; None for any other function.

    `order` names its parameters in the order of the operator's, where that may be another one.
    """
    if not is_compiled(function):
        return None
    return _proven(function, tuple(order), takes, row_by_row, exact)


@lru_cache(maxsize=256)
def _proven(
    function: Any, order: tuple[str, ...], takes: tuple[int, ...] | None, row_by_row: bool, exact: bool
) -> Returning:
    """Made once for a function: a compiler knows layers that are alike by their operators having the same one."""
    arrays, numbers = for_any_types(function), on_numbers(function)
    if order:
        arrays = by_position(arrays, order)
        numbers = numbers and replace(numbers, function=by_position(numbers.function, order))
    return Returning(arrays, takes, row_by_row, works_row_by_row(function), exact, numbers)
