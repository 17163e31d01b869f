"""From the operators of a Program to ONNX nodes, by the rules of their definitions."""

from __future__ import annotations

from collections.abc import Callable, MutableMapping, Sequence
from functools import partial
from typing import Any

from app.custom.on_variables import body_of
from app.custom.operator import CustomOperator
from app.errors import AppError, ExportError
from app.graph.program import Block, Body, Operator
from app.listed import as_list
from app.onnx.library import DOMAIN, Library
from app.onnx.nodes import Nodes, Value
from app.onnx.types import OPSET, number_of, package
from app.ops.lowering import Unchanged
from app.ops.spec import UNKNOWN, Spec
from app.reading import parameters_of

Values = MutableMapping[str, Value]
"""The values of a Program's variables, by name."""
Makes = Callable[[], list[Value]]


class GraphNodes(Nodes):
    """The nodes of a Program's operators. Operators that cannot be exported are collected for one error message."""

    def __init__(self, library: Library):
        super().__init__()
        self.library = library
        self.problems: dict[str, str] = {}
        """Why operators cannot be exported, by label."""

    def run(self, body: Body, values: Sequence[Value]) -> list[Value]:
        """Append a body's operators. An output that only a gradient needs is left out."""
        inside: dict[str, Value] = {}
        for name, value in zip(body.inputs, values, strict=True):
            inside[name] = value.with_shape(body.block.var(name).spec.shape)
        for operator in needed(body.block, [name for name in body.outputs if name is not None]):
            self.append_operator(operator, body.block, inside)
        return [inside[name] for name in body.outputs if name is not None]

    # Control flow as nodes with subgraphs, which can use the values outside

    def either(self, condition: Value, then: Makes, otherwise: Makes) -> list[Value]:
        """The results of one function if a condition holds, else those of the other."""
        (first, results), (second, _) = self._graph("then", [], then), self._graph("otherwise", [], otherwise)
        names = self.node("If", [condition.name], len(results), {"then_branch": first, "else_branch": second})
        return [Value(self, name, v.dtype) for name, v in zip(names, results, strict=True)]

    def repeated(
        self,
        carried: Sequence[Value],
        says: Callable[[Sequence[Value]], Value],
        makes: Callable[[Sequence[Value]], list[Value]],
    ) -> list[Value]:
        """While `says` is true of the carried values, replace them by `makes` of them."""
        counted = [Value(self, self.fresh("number"), "int64", ()), Value(self, self.fresh("goes_on"), "bool", ())]
        inside = [Value(self, self.fresh(v.name), v.dtype, [UNKNOWN] * v.rank) for v in carried]

        def once() -> list[Value]:
            values = [m.with_shape(v.shape) for m, v in zip(makes(inside), inside, strict=True)]
            return [says(values).with_shape([]), *values]

        body, _ = self._graph("iteration", [*counted, *inside], once)
        names = self.node("Loop", ["", says(carried).name, *(v.name for v in carried)], len(carried), {"body": body})
        return [Value(self, name, v.dtype) for name, v in zip(names, carried, strict=True)]

    def _graph(self, name: str, inputs: Sequence[Value], function: Makes) -> tuple[Any, list[Value]]:
        """What a function appends as a graph, and copies of its results, which may be values from outside."""
        outside, self.protos = self.protos, []
        try:
            outputs = [self.Identity(value).with_shape(value.shape) for value in function()]
            ends = [[described(v.name, v.dtype, sizes_of(v.shape)) for v in values] for values in (inputs, outputs)]
            return package().helper.make_graph(self.protos, name, *ends), outputs
        finally:
            self.protos = outside

    # Operators

    def append_operator(self, operator: Operator, block: Block, values: Values) -> None:
        """Append one operator's nodes, with results named after its variables."""
        outputs = [block.var(name) for name in operator.outputs]
        inputs = [None if name is None else values.get(name) for name in inputs_of(operator)]
        first, outside = len(self.protos), self.scope
        self.scope = operator.outputs[0] if operator.outputs else operator.type
        try:
            results = self._results(operator, inputs, [v.spec for v in outputs])
        except AppError as error:
            self.problems.setdefault(operator.definition.label, str(error))
            results = [Value(self, v.name, v.dtype) for v in outputs]
        self.scope = outside
        for variable, result in zip(outputs, results, strict=True):
            if result is not None:
                if any(result.name in node.output for node in self.protos[first:]):
                    self._rename(result, self.fresh(variable.name), first)
                values[variable.name] = Value(self, result.name, variable.dtype, variable.spec.shape)

    def _results(self, operator: Operator, inputs: list[Value | None], outputs: list[Spec]) -> list[Value | None]:
        definition = operator.definition
        missing = [n for n, v in zip(inputs_of(operator), inputs, strict=True) if n is not None and v is None]
        if missing:
            raise ExportError(f"it reads {missing[0]}, which is kept only for gradients")
        if definition.onnx is not None:
            results = self._by_rule(operator, inputs, outputs)
        elif isinstance(definition.lowering, Unchanged):
            results = inputs
        elif isinstance(definition, CustomOperator):
            results = self._custom(operator, definition, inputs, outputs)
        else:
            raise ExportError("it has no counterpart in ONNX")
        return as_list(results)

    def _by_rule(self, operator: Operator, inputs: list[Value | None], outputs: list[Spec]) -> Any:
        """Call a rule with what its parameters name."""
        definition = operator.definition
        rule = definition.onnx
        if isinstance(rule, str):
            if operator.attributes:
                settings = ", ".join(f"{name}={value!r}" for name, value in operator.attributes.items())
                raise ExportError(
                    f"its onnx={rule!r} leaves out its settings, {settings}: give a function of them, such as onnx="
                    f"lambda onnx, x, {', '.join(operator.attributes)}: onnx.{rule}(x, ...)"
                )
            return self.append(rule, inputs, len(outputs), {})
        assert rule is not None
        named = {
            "onnx": self,
            "attributes": operator.attributes,
            **dict(zip(definition.inputs, inputs, strict=False)),
            **operator.attributes,
        }
        if definition.variadic:
            named[definition.variadic] = inputs
        named.update((f"{name}_shape", o.shape) for name, o in zip(definition.outputs, outputs, strict=False))
        parameters = parameters_of(rule)
        for name in parameters:
            if name not in named:
                raise ExportError(f"its ONNX rule asks for {name!r}; it can have {', '.join(named)}")
        return rule(**{name: named[name] for name in parameters})

    def _custom(
        self, operator: Operator, definition: CustomOperator, inputs: list[Value | None], outputs: list[Spec]
    ) -> list[Value | None]:
        """A call of an ONNX function if the operator's function takes Variables, else of an operator of our domain."""
        specs = [v.spec for v in inputs if v is not None]
        function, body, settings = definition.on_variables, None, dict[str, Any]()
        if function is not None and len(specs) == len(inputs):
            body = body_of(definition, function, specs, operator.attributes)
        if body is not None:
            name = self.library.function(operator, specs, partial(self._function, body))
        else:
            name, settings = self.library.own_operator(operator)
        names = self.node(name, ["" if v is None else v.name for v in inputs], len(outputs), settings, DOMAIN)
        return [Value(self, n, spec.dtype, spec.shape) for n, spec in zip(names, outputs, strict=True)]

    def _function(self, body: Body, name: str) -> Any:
        """An ONNX function with the nodes of a body."""
        inside = GraphNodes(self.library)
        inputs = [body.block.var(n) for n in body.inputs]
        values = [Value(inside, inside.fresh(v.name), v.dtype, v.spec.shape) for v in inputs]
        results = inside.hand_out(inside.run(body, values), body.outputs)
        self.problems.update(inside.problems)
        opsets = [package().helper.make_opsetid(domain, version) for domain, version in (("", OPSET), (DOMAIN, 1))]
        return package().helper.make_function(DOMAIN, name, [v.name for v in inputs], results, inside.protos, opsets)

    def hand_out(self, values: Sequence[Value], names: Sequence[str]) -> list[str]:
        """Name values as outputs. A value that is an input, or an output already, is copied."""
        outputs: list[str] = []
        for value, wish in zip(values, names, strict=True):
            is_output_of_a_node = any(value.name in node.output for node in self.protos)
            if value.name in outputs or not is_output_of_a_node:
                value = self.Identity(value)
            if value.name != wish:
                self._rename(value, self.fresh(wish))
            outputs.append(value.name)
        return outputs

    def _rename(self, value: Value, new: str, first: int = 0) -> None:
        """Rename a value that the node number `first` of this graph, or a later one, makes."""
        old, value.name = value.name, new
        for node in self.protos[first:]:
            for names in (node.input, node.output):
                for place, name in enumerate(names):
                    if name == old:
                        names[place] = new
            for attribute in node.attribute:
                _rename_inside(attribute.g, old, new)


