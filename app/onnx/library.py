"""The custom operators of a model: functions made of ONNX's operators, and operators of the project's own domain."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from app.errors import ExportError
from app.graph.program import Operator
from app.ops.definition import OpDef
from app.ops.settings import key_of_settings
from app.ops.spec import Spec

DOMAIN = "opsmith"
"""The domain of operators, and of functions, that are not ONNX's."""


class Library:
    """What a model has besides its graph. A name stands for one operator, and for one function of given types."""

    def __init__(self) -> None:
        self.functions: dict[str, Any] = {}
        self.own: dict[str, OpDef] = {}
        """The operators that only Python can run, by the names that they have in the model."""
        self._names: dict[Any, str] = {}

    @property
    def used(self) -> bool:
        return bool(self._names)

    def function(self, operator: Operator, specs: Sequence[Spec], make: Callable[[str], Any]) -> str:
        """The name of the function that does what an operator does on inputs of these Specs.

        At its first use `make` makes it, under that name.
        """
        key = (operator.definition, tuple(specs), key_of_settings(operator.attributes))
        if key not in self._names:
            self._names[key] = name = self._free_name(operator.definition)
            self.functions[name] = make(name)
        return self._names[key]

    def own_operator(self, operator: Operator) -> tuple[str, dict[str, Any]]:
        """The name of an operator of the project's own domain, and the settings of a call as a node has them."""
        definition = operator.definition
        if definition not in self._names:
            self._names[definition] = name = self._free_name(definition)
            self.own[name] = definition
        return self._names[definition], written(operator)

    def _free_name(self, definition: OpDef) -> str:
        plain = re.sub(r"\W", "_", definition.name)
        taken, name, number = set(self._names.values()), plain, 1
        while name in taken:
            number += 1
            name = f"{plain}_{number}"
        return name


def written(operator: Operator) -> dict[str, Any]:
    """The settings of an operator as the attributes of a node, which can leave out those that are as always."""
    said = {}
    for name, value in operator.attributes.items():
        if _writable(value):
            said[name] = value
        elif value != operator.definition.attributes.get(name):
            raise ExportError(f"its setting {name}={value!r} is of no kind that ONNX has for attributes")
    return said


def _writable(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        kinds = {type(item) for item in value}
        return len(kinds) == 1 and kinds <= {int, float, str}
    return isinstance(value, (bool, int, float, str))
