"""`app.train` and `app.compare`: training from Python, with operators as objects or names, and settings as keywords."""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

import msgspec

from app.custom.pylayer import PyLayer
from app.errors import ConfigError
from app.experiment import api
from app.ops import REGISTRY, OpDef
from app.run.config import config_name, load_compare_config, load_config, with_settings
from app.run.console import Console, Quiet
from app.run.network import Activation, find_activation
from app.run.options import DEFAULT
from app.run.run import Result
from app.run.trust import Trust

Named = str | Callable[..., Any]
"""A name, or an operator: of `custom_op`, a PyLayer or Function, a class of Layers, a function of one value."""


def train(
    activation: Named | None = None,
    baseline: Named | None = "relu",
    *,
    config: str | os.PathLike[str] = DEFAULT,
    quiet: bool = False,
    **settings: Any,
) -> Result:
    """Train MNIST with an operator, and beside it with another one; gives the metrics, the weights and the folder.

    `config` is a YAML file, and settings change it: `app.train(swish, "silu", epochs=3, hidden=[256])`.
    """
    found = load_config(config)
    first = _activation(found.model.activation if activation is None else activation)
    other = None if baseline is None else _activation(baseline)
    activations = [first, *([other] if other is not None and other.name != first.name else [])]
    model = msgspec.structs.replace(found.model, activation=first.name)
    found = msgspec.structs.replace(found, model=model, baseline=None if other is None else other.name)
    found = with_settings(found, settings, "app.train")
    return api.train(found, config_name(config), _console(quiet), activations=activations)


def compare(
    operators: Sequence[Named],
    seeds: int = 5,
    *,
    config: str | os.PathLike[str] = DEFAULT,
    executor: Executor | None = None,
    quiet: bool = False,
    **settings: Any,
) -> Result:
    """Train several operators alike, each with so many seeds, and test how the others differ from the first.

    An executor of `concurrent.futures` runs the trainings side by side; its workers find operators by their files.
    """
    found = load_compare_config(config)
    activations = [_activation(operator) for operator in operators]
    names = tuple(activation.name for activation in activations)
    own = [a.name for a in activations if not a.home and a.operator is not REGISTRY.get(a.name)]
    own = [name for name in own if not name.startswith("custom.")]
    if executor is not None and own:
        raise ConfigError(
            f"{', '.join(own)} cannot be found by the workers of an executor: put it into a file, and name it as "
            "path/to/my_ops.py:name or import it from there"
        )
    found = with_settings(found, {**settings, "operators": list(names), "seeds": seeds}, "app.compare")
    return api.compare(found, config_name(config), _console(quiet), executor=executor, activations=activations)


def _console(quiet: bool) -> Console:
    return Quiet() if quiet else Console()


def _activation(operator: Named) -> Activation:
    """The operator of a name, or one that is given as it is, under a name that a configuration may have."""
    if isinstance(operator, str):
        return find_activation(operator, Trust(operators=[operator]))
    if isinstance(operator, OpDef) and REGISTRY.get(operator.name) is operator and operator.public:
        return Activation(operator.name, operator)
    if not callable(operator):
        raise ConfigError(f"an operator, a function of one value or a name is expected, found {operator!r}")
    name = re.sub(r"\W", "_", str(getattr(operator, "name", None) or getattr(operator, "__name__", None) or "operator"))
    home = _home(operator, name)
    apply = operator.apply if isinstance(operator, type) and issubclass(operator, PyLayer) else operator
    if home:
        return Activation(f"{home}:{name}", apply, home)
    return Activation(name if name not in REGISTRY else f"own_{name}", apply)


def _home(operator: Callable[..., Any], name: str) -> str:
    """The file of a module of the user's by which a resumed run finds the operator again; '' for a cell or a script."""
    function = getattr(operator, "function", operator)
    module = inspect.getmodule(function)
    file = getattr(module, "__file__", None)
    if module is None or file is None or module.__name__ == "__main__" or getattr(module, name, None) is not operator:
        return ""
    return os.path.relpath(file) if Path(file).suffix == ".py" and not module.__name__.startswith("app.") else ""