def needed(block: Block, outputs: Sequence[str]) -> list[Operator]:
    """The operators that compute these variables, in order."""
    variables, operators = set(outputs), []
    for operator in reversed(block.ops):
        if variables.intersection(operator.outputs):
            operators.append(operator)
            variables.update(name for name in inputs_of(operator) if name is not None)
    return operators[::-1]


def inputs_of(operator: Operator) -> Sequence[str | None]:
    """The variables that the nodes of an operator read: of a PyLayer the inputs if it has a rule, else its results."""
    lowering = operator.definition.lowering
    if not isinstance(lowering, Unchanged):
        return operator.inputs
    if operator.definition.onnx is not None:
        return operator.inputs[: lowering.places[0]]
    return [operator.inputs[place] for place in lowering.places]


def sizes_of(shape: Sequence[Any]) -> list[Any]:
    """The sizes of axes, None for an open one."""
    return [None if size == UNKNOWN else size for size in shape]


def described(name: str, dtype: str, sizes: Sequence[Any]) -> Any:
    """The type and shape of a value, as a graph's inputs and outputs are declared."""
    return package().helper.make_tensor_value_info(name, number_of(dtype), list(sizes))


def _rename_inside(graph: Any, old: str, new: str) -> None:
    """Rename a value inside the subgraphs of a node."""
    for node in graph.node:
        for place, name in enumerate(node.input):
            if name == old:
                node.input[place] = new
        for attribute in node.attribute:
            _rename_inside(attribute.g, old, new)
