"""The operator that a configuration names, as a network uses it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from app.custom.lookup import find_operator
from app.errors import AppError, OperatorError
from app.ops.methods import ValueMethods

_HINT = "; a function on NumPy arrays becomes an operator with @app.custom_op"


@dataclass(frozen=True)
class Activation:
    """An operator between layers. It may be the user's own, so what it raises and returns is checked."""

    name: str
    operator: Callable[[Any], Any]

    def __call__(self, x: Any) -> Any:
        try:
            result = self.operator(x)
        except AppError:
            raise
        except Exception as error:
            words = str(error).partition("\n")[0]  # Numba's go on for a page
            misused = isinstance(error, TypeError) or type(error).__module__.startswith("numba")
            raise OperatorError(
                f"{self.name} raised {type(error).__name__}: {words}{_HINT if misused else ''}"
            ) from error
        if not isinstance(result, ValueMethods):
            kind = type(x).__name__
            raise OperatorError(f"{self.name} made a {type(result).__name__} of a {kind}, expected a {kind}{_HINT}")
        return result

    def require_gradients(self, untrained: Sequence[str]) -> None:
        """Refuse to leave parameters untrained because no gradient comes back through the operator."""
        if untrained:
            raise OperatorError(
                f"no gradient comes back through {self.name}, so {', '.join(untrained)} would never be trained; "
                "declare one, such as with @operator.backward"
            )


def find_activation(name: str) -> Activation:
    """The operator that a configuration calls `name`."""
    return Activation(name, find_operator(name))
