"""The certificate of an operator that was tried at every number: as JSON, as a badge, and kept for later runs."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

import msgspec
import numpy as np

from app import cache_folder, machine
from app.checking.verdict import FAILED, NOTE, OK, Verdict
from app.custom.foreign import parts_of
from app.engine.compiled.fingerprint import full_fingerprint
from app.errors import AppError
from app.files import write_whole
from app.ranks.same import framework


class Inaccuracy(msgspec.Struct, frozen=True):
    """The inputs at which results are inaccurate in one way."""

    count: int
    """How many there are."""
    low: float
    high: float
    worst_at: float
    exact: float
    """The exact result there."""
    actual: float


class Accuracy(msgspec.Struct, frozen=True):
    """How accurate the results, or the gradients, are over all numbers of a type."""

    of: str
    """ "result" or "gradient"."""
    type: str
    inputs: int
    worst_ulp: float
    """The largest error in units in the last place at a normal number."""
    worst_at: float
    inaccurate: dict[str, Inaccuracy]
    """By kind: the names in `ulp.KINDS`."""

    @property
    def verdict(self) -> Verdict:
        """The accuracy in words. It fails for NaN in the wrong places, and for results without a correct digit."""
        wrong = [self.inaccurate[kind] for kind in ("nan lost", "nan", "wrong") if kind in self.inaccurate]
        if wrong:
            most = max(wrong, key=lambda one: one.count)
            text = (
                f"{self.type}: it is wrong at {most.count:,} of {self.inputs:,} inputs, between {most.low:.9g} and "
                f"{most.high:.9g}; at {most.worst_at:.9g} it is {most.actual:.9g}, expected {most.exact:.9g}"
            )
            return Verdict(FAILED, text, self.of)
        text = f"{self.type}: at most {self.worst_ulp:.3g} ULP from exact at all {self.inputs:,} inputs"
        if far := self.inaccurate.get("far"):
            text += f", more than 16 at {far.count:,} of them, the most at {self.worst_at:.9g}"
        if lost := self.inaccurate.get("flushed"):
            text += f"; {lost.count:,} subnormal numbers are lost, between {lost.low:.6g} and {lost.high:.6g}"
        if back := self.inaccurate.get("steps back"):
            text += f"; it steps back where it should rise or fall at {back.count:,}"
        return Verdict(NOTE if far else OK, text, self.of)


class Certificate(msgspec.Struct, frozen=True):
    """The accuracy of an operator at every number, and what is needed to compute it again."""

    operator: str
    settings: dict[str, Any]
    message: str
    """The outcome in a few words, for a badge."""
    source: str
    """The hash of the operator's source."""
    against: str
    accuracies: list[Accuracy]
    seconds: float
    date: str
    machine: dict[str, str]
    opsmith: str
    """The version of this package."""

    @property
    def verdicts(self) -> list[Verdict]:
        """One for each type, for results and for gradients."""
        return [accuracy.verdict for accuracy in self.accuracies]

    @property
    def ok(self) -> bool:
        """Whether none failed."""
        return not any(verdict.failed for verdict in self.verdicts)

    @property
    def in_short(self) -> str:
        """What it says about float32, in a line of a report."""
        parts = [accuracy for accuracy in self.accuracies if accuracy.type == "float32"]
        wrong = [f"the {part.of} of {part.verdict.words}" for part in parts if part.verdict.failed]
        worst = " and ".join(f"{part.worst_ulp:.3g} ULP ({part.of})" for part in parts)
        outcome = (
            f"tried at all 2^32 inputs: {wrong[0]}" if wrong else f"proven at all 2^32 inputs: worst error {worst}"
        )
        return f"{outcome}, against {self.against} (certificate of {self.date[:10]})"

    def as_json(self) -> bytes:
        """The certificate as a JSON file has it; numbers that JSON does not have are null."""
        return msgspec.json.format(msgspec.json.encode(self), indent=2) + b"\n"

    def __str__(self) -> str:
        lines = [f"  {v.state:6}  {v.check:13}  {v.words}" for v in self.verdicts]
        return "\n".join([f"{self.operator} at every number, against {self.against}: {self.message}", *lines])


def source_of(operator: Callable[..., Any]) -> str:
    """The hash of an operator's source, as runs keep it, too."""
    return full_fingerprint(*parts_of(getattr(operator, "__self__", operator)))  # a PyLayer is called through `apply`


# For later runs


def keep(certificate: Certificate) -> None:
    """Keep a certificate in the cache, if it is about float32, in which networks are trained."""
    folder = _folder()
    if folder is not None and any(accuracy.type == "float32" for accuracy in certificate.accuracies):
        with suppress(OSError, AppError):  # an unwritable cache only costs a line of reports
            file = folder / _name(certificate.source, certificate.settings)
            folder.mkdir(mode=0o700, exist_ok=True)
            write_whole(file, msgspec.msgpack.encode(certificate))  # which has NaN and infinity
            file.chmod(0o600)


def stored(operator: Callable[..., Any], settings: Mapping[str, Any]) -> Certificate | None:
    """The certificate of an operator with the same source, of the same opsmith on the same machine."""
    folder = _folder()
    if folder is None or not folder.is_dir():
        return None
    with suppress(OSError, AppError, msgspec.DecodeError):
        file = folder / _name(source_of(operator), settings)
        return msgspec.msgpack.decode(cache_folder.read(file), type=Certificate)
    return None


def _folder() -> Path | None:
    folder = cache_folder.folder()
    return None if folder is None else folder / "certificates"


def _name(source: str, settings: Mapping[str, Any]) -> str:
    """The name of a file for an operator, by all that its results depend on."""
    computes = [framework(), np.__version__, version("numba"), machine.processor()]
    text = "\n".join([*computes, source, repr(sorted(settings.items()))])
    return f"{hashlib.sha256(text.encode()).hexdigest()}.bin"


# A badge

_LETTER, _MARGIN, _HEIGHT = 6.6, 6, 20
_GREEN, _RED, _GREY = "#2e7d32", "#c62828", "#555"


def badge(certificate: Certificate) -> bytes:
    """The outcome as an SVG image for a README: its text is escaped, and it loads nothing."""
    parts = [("opsmith", _GREY), (certificate.message, _GREEN if certificate.ok else _RED)]
    widths = [round(len(text) * _LETTER) + 2 * _MARGIN for text, _ in parts]
    size = {"width": str(sum(widths)), "height": str(_HEIGHT), "role": "img"}
    svg = Element("svg", {"xmlns": "http://www.w3.org/2000/svg", **size})
    SubElement(svg, "title").text = f"{certificate.operator}: {certificate.message}, tried at every number by opsmith"
    left = 0
    for (text, colour), width in zip(parts, widths, strict=True):
        SubElement(svg, "rect", {"x": str(left), "width": str(width), "height": str(_HEIGHT), "fill": colour})
        font = {"fill": "#fff", "font-family": "Verdana, DejaVu Sans, sans-serif", "font-size": "11"}
        place = {"x": str(left + _MARGIN), "y": "14", "textLength": str(width - 2 * _MARGIN)}
        SubElement(svg, "text", {**place, **font}).text = text
        left += width
    return ElementTree.tostring(svg, encoding="utf-8") + b"\n"
