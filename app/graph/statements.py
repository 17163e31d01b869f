"""What each statement of a user's program added to the startup and the main Program."""

from __future__ import annotations

import ast
import linecache
import sys
import textwrap
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from types import FrameType, TracebackType

from app.graph.build import watching
from app.graph.defaults import default_startup_program
from app.graph.program import Block, Operator, Program
from app.graph.show import format_operator
from app.graph.variable import Variable


@dataclass
class Added:
    """The variables and operators that a statement added to one Program, each with its block."""

    variables: list[tuple[Block, Variable]] = field(default_factory=list)
    operators: list[tuple[Block, Operator]] = field(default_factory=list)

    def add(self, block: Block, item: Variable | Operator) -> None:
        if isinstance(item, Operator):
            self.operators.append((block, item))
        elif block.idx == 0 or block.program.block(block.parent_idx).find_var(item.name) is None:
            self.variables.append((block, item))  # otherwise it is an input from the outer block

    def lines(self, name: str) -> list[str]:
        """One line for each, as in a printed Program, prefixed with the name of the Program or of a block inside it."""
        shown = [(block, str(variable)) for block, variable in self.variables]
        shown += [(block, format_operator(op)) for block, op in self.operators]
        return [f"{f'block {block.idx}' if block.idx else name:8} {line}" for block, line in shown]


@dataclass
class Statement:
    """A statement that ran, and what it added."""

    file: str
    line: int
    text: str
    startup: Added = field(default_factory=Added)
    main: Added = field(default_factory=Added)

    def __str__(self) -> str:
        place = f"{Path(self.file).name}:{self.line}"
        first, *more = self.text.splitlines() or [""]
        lines = [*self.startup.lines("startup"), *self.main.lines("main")]
        lines_of_statement = [f"{place}  {first}".rstrip(), *(" " * (len(place) + 2) + line for line in more)]
        return "\n".join([*lines_of_statement, *("    " + line for line in lines)])


class Watched:
    """The statements that added something, in order. A statement in a loop is listed again if others ran in between."""

    def __init__(self, files: tuple[str, ...]):
        self.files = set(files)
        self.statements: list[Statement] = []
        self.startup: Program | None = None
        """The startup Program that something was added to."""
        self._watching: AbstractContextManager[None] = watching(self._note)

    def __enter__(self) -> Watched:
        self._watching.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._watching.__exit__(kind, error, at)

    def __str__(self) -> str:
        return "\n\n".join(map(str, self.statements))

    def _note(self, block: Block, added: Variable | Operator) -> None:
        file, line = self._place(sys._getframe(1))
        first, text = _statement(file, line)
        if not self.statements or (self.statements[-1].file, self.statements[-1].line) != (file, first):
            self.statements.append(Statement(file, first, text))
        statement = self.statements[-1]
        if block.program is default_startup_program():
            self.startup = block.program
            statement.startup.add(block, added)
        else:
            statement.main.add(block, added)

    def _place(self, frame: FrameType | None) -> tuple[str, int]:
        """The file and line of the innermost running function that is in one of the files."""
        while frame is not None and frame.f_code.co_filename not in self.files:
            frame = frame.f_back
        return ("elsewhere", 0) if frame is None else (frame.f_code.co_filename, frame.f_lineno)


def watch(*files: str) -> Watched:
    """Record what each statement of a `with` block adds to Programs: statements of the caller's file, or of `files`.

    `print(watched)` shows it, and `watched.statements` has it.
    """
    return Watched(files or (sys._getframe(1).f_code.co_filename,))


def _statement(file: str, line: int) -> tuple[int, str]:
    """The first line and the text of the innermost statement at a line; of a compound statement, only its head."""
    source = linecache.getlines(file)
    if not 0 < line <= len(source):
        return line, ""
    first, last = _extents("".join(source)).get(line, (line, line))
    return first, textwrap.dedent("".join(source[first - 1 : last])).strip()


@lru_cache(maxsize=64)
def _extents(source: str) -> dict[int, tuple[int, int]]:
    """For each line of a source, the first and the last line of its statement."""
    try:
        tree = ast.parse(source)
    except SyntaxError:  # the file has changed since it was run
        return {}
    extents: dict[int, tuple[int, int]] = {}
    for node in ast.walk(tree):  # outer statements first, so that the innermost remains
        if isinstance(node, ast.stmt):
            body = getattr(node, "body", None)
            last = body[0].lineno - 1 if body else node.end_lineno or node.lineno
            extent = node.lineno, max(node.lineno, last)
            extents.update(dict.fromkeys(range(extent[0], extent[1] + 1), extent))
    return extents
