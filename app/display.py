"""What notebooks show of an object in place of its text. The code that draws it is imported when something is shown."""

from __future__ import annotations

from importlib import import_module


class Displayed:
    """The base of what has a picture or a table of its own in a notebook; `app.inspection.displays` draws it."""

    __slots__ = ()

    def _repr_html_(self) -> str | None:
        """The object as HTML; None where its text says as much."""
        shown: str | None = import_module("app.inspection.displays").html_of(self)
        return shown
