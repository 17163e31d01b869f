"""Which operator files a command may execute for the folder of a run or a saved model: those that its user names.

A configuration that the user names is the user's own, and so are the operators in it. The folder of a run and a saved
model may come from a stranger, and importing a file executes it.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from app.custom.lookup import parted, split_settings
from app.custom.references import Allowed
from app.errors import ConfigError


class NamedFiles(Allowed):
    """The files of `--custom-op`. A file is executed as a whole, so naming one operator in it names the file."""

    def __init__(self, custom_ops: Sequence[str]):
        super().__init__([parted(named)[0] for named in custom_ops])

    def refusal(self, references: Sequence[str], by: str, how: str) -> str:
        """The message for a command line about references that may not be loaded."""
        files = dict.fromkeys(parted(reference)[0] for reference in references)
        options = " ".join(f"--custom-op {shlex.quote(file)}" for file in files)
        return (
            f"{by} names {', '.join(references)}: Python code, which is executed only if you name it yourself. If you "
            f"trust it, add {options}, or in Python name the operator in the call. Paths start from the folder of the "
            "training"
        )


def require_named(operators: Sequence[str], custom_ops: Sequence[str], by: str) -> None:
    """Refuse operators in files that the user did not name. `by` is the folder of a run, which names them."""
    names = [split_settings(operator)[0] for operator in operators]
    NamedFiles(custom_ops).require([name for name in names if ":" in name], by)


def refuse_without_effect(custom_ops: Sequence[str], accept_changed: Sequence[str] = ()) -> None:
    """Refuse `--custom-op` and `--accept-changed` beside a configuration or an operator, which need no permission."""
    for option, names in {"--custom-op": custom_ops, "--accept-changed": accept_changed}.items():
        if names:
            raise ConfigError(
                f"{option} {names[0]}: this is for the folder of a run or a saved model; an operator of a "
                f"configuration is set with model.activation={parted(names[0])[0]}:NAME"
            )
