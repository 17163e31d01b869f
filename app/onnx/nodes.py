"""The `onnx` argument of an operator's rule: each method named like an ONNX operator appends a node.

    @silu.in_onnx
    def _(onnx, x):
        return x * onnx.Sigmoid(x)

Numbers and lists beside a value get its element type. A value of a type that an ONNX operator does not take is cast to
one that it takes, and the result is cast back: 8-bit integers and booleans are computed in wider types.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from app.onnx.types import computed_in, number_of, package, schema_of, types_of
from app.ops.dtype import FLOATS, canonical
from app.ops.size import AnySize, Shape
from app.ops.spec import UNKNOWN, Spec


class Value:
    """A value of the graph. Its shape is known if it is an input of the current operator."""

    def __init__(self, nodes: Nodes, name: str, dtype: str, shape: Sequence[AnySize] | None = None):
        self.nodes = nodes
        self.name = name
        self.dtype = dtype
        self._shape = None if shape is None else tuple(shape)

    def __repr__(self) -> str:
        return f"{self.name}: {self.dtype}{'' if self._shape is None else list(self._shape)}"

    @property
    def shape(self) -> Shape:
        """The sizes of its axes, -1 for an open one."""
        if self._shape is None:
            raise ValueError(f"{self.name} is an intermediate value; only the shapes of inputs are known")
        return self._shape

    @property
    def spec(self) -> Spec:
        return Spec(self.shape, self.dtype)

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def floating(self) -> bool:
        return self.dtype in FLOATS

    def with_shape(self, shape: Sequence[AnySize]) -> Value:
        """The same value with a shape that the rule knows."""
        return Value(self.nodes, self.name, self.dtype, shape)

    def __add__(self, other: Any) -> Value:
        return self.nodes.Add(self, other)

    def __radd__(self, other: Any) -> Value:
        return self.nodes.Add(other, self)

    def __sub__(self, other: Any) -> Value:
        return self.nodes.Sub(self, other)

    def __rsub__(self, other: Any) -> Value:
        return self.nodes.Sub(other, self)

    def __mul__(self, other: Any) -> Value:
        return self.nodes.Mul(self, other)

    def __rmul__(self, other: Any) -> Value:
        return self.nodes.Mul(other, self)

    def __truediv__(self, other: Any) -> Value:
        return self.nodes.Div(self, other)

    def __rtruediv__(self, other: Any) -> Value:
        return self.nodes.Div(other, self)

    def __neg__(self) -> Value:
        return self.nodes.Neg(self)


class Nodes:
    """The nodes of a graph, in order. `onnx.Relu(x)` appends one and gives its output, or a tuple of outputs."""

    def __init__(self) -> None:
        self.protos: list[Any] = []
        self.scope = ""
        """The prefix of the names of values: the output of the current operator."""
        self._names: set[str] = set()

    def __getattr__(self, op_type: str) -> Callable[..., Any]:
        if not op_type[:1].isupper():
            raise AttributeError(op_type)

        def append(*inputs: Any, outputs: int | None = None, **attributes: Any) -> Any:
            return self.append(op_type, inputs, outputs, attributes)

        return append

    def append(self, op_type: str, inputs: Sequence[Any], outputs: int | None, attributes: dict[str, Any]) -> Any:
        """Append a node of an ONNX operator. Its output types follow from its inputs."""
        schema = schema_of(op_type)
        if op_type == "Cast" and inputs[0].dtype == attributes["to"]:
            return inputs[0]
        written = _type_variables(schema, len(inputs))
        own = {w: x.dtype for w, x in reversed(list(zip(written, inputs, strict=True))) if isinstance(x, Value)}
        used = {w: computed_in(dtype, types_of(schema, w)) for w, dtype in own.items()}
        arguments = [self._input(x, w, used, schema) for x, w in zip(inputs, written, strict=True)]
        results = self.node(op_type, arguments, schema.min_output if outputs is None else outputs, attributes)
        values = []
        for place, name in enumerate(results):
            formal = schema.outputs[min(place, len(schema.outputs) - 1)].type_str
            result = Value(self, name, used.get(formal) or _declared_type(schema, formal, attributes))
            widened = formal in own and own[formal] != used[formal] != "bool"
            values.append(self.Cast(result, to=own[formal]) if widened else result)
        return values[0] if len(values) == 1 else tuple(values)

    def node(
        self, op_type: str, inputs: Iterable[str], outputs: int, attributes: dict[str, Any], domain: str = ""
    ) -> list[str]:
        """Append a node without casts; gives the names of its outputs."""
        names = [self.fresh(f"{self.scope}/{op_type}") for _ in range(outputs)]
        node = package().helper.make_node(op_type, list(inputs), names, domain=domain)
        node.attribute.extend(_attribute(key, value) for key, value in attributes.items() if value is not None)
        self.protos.append(node)
        return names

    def fresh(self, wish: str) -> str:
        """An unused name: the given one, with a number if it is in use."""
        name, number = wish, 1
        while name in self._names:
            number += 1
            name = f"{wish}_{number}"
        self._names.add(name)
        return name

    def _input(self, value: Any, written: str, used: dict[str, str], schema: Any) -> str:
        if value is None:
            return ""
        if not isinstance(value, Value):
            only = types_of(schema, written)
            inferred = used.get(written) or (next(iter(only)) if len(only) == 1 else None)
            return self.constant(value, inferred).name
        return str(self.Cast(value, to=used[written]).name) if used[written] != value.dtype else value.name

    # Shortcuts for rules

    def constant(self, value: Any, dtype: str | None = None) -> Value:
        """A constant."""
        array = np.asarray(value, "int64" if isinstance(value, list) and dtype is None else dtype)
        (name,) = self.node("Constant", [], 1, {"value": array})
        return Value(self, name, canonical(array.dtype), array.shape)

    def filled(self, shape: Any, number: Any, dtype: str) -> Value:
        """An array of one number; the shape is a list or a value."""
        return self.ConstantOfShape(shape, value=np.asarray([number], dtype))

    def length(self, x: Value, axis: int) -> Value:
        """The size of an axis, as a list of one number."""
        if x.shape[axis] != UNKNOWN:
            return self.constant([x.shape[axis]])
        return self.Shape(x, start=axis % x.rank, end=axis % x.rank + 1)

    def listed(self, *parts: Any) -> Value:
        """Lists of integers, some of them values, as one list."""
        return self.Concat(*(p if isinstance(p, Value) else self.constant(p, "int64") for p in parts), axis=0)


def _type_variables(schema: Any, count: int) -> list[str]:
    """For each input the type variable or the type of its parameter."""
    if count > len(schema.inputs) and not (schema.inputs and schema.inputs[-1].option.name == "Variadic"):
        raise ValueError(f"{schema.name} takes {len(schema.inputs)} inputs, got {count}")
    return [schema.inputs[min(i, len(schema.inputs) - 1)].type_str for i in range(count)]


def _declared_type(schema: Any, formal: str, attributes: dict[str, Any]) -> str:
    """The type of an output that does not follow from an input."""
    dtype = attributes.get("to") or attributes.get("dtype")
    if dtype is not None:
        return str(dtype)
    if "value" in attributes:
        return canonical(attributes["value"].dtype)
    (only,) = types_of(schema, formal)
    return only


def _attribute(name: str, value: Any) -> Any:
    make, kind = package().helper.make_attribute, None
    if name in ("to", "dtype") and isinstance(value, str):
        value = number_of(value)
    elif isinstance(value, np.ndarray):
        value = package().numpy_helper.from_array(value)
    elif isinstance(value, bool):
        value = int(value)
    elif isinstance(value, (list, tuple)) and not value:
        kind = package().AttributeProto.INTS  # only lists of integers can be empty
    return make(name, value, attr_type=kind)
