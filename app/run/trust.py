"""Which operator files a command may execute: those named on its command line, or confirmed by the user.

A configuration or the folder of a run may come from an untrusted source, and importing a file executes it. Therefore
files that are named only there are not imported without confirmation.
"""

from __future__ import annotations

import hashlib
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from app.custom.references import parted
from app.errors import AppError
from app.files import read_file
from app.printing import escaped
from app.ranks.launch import launched


@dataclass(frozen=True)
class Trust:
    """The operators that the user named, and the source of the other names."""

    custom_ops: Sequence[str] = ()
    """Trusted files, or operators in files, from --custom-op."""
    operators: Sequence[str] = ()
    """Operators typed on the command line, as in model.activation=my_ops.py:swish."""
    by: str = "the configuration"
    """The source of the other operators' names, for messages."""

    def homes(self, names: Sequence[str]) -> dict[str, str]:
        """Return the file of each operator that is defined in one, by operator name. Raises an error before executing
        any."""
        in_files = [name for name in names if ":" in name]
        found = {name: self._home(name) for name in in_files}
        unnamed = [name for name, home in found.items() if home is None]
        if unnamed and not self._agreed(unnamed):
            needed = dict.fromkeys(_file(name) for name in unnamed)
            words = " ".join(f"--custom-op {shlex.quote(file)}" for file in needed)
            raise AppError(
                f"{self.by} names {', '.join(unnamed)}: Python code, which is executed only if you name it yourself. "
                f"If you trust it, add {words}, or in Python name the operator in the call"
            )
        return {name: home or _file(name) for name, home in found.items()}

    def _home(self, name: str) -> str | None:
        """Return the file that the user named for an operator; it may have moved since the run."""
        file, function = _file(name), name.rpartition(":")[2]
        if any(_same(file, _file(operator)) for operator in self.operators if ":" in operator):
            return file
        given = [home for home, only in map(parted, self.custom_ops) if only in (None, function)]
        same = [home for home in given if _same(home, file)]
        alike = [home for home in given if Path(home).name == Path(file).name]
        return next(iter([*same, *alike]), None)

    def _agreed(self, names: Sequence[str]) -> bool:
        """Ask on a terminal whether files may be executed. Without a terminal, the answer is no."""
        if launched() is not None or not (sys.stdin.isatty() and sys.stderr.isatty()):
            return False
        lines = [f"{self.by} names {', '.join(names)}. That is Python code, which can do anything once it is run:"]
        for file in dict.fromkeys(Path(_file(name)).expanduser().resolve() for name in names):
            try:
                digest = hashlib.sha256(read_file(file)).hexdigest()
            except (AppError, OSError):
                return False
            lines.append(f"  {file}\n  SHA-256 {digest}")
        print(escaped("\n".join(lines)), "Run it? [y/N] ", sep="\n", end="", file=sys.stderr, flush=True)
        return sys.stdin.readline().strip().lower() in ("y", "yes")


NOBODY = Trust()
"""No file is trusted."""


def _file(name: str) -> str:
    return name.rpartition(":")[0]


def _same(one: str, other: str) -> bool:
    return Path(one).expanduser().resolve() == Path(other).expanduser().resolve()
