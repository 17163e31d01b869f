"""Control flow as nodes with subgraphs. A subgraph can use the values outside."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from app.onnx.nodes import Nodes, Value
from app.onnx.types import number_of, package
from app.ops.spec import UNKNOWN

Makes = Callable[[Sequence[Value]], list[Value]]


class FlowNodes(Nodes):
    """Nodes with `If` and `Loop`."""

    def run(self, body: Any, values: Sequence[Value]) -> list[Value]:
        """Append the body of a control-flow operator, applied to these values; gives its outputs."""
        raise NotImplementedError

    def either(self, condition: Value, then: Callable[[], list[Value]], otherwise: Callable[[], list[Value]]) -> Any:
        """The results of one function if a condition holds, else those of the other."""
        (first, results), (second, _) = self._graph("then", [], then), self._graph("otherwise", [], otherwise)
        names = self.node("If", [condition.name], len(results), {"then_branch": first, "else_branch": second})
        return [Value(self, name, v.dtype) for name, v in zip(names, results, strict=True)]

    def repeated(self, carried: Sequence[Value], says: Callable[[Sequence[Value]], Value], makes: Makes) -> list[Value]:
        """While `says` is true of the carried values, replace them by `makes` of them."""
        given = [Value(self, self.fresh("number"), "int64", ()), Value(self, self.fresh("goes_on"), "bool", ())]
        inside = [Value(self, self.fresh(v.name), v.dtype, [UNKNOWN] * v.rank) for v in carried]

        def once() -> list[Value]:
            made = [m.with_shape(v.shape) for m, v in zip(makes(inside), inside, strict=True)]
            return [says(made).with_shape([]), *made]

        body, _ = self._graph("iteration", [*given, *inside], once)
        names = self.node("Loop", ["", says(carried).name, *(v.name for v in carried)], len(carried), {"body": body})
        return [Value(self, name, v.dtype) for name, v in zip(names, carried, strict=True)]

    def _graph(
        self, name: str, inputs: Sequence[Value], function: Callable[[], list[Value]]
    ) -> tuple[Any, list[Value]]:
        """What a function appends as a graph, and copies of its results, which may be values from outside."""
        outside, self.made = self.made, []
        try:
            outputs = [self.Identity(value).with_shape(value.shape) for value in function()]
            described = [[_described(v) for v in values] for values in (inputs, outputs)]
            return package().helper.make_graph(self.made, name, *described), outputs
        finally:
            self.made = outside


def _described(value: Value) -> Any:
    sizes = [None if size == UNKNOWN else size for size in value.shape]
    return package().helper.make_tensor_value_info(value.name, number_of(value.dtype), sizes)
