"""The custom operators of a model: functions made of ONNX's operators, and operators of the project's own domain."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from app.custom.composed import Composition
from app.errors import ExportError
from app.graph.program import Operator
from app.onnx.nodes import Value
from app.onnx.types import OPSET, package
from app.ops.definition import OpDef
from app.ops.spec import Spec

if TYPE_CHECKING:
    from app.onnx.graph import GraphNodes

DOMAIN = "opsmith"
"""The domain of operators, and of functions, that are not ONNX's."""


class Library:
    """What a model has besides its graph. A name stands for one operator, and for one function of given types."""

    def __init__(self, make_nodes: Callable[[], GraphNodes]):
        self._make_nodes = make_nodes
        self.functions: dict[str, Any] = {}
        self.own: dict[str, OpDef] = {}
        """The operators that only Python can run, by the names that they have in the model."""
        self._names: dict[Any, str] = {}

    @property
    def used(self) -> bool:
        return bool(self._names)

    def function(self, operator: Operator, specs: Sequence[Spec], made_of: Composition, outside: GraphNodes) -> str:
        """The name of the function that does what an operator does on inputs of these Specs; made at its first use."""
        key = (operator.definition, tuple(specs), tuple(sorted((k, repr(v)) for k, v in operator.attributes.items())))
        if key not in self._names:
            self._names[key] = name = self._free_name(operator.definition)
            self.functions[name] = self._made(name, made_of, outside)
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

    def _made(self, name: str, made_of: Composition, outside: GraphNodes) -> Any:
        nodes = self._make_nodes()
        block = made_of.program.global_block()
        inputs = [block.var(n) for n in made_of.inputs if n is not None]
        values = {v.name: Value(nodes, nodes.fresh(v.name), v.dtype, v.shape) for v in inputs}
        nodes.append_block(block, values)
        outside.problems.update(nodes.problems)
        results = nodes.hand_out([values[n] for n in made_of.outputs], made_of.outputs)
        opsets = [package().helper.make_opsetid(domain, version) for domain, version in (("", OPSET), (DOMAIN, 1))]
        return package().helper.make_function(DOMAIN, name, [v.name for v in inputs], results, nodes.made, opsets)


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
