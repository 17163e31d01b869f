"""The texts of a picture: short settings, and wrapped lines."""

from __future__ import annotations

import re

from app.graph.program import Operator
from app.ops.settings import format_setting, is_default
from app.ops.spec import Spec

WIDTH = 28
"""The maximum length of a line."""
USUAL = "float32"
"""The type that is not written."""
INDENT = "  "
ROOM = WIDTH - len(INDENT)
LONGEST = 50
"""The maximum length of a value."""


def spec_text(spec: Spec) -> str:
    """Type and shape, without the usual type, which the legend names."""
    return str(spec).removeprefix(USUAL)


def attributes(op: Operator) -> str:
    """The settings of an operator that are not defaults, without bodies, which are drawn."""
    usual = op.definition.attributes
    unusual = {k: v for k, v in op.attributes.items() if k not in op.bodies and not is_default(v, usual.get(k))}
    return ", ".join(f"{name}={_short(value)}" for name, value in unusual.items())


def _short(value: object) -> str:
    text = f"{value:.6g}" if isinstance(value, float) else format_setting(value)
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def wrapped(text: str) -> list[str]:
    """The text in lines, wrapped after spaces or punctuation if possible; all but the first are indented."""
    lines = [""]
    for piece in re.findall(rf".{{0,{ROOM - 1}}}?[\s,.+_@/]|.{{1,{ROOM}}}", text):
        if len(lines[-1].rstrip()) + len(piece.rstrip()) > WIDTH:
            lines.append(INDENT)
        lines[-1] += piece
    return [line.rstrip() for line in lines if line.strip()]
