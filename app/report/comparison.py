"""The result of a comparison, read from comparison.json."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from app.errors import FileError
from app.files import read_file
from app.run.folder import COMPARISON
from app.run.statistics import LEVEL

_LARGEST = 10_000_000
"""The maximum size of the file in bytes."""

Accuracy = Annotated[float, msgspec.Meta(ge=0, le=1)]
Gist = Literal["same", "differs", "cannot tell"]


class Claim(msgspec.Struct, frozen=True):
    """A mean difference or ratio, its interval if there are enough seeds, and its adjusted p-value."""

    mean: float
    p: float
    low: float | None = None
    high: float | None = None

    @property
    def gist(self) -> Gist:
        """The conclusion: same, differs or unclear."""
        return "differs" if self.p <= LEVEL else "cannot tell"


class Difference(msgspec.Struct, frozen=True):
    """How an operator differs from the first."""

    operator: str
    identical: bool
    accuracy: Claim
    speed: Claim

    @property
    def of_accuracy(self) -> Gist:
        """The conclusion about the accuracies."""
        return "same" if self.identical else self.accuracy.gist


class Result(msgspec.Struct, frozen=True):
    """The metrics of an operator, with an accuracy per seed."""

    seconds_per_epoch: float | None = None
    test_accuracies: list[Accuracy] = []
    validation_accuracies: list[Accuracy] = []

    @property
    def compared(self) -> list[float]:
        """The accuracies by which operators are compared."""
        return self.validation_accuracies or self.test_accuracies


class Comparison(msgspec.Struct, frozen=True):
    """The complete comparison."""

    operators: list[str]
    first: str
    seeds: list[int]
    results: dict[str, Result]
    differences: list[Difference]


def read(folder: Path) -> Comparison | None:
    """Read the comparison in a run's folder; None if there is none or no seed was finished."""
    path = folder / COMPARISON
    if not path.exists():
        return None
    try:
        return compared(msgspec.json.decode(read_file(path, _LARGEST)))
    except (msgspec.DecodeError, UnicodeDecodeError, OSError) as error:
        raise FileError(f"{path} is not as a comparison wrote it: {error}") from error


def compared(data: Any) -> Comparison | None:
    """Return a comparison from its data; None if no seed was finished."""
    found = msgspec.convert(data, Comparison)
    if not found.seeds:
        return None
    whole = {found.first, *found.operators, *(d.operator for d in found.differences)} <= found.results.keys()
    if not (whole and found.differences) or any(
        len(found.results[name].compared) != len(found.seeds) for name in found.operators
    ):
        raise msgspec.ValidationError("an operator has no results, or not one for each seed")
    return found
