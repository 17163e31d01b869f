"""How PyTorch prints a Tensor: the least width that shows every number, rows wrapped, large values summarised."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from app.ops.dtype import get_default_dtype


@dataclass(frozen=True)
class Options:
    """What `set_printoptions` sets."""

    precision: int = 4
    threshold: float = 1000
    edgeitems: int = 3
    linewidth: int = 80
    sci_mode: bool | None = None


PROFILES = {
    "default": Options(),
    "short": Options(precision=2, edgeitems=2),
    "full": Options(threshold=math.inf),
}

_state = {"options": Options()}


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Set how Tensors print; options that are not given keep their values."""
    options = _state["options"] if profile is None else PROFILES[profile]
    given: dict[str, Any] = {
        "precision": precision,
        "threshold": threshold,
        "edgeitems": edgeitems,
        "linewidth": linewidth,
    }
    _state["options"] = replace(options, **{k: v for k, v in given.items() if v is not None}, sci_mode=sci_mode)


def tensor_text(array: np.ndarray, prefix: str = "tensor(", about: tuple[str, ...] = ()) -> str:
    """The text of a Tensor: its numbers, then notes such as its type."""
    options = _state["options"]
    notes = list(about)
    if array.dtype.name not in (get_default_dtype(), "int64", "bool") or (not array.size and _plain(array)):
        notes.insert(0, f"dtype=torch.{array.dtype.name}")
    if not array.size:
        if array.ndim != 1:
            notes.insert(0, f"size={tuple(array.shape)}")
        body = "[]"
    else:
        summarise = array.size > options.threshold
        shown = _edges(array, options.edgeitems) if summarise else array
        form = _Form.of(shown, options)
        body = np.array2string(
            array,
            max_line_width=options.linewidth + array.ndim,
            separator=", ",
            prefix=prefix,
            formatter={"all": form.text},
            threshold=0 if summarise else array.size,
            edgeitems=options.edgeitems,
        ).replace(", ...,", ",  ...,")
    return _with_notes(prefix + body, notes, options.linewidth, len(prefix))


def _plain(array: np.ndarray) -> bool:
    return array.dtype.name in ("int64", "bool")


def _with_notes(text: str, notes: list[str], linewidth: int, indent: int) -> str:
    """The notes after the numbers, on a new line where the last one is full."""
    width = len(text) - text.rfind("\n") + 1
    for note in notes:
        if width + len(note) + 2 > linewidth:
            text += ",\n" + " " * indent + note
            width = indent + len(note)
        else:
            text += ", " + note
            width += len(note) + 2
    return text + ")"


@dataclass(frozen=True)
class _Form:
    """How every number of a Tensor is written."""

    kind: str
    width: int
    precision: int = 0

    @classmethod
    def of(cls, shown: np.ndarray, options: Options) -> _Form:
        kind, precision = _kind(shown, options), options.precision
        unpadded = cls(kind, 0, precision)
        return cls(kind, max((len(unpadded.text(v)) for v in _measured(shown)), default=1), precision)

    def text(self, value: Any) -> str:
        written = _written(value.item(), self.kind, self.precision)
        return written.rjust(self.width)


def _measured(shown: np.ndarray) -> np.ndarray:
    """The numbers that decide how wide all are written: of floats, those that are finite and not zero."""
    return shown[np.isfinite(shown) & (shown != 0)] if shown.dtype.kind == "f" else shown.reshape(-1)


def _written(value: Any, kind: str, precision: int) -> str:
    if kind == "plain":
        return str(value)
    if kind == "scientific":
        return f"{value:.{precision}e}"
    if kind == "whole":
        return f"{value:.0f}" + ("." if math.isfinite(value) else "")
    return f"{value:.{precision}f}"


def _kind(shown: np.ndarray, options: Options) -> str:
    """Whether numbers are written as whole ones with a point, with decimals, or with an exponent."""
    if shown.dtype.kind != "f":
        return "plain"
    sizes = np.abs(_measured(shown).astype(np.float64))
    if not sizes.size:
        return "whole"
    low, high = sizes.min(), sizes.max()
    whole = bool((sizes == np.ceil(sizes)).all())
    spread = high / low > 1000.0 or high > 1.0e8 or (not whole and low < 1.0e-4)
    if spread if options.sci_mode is None else options.sci_mode:
        return "scientific"
    return "whole" if whole else "decimal"


def _edges(array: np.ndarray, items: int) -> np.ndarray:
    """What is shown of a large array: the first and the last places of each axis."""
    for axis, size in enumerate(array.shape):
        if size > 2 * items:
            array = np.take(array, [*range(items), *range(size - items, size)], axis)
    return array


def returned_text(returned: Any) -> str:
    """The text of several results of a function: its name, then each result with its own name."""
    parts = ",\n".join(f"{name}={value!r}" for name, value in zip(returned._fields, returned, strict=True))
    return f"torch.return_types.{type(returned).__name__}(\n{parts})"
