"""The loop language as LLVM instructions, with Numba's implementation of each operation.

All types are known, so Numba's bytecode analysis and type inference, which take most of its time, are skipped.
Functions of operators and of the runtime are compiled by Numba (`linkable.py`).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial, reduce
from itertools import count
from typing import Any

import numpy as np
from llvmlite import ir
from numba import typeof, types

from app.engine.compiled import language as loops
from app.engine.compiled.language import COUNT, INDEX
from app.engine.compiled.linkable import Linkable, linkable
from app.engine.compiled.numba_api import FunctionDescriptor, cgutils, cpu_target, from_dtype, signature
from app.engine.compiled.vector_functions import MachineCode, VectorFunction, machine_code
from app.engine.compiled.vectors import FLOAT, INT, POINTER
from app.ops.size import AnySize, names_of, on_numbers

_INFIX = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "<": operator.lt,
    "==": operator.eq,
}
_NUMBERS = {str(INT): types.int64, str(FLOAT): types.float32}
"""The types of numbers that vector functions take."""


@dataclass
class Typed:
    """An LLVM value with its Numba type."""

    value: Any
    type: Any


@dataclass
class _Slot:
    """The stack slot of a scalar variable."""

    pointer: Any
    type: Any


@dataclass
class _Array:
    """A row-major array: the address of its elements, their Numba type, and its shape as LLVM values."""

    data: Any
    dtype: Any
    shape: list[Any]


@dataclass
class Declared:
    """A function of the source, as others call it."""

    body: Any
    description: FunctionDescriptor
    parameters: Sequence[loops.Parameter]


@dataclass
class Callees:
    """The functions outside a source that it called so far."""

    linked: dict[tuple[str, tuple[Any, ...]], Linkable] = field(default_factory=dict)
    """By name and types."""
    of_vectors: dict[str, MachineCode] = field(default_factory=dict)
    of_sizes: set[str] = field(default_factory=set)
    """The symbols of those that return sizes."""


@dataclass
class Emitter:
    """The instructions of one function, in the order of its statements."""

    context: Any
    builder: Any
    variables: dict[str, Typed | _Slot | _Array]
    called: Mapping[str, Any]
    declared: Mapping[str, Declared]
    callees: Callees
    slots: dict[tuple[str, Any], _Slot] = field(default_factory=dict)
    owned: list[list[Typed]] = field(default_factory=lambda: [[]])
    """For each open block, the arrays that it frees at its end."""
    ends: list[tuple[Any, int]] = field(default_factory=list)
    """For each open loop, the target of `Break` and the number of blocks open there."""

    def function(self, function: loops.Function, arguments: Sequence[Any]) -> None:
        """Emit a function. Python gives a table of its arguments: numbers, and addresses followed by sizes."""
        values = iter(arguments)
        for place, parameter in enumerate(function.parameters):
            if place == 2 and function.is_called_by_python:
                values = self._table(arguments[2])
            self.variables[parameter.name] = self._parameter(parameter, values)
        self.statements(function.body)
        if not self.builder.block.is_terminated:
            self._return(False)

    def _parameter(self, parameter: loops.Parameter, values: Iterator[Any]) -> Typed | _Array:
        kind = numba_type(parameter.dtype)
        if parameter.shape is None:
            return Typed(self._number(next(values), kind), kind)
        data, pointer = next(values), self.context.get_data_type(kind).as_pointer()
        data = self.builder.inttoptr(data, pointer) if data.type == INT else data
        return _Array(data, kind, [next(values) if size is None else INT(size) for size in parameter.shape])

    def _table(self, table: Any) -> Iterator[Any]:
        numbers = self.builder.bitcast(table, INT.as_pointer())
        for place in count():
            yield self.builder.load(self.builder.gep(numbers, [INT(place)]))

    def _number(self, value: Any, kind: Any) -> Any:
        """A number of a type that a function takes, of the eight bytes in a table if Python calls it."""
        value_type = self.context.get_value_type(kind)
        if value.type == value_type:
            return value
        return (
            self.builder.bitcast(value, value_type) if kind == types.float64 else self.builder.trunc(value, value_type)
        )

    # Statements

    def statements(self, statements: Sequence[loops.Statement]) -> None:
        for statement in statements:
            if self.builder.block.is_terminated:
                return
            write = _STATEMENTS.get(type(statement))
            if write is not None:
                write(self, statement)

    @contextmanager
    def _block(self) -> Iterator[None]:
        """Open a scope that owns its arrays and variables."""
        self.owned.append([])
        yield
        if not self.builder.block.is_terminated:
            self._give_back(len(self.owned) - 1)
        self.owned.pop()

    def _give_back(self, first: int) -> None:
        for some in reversed(self.owned[first:]):
            for owned in some:
                self.context.nrt.decref(self.builder, owned.type, owned.value)

    def assign(self, statement: loops.Assign) -> None:
        values = [self.operand(value) for value in statement.values]
        if len(values) < len(statement.targets):
            several = self.typed(values[0])
            parts = cgutils.unpack_tuple(self.builder, several.value, len(several.type.types))
            values = [Typed(value, kind) for value, kind in zip(parts, several.type.types, strict=True)]
        are_parts = len(statement.values) < len(statement.targets)
        for target, value in zip(statement.targets, values, strict=True):
            self._assign(target, value, are_parts)

    def _assign(
        self, target: loops.Local | loops.Element | loops.Array, value: Typed | _Array, are_parts: bool
    ) -> None:
        if isinstance(target, loops.Element):
            array = self._array(target.array)
            pointer = self._place(array, [self.number_of(index) for index in target.index])
            if isinstance(value, _Array):
                size = self.context.get_abi_sizeof(self.context.get_data_type(value.dtype))
                cgutils.raw_memcpy(self.builder, pointer, value.data, self._product(value.shape), INT(size))
                return
            self.context.pack_value(self.builder, array.dtype, self.cast(value, array.dtype).value, pointer)
        elif isinstance(target, loops.Array):
            self.variables[target.name] = self._as_array(value)
        elif isinstance(value, Typed):
            kind = value.type if are_parts or target.dtype == loops.ANY else numba_type(target.dtype)
            slot = self.slots.get((target.name, kind))
            if slot is None:
                slot = _Slot(cgutils.alloca_once(self.builder, self.context.get_value_type(kind)), kind)
                self.slots[target.name, kind] = slot
            self.variables[target.name] = slot
            self.builder.store(self.cast(value, kind).value, slot.pointer)

    def loop(self, statement: loops.For) -> None:
        high = self.typed(self.operand(statement.high))
        low = Typed(self.context.get_constant(high.type, 0), high.type)
        if statement.low is not None:
            low = self.cast(self.operand(statement.low), high.type)
        builder, before = self.builder, self.builder.block
        head, body = builder.append_basic_block("for"), builder.append_basic_block("for.body")
        end = builder.append_basic_block("for.end")
        builder.branch(head)
        builder.position_at_end(head)
        index = builder.phi(high.value.type, statement.index)
        index.add_incoming(low.value, before)
        is_unsigned = high.type in types.unsigned_domain
        inside = (builder.icmp_unsigned if is_unsigned else builder.icmp_signed)("<", index, high.value)
        builder.cbranch(inside, body, end)
        builder.position_at_end(body)
        around = self.variables.get(statement.index)
        self.variables[statement.index] = Typed(index, high.type)
        self.ends.append((end, len(self.owned)))
        with self._block():
            self.statements(statement.body)
        self.ends.pop()
        if around is not None:
            self.variables[statement.index] = around
        if not builder.block.is_terminated:
            after = builder.add(index, ir.Constant(index.type, 1), flags=["nuw" if is_unsigned else "nsw"])
            index.add_incoming(after, builder.block)
            builder.branch(head)
        builder.position_at_end(end)

    def condition(self, statement: loops.If) -> None:
        holds = self._truth(statement.condition)
        builder = self.builder
        then, end = builder.append_basic_block("then"), builder.append_basic_block("end")
        otherwise = builder.append_basic_block("else") if statement.otherwise else end
        builder.cbranch(holds, then, otherwise)
        for block, body in ((then, statement.body), (otherwise, statement.otherwise)):
            if block is end:
                continue
            builder.position_at_end(block)
            with self._block():
                self.statements(body)
            if not builder.block.is_terminated:
                builder.branch(end)
        builder.position_at_end(end)

    def forever(self, statement: loops.Forever) -> None:
        builder = self.builder
        body, end = builder.append_basic_block("again"), builder.append_basic_block("again.end")
        builder.branch(body)
        builder.position_at_end(body)
        self.ends.append((end, len(self.owned)))
        with self._block():
            self.statements(statement.body)
        self.ends.pop()
        if not builder.block.is_terminated:
            builder.branch(body)
        builder.position_at_end(end)

    def leave(self, statement: loops.Break) -> None:
        end, inside = self.ends[-1]
        self._give_back(inside)
        self.builder.branch(end)

    def do(self, statement: loops.Do) -> None:
        self.operand(statement.call)

    def give_up(self, statement: loops.Return) -> None:
        self._return(statement.give_up)

    def _return(self, value: bool) -> None:
        self._give_back(0)
        truth = self.context.get_constant(types.boolean, value)
        self.context.call_conv.return_value(
            self.builder, self.context.get_return_value(self.builder, types.boolean, truth)
        )

    # Values

    def operand(self, operand: loops.Operand) -> Typed | _Array:
        return _OPERANDS[type(operand)](self, operand)

    def number_of(self, value: loops.Value) -> Any:
        return self.typed(self.operand(value)).value

    def cast(self, operand: Typed | _Array, kind: Any) -> Typed:
        value = self.typed(operand)
        if value.type == kind:
            return value
        return Typed(self.context.cast(self.builder, value.value, value.type, kind), kind)

    def _truth(self, value: loops.Value) -> Any:
        condition = self.typed(self.operand(value))
        return self.context.is_true(self.builder, condition.type, condition.value)

    def _named(self, name: str) -> Typed | _Array:
        value = self.variables[name]
        return Typed(self.builder.load(value.pointer), value.type) if isinstance(value, _Slot) else value

    def number(self, number: loops.Number) -> Typed:
        if number.dtype in (loops.ANY, COUNT):
            kind = typeof(number.value)
            return Typed(self.context.get_constant_generic(self.builder, kind, number.value), kind)
        kind = numba_type(number.dtype)
        value = bool(number.value) if number.dtype == "bool" else np.dtype(number.dtype).type(number.value).item()
        return Typed(self.context.get_constant(kind, value), kind)

    def extent(self, extent: loops.Extent) -> Typed:
        return Typed(self._size(extent.size), types.int64)

    def _size(self, size: AnySize) -> Any:
        named = {name: self.typed(self._named(name)).value for name in names_of(size)}
        functions = {
            "+": self.builder.add,
            "*": self.builder.mul,
            "min": partial(self._chosen, "<"),
            "max": partial(self._chosen, ">"),
            "//": self._quotient,
        }
        return on_numbers(size, named, functions, INT)

    def _chosen(self, comparison: str, one: Any, other: Any) -> Any:
        return self.builder.select(self.builder.icmp_signed(comparison, one, other), one, other)

    def _quotient(self, one: Any, other: Any) -> Any:
        """Floor division, which rounds down where LLVM's rounds towards 0."""
        builder = self.builder
        whole, rest = builder.sdiv(one, other), builder.srem(one, other)
        differ = builder.icmp_signed("<", builder.xor(rest, other), INT(0))
        is_less = builder.and_(builder.icmp_signed("!=", rest, INT(0)), differ)
        return builder.sub(whole, builder.zext(is_less, INT))

    def local(self, local: loops.Local) -> Typed | _Array:
        return self._named(local.name)

    def element(self, element: loops.Element) -> Typed | _Array:
        array = self._array(element.array)
        pointer = self._place(array, [self.number_of(index) for index in element.index])
        if 0 < len(element.index) < len(array.shape):
            return _Array(pointer, array.dtype, array.shape[len(element.index) :])
        return Typed(self.context.unpack_value(self.builder, array.dtype, pointer), array.dtype)

    def _place(self, array: _Array, index: Sequence[Any]) -> Any:
        """The address of an element of an array; its last indices are 0 where they are not given."""
        builder = self.builder
        place: Any = INT(0)
        for axis, size in enumerate(array.shape):
            place = builder.mul(place, size) if axis else place
            place = builder.add(place, index[axis]) if axis < len(index) else place
        return builder.gep(array.data, [place])

    def _product(self, sizes: Sequence[Any]) -> Any:
        return reduce(self.builder.mul, sizes, INT(1))

    def infix(self, infix: loops.Infix) -> Typed:
        if infix.operator == "and":
            return self._both(infix)
        left, right = (self.typed(self.operand(each)) for each in (infix.left, infix.right))
        return self._apply(_INFIX[infix.operator], [left, right])

    def _both(self, infix: loops.Infix) -> Typed:
        builder = self.builder
        first, before = self._truth(infix.left), builder.block
        more, end = builder.append_basic_block("and"), builder.append_basic_block("and.end")
        builder.cbranch(first, more, end)
        builder.position_at_end(more)
        second, last = self._truth(infix.right), builder.block
        builder.branch(end)
        builder.position_at_end(end)
        both = builder.phi(ir.IntType(1))
        both.add_incoming(ir.Constant(ir.IntType(1), 0), before)
        both.add_incoming(second, last)
        return Typed(both, types.boolean)

    def negative(self, negative: loops.Negative) -> Typed:
        return self._apply(operator.neg, [self.typed(self.operand(negative.value))])

    def no(self, no: loops.Not) -> Typed:
        return Typed(self.builder.not_(self._truth(no.condition)), types.boolean)

    def other_shape(self, pair: loops.OtherShape) -> Typed:
        shapes = [self.array(array).shape for array in (pair.one, pair.other)]
        differs: Any = ir.Constant(ir.IntType(1), int(len(shapes[0]) != len(shapes[1])))
        for one, other in zip(*shapes, strict=False):
            differs = self.builder.or_(differs, self.builder.icmp_signed("!=", one, other))
        return Typed(differs, types.boolean)

    def cast_to(self, cast: loops.Cast) -> Typed:
        return self.cast(self.operand(cast.value), numba_type(cast.dtype))

    def call(self, call: loops.Call) -> Typed:
        arguments = [self.operand(argument) for argument in call.arguments]
        if call.function == "u":
            return self.cast(arguments[0], types.uintp)
        if call.function == "min":
            one, other = (self.cast(value, types.int64).value for value in arguments)
            return Typed(self._chosen("<", one, other), types.int64)
        if call.function in self.declared:
            return self._call_declared(self.declared[call.function], arguments)
        function = self.called[call.function]
        if isinstance(function, VectorFunction):
            return self._call_vectors(call.function, function, arguments)
        values = [self.typed(value) for value in arguments]
        if call.function == "read_only":
            return Typed(values[0].value, values[0].type.copy(readonly=True))
        kinds = tuple(value.type for value in values)
        linked_functions = self.callees.linked
        if (call.function, kinds) not in linked_functions:
            linked_functions[call.function, kinds] = linkable(function, kinds)
        linked = linked_functions[call.function, kinds]
        if call.dtype == COUNT:
            self.callees.of_sizes.add(linked.name)
        value = linked.call(self.context, self.builder, [each.value for each in values])
        return self._owned(Typed(value, linked.returns))

    def _call_declared(self, function: Declared, arguments: Sequence[Typed | _Array]) -> Typed:
        """Call another function of the source."""
        values: list[Any] = []
        for parameter, value in zip(function.parameters, arguments, strict=True):
            if isinstance(value, _Array):
                sizes = zip(value.shape, parameter.shape or (), strict=True)
                values += [value.data, *(size for size, declared in sizes if declared is None)]
            else:
                values.append(self.cast(value, numba_type(parameter.dtype)).value)
        sig = signature(types.boolean, *function.description.argtypes)
        return Typed(self.context.call_internal(self.builder, function.description, sig, values), types.boolean)

    def _call_vectors(self, name: str, function: VectorFunction, arguments: Sequence[Typed | _Array]) -> Typed:
        """Call a function written in vector instructions, which takes numbers and the addresses of arrays."""
        self.callees.of_vectors[name] = code = machine_code(function)
        values = [
            self.builder.bitcast(value.data, POINTER)
            if isinstance(value, _Array)
            else self.cast(value, _NUMBERS[kind]).value
            for value, kind in zip(arguments, code.takes, strict=True)
        ]
        kind = ir.FunctionType(ir.VoidType(), [value.type for value in values])
        self.builder.call(cgutils.get_or_insert_function(self.builder.module, kind, code.name), values)
        return Typed(self.context.get_dummy_value(), types.void)

    def _apply(self, function: Any, arguments: Sequence[Typed]) -> Typed:
        """Call a function that Numba supports with values of these types."""
        typing = cpu_target.typing_context
        kind = typing.resolve_value_type(function)
        sig = typing.resolve_function_type(kind, tuple(value.type for value in arguments), {})
        called = self.context.get_function(kind, sig)
        values = [
            self.cast(value, kind_of_argument).value
            for value, kind_of_argument in zip(arguments, sig.args, strict=True)
        ]
        return self._owned(Typed(called(self.builder, values), sig.return_type))

    def _owned(self, result: Typed) -> Typed:
        """Let the open block free the result of a function."""
        if self.context.nrt is not None and _has_memory(result.type):
            self.owned[-1].append(result)
        return result

    # Arrays

    def _array(self, name: str) -> _Array:
        return self._as_array(self._named(name))

    def array(self, array: loops.Array) -> _Array:
        whole = self._array(array.name)
        if array.rows is None:
            return whole
        low, high = (self.cast(self.operand(bound), types.int64).value for bound in array.rows)
        return _Array(self._place(whole, [low]), whole.dtype, [self.builder.sub(high, low), *whole.shape[1:]])

    def view(self, view: loops.View) -> _Array:
        memory = self._array(view.memory)
        return _Array(memory.data, memory.dtype, [self._size(size) for size in view.shape])

    def flat(self, flat: loops.Flat) -> _Array:
        array = self._array(flat.array)
        return _Array(array.data, array.dtype, [self._product(array.shape)])

    def length(self, length: loops.Length) -> Typed:
        return Typed(self._product(self._array(length.array).shape), types.int64)

    def _as_array(self, value: Typed | _Array) -> _Array:
        """An array of Numba's."""
        if isinstance(value, _Array):
            return value
        place = self.context.data_model_manager[value.type].get_field_position
        shape = self.builder.extract_value(value.value, place("shape"))
        sizes = [self.builder.extract_value(shape, axis) for axis in range(value.type.ndim)]
        return _Array(self.builder.extract_value(value.value, place("data")), value.type.dtype, sizes)

    def typed(self, value: Typed | _Array) -> Typed:
        """A value as Numba's functions take it: of an array, a structure that does not own its memory."""
        if isinstance(value, Typed):
            return value
        kind = types.Array(value.dtype, len(value.shape), "C")
        item = self.context.get_constant(
            types.intp, self.context.get_abi_sizeof(self.context.get_data_type(value.dtype))
        )
        elements, strides = INT(1), [item]
        for size in reversed(value.shape):
            elements, strides = self.builder.mul(elements, size), [self.builder.mul(strides[0], size), *strides]
        place = self.context.data_model_manager[kind].get_field_position
        fields: list[tuple[list[int], Any]] = [
            ([place("data")], value.data),
            ([place("nitems")], elements),
            ([place("itemsize")], item),
            *(([place("shape"), axis], size) for axis, size in enumerate(value.shape)),
            *(([place("strides"), axis], size) for axis, size in enumerate(strides[1:])),
        ]
        structure: Any = ir.Constant(self.context.get_value_type(kind), None)
        for path, part in fields:
            structure = self.builder.insert_value(structure, part, path)
        return Typed(structure, kind)


