"""What a Program keeps between runs, as a dictionary that can be put in a file and taken over again."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar

import numpy as np

from app.errors import ProgramError, ShapeError
from app.graph.variable import Parameter, Variable


class Kept:
    """The base of Program: its state, the values of its persistable variables in a scope."""

    scope_of: ClassVar[Callable[[Any], Any] | None] = None
    """What gives the scope to use where None is given; the engines set it."""

    def list_vars(self) -> Iterable[Variable]:
        """Every variable."""
        raise NotImplementedError

    def state_dict(self, mode: str = "all", scope: Any = None) -> dict[str, np.ndarray]:
        """Copies of what the Program keeps, by name: its parameters ("param"), the rest ("opt"), or all of it."""
        if mode not in ("all", "param", "opt"):
            raise ProgramError(f"state_dict: mode is 'all', 'param' or 'opt', not {mode!r}")
        kept = (v for v in self._persistable() if mode in ("all", "param" if isinstance(v, Parameter) else "opt"))
        return {v.name: np.array(_scope(scope).value(v.name)) for v in kept}

    def set_state_dict(self, state_dict: Mapping[str, Any], scope: Any = None) -> None:
        """Take over what `state_dict` gave. A shape that does not fit changes nothing at all.

        What is not in it stays as it is; what the Program does not have is told by a warning.
        """
        known = {v.name: v for v in self._persistable()}
        unknown = [name for name in state_dict if name not in known]
        if unknown:
            warnings.warn(f"Program.set_state_dict: {', '.join(unknown)}: not in this Program", stacklevel=2)
        found = {name: np.asarray(state_dict[name]) for name in known if name in state_dict}
        for name, value in found.items():
            if value.shape != known[name].shape:
                raise ShapeError(
                    f"Program.set_state_dict: {name} has shape {list(known[name].shape)}, "
                    f"the state dict has {list(value.shape)}; nothing was changed"
                )
        _scope(scope).values.update({name: value.astype(known[name].dtype) for name, value in found.items()})

    def _persistable(self) -> list[Variable]:
        return [v for v in self.list_vars() if v.persistable]


def _scope(given: Any) -> Any:
    if Kept.scope_of is None:
        raise ProgramError("no engine that keeps values is loaded: import app.engine")
    return Kept.scope_of(given)
