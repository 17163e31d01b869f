"""The rooms of app/: imports between them run downwards only, in the order of the table in docs/architecture.md.

So do those between the files of a room, but for a few that know what stands above them.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from pathlib import Path

import pytest

pytestmark = pytest.mark.xdist_group("rooms")  # which reads all sources once

ROOT = Path(__file__).parents[1]
APP = ROOT / "app"

NAMED_FROM_BELOW = {
    "app.graph.program": "variables, bodies, watchers and the printer know the Block that they belong to",
    "app.jit.concrete": "the gradient of a traced function knows the function that it belongs to",
    "app.tensor.tensor": "the tape, changes in place and backward passes know the Tensor",
    "app.ops.definition": "a gradient rule knows the operator that it belongs to",
    "app.ops.methods": "the type of the values that operators take is that of Tensors and Variables",
}
"""Files whose types are named, for the type checker alone, by files that they import, each with why."""


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """All statements inside a node. Walking through their expressions as well would take ten times as long."""
    for part in ("body", "handlers", "orelse", "finalbody", "cases"):
        for inner in getattr(node, part, ()):
            yield inner
            yield from statements(inner)


def imports_in(nodes: Sequence[ast.stmt]) -> Iterator[str]:
    """The modules that statements import, wherever in them."""
    for node in statements(ast.Module([*nodes], [])):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@cache
def imported(file: Path) -> tuple[set[str], set[str]]:
    """The modules that a file imports, and those that it imports for the type checker alone.

    The tree is not kept: with all of them in memory, garbage collections would take longer than reading them.
    """
    body = ast.parse(file.read_text(encoding="utf-8")).body
    of_types = [node for node in body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
    used = set(imports_in([node for node in body if node not in of_types]))
    return used, set(imports_in(of_types)) - used


@cache
def file_of(name: str) -> str | None:
    """The file of ours, as a module, that has a name or is it; the package as a whole is none."""
    while name.startswith("app."):
        path = ROOT / name.replace(".", "/")
        if path.with_suffix(".py").is_file() or (path / "__init__.py").is_file():
            return name
        name = name.rpartition(".")[0]
    return None


@cache
def files() -> dict[str, dict[str, bool]]:
    """For each file, as a module, those that it imports, each with whether it does so for the type checker alone."""
    result: dict[str, dict[str, bool]] = {}
    for file in sorted(APP.rglob("*.py")):
        module = file_of(".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"))
        if module is None:
            continue
        used, named = ({file_of(name) for name in names} for names in imported(file))
        result[module] = {other: other not in used for other in used | named if other not in (None, module)}
    return result


@cache
def imports() -> dict[str, dict[str, str]]:
    """For each room, or module beside the rooms, those that it imports, each with a file that does."""
    result: dict[str, dict[str, str]] = {}
    for file, others in files().items():
        room = result.setdefault(file.split(".")[1], {})
        for other in {other.split(".")[1] for other in others} - {file.split(".")[1]}:
            room.setdefault(other, file)
    return result


def circle(graph: Mapping[str, Iterable[str]]) -> list[str]:
    """Nodes each of which is imported by the next, the last being the first; none where there is no such circle."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def circle_of_files(exceptions: Collection[str]) -> list[str]:
    graph = {
        file: [other for other, named in others.items() if not (named and other in exceptions)]
        for file, others in files().items()
    }
    return circle(graph)


def test_packages_are_not_imported_in_a_circle():
    messages = [f"{imports()[room][other]} imports {other}" for other, room in pairwise(circle(imports()))]
    assert messages == []


def test_imports_follow_the_order_of_the_table():
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    rows = [re.findall(r"`app/(\w+)/`", row) for row in re.findall(r"^\| (`app/.*?) \|", page, re.MULTILINE)]
    floor = {room: number for number, row in enumerate(rows) for room in row}
    up = [
        f"{file} imports {other}, which stands above it"
        for room, others in imports().items()
        for other, file in others.items()
        if floor.get(other, len(floor)) < floor.get(room, 0)
    ]
    assert up == []


def test_files_are_not_imported_in_a_circle():
    messages = [f"{importer} imports {file}" for file, importer in pairwise(circle_of_files(NAMED_FROM_BELOW))]
    assert messages == []


@pytest.mark.parametrize("file", NAMED_FROM_BELOW)
def test_each_exception_is_needed(file: str):
    assert file in circle_of_files(NAMED_FROM_BELOW.keys() - {file})
