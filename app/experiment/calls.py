"""`opsmith.train`, `opsmith.compare`, `opsmith.resume`: training from Python, with operators as objects or names."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np

from app.custom.foreign import operator_of_framework
from app.custom.lookup import SHIPPED, on_the_shelf
from app.custom.operator import home_of
from app.custom.pylayer import PyLayer
from app.errors import ConfigError
from app.experiment import comparing
from app.experiment.results import Result
from app.ops import REGISTRY, OpDef
from app.ranks.world import current
from app.reading import PACKAGE
from app.report.report import write_report
from app.run import run
from app.run.activation import Activation, find_activation, passed_only, session_name
from app.run.config import (
    C,
    CompareConfig,
    Config,
    load_compare_config,
    load_config,
    load_kept_config,
    operators_of,
    with_settings,
)
from app.run.console import Console, in_notebook
from app.run.folder import CONFIG
from app.run.layers import operators_named_in
from app.run.options import DEFAULT

Operator = str | Callable[..., Any]
"""A name or an operator: from `custom_op`, a PyLayer or Function, a Layer class, or a function of one value."""


class Default(Enum):
    """The default of an argument that the configuration decides, where None has a meaning of its own."""

    CONFIG = "of the configuration"

    def __repr__(self) -> str:
        return self.value


def train(
    activation: Operator | None = None,
    baseline: Operator | Default | None = Default.CONFIG,
    *,
    config: str | os.PathLike[str] = DEFAULT,
    quiet: bool = False,
    **settings: Any,
) -> Result:
    """Train on MNIST with an operator and with a baseline; return the metrics, the weights and the network.

    >>> run = opsmith.train("tanh", baseline=None, config="configs/quick.yaml", epochs=1, quiet=True)
    >>> run.metrics["test_accuracy"] > 0.7
    True
    >>> len(run.predict(opsmith.data.load("sample").test_images[:5]))
    5

    Args:
        activation: A name (`"tanh"`, `"custom.relu"`, `"my_ops.py:swish"`) or an object: the result of `custom_op`, a
            `PyLayer`, `Function` or Layer class, or a function of one value. By default that of the configuration.
        baseline: The operator to train beside it; None for none. By default that of the configuration.
        config: A YAML file.
        quiet: Print only warnings.
        **settings: Settings that override those of the file, such as `epochs=3`.
    """
    named = {"activation": activation, "baseline": baseline}
    objects = {key: activation_of(one) for key, one in named.items() if one is not None and one is not Default.CONFIG}
    settings |= {key: one.name for key, one in objects.items()} | ({"baseline": None} if baseline is None else {})
    configuration, activations = configured(load_config(config), [*objects.values()], settings, "opsmith.train")
    folder = run.train(configuration, _console(quiet), activations, write_report=write_report)
    return _result(folder, configuration, activations)


def compare(
    operators: Sequence[Operator] | None = None,
    seeds: int | None = None,
    *,
    config: str | os.PathLike[str] = DEFAULT,
    executor: Executor | None = None,
    quiet: bool = False,
    **settings: Any,
) -> Result:
    """Train several operators under equal conditions with several seeds, and test how the others differ from the first.

    >>> result = opsmith.compare(["relu", "tanh"], seeds=2, config="configs/quick.yaml", epochs=1, quiet=True)
    >>> sorted(row["operator"] for row in result.table)
    ['relu', 'tanh']
    >>> result["tanh"].metrics["test_accuracies"] == result["tanh"].accuracies
    True

    Args:
        operators: Names or objects, as in `opsmith.train`. The others are compared with the first. By default those of
            the configuration.
        seeds: The number of seeds. By default that of the configuration.
        config: A YAML file.
        executor: An executor of `concurrent.futures` that runs the trainings in parallel. Its workers import the
            operators from their files.
        quiet: Print only warnings.
        **settings: Settings that override those of the file, such as `epochs=3`.
    """
    if isinstance(operators, str):
        raise ConfigError(
            f"opsmith.compare takes a list of operators, found {operators!r}; write [{operators!r}, swish]"
        )
    configuration = load_compare_config(config)
    activations = [activation_of(operator) for operator in operators or ()]
    if operators is not None:
        settings["operators"] = [activation.name for activation in activations]
    if seeds is not None:
        settings["seeds"] = seeds
    configuration, objects = configured(configuration, activations, settings, "opsmith.compare")
    if executor is not None and (own := passed_only(activation.name for activation in objects)):
        raise ConfigError(
            f"{', '.join(own)} cannot be found by the workers of an executor: put it into a file, and name it as "
            "path/to/my_ops.py:name or import it from there"
        )
    return _result(comparing.compare(configuration, _console(quiet), executor, objects), configuration, objects)


def resume(folder: str | os.PathLike[str], operators: Sequence[Operator] = (), *, quiet: bool = False) -> Result:
    """Resume the interrupted run or comparison in a folder; the results are as without the interruption.

    Args:
        folder: The folder of the run.
        operators: Your operators that the run needs: names of those in files, objects of those that were defined in a
            notebook.
        quiet: Print only warnings.
    """
    path, (objects, files) = Path(folder), _handed_over(operators)
    if (path / CONFIG).is_file() and isinstance(load_kept_config(path / CONFIG), CompareConfig):
        comparing.continue_comparison(path, _console(quiet), custom_ops=files, objects=objects)
    else:
        run.resume(path, _console(quiet), custom_ops=files, objects=objects, write_report=write_report)
    return Result(path, objects, files)


def open_run(folder: str | os.PathLike[str], operators: Sequence[Operator] = ()) -> Result:
    """Return the result that a run or a comparison left in its folder. This runs no code from it.

    Args:
        folder: The folder of the run.
        operators: Your operators that its networks need: names of those in files, objects of those that were defined
            in a notebook.
    """
    return Result(Path(folder), *_handed_over(operators))


def _handed_over(operators: Sequence[Operator]) -> tuple[list[Activation], list[str]]:
    """Return the operators that have no name by which they can be found, and the files of the others."""
    objects = _one_per_name([activation_of(operator) for operator in operators])
    own = passed_only(a.name for a in objects)
    return [a for a in objects if a.name in own], [a.home for a in objects if a.home]


def _result(folder: Path | None, config: Config, objects: Sequence[Activation]) -> Result:
    """Return the result of a run that has ended here, on every rank. The user has named the configuration, and thus
    its operators."""
    name = current().allgather(None if folder is None else str(folder))[0]
    return Result(Path(name), objects, [*operators_of(config), *operators_named_in(config.model.all_layers)])


def _console(quiet: bool) -> Console:
    return Console(lines=not quiet, outcome=None if quiet or in_notebook() else "text")


def activation_of(operator: Operator) -> Activation:
    """Return the operator of a name, or wrap an operator object under a name for the configuration."""
    if isinstance(operator, str):
        return find_activation(operator)
    if isinstance(operator, OpDef) and REGISTRY.get(operator.name) is operator and operator.public:
        return Activation(operator.name, operator)
    other = operator_of_framework(operator)
    if other is None and not callable(operator):
        raise ConfigError(f"an operator, a function of one value or a name is expected, found {operator!r}")
    if other is not None:
        thing, written, apply = other.foreign.thing, other.foreign.name, other.apply
    else:
        thing, written = operator, getattr(operator, "name", None) or getattr(operator, "__name__", None) or "operator"
        apply = operator.apply if isinstance(operator, type) and issubclass(operator, PyLayer) else operator
    name = "a_lambda" if written == "<lambda>" else re.sub(r"\W", "_", str(written))
    home = _home(thing, name)
    return Activation(f"{home}:{name}" if home else session_name(name), apply, home)


def configured(
    config: C, operators: Sequence[Activation], settings: dict[str, Any], where: str
) -> tuple[C, list[Activation]]:
    """Apply keyword arguments to a configuration; return it and the operators given as objects, with those in
    `layers`."""
    layers, activations = settings.get("layers"), list(operators)
    if isinstance(layers, (list, tuple)):
        settings = {**settings, "layers": [_with_name(layer, activations) for layer in layers]}
    objects = _one_per_name(activations)
    return with_settings(config, settings, where), objects


def _with_name(layer: Any, activations: list[Activation]) -> Any:
    """Replace a layer's operator by its name, and add the operator to those found."""
    operator = layer.get("activation") if isinstance(layer, dict) else None
    if not callable(operator):
        return layer
    shipped = [f"custom.{name}" for name in SHIPPED if on_the_shelf(f"custom.{name}") is operator]
    own = activation_of(shipped[0] if shipped else operator)
    same = next((one for one in activations if (one.operator, one.settings) == (own.operator, own.settings)), own)
    activations.append(same)
    return {**layer, "activation": same.name}


def _one_per_name(activations: Sequence[Activation]) -> list[Activation]:
    """Refuse different operators of one name, by which a run could not tell them apart."""
    by_name: dict[str, Activation] = {}
    for one in activations:
        if by_name.setdefault(one.name, one).operator != one.operator:
            raise ConfigError(f"two different operators are called {one.name}; give each a name of its own")
    return list(by_name.values())


def _home(operator: Callable[..., Any], name: str) -> str:
    """Return the user's module file from which a resumed run imports the operator; '' for a cell or a script, and for a
    ufunc, whose module is no file of the user's."""
    function = getattr(operator, "function", operator)
    if isinstance(function, np.ufunc):
        return ""
    module = sys.modules.get(home_of(function))
    file = getattr(module, "__file__", None)
    if module is None or file is None or module.__name__ == "__main__" or getattr(module, name, None) is not operator:
        return ""
    return os.path.relpath(file) if Path(file).suffix == ".py" and not module.__name__.startswith(f"{PACKAGE}.") else ""
