"""Attributes of operators as what JSON can hold, and back, exactly: infinities, arrays and sub-blocks, too.

Tuples are written as lists, and numbers, words, truth values and None as they are. All else is an object with one key,
which says what it is: {"float": "inf"}, {"array": {…}}, {"body": {…}}.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from app.errors import ProgramError
from app.graph.body import Body
from app.graph.program import Block
from app.ops.dtype import NAMES
from app.ops.spec import Spec

Blocks = Sequence[Block]


def to_plain(value: Any) -> Any:
    """What JSON can hold of an attribute; a ProgramError says what cannot be written."""
    if value is None or type(value) in (bool, int, str):
        return value
    if type(value) is float and math.isfinite(value):
        return value
    if type(value) is tuple:
        return [to_plain(item) for item in value]
    for name, kind in _KINDS.items():
        if type(value) is kind.type:
            return {name: kind.write(value)}
    raise ProgramError(f"{value!r} ({type(value).__name__})")


def from_plain(written: Any, blocks: Blocks = ()) -> Any:
    """The attribute that was written so; sub-blocks are taken from `blocks`."""
    if isinstance(written, list):
        return tuple(from_plain(item, blocks) for item in written)
    if not isinstance(written, dict):
        return written
    ((name, content),) = written.items()
    return _KINDS[name].read(content, blocks)


class _Kind(NamedTuple):
    """What is neither a tuple nor plain: its type, and how it is written and read."""

    type: type
    write: Callable[[Any], Any]
    read: Callable[[Any, Blocks], Any]


def _read_float(text: str, blocks: Blocks) -> float:
    number = float(text)
    if math.isfinite(number):
        raise ValueError(f"{text} is an ordinary number")
    return number


def _write_array(array: np.ndarray) -> dict[str, Any]:
    if array.dtype.name not in NAMES:
        raise ProgramError(f"an array of {array.dtype}")
    values = to_plain(tuple(array.ravel().tolist()))
    return {"dtype": array.dtype.name, "shape": list(array.shape), "values": values}


def _read_array(written: Any, blocks: Blocks) -> np.ndarray:
    if written["dtype"] not in NAMES:
        raise ValueError(f"an array of {written['dtype']}")
    return np.array(from_plain(written["values"]), written["dtype"]).reshape(written["shape"])


def _write_body(body: Body) -> dict[str, Any]:
    return {"block": body.block.idx, "inputs": list(body.inputs), "outputs": list(body.outputs)}


def _read_body(written: Any, blocks: Blocks) -> Body:
    if not 0 < written["block"] < len(blocks):
        raise ValueError(f"there is no sub-block {written['block']}")
    body = Body(blocks[written["block"]], written["inputs"], written["outputs"])
    for name in (*body.inputs, *body.outputs):
        if name is not None:
            body.block.var(name)
    return body


def _write_slice(value: slice) -> list[Any]:
    return [to_plain(end) for end in (value.start, value.stop, value.step)]


_KINDS = {
    "float": _Kind(float, repr, _read_float),
    "array": _Kind(np.ndarray, _write_array, _read_array),
    "list": _Kind(list, lambda value: to_plain(tuple(value)), lambda w, blocks: list(from_plain(w, blocks))),
    "dict": _Kind(dict, lambda value: to_plain(tuple(value.items())), lambda w, blocks: dict(from_plain(w, blocks))),
    "slice": _Kind(slice, _write_slice, lambda w, blocks: slice(*from_plain(w))),
    "spec": _Kind(Spec, lambda spec: to_plain(tuple(spec)), lambda w, blocks: Spec(*from_plain(w))),
    "body": _Kind(Body, _write_body, _read_body),
}
