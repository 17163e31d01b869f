"""The custom operators of a model: functions of ONNX operators, and operators of the project's domain."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from app.errors import ExportError
from app.graph.program import Operator
from app.ops.definition import OpDef
from app.ops.settings import key_of_settings
from app.ops.spec import Spec

DOMAIN = "opsmith"
"""The domain of functions and of operators that ONNX does not have."""


class Library:
    """The functions and own operators of a model, by name. A function is made for each combination of types."""

    def __init__(self) -> None:
        self.functions: dict[str, Any] = {}
        self.own: dict[str, OpDef] = {}
        """The opaque operators, by their names in the model."""
        self._names: dict[Any, str] = {}

    @property
    def used(self) -> bool:
        return bool(self._names)

    def function(self, operator: Operator, specs: Sequence[Spec], make: Callable[[str], Any]) -> str:
        """The name of the function of an operator on inputs of these Specs; `make` makes it at the first use."""
        key = (operator.definition, tuple(specs), key_of_settings(operator.attributes))
        if key not in self._names:
            self._names[key] = name = self._free_name(operator.definition)
            self.functions[name] = make(name)
        return self._names[key]

    def own_operator(self, operator: Operator) -> tuple[str, dict[str, Any]]:
        """The name of an operator of the project's domain, and the settings of a call as attributes."""
        definition = operator.definition
        if definition not in self._names:
            self._names[definition] = name = self._free_name(definition)
            self.own[name] = definition
        return self._names[definition], written(operator)

    def _free_name(self, definition: OpDef) -> str:
        plain = re.sub(r"\W", "_", definition.name)
        names, name, number = set(self._names.values()), plain, 1
        while name in names:
            number += 1
            name = f"{plain}_{number}"
        return name


def written(operator: Operator) -> dict[str, Any]:
    """The settings of an operator as attributes; one that ONNX cannot write is left out if it is the default."""
    attributes, defaults = {}, operator.definition.attributes
    for name, value in operator.attributes.items():
        if _writable(value):
            attributes[name] = value
        elif key_of_settings({name: value}) != key_of_settings({name: defaults.get(name)}):
            raise ExportError(
                f"its setting {name}={value!r} cannot be written: ONNX attributes hold text, whole numbers in 64 bits, "
                "other numbers in single precision, and lists of one of these"
            )
    return attributes


def _writable(value: Any) -> bool:
    """Whether an attribute can hold a setting: text, and numbers in 64 bits if whole and in 32 if not."""
    if isinstance(value, (list, tuple)):
        kinds = {type(item) for item in value}
        return len(kinds) == 1 and kinds <= {int, float, str} and all(map(_writable, value))
    if isinstance(value, float):
        return not math.isfinite(value) or abs(value) <= float(np.finfo(np.float32).max)
    return isinstance(value, str) or (isinstance(value, int) and -(2**63) <= value < 2**63)
