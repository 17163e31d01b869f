"""The loop language as machine code: each node becomes LLVM instructions, with Numba's implementation of each
operation. All types are known, so Numba's bytecode analysis and type inference, which take most of its time, are
skipped. Functions of operators and of the runtime are compiled by Numba and linked (`linkable.py`).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir
from numba import typeof, types

from app.engine.compiled import language as loops
from app.engine.compiled.language import COUNT, INDEX
from app.engine.compiled.linkable import Linkable, dispatcher_of, linkable
from app.engine.compiled.numba_api import (
    Environment,
    FunctionDescriptor,
    callconv,
    cgutils,
    cpu_target,
    from_dtype,
    global_compiler_lock,
    lookup_environment,
    signature,
)
from app.ops.size import AnySize, Size, on_numbers

_INFIX = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "<": operator.lt,
    "==": operator.eq,
}


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
class Native:
    """A compiled function: its description and its code library."""

    description: FunctionDescriptor
    library: Any
    environment: Any
    alive: list[Any] = field(default_factory=list)
    """The objects that the code refers to by address."""

    @property
    def can_be_kept(self) -> bool:
        """Return whether the code is valid in another process: it contains no addresses of this one."""
        found = map(lookup_environment, self._environments)
        return not self.library.has_dynamic_globals and not any(each.consts for each in found if each is not None)

    @property
    def _environments(self) -> list[str]:
        """The names through which functions in the code refer to Python objects."""
        return [v.name for v in self.library._final_module.global_variables if v.name.startswith("_ZN08NumbaEnv")]

    def kept(self) -> tuple[bytes, list[str]]:
        """Return the data for `restored`."""
        return self.library._get_compiled_object(), self._environments


@global_compiler_lock
def native(
    function: loops.Function,
    arguments: Sequence[Any],
    name: str,
    functions: Mapping[str, Any],
    others: Callable[[str, tuple[Any, ...]], Native | None],
) -> Native:
    """Compile a function for arguments of these types. `others` gives the other functions of the source by name."""
    kinds, names = tuple(arguments), list(function.arguments)
    description = _description(function, kinds, name)
    cpu_target.typing_context.refresh()
    target = cpu_target.target_context
    target.refresh()
    environment = Environment.from_fndesc(description)
    context = target.subtarget(
        error_model=callconv.create_error_model("numpy", target), enable_nrt=True,
        environment=environment, fndesc=description,
    )  # fmt: skip
    library = context.codegen().create_library(name)
    library.enable_object_caching()
    _optimise_once(library, {description.llvm_func_name, description.llvm_cpython_wrapper_name})
    module = library.create_ir_module(name)
    with context.push_code_library(library):
        body = context.declare_function(module, description)
        builder = ir.IRBuilder(body.append_basic_block("entry"))
        helper = context.call_conv.init_call_helper(builder)
        packer = context.get_arg_packer(kinds)
        values = packer.from_arguments(builder, context.call_conv.get_arguments(body))
        known: dict[str, Typed | _Slot] = {n: Typed(v, t) for n, v, t in zip(names, values, kinds, strict=True)}
        _Emitter(context, builder, known, functions, others).function(function)
        context.post_lowering(module, library)
        library.add_ir_module(module)
        if function.is_called_by_python:
            context.create_cpython_wrapper(library, description, environment, helper, release_gil=True)
    library.finalize()
    return Native(description, library, environment)


def _optimise_once(library: Any, names: set[str]) -> None:
    """Optimise a library once, as a whole, with only these functions visible from outside.

    Numba numbers functions per process, so code from disk could otherwise call a loaded function with the same name and
    number.
    """
    optimise = library._optimize_final_module

    def hide_and_optimise() -> None:
        for function in library._final_module.functions:
            if not function.is_declaration and function.name not in names:
                function.linkage = "internal"
        optimise()

    library._optimize_final_module = hide_and_optimise
    library._optimize_functions = lambda module: None


def _description(function: loops.Function, kinds: tuple[Any, ...], name: str) -> FunctionDescriptor:
    return FunctionDescriptor(
        native=True, modname=__name__, qualname=name, unique_name=name, doc="", typemap={}, restype=types.boolean,
        calltypes={}, args=list(function.arguments), kws=(), argtypes=kinds, global_dict={},
    )  # fmt: skip


@global_compiler_lock
def restored(
    name: str, function: loops.Function, kinds: tuple[Any, ...], code: bytes, environments: Sequence[str]
) -> Native:
    """Return a function from cached code for arguments of these types."""
    cpu_target.target_context.refresh()
    description = _description(function, kinds, name)
    names = description.llvm_func_name, description.llvm_cpython_wrapper_name
    symbols = "\n".join(f'define void @"{each}"() {{ ret void }}' for each in names)  # Numba requires it
    state = name, "object", (code, llvm.parse_assembly(symbols).as_bitcode())
    library = cpu_target.target_context.codegen().unserialize_library(state)
    made = Native(description, library, Environment.from_fndesc(description))
    for each in environments:
        environment = lookup_environment(each)
        if environment is None:
            environment = Environment._memo[each] = Environment({})
            environment.env_name = each
        library.codegen.set_env(each, environment)
        made.alive.append(environment)
    return made


@global_compiler_lock
def callable_from_python(made: Native) -> Any:
    """Wrap the compiled function for Python. It releases the GIL while it runs."""
    return cpu_target.target_context.get_executable(made.library, made.description, made.environment)


@dataclass
class _Emitter:
    """The instructions of one function, in the order of its statements."""

    context: Any
    builder: Any
    known: dict[str, Typed | _Slot]
    functions: Mapping[str, Any]
    others: Callable[[str, tuple[Any, ...]], Native | None]
    slots: dict[tuple[str, Any], _Slot] = field(default_factory=dict)
    owned: list[list[Typed]] = field(default_factory=lambda: [[]])
    """For each open block, the arrays that it frees at its end."""
    ends: list[tuple[Any, int]] = field(default_factory=list)
    """For each open loop, the target of `Break` and the number of blocks open there."""
    linked: dict[tuple[str, tuple[Any, ...]], Linkable | None] = field(default_factory=dict)
    """The functions that were called so far, by name and types."""

    def function(self, function: loops.Function) -> None:
        self.statements(function.body)
        if not self.builder.block.is_terminated:
            self._return(False)

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
            (several,) = values
            parts = cgutils.unpack_tuple(self.builder, several.value, len(several.type.types))
            values = [Typed(value, kind) for value, kind in zip(parts, several.type.types, strict=True)]
        are_parts = len(statement.values) < len(statement.targets)
        for target, value in zip(statement.targets, values, strict=True):
            self._assign(target, value, are_parts)

    def _assign(self, target: loops.Local | loops.Element | loops.Array, value: Typed, are_parts: bool) -> None:
        if isinstance(target, loops.Element):
            array = self._named(target.array)
            pointer = self._pointer(array, target.index)
            if isinstance(value.type, types.Array):
                self._copy(value, pointer)
                return
            self.context.pack_value(self.builder, array.type.dtype, self.cast(value, array.type.dtype).value, pointer)
        elif isinstance(target, loops.Array):
            self.known[target.name] = value
        else:
            kind = value.type if are_parts or target.dtype == loops.ANY else _type(target.dtype)
            slot = self.slots.get((target.name, kind))
            if slot is None:
                slot = _Slot(cgutils.alloca_once(self.builder, self.context.get_value_type(kind)), kind)
                self.slots[target.name, kind] = slot
            self.known[target.name] = slot
            self.builder.store(self.cast(value, kind).value, slot.pointer)

    def _copy(self, row: Typed, pointer: Any) -> None:
        data, count, size = (self._field(row, name) for name in ("data", "nitems", "itemsize"))
        cgutils.raw_memcpy(self.builder, pointer, data, count, size)

    def loop(self, statement: loops.For) -> None:
        high = self.operand(statement.high)
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
        around = self.known.get(statement.index)
        self.known[statement.index] = Typed(index, high.type)
        self.ends.append((end, len(self.owned)))
        with self._block():
            self.statements(statement.body)
        self.ends.pop()
        if around is not None:
            self.known[statement.index] = around
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

    def any_of(self, statement: loops.AnyOf) -> None:
        builder = self.builder
        failed = builder.append_basic_block("gave_up")
        for _, call in statement.calls:
            gave_up = self._truth(call)
            following = builder.append_basic_block("next")
            builder.cbranch(gave_up, failed, following)
            builder.position_at_end(following)
        following = builder.block
        builder.position_at_end(failed)
        self._return(True)
        builder.position_at_end(following)

    # Values

    def operand(self, operand: loops.Operand) -> Typed:
        return _OPERANDS[type(operand)](self, operand)

    def cast(self, value: Typed, kind: Any) -> Typed:
        if value.type == kind:
            return value
        return Typed(self.context.cast(self.builder, value.value, value.type, kind), kind)

    def _truth(self, value: loops.Value) -> Any:
        found = self.operand(value)
        return self.context.is_true(self.builder, found.type, found.value)

    def _named(self, name: str) -> Typed:
        found = self.known[name]
        return Typed(self.builder.load(found.pointer), found.type) if isinstance(found, _Slot) else found

    def number(self, number: loops.Number) -> Typed:
        if number.dtype in (loops.ANY, COUNT):
            kind = typeof(number.value)
            return Typed(self.context.get_constant_generic(self.builder, kind, number.value), kind)
        kind = _type(number.dtype)
        value = bool(number.value) if number.dtype == "bool" else np.dtype(number.dtype).type(number.value).item()
        return Typed(self.context.get_constant(kind, value), kind)

    def extent(self, extent: loops.Extent) -> Typed:
        return Typed(self._size(extent.size), types.int64)

    def _size(self, size: AnySize) -> Any:
        if not isinstance(size, Size):
            return ir.Constant(ir.IntType(64), int(size))
        named = {name: _Whole(self.builder, self._named(name).value) for name in size.names}
        found = on_numbers(size, named, _WHOLE)
        return found.value

    def local(self, local: loops.Local) -> Typed:
        return self._named(local.name)

    def element(self, element: loops.Element) -> Typed:
        array = self._named(element.array)
        pointer = self._pointer(array, element.index)
        if len(element.index) < array.type.ndim and element.index:
            return self._at(pointer, array.type.dtype, self._shape(array)[len(element.index) :])
        return Typed(self.context.unpack_value(self.builder, array.type.dtype, pointer), array.type.dtype)

    def _pointer(self, array: Typed, index: Sequence[loops.Value]) -> Any:
        return self._place(array, [self.operand(i).value for i in index])

    def _place(self, array: Typed, index: Sequence[Any]) -> Any:
        """The address of an element of an array in row-major order; its last indices are 0 where they are not given."""
        builder, shape = self.builder, self._shape(array)
        place: Any = ir.Constant(ir.IntType(64), 0)
        for axis, size in enumerate(shape):
            place = builder.mul(place, size) if axis else place
            place = builder.add(place, index[axis]) if axis < len(index) else place
        return builder.gep(self._field(array, "data"), [place])

    def _field(self, array: Typed, name: str) -> Any:
        model = self.context.data_model_manager[array.type]
        return self.builder.extract_value(array.value, model.get_field_position(name))

    def _shape(self, array: Typed) -> list[Any]:
        shape = self._field(array, "shape")
        return [self.builder.extract_value(shape, axis) for axis in range(array.type.ndim)]

    def infix(self, infix: loops.Infix) -> Typed:
        if infix.operator == "and":
            return self._both(infix)
        left, right = self.operand(infix.left), self.operand(infix.right)
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
        return self._apply(operator.neg, [self.operand(negative.value)])

    def no(self, no: loops.Not) -> Typed:
        return Typed(self.builder.not_(self._truth(no.condition)), types.boolean)

    def other_shape(self, pair: loops.OtherShape) -> Typed:
        shapes = [self._shape(self.operand(array)) for array in (pair.one, pair.other)]
        differs: Any = ir.Constant(ir.IntType(1), int(len(shapes[0]) != len(shapes[1])))
        for one, other in zip(*shapes, strict=False):
            differs = self.builder.or_(differs, self.builder.icmp_signed("!=", one, other))
        return Typed(differs, types.boolean)

    def cast_to(self, cast: loops.Cast) -> Typed:
        return self.cast(self.operand(cast.value), _type(cast.dtype))

    def call(self, call: loops.Call) -> Typed:
        given = [self.operand(argument) for argument in call.arguments]
        if call.function == "u":
            return self.cast(given[0], types.uintp)
        if call.function == "min":
            one, other = (self.cast(value, types.int64).value for value in given)
            return Typed(self.builder.select(self.builder.icmp_signed("<", one, other), one, other), types.int64)
        kinds = tuple(value.type for value in given)
        other = self.others(call.function, kinds)
        if other is not None:
            self.context.add_linking_libs([other.library])
            sig = signature(types.boolean, *kinds)
            values = [value.value for value in given]
            found = self.context.call_internal(self.builder, other.description, sig, values)
            return Typed(found, types.boolean)
        function = self.functions[call.function]
        if (call.function, kinds) not in self.linked:
            self.linked[call.function, kinds] = linkable(function, kinds)
        linked = self.linked[call.function, kinds]
        if linked is None:
            return self._apply(dispatcher_of(function), given)
        value = linked.call(self.context, self.builder, [each.value for each in given])
        return self._owned(Typed(value, linked.returns))

    def _apply(self, function: Any, given: Sequence[Typed]) -> Typed:
        """Call a function that Numba supports with values of these types."""
        typing = cpu_target.typing_context
        kind = typing.resolve_value_type(function)
        sig = typing.resolve_function_type(kind, tuple(value.type for value in given), {})
        called = self.context.get_function(kind, sig)
        values = [self.cast(value, wanted).value for value, wanted in zip(given, sig.args, strict=True)]
        return self._owned(Typed(called(self.builder, values), sig.return_type))

    def _owned(self, result: Typed) -> Typed:
        """Let the open block free the result of a function."""
        if self.context.nrt is not None and _has_memory(result.type):
            self.owned[-1].append(result)
        return result

    # Arrays

    def array(self, array: loops.Array) -> Typed:
        found = self._named(array.name)
        if array.rows is None:
            return found
        low, high = (self.cast(self.operand(bound), types.int64).value for bound in array.rows)
        shape = [self.builder.sub(high, low), *self._shape(found)[1:]]
        return self._at(self._place(found, [low]), found.type.dtype, shape)

    def view(self, view: loops.View) -> Typed:
        memory = self._named(view.memory)
        return self._at(self._field(memory, "data"), memory.type.dtype, [self._size(size) for size in view.shape])

    def flat(self, flat: loops.Flat) -> Typed:
        array = self._named(flat.array)
        return self._at(self._field(array, "data"), array.type.dtype, [self._field(array, "nitems")])

    def length(self, length: loops.Length) -> Typed:
        array = self._named(length.array)
        return Typed(self._field(array, "nitems"), types.int64)

    def _at(self, data: Any, dtype: Any, shape: Sequence[Any]) -> Typed:
        """A row-major array over memory owned elsewhere."""
        kind = types.Array(dtype, len(shape), "C")
        made = self.context.get_value_type(kind)
        item = self.context.get_constant(types.intp, self.context.get_abi_sizeof(self.context.get_data_type(dtype)))
        count = ir.Constant(ir.IntType(64), 1)
        steps = [item]
        for size in reversed(shape):
            count, steps = self.builder.mul(count, size), [self.builder.mul(steps[0], size), *steps]
        place = self.context.data_model_manager[kind].get_field_position
        fields: list[tuple[list[int], Any]] = [
            ([place("data")], data),
            ([place("nitems")], count),
            ([place("itemsize")], item),
            *(([place("shape"), axis], size) for axis, size in enumerate(shape)),
            *(([place("strides"), axis], size) for axis, size in enumerate(steps[1:])),
        ]
        value: Any = ir.Constant(made, None)
        for path, part in fields:
            value = self.builder.insert_value(value, part, path)
        return Typed(value, kind)


class _Whole:
    """A runtime integer, for the arithmetic of sizes."""

    def __init__(self, builder: Any, value: Any):
        self.builder, self.value = builder, value

    def _with(self, other: _Whole | int) -> Any:
        return other.value if isinstance(other, _Whole) else ir.Constant(ir.IntType(64), other)

    def __add__(self, other: _Whole | int) -> _Whole:
        return _Whole(self.builder, self.builder.add(self.value, self._with(other)))

    def __mul__(self, other: _Whole | int) -> _Whole:
        return _Whole(self.builder, self.builder.mul(self.value, self._with(other)))

    __radd__, __rmul__ = __add__, __mul__


def _chosen(comparison: str) -> Callable[[Any, Any], Any]:
    def choose(one: Any, other: Any) -> Any:
        some = one if isinstance(one, _Whole) else other
        left, right = some._with(one), some._with(other)
        return _Whole(some.builder, some.builder.select(some.builder.icmp_signed(comparison, left, right), left, right))

    return choose


def _quotient(one: Any, other: Any) -> Any:
    some = one if isinstance(one, _Whole) else other
    builder, left, right = some.builder, some._with(one), some._with(other)
    whole, rest = builder.sdiv(left, right), builder.srem(left, right)
    zero = ir.Constant(ir.IntType(64), 0)
    is_rounded_up = builder.and_(
        builder.icmp_signed("!=", rest, zero), builder.icmp_signed("<", builder.xor(rest, right), zero)
    )
    return _Whole(builder, builder.sub(whole, builder.zext(is_rounded_up, whole.type)))


_WHOLE = {"min": _chosen("<"), "max": _chosen(">"), "//": _quotient}


def _type(dtype: str) -> Any:
    if dtype == INDEX:
        return types.uintp
    return types.int64 if dtype == COUNT else from_dtype(np.dtype(dtype))


def _has_memory(kind: Any) -> bool:
    return isinstance(kind, types.Array) or any(map(_has_memory, getattr(kind, "types", ())))


_STATEMENTS: dict[type, Callable[[_Emitter, Any], None]] = {
    loops.Assign: _Emitter.assign,
    loops.For: _Emitter.loop,
    loops.If: _Emitter.condition,
    loops.Forever: _Emitter.forever,
    loops.Break: _Emitter.leave,
    loops.Do: _Emitter.do,
    loops.Return: _Emitter.give_up,
    loops.AnyOf: _Emitter.any_of,
}
_OPERANDS: dict[type, Callable[[_Emitter, Any], Typed]] = {
    loops.Number: _Emitter.number,
    loops.Extent: _Emitter.extent,
    loops.Length: _Emitter.length,
    loops.Local: _Emitter.local,
    loops.Element: _Emitter.element,
    loops.Infix: _Emitter.infix,
    loops.Negative: _Emitter.negative,
    loops.Not: _Emitter.no,
    loops.OtherShape: _Emitter.other_shape,
    loops.Cast: _Emitter.cast_to,
    loops.Call: _Emitter.call,
    loops.Array: _Emitter.array,
    loops.View: _Emitter.view,
    loops.Flat: _Emitter.flat,
}
