"""The notebook display of an object. The drawing code is imported on first use."""

from __future__ import annotations

from importlib import import_module


class Displayed:
    """The base of objects with an HTML display in notebooks; `opsmith.inspection.displays` draws it."""

    __slots__ = ()

    def _repr_html_(self) -> str | None:
        """Return the object as HTML; None if its text is sufficient."""
        shown: str | None = import_module(".inspection.displays", __package__).html_of(self)
        return shown