def numba_type(dtype: str) -> Any:
    if dtype == INDEX:
        return types.uintp
    return types.int64 if dtype == COUNT else from_dtype(np.dtype(dtype))


def _has_memory(kind: Any) -> bool:
    return isinstance(kind, types.Array) or any(map(_has_memory, getattr(kind, "types", ())))


_STATEMENTS: dict[type, Callable[[Emitter, Any], None]] = {
    loops.Assign: Emitter.assign,
    loops.For: Emitter.loop,
    loops.If: Emitter.condition,
    loops.Forever: Emitter.forever,
    loops.Break: Emitter.leave,
    loops.Do: Emitter.do,
    loops.Return: Emitter.give_up,
}
_OPERANDS: dict[type, Callable[[Emitter, Any], Typed | _Array]] = {
    loops.Number: Emitter.number,
    loops.Extent: Emitter.extent,
    loops.Length: Emitter.length,
    loops.Local: Emitter.local,
    loops.Element: Emitter.element,
    loops.Infix: Emitter.infix,
    loops.Negative: Emitter.negative,
    loops.Not: Emitter.no,
    loops.OtherShape: Emitter.other_shape,
    loops.Cast: Emitter.cast_to,
    loops.Call: Emitter.call,
    loops.Array: Emitter.array,
    loops.View: Emitter.view,
    loops.Flat: Emitter.flat,
}
