"""The operator between the layers of a network: how it is found by its name, called and checked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import numpy as np

from app.custom.lookup import find_operator, split_settings, values_taken
from app.errors import AppError, ConfigError, OperatorError
from app.graph import Program, in_dynamic_mode, names, program_guard
from app.nn import Layer
from app.ops import REGISTRY, random
from app.ops.methods import ValueMethods
from app.ops.spec import UNKNOWN
from app.run.config import ModelConfig
from app.run.layers import operators_named_in
from app.static import data
from app.tensor import Tensor, no_grad

_HINT = "; a function on NumPy arrays becomes an operator with @opsmith.custom_op"


@dataclass(frozen=True)
class Activation:
    """An operator between layers. Its results and exceptions are checked, as it may be the user's own."""

    name: str
    operator: Callable[..., Any]
    home: str = ""
    """The user's file that defines it, as the user named it."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """The settings in the name, as in `custom.leaky_relu(slope=0.2)`."""
    of_layers: Mapping[str, Activation] = field(default_factory=dict)
    """The operators that layers of the network name for themselves, by name."""

    def named(self, name: str) -> Activation:
        """Return the operator that a layer names for itself."""
        return self.of_layers[name] if name in self.of_layers else find_activation(name)

    def for_one_layer(self) -> Activation:
        """Return the operator for one hidden layer: a new instance of a Layer class, with its own parameters."""
        if isinstance(self.operator, type):
            return replace(self, operator=self._run(self.operator, **self.settings), settings={})
        if isinstance(self.operator, Layer) and self.operator.parameters():
            kind = type(self.operator).__name__
            raise OperatorError(
                f"{self.name} is one {kind}, whose parameters all hidden layers would share; name a class of Layers "
                "that takes no arguments instead, so that each hidden layer gets its own"
            )
        return self

    @property
    def layer(self) -> Layer | None:
        """The Layer that holds the operator's parameters, if any."""
        return self.operator if isinstance(self.operator, Layer) else None

    def __call__(self, x: Any) -> Any:
        result = self._run(self.operator, x, **self.settings)
        if not isinstance(result, ValueMethods):
            kind = "Tensor" if isinstance(x, Tensor) else "Variable"
            raise OperatorError(f"{self.name} made a {type(result).__name__} of a {kind}, expected a {kind}{_HINT}")
        if len(result.shape) < 2 or result.shape[0] not in (x.shape[0], UNKNOWN):
            raise OperatorError(
                f"{self.name} made shape {list(result.shape)} of shape {list(x.shape)}; between two layers an operator "
                "keeps the number of rows, and makes at least one value of each"
            )
        return result

    def shape_after(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape of the result for an image, given that of the input, by applying the operator once.

        Nothing of that remains: neither numbers drawn, nor names, nor statistics of a Layer.
        """
        with random.Streams(0).drawing(), names.guard(), program_guard(Program(), Program()):
            try:
                operator = self.for_one_layer()
                with evaluating(operator.layer), no_grad():
                    x = Tensor(np.ones((2, *shape), np.float32)) if in_dynamic_mode() else data("x", [None, *shape])
                    after = operator(x).shape[1:]
            except AppError:
                return shape  # the first step raises it, on numbers of the data
        if len(after) != len(shape):
            return tuple(after)
        return tuple(before if size == UNKNOWN else size for size, before in zip(after, shape, strict=True))

    def _run(self, function: Callable[..., Any], *values: Any, **settings: Any) -> Any:
        try:
            return function(*values, **settings)
        except (AppError, KeyboardInterrupt):
            raise
        except BaseException as error:
            message = str(error).partition("\n")[0]  # Numba's messages are a page long
            misused = isinstance(error, TypeError) or type(error).__module__.startswith("numba")
            raise OperatorError(
                f"{self.name} raised {type(error).__name__}: {message}{_HINT if misused else ''}"
            ) from error

    def require_gradients(self, untrained: Sequence[str]) -> None:
        """Raise an error if parameters get no gradient through the operator."""
        if untrained:
            custom = [name for name, one in self.of_layers.items() if one.operator is not REGISTRY.get(name)]
            names = " or ".join(dict.fromkeys([self.name, *custom]))
            raise OperatorError(
                f"no gradient comes back through {names}, so {', '.join(untrained)} would never be trained; "
                "declare one, such as with @operator.backward"
            )


@contextmanager
def evaluating(layer: Layer | None) -> Iterator[None]:
    """Inside the block the layer is in evaluation mode, in which it keeps its statistics."""
    modes = [(part, part.training) for part in layer.sublayers(include_self=True)] if layer is not None else []
    try:
        for part, _ in modes:
            part.training = False
        yield
    finally:
        for part, training in modes:
            part.training = training


def passed_only(names: Iterable[str]) -> list[str]:
    """Return the operators that nobody can find by their names: those of notebook cells, which have to be passed."""
    return [name for name in names if name.isidentifier() and name not in REGISTRY]


_OWN = "own_"


def session_name(name: str) -> str:
    """Return the name in a run of an operator that has to be passed. It is never that of a built-in operator, which
    would be taken for it afterwards."""
    return f"{_OWN}{name}" if name in REGISTRY else name


def as_passed(names: Iterable[str]) -> str:
    """Return operators that have to be passed as a list in a call, under their names in the user's program."""
    pairs = [(name, name.removeprefix(_OWN)) for name in names]
    return f"[{', '.join(short if session_name(short) == name else name for name, short in pairs)}]"


def find_activation(name: str, homes: Mapping[str, str] = MappingProxyType({})) -> Activation:
    """Find the operator that a configuration calls `name`. If it is in a file of the user's, that is executed.

    `homes` has the files of operators by name, for a process with another working folder.
    """
    operator_name, settings = split_settings(name)
    file, colon, function = operator_name.rpartition(":")
    home = homes.get(name, file)
    operator = find_operator(f"{home}{colon}{function}")
    parameters = values_taken(operator)
    if len(parameters) > 1:
        raise ConfigError(
            f"{operator_name} takes {len(parameters)} values ({', '.join(parameters)}), and between two layers there "
            "is one: apply it in a function of one value in a file of your own, and name that as path/to/file.py:name"
        )
    return Activation(name, operator, home, settings)


def find_all(
    names: Sequence[str],
    model: ModelConfig,
    objects: Sequence[Activation] = (),
    homes: Mapping[str, str] = MappingProxyType({}),
) -> list[Activation]:
    """Find the operators of these names, with those that layers of the model name for themselves.

    Those in `objects` are not looked up; for `homes` see `find_activation`.
    """
    named = operators_named_in(model.all_layers)
    by_name = {one.name: one for one in objects}
    missing = [name for name in dict.fromkeys([*names, *named]) if name not in by_name]
    by_name |= {name: find_activation(name, homes) for name in missing}
    return [replace(by_name[name], of_layers={own: by_name[own] for own in named}) for name in names]


def every_operator(activations: Sequence[Activation]) -> list[Activation]:
    """Return these operators and those that layers name for themselves, each once."""
    own = {name: one for activation in activations for name, one in activation.of_layers.items()}
    return [*activations, *(one for name, one in own.items() if name not in {a.name for a in activations})]
