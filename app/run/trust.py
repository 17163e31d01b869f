"""Which operator files a command may execute: those named on its command line, or confirmed by the user.

A configuration or the folder of a run may come from an untrusted source, and importing a file executes it. Therefore
files that are named only there are not imported without confirmation.
"""

from __future__ import annotations

import hashlib
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from app.custom.lookup import split_settings
from app.custom.references import Trusted, parted
from app.errors import AppError
from app.files import read_file, without_tilde
from app.printing import escaped
from app.ranks.launch import launched


class Trust(Trusted):
    """What the user named: files, or operators in files, with --custom-op; and operators typed on the command line, as
    in model.activation=my_ops.py:swish. `by` is the source of other names, for messages.
    """

    def __init__(self, custom_ops: Sequence[str] = (), operators: Sequence[str] = (), by: str = "the configuration"):
        super().__init__(custom_ops)
        named = [split_settings(operator)[0] for operator in operators]
        self._typed = {_path(name) for name in named if ":" in name}
        self._by = by

    def covers(self, reference: str) -> bool:
        """Whether a reference may be loaded: also another one in a file of which an operator was typed."""
        if parted(reference)[0].endswith(".py"):
            return _path(reference) in self._typed or self.home(reference) is not None
        return super().covers(reference)

    def homes(self, names: Sequence[str]) -> dict[str, str]:
        """Return the file of each operator that is defined in one, by operator name. Raises an error before executing
        any."""
        in_files = [name for name in names if ":" in name]
        self.require(in_files, self._by)
        return {name: parted(name)[0] if _path(name) in self._typed else str(self.home(name)) for name in in_files}

    def is_agreed(self, references: Sequence[str], by: str) -> bool:
        """Ask on a terminal whether files may be executed. Without a terminal, the answer is no."""
        if launched() is not None or not (sys.stdin.isatty() and sys.stderr.isatty()):
            return False
        lines = [f"{by} names {', '.join(references)}. That is Python code, which can do anything once it is run:"]
        for file in dict.fromkeys(map(_path, references)):
            try:
                digest = hashlib.sha256(read_file(file)).hexdigest()
            except (AppError, OSError):
                return False
            lines.append(f"  {file}\n  SHA-256 {digest}")
        print(escaped("\n".join(lines)), "Run it? [y/N] ", sep="\n", end="", file=sys.stderr, flush=True)
        return sys.stdin.readline().strip().lower() in ("y", "yes")

    def refusal(self, references: Sequence[str], by: str, how: str) -> str:
        """The message if not, for a command line."""
        files = dict.fromkeys(parted(reference)[0] for reference in references)
        words = " ".join(f"--custom-op {shlex.quote(file)}" for file in files)
        return (
            f"{by} names {', '.join(references)}: Python code, which is executed only if you name it yourself. "
            f"If you trust it, add {words}, or in Python name the operator in the call"
        )


def _path(reference: str) -> Path:
    return without_tilde(parted(reference)[0]).resolve()
