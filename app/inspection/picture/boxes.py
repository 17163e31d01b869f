"""The contents of a picture of a block: boxes of operators and variables, in columns, joined by arrows."""

from __future__ import annotations

from dataclasses import dataclass, field

from app.graph.program import Block, Body, Operator
from app.graph.variable import Parameter, Variable
from app.inspection.picture.wording import WIDTH, attributes, spec_text, wrapped
from app.ops.lowering import Fused

COLUMN = 40
"""How many operators of a part of the Program are in one column, so that the picture of a long Program is not too
high."""
REACH = 20
"""The longest arrows pass this many operators. An input from farther away is named instead."""

OPERATOR, CUSTOM, DATA, PARAMETER, KEPT, GIVEN = "operator", "custom", "data", "parameter", "kept", "given"
"""Kinds of boxes. KEPT is a persistable variable that is not a parameter, GIVEN one from outside of the block."""


@dataclass(frozen=True)
class Row:
    """A line of a box: a text, and more text in a paler colour."""

    kind: str
    text: str
    more: str = ""


@dataclass(eq=False)
class Box:
    """An operator with its outputs, or a variable that no earlier operator of the picture makes."""

    kind: str
    title: str
    rows: list[Row]
    frames: list[tuple[list[str], list[Column]]] = field(default_factory=list)
    """The bodies inside the operator, each with lines of its name and its outputs."""

    @property
    def is_operator(self) -> bool:
        return self.kind in (OPERATOR, CUSTOM)


@dataclass(eq=False)
class Column:
    """Boxes that are laid out together, and the arrows between them."""

    heading: str
    boxes: list[Box] = field(default_factory=list)
    arrows: list[tuple[Box, Box]] = field(default_factory=list)


def columns_of(block: Block, body_inputs: frozenset[str] = frozenset()) -> list[Column]:
    """The columns of a block: one for each part of the Program, several for a long part."""
    return _Drafting(block, body_inputs).columns()


class _Drafting:
    """Puts the operators of a block into boxes, in order."""

    def __init__(self, block: Block, body_inputs: frozenset[str]):
        self.block, self.body_inputs = block, body_inputs
        self.shown: set[str] = set()
        """The variables that have been shown."""
        self.near: dict[str, tuple[Box, int]] = {}
        """For each variable of the current column its box and the number of its operator."""

    def columns(self) -> list[Column]:
        columns = []
        for role in dict.fromkeys(op.role for op in self.block.ops):
            operators = [op for op in self.block.ops if op.role == role]
            pieces = [operators[i : i + COLUMN] for i in range(0, len(operators), COLUMN)]
            for number, piece in enumerate(pieces, 1):
                heading = role if len(pieces) == 1 else f"{role} {number}/{len(pieces)}"
                columns.append(self._column(heading, piece))
        rest = [v for name, v in self.block.vars.items() if name not in self.shown]
        if rest or not columns:
            columns.append(Column("no operator reads" if columns else "variables", [self._variable(v) for v in rest]))
        return columns

    def _column(self, heading: str, operators: list[Operator]) -> Column:
        column = Column(heading)
        self.near = {}
        for number, op in enumerate(operators):
            sources: dict[Box, None] = {}
            away: list[str] = []
            for name in dict.fromkeys(n for n in op.inputs if n is not None):
                source = self._source(name, number, column)
                if source is None:
                    away.append(name)
                else:
                    sources[source] = None
            box = self._operator(op, away)
            column.boxes.append(box)
            column.arrows += [(source, box) for source in sources]
            for name in op.outputs:
                self.near[name] = box, number
                self.shown.add(name)
        return column

    def _source(self, name: str, number: int, column: Column) -> Box | None:
        """The box of an input: of a near operator, or a new one for a variable that was not shown yet; else None."""
        if name in self.near:
            box, at = self.near[name]
            return box if number - at <= REACH else None
        variable = self.block.find_var(name)
        if name in self.shown or variable is None:
            return None
        column.boxes.append(self._variable(variable))
        return column.boxes[-1]

    def _variable(self, variable: Variable) -> Box:
        self.shown.add(variable.name)
        kind = KEPT if variable.persistable else GIVEN
        if variable.name in self.body_inputs:
            kind = GIVEN
        elif variable.is_data:
            kind = DATA
        elif isinstance(variable, Parameter):
            kind = PARAMETER
        rows = [Row("title", line) for line in wrapped(variable.name)]
        rows += [Row("spec", line) for line in wrapped(spec_text(variable.spec))]
        return Box(kind, variable.name, rows)

    def _operator(self, op: Operator, away: list[str]) -> Box:
        places = list(dict.fromkeys(member.definition.where for member in _members(op) if member.definition.where))
        rows = [Row("title", line) for line in wrapped(op.type)]
        rows += [Row("place", line) for place in places for line in wrapped(place)]
        rows += [Row("setting", line) for line in wrapped(attributes(op))]
        rows += [Row("away", line) for name in away for line in wrapped(f"← {name}")]
        rows += [row for name in op.outputs for row in self._output(name)]
        frames = [
            (_about(name, body), columns_of(body.block, frozenset(body.inputs))) for name, body in op.bodies.items()
        ]
        return Box(CUSTOM if places else OPERATOR, str(op), rows, frames)

    def _output(self, name: str) -> list[Row]:
        """The lines of an output: its name, with its Spec beside it or, if that is too long, below."""
        variable = self.block.find_var(name)
        text = spec_text(variable.spec) if variable is not None else ""
        *first, last = wrapped(name)
        if len(last) + len(text) < WIDTH:
            return [*(Row("output", line) for line in first), Row("output", last, text)]
        return [*(Row("output", line) for line in (*first, last)), *(Row("spec", line) for line in wrapped(text))]


def _about(name: str, body: Body) -> list[str]:
    """The name of a body and its outputs."""
    lines = (wrapped(f"→ {output or 'None'}") for output in body.outputs)
    return [*wrapped(f"{name}: {body!r}"), *(line for several in lines for line in several)]


def _members(op: Operator) -> tuple[Operator, ...]:
    """The operators that run in this one: several if a pass fused them."""
    lowering = op.definition.lowering
    return lowering.body if isinstance(lowering, Fused) else (op,)
