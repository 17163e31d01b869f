"""A user's function on arrays in the forms that a compiled engine may call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache, partial
from typing import Any

from app.custom.numba_functions import Current
from app.custom.on_numbers import on_numbers
from app.custom.read_only import for_any_types
from app.errors import GradientError
from app.functions import is_compiled
from app.ops.lowering import Returning
from app.ops.settings import key_of_settings
from app.ops.spec import Spec
from app.ops.values import Attributes

NUMBERS = (bool, int, float)


@lru_cache(maxsize=256)
def returning(function: Any, takes: tuple[int, ...] | None, row_by_row: bool) -> Returning:
    """A Numba function on arrays; made once for each, because the compiler recognises equal layers by identity."""
    return Returning(for_any_types(function), takes, row_by_row)


class Forms:
    """A function on arrays for single numbers, and as loops. The forms follow what the function reads: they are made
    again where a global variable or a helper has changed."""

    def __init__(self, function: Any):
        self._function = function
        self._loops: Current[dict[Any, Any]] | None = None
        self._refused: set[Any] = set()
        """The keys for which there are no loops."""

    @cached_property
    def _on_numbers(self) -> Current[Any] | None:
        """None for plain Python that is not elementwise: it may read much, which need not be followed."""
        if not is_compiled(self._function) and on_numbers(self._function)[0] is None:
            return None
        return Current(self._function, lambda: on_numbers(self._function))

    def on_numbers(self, axes: int) -> Callable[..., Any] | None:
        """The function for single numbers, if it is elementwise on arrays of one shape with so many axes."""
        of_numbers, expected = (None, None) if self._on_numbers is None else self._on_numbers.get()
        return of_numbers if expected in (None, axes) else None

    def loops(self, specs: Sequence[Spec], results: Sequence[Spec], settings: Attributes) -> Callable[..., Any] | None:
        """A Numba function with loops in place of NumPy's operations on whole arrays, for inputs like these; None for
        a function that does anything else, such as printing, or that NumPy may refuse for other reasons than shapes.
        """
        key = (*specs, *results, key_of_settings(settings))
        if key in self._refused or not all(type(value) in NUMBERS for value in settings.values()):
            return None
        if self._loops is None:
            if self._written_out(specs, results, settings) is None:
                self._refused.add(key)
                return None
            self._loops = Current(self._function, dict)
        loops = self._loops.get()
        if key not in loops:
            loops[key] = self._written_out(specs, results, settings)
        return loops[key]

    def _written_out(
        self, specs: Sequence[Spec], results: Sequence[Spec], settings: Attributes
    ) -> Callable[..., Any] | None:
        from numba import njit  # imported late: it takes half a second

        from app.derivative.arrays import written_out
        from app.derivative.arrays.whole import WholeReader

        try:
            reading = partial(WholeReader, results=results)
            function = written_out(self._function, *specs, *settings.values(), reading=reading)
        except GradientError:
            return None
        return for_any_types(njit(error_model="numpy")(function))


@lru_cache(maxsize=256)
def forms_of(function: Any) -> Forms:
    """The forms of a function, which are made once."""
    return Forms(function)
