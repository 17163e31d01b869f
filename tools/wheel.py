"""Build the wheel: the package `opsmith` is a copy of `app/` in which imports of `app` are imports of `opsmith`.

Hatch calls this for `pip wheel`, `pip install` and `python -m build`, in a checkout and from an sdist.
"""

from __future__ import annotations

import ast
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

OLD, NEW = "app", "opsmith"


class OpsmithWheel(BuildHookInterface):  # type: ignore[type-arg]
    """Adds the package to a wheel. An editable installation uses the checkout."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="opsmith-wheel-")
        if version != "editable":
            package = Path(self._folder.name) / NEW
            write_package(Path(self.root) / OLD, package)
            build_data["force_include"][str(package)] = NEW

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        self._folder.cleanup()


def write_package(sources: Path, folder: Path) -> None:
    """Write the package as it is in a wheel into a new folder."""
    shutil.copytree(sources, folder, ignore=shutil.ignore_patterns("__pycache__"))
    for file in folder.rglob("*.py"):
        file.write_bytes(renamed(file.read_bytes(), str(file.relative_to(folder))))


def renamed(source: bytes, name: str) -> bytes:
    """A source in which `from app.x import y` imports from `opsmith.x`, and `import app` is `import opsmith as app`."""
    lines = source.splitlines(keepends=True)
    changes: list[tuple[int, int, str, str]] = []
    for node in _statements(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.level == 0 and _is_ours(node.module):
            changes.append((node.lineno, node.col_offset, f"from {OLD}", f"from {NEW}"))
        elif isinstance(node, ast.Import):
            for alias in filter(lambda alias: _is_ours(alias.name), node.names):
                if alias.asname is None and alias.name != OLD:
                    raise ValueError(f"{name}:{node.lineno}: write `from {OLD} import ...` for `import {alias.name}`")
                new = NEW if alias.asname else f"{NEW} as {OLD}"
                changes.append((alias.lineno, alias.col_offset, OLD, new))
    for line, column, old, new in sorted(changes, reverse=True):
        text = lines[line - 1]
        if not text[column:].startswith(old.encode()):
            raise ValueError(f"{name}:{line}: write `{old}` with single spaces")
        lines[line - 1] = text[:column] + new.encode() + text[column + len(old) :]
    return b"".join(lines)


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    """All statements in a node: most nodes of a source are in expressions, which import nothing."""
    for part in ("body", "handlers", "cases", "orelse", "finalbody"):
        for statement in getattr(node, part, ()):
            yield statement
            yield from _statements(statement)


def _is_ours(module: str | None) -> bool:
    return module is not None and module.partition(".")[0] == OLD
