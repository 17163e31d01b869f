"""The network that a configuration describes, and the operator between its layers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np

from app.custom.lookup import find_operator, split_settings, values_taken
from app.data.dataset import CLASSES
from app.engine import Scope
from app.errors import AppError, ConfigError, OperatorError
from app.graph import Program, names, program_guard, static_mode
from app.nn import Layer, Linear, ParamAttr, Sequential, functional
from app.nn.initializer import Initializer, KaimingUniform, XavierUniform
from app.ops.methods import ValueMethods
from app.ops.spec import UNKNOWN
from app.run.config import Config, ModelConfig
from app.run.trust import NOBODY, Trust
from app.static import data
from app.static.model_file import SavedModel
from app.static.saving import for_use
from app.tensor import Tensor

_HINT = "; a function on NumPy arrays becomes an operator with @app.custom_op"


@dataclass(frozen=True)
class Activation:
    """An operator between layers. It may be the user's own, so what it raises and returns is checked."""

    name: str
    operator: Callable[..., Any]
    home: str = ""
    """The file of the user's that it was found in, as the user named it."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """What the name sets, as in `custom.leaky_relu(slope=0.2)`."""

    def for_one_layer(self) -> Activation:
        """The same for one hidden layer alone: of a class of Layers a new one, so that it has its own parameters."""
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
        """What holds the operator's parameters, if it is a Layer."""
        return self.operator if isinstance(self.operator, Layer) else None

    def __call__(self, x: Any) -> Any:
        result = self._run(self.operator, x, **self.settings)
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

    def _run(self, function: Callable[..., Any], *values: Any, **settings: Any) -> Any:
        try:
            return function(*values, **settings)
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
    parts = [split_settings(name) for name in names]
    homes = trust.homes([operator for operator, _ in parts])
    found = [_found(operator, homes.get(operator, "")) for operator, _ in parts]
    return [
        replace(activation, name=name, settings=settings)
        for activation, name, (_, settings) in zip(found, names, parts, strict=True)
    ]


def _found(name: str, home: str) -> Activation:
    operator = find_operator(f"{home}:{name.rpartition(':')[2]}" if home else name)
    taken = values_taken(operator)
    if len(taken) > 1:
        raise ConfigError(
            f"{name} takes {len(taken)} values ({', '.join(taken)}), and between two layers there is one: apply it in "
            "a function of one value in a file of your own, and name that as path/to/file.py:name"
        )
    return Activation(name, operator, home)


INITIALIZERS: dict[str, type[Initializer]] = {"xavier": XavierUniform, "kaiming": KaimingUniform}


class Network(Layer):
    """Dense layers over uint8 images, with a custom or built-in operator between them, which may have parameters."""

    def __init__(self, config: ModelConfig, activation: Activation, pixels: int, pixel_range: tuple[float, float]):
        super().__init__("network")
        low, high = pixel_range
        self.scale, self.shift = (high - low) / 255.0, low
        widths = [pixels, *config.hidden, CLASSES]
        attr = ParamAttr(initializer=INITIALIZERS[config.initializer]())
        self.layers = Sequential(*[Linear(a, b, weight_attr=attr) for a, b in pairwise(widths)])
        self.dropout = config.dropout
        self.between = [activation.for_one_layer() for _ in config.hidden]
        self.activations = Sequential(*[a.layer for a in self.between if a.layer is not None])

    def forward(self, image: Any) -> Any:
        """The scores of the classes."""
        return self.outputs(image)[-1]

    def outputs(self, image: Any) -> list[Any]:
        """What each layer gives: the hidden ones after their activation, then the scores of the classes."""
        x = image.astype("float32") * self.scale + self.shift
        *hidden, last = self.layers.children()
        found = []
        for layer, activation in zip(hidden, self.between, strict=True):
            x = activation(layer(x))
            found.append(x)
            x = functional.dropout(x, self.dropout, training=self.training) if self.dropout else x
        return [*found, last(x)]


def model_for_use(config: Config, activation: Activation, pixels: int, weights: Mapping[str, np.ndarray]) -> SavedModel:
    """The network of a configuration with these weights, which are named by their paths in it."""
    main, scope = Program(), Scope()
    with names.guard(), program_guard(main, Program()), static_mode():
        image = data("image", [None, pixels], "uint8")
        network = Network(config.model, activation, pixels, config.data.pixel_range)
        network.eval()
        scores = network(image)
    scope.values = {variable.name: weights[path] for path, variable in network.named_parameters()}
    return for_use(main, [image.name], [scores.name], scope)
