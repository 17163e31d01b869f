"""The operator that a configuration names, as a network uses it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from app.custom.lookup import find_operator, values_taken
from app.errors import AppError, ConfigError, OperatorError
from app.nn import Layer
from app.ops.methods import ValueMethods
from app.ops.spec import UNKNOWN
from app.tensor import Tensor
from app.training.trusted import NOBODY, Trust

_HINT = "; a function on NumPy arrays becomes an operator with @app.custom_op"


@dataclass(frozen=True)
class Activation:
    """An operator between layers. It may be the user's own, so what it raises and returns is checked."""

    name: str
    operator: Callable[..., Any]
    home: str = ""
    """The file of the user's that it was found in, as the user named it."""

    def for_one_layer(self) -> Activation:
        """The same for one hidden layer alone: of a class of Layers a new one, so that it has its own parameters."""
        if isinstance(self.operator, type):
            return replace(self, operator=self._run(self.operator))
        if isinstance(self.operator, Layer) and self.operator.parameters():
            kind = type(self.operator).__name__
            raise OperatorError(
                f"{self.name} is one {kind}, whose parameters all hidden layers would share; name a class of Layers "
                "that takes no arguments instead, so that each hidden layer gets its own"
            )
        return self

    @property
    def layer(self) -> Layer | None:
        """What holds the operator's parameters, if it is a Layer."""
        return self.operator if isinstance(self.operator, Layer) else None

    def __call__(self, x: Any) -> Any:
        result = self._run(self.operator, x)
        if not isinstance(result, ValueMethods):
            kind = "Tensor" if isinstance(x, Tensor) else "Variable"
            raise OperatorError(f"{self.name} made a {type(result).__name__} of a {kind}, expected a {kind}{_HINT}")
        if len(result.shape) != len(x.shape) or any(
            made not in (size, UNKNOWN) for made, size in zip(result.shape, x.shape, strict=True)
        ):
            raise OperatorError(
                f"{self.name} made shape {list(result.shape)} of shape {list(x.shape)}; between two layers an operator "
                "keeps the shape"
            )
        return result

    def _run(self, function: Callable[..., Any], *values: Any) -> Any:
        try:
            return function(*values)
        except (AppError, KeyboardInterrupt):
            raise
        except BaseException as error:
            words = str(error).partition("\n")[0]  # Numba's go on for a page
            misused = isinstance(error, TypeError) or type(error).__module__.startswith("numba")
            raise OperatorError(
                f"{self.name} raised {type(error).__name__}: {words}{_HINT if misused else ''}"
            ) from error

    def require_gradients(self, untrained: Sequence[str]) -> None:
        """Refuse to leave parameters untrained because no gradient comes back through the operator."""
        if untrained:
            raise OperatorError(
                f"no gradient comes back through {self.name}, so {', '.join(untrained)} would never be trained; "
                "declare one, such as with @operator.backward"
            )


def find_activation(name: str, trust: Trust = NOBODY) -> Activation:
    """The operator that a configuration calls `name`. Files of the user's are run only as far as they are trusted."""
    return find_activations([name], trust)[0]


def find_activations(names: Sequence[str], trust: Trust) -> list[Activation]:
    """The operators of these names; no file is run unless all that are needed are trusted."""
    homes = trust.homes(names)
    return [_found(name, homes.get(name, "")) for name in names]


def _found(name: str, home: str) -> Activation:
    operator = find_operator(f"{home}:{name.rpartition(':')[2]}" if home else name)
    taken = values_taken(operator)
    if len(taken) > 1:
        raise ConfigError(
            f"{name} takes {len(taken)} values ({', '.join(taken)}), and between two layers there is one: apply it in "
            "a function of one value in a file of your own, and name that as path/to/file.py:name"
        )
    return Activation(name, operator, home)
