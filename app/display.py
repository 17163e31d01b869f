"""The notebook display of an object."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar


class Displayed:
    """The base of objects with an HTML display in notebooks."""

    __slots__ = ()

    _html_of: ClassVar[Callable[[Any], str | None]]
    """Set in `app/__init__.py`: what draws objects stands above all of them."""

    def _repr_html_(self) -> str | None:
        """Return the object as HTML; None if its text is sufficient."""
        return type(self)._html_of(self)
