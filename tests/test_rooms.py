"""The rooms of app/: imports between them run downwards only, in the order of the README's table."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
APP = ROOT / "app"


def room_of(module: str) -> str | None:
    """The room of a module of ours, or the module itself where it stands beside the rooms."""
    package, _, rest = module.partition(".")
    return rest.partition(".")[0] or None if package == "app" else None


def imported(tree: ast.Module) -> Iterator[str]:
    """The modules that a file imports, wherever it does."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@cache
def imports() -> dict[str, dict[str, str]]:
    """For each room those that it imports, each with a file that does. The package as a whole is no room."""
    found: dict[str, dict[str, str]] = {}
    for file in sorted(APP.rglob("*.py")):
        at = file.relative_to(APP)
        if str(at) in ("__init__.py", "__main__.py"):
            continue
        room = found.setdefault(at.parts[0].removesuffix(".py"), {})
        for module in imported(ast.parse(file.read_text(encoding="utf-8"))):
            other = room_of(module)
            if other is not None and other != at.parts[0].removesuffix(".py") and _is_ours(other):
                room.setdefault(other, str(at))
    return found


def _is_ours(room: str) -> bool:
    """Whether it is a room or a module beside them, and no name of the package."""
    return (APP / room).is_dir() or (APP / f"{room}.py").is_file()


def floors() -> list[list[str]]:
    """The rooms as the README's table has them, from above; those of a row are one floor."""
    rows = re.findall(r"^\| (`app/.*?) \|", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    return [re.findall(r"`app/(\w+)/`", row) for row in rows]


def test_rooms_do_not_import_each_other_by_any_way_round():
    try:
        TopologicalSorter(imports()).prepare()
    except CycleError as error:
        around = error.args[1]
        told = [f"{imports()[room][other]} imports {other}" for other, room in pairwise(around)]
        pytest.fail(f"a circle of rooms: {'; '.join(told)}")


def test_imports_run_down_the_table_of_the_readme():
    floor = {room: number for number, row in enumerate(floors()) for room in row}
    up = [
        f"{file} imports {other}, which stands above it"
        for room, others in imports().items()
        for other, file in others.items()
        if floor.get(other, len(floor)) < floor.get(room, 0)
    ]
    assert up == []
