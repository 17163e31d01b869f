"""The loop language as machine code: each node becomes LLVM instructions, with Numba's implementation of each
operation. All types are known, so Numba's bytecode analysis and type inference, which take most of its time, are
skipped. Functions of operators and of the runtime are compiled by Numba (`linkable.py`).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import reduce
from itertools import count
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import typeof, types

from app.engine.compiled import language as loops
from app.engine.compiled import numba_alone
from app.engine.compiled.language import COUNT, INDEX
from app.engine.compiled.linkable import ENVIRONMENT, Linkable, dispatcher_of, linkable
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
_INT = ir.IntType(64)


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


class Objects(NamedTuple):
    """The machine code of a source and of what it calls."""

    code: list[bytes]
    needs: list[str]
    """The symbols that it refers to."""
    environments: list[str]
    """The variables in it that have to be given the address of an object (see `environment`)."""
    can_be_kept: bool
    """Whether the code is valid in another process: it contains no addresses of this one."""


@dataclass
class _Declared:
    """A function of the source, as others call it."""

    body: Any
    description: FunctionDescriptor
    parameters: Sequence[loops.Parameter]


@global_compiler_lock
def compiled(
    functions: Mapping[str, loops.Function], called: Mapping[str, Any], symbol: Callable[[str], str]
) -> Objects:
    """Compile the functions of a source; those that Python calls get a `symbol`. `called` has all others by name."""
    numba_alone.load()
    cpu_target.typing_context.refresh()
    target = cpu_target.target_context
    target.refresh()
    library = target.codegen().create_library(symbol("source"))
    library._optimize_functions = lambda module: None  # the module is optimised once, as a whole
    module = library.create_ir_module(symbol("source"))
    declared: dict[str, _Declared] = {}
    linked: dict[tuple[str, tuple[Any, ...]], Linkable | None] = {}
    of_sizes: set[str] = set()
    for name, function in functions.items():
        description = _description(function, symbol(f"{name}.body"))
        context = target.subtarget(
            error_model=callconv.create_error_model("numpy", target), enable_nrt=True,
            environment=Environment.from_fndesc(description), fndesc=description,
        )  # fmt: skip
        with context.push_code_library(library):
            body = context.declare_function(module, description)
            if not function.is_called_by_python:
                body.attributes.add("noinline")  # it would only make the caller slower to compile
            declared[name] = _Declared(body, description, function.parameters)
            builder = ir.IRBuilder(body.append_basic_block("entry"))
            context.call_conv.init_call_helper(builder)
            arguments = context.get_arg_packer(description.argtypes).from_arguments(
                builder, context.call_conv.get_arguments(body)
            )
            emitter = _Emitter(context, builder, {}, called, declared, linked, of_sizes)
            emitter.function(function, arguments)
            if function.is_called_by_python:
                _add_entry(context, module, symbol(name), declared[name])
            context.post_lowering(module, library)
    library.add_ir_module(module)
    return _objects(library, {symbol(name) for name in functions}, linked, of_sizes)


def _description(function: loops.Function, name: str) -> FunctionDescriptor:
    kinds: list[Any] = []
    if function.is_called_by_python:
        kinds = [types.int64, types.int64, types.voidptr]
    else:
        for parameter in function.parameters:
            kinds += _parts(parameter)
    return FunctionDescriptor(
        native=True, modname=__name__, qualname=name, unique_name=name, doc="", typemap={}, restype=types.boolean,
        calltypes={}, args=[f"argument_{place}" for place in range(len(kinds))], kws=(), argtypes=tuple(kinds),
        global_dict={},
    )  # fmt: skip


def _parts(parameter: loops.Parameter) -> list[Any]:
    """The Numba types in which a parameter is passed: a number, or an address and the sizes that are not declared."""
    if parameter.shape is None:
        return [_type(parameter.dtype)]
    return [types.CPointer(_type(parameter.dtype)), *[types.int64] * parameter.shape.count(None)]


def _add_entry(context: Any, module: Any, name: str, declared: _Declared) -> None:
    """Add the function that Python calls with the thread's number, the number of threads, and a table of the other
    arguments. It releases the GIL meanwhile."""
    table = context.get_value_type(types.voidptr)
    entry = ir.Function(module, ir.FunctionType(_INT, [_INT, _INT, table]), name)
    builder = ir.IRBuilder(entry.append_basic_block("entry"))
    python = context.get_python_api(builder)
    thread = python.save_thread()
    status, gave_up = context.call_conv.call_function(
        builder, declared.body, types.boolean, declared.description.argtypes, entry.args
    )
    python.restore_thread(thread)
    with builder.if_then(status.is_ok, likely=True):
        builder.ret(builder.zext(gave_up, _INT))
    context.call_conv.raise_error(builder, python, status)
    builder.ret(_INT(0))


def _objects(library: Any, shown: set[str], linked: Mapping[Any, Linkable | None], of_sizes: set[str]) -> Objects:
    """The machine code of a library, with only some functions visible from outside, and that of what it calls.

    Functions that return sizes are called before loops, not in them: inlining each call would take a fourth of LLVM's
    time.
    """
    module = library._final_module
    for other in dict.fromkeys(library._linking_libraries):
        module.link_in(other._get_module_for_linking(), preserve=True)
    for function in module.functions:
        if not function.is_declaration and function.name not in shown:
            function.linkage = "internal"
        if function.name in of_sizes:
            function.add_function_attribute("noinline")
    library._optimize_final_module()
    module.verify()
    variables = [variable.name for variable in module.global_variables]
    environments = [name for name in variables if name.startswith(ENVIRONMENT)]
    found = [lookup_environment(name) for name in environments]
    of_this_process = any(name.startswith("numba.dynamic.globals") for name in variables)
    called = {each.name: each for each in linked.values() if each is not None and not each.is_inlined}
    needs = {name for each in called.values() for name in each.needs}
    needs.update(f.name for f in module.functions if f.is_declaration and not f.name.startswith("llvm."))
    return Objects(
        [library.codegen._tm.emit_object(module), *(each.code for each in called.values())],
        sorted(needs - called.keys()),
        environments,
        can_be_kept=not of_this_process and not any(each.consts for each in found if each is not None),
    )


def environment(name: str) -> Environment:
    """Return the object through which compiled code refers to Python objects; a new one in another process."""
    found = lookup_environment(name)
    if found is None:
        found = Environment._memo[name] = Environment({})
        found.env_name = name
    return found


@dataclass
class _Emitter:
    """The instructions of one function, in the order of its statements."""

    context: Any
    builder: Any
    known: dict[str, Typed | _Slot | _Array]
    called: Mapping[str, Any]
    declared: Mapping[str, _Declared]
    linked: dict[tuple[str, tuple[Any, ...]], Linkable | None]
    """The functions that the source called so far, by name and types."""
    of_sizes: set[str]
    """The symbols of those that return sizes."""
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
            self.known[parameter.name] = self._parameter(parameter, values)
        self.statements(function.body)
        if not self.builder.block.is_terminated:
            self._return(False)

    def _parameter(self, parameter: loops.Parameter, values: Iterator[Any]) -> Typed | _Array:
        kind = _type(parameter.dtype)
        if parameter.shape is None:
            return Typed(next(values), kind)
        data, pointer = next(values), self.context.get_data_type(kind).as_pointer()
        data = self.builder.inttoptr(data, pointer) if data.type == _INT else data
        return _Array(data, kind, [next(values) if size is None else _INT(size) for size in parameter.shape])

    def _table(self, table: Any) -> Iterator[Any]:
        numbers = self.builder.bitcast(table, _INT.as_pointer())
        for place in count():
            yield self.builder.load(self.builder.gep(numbers, [_INT(place)]))

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
                cgutils.raw_memcpy(self.builder, pointer, value.data, self._product(value.shape), _INT(size))
                return
            self.context.pack_value(self.builder, array.dtype, self.cast(value, array.dtype).value, pointer)
        elif isinstance(target, loops.Array):
            self.known[target.name] = self._as_array(value)
        elif isinstance(value, Typed):
            kind = value.type if are_parts or target.dtype == loops.ANY else _type(target.dtype)
            slot = self.slots.get((target.name, kind))
            if slot is None:
                slot = _Slot(cgutils.alloca_once(self.builder, self.context.get_value_type(kind)), kind)
                self.slots[target.name, kind] = slot
            self.known[target.name] = slot
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
        found = self.typed(self.operand(value))
        return self.context.is_true(self.builder, found.type, found.value)

    def _named(self, name: str) -> Typed | _Array:
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
            return ir.Constant(_INT, int(size))
        named = {name: _Whole(self.builder, self.typed(self._named(name)).value) for name in size.names}
        found = on_numbers(size, named, _WHOLE)
        return found.value

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
        place: Any = _INT(0)
        for axis, size in enumerate(array.shape):
            place = builder.mul(place, size) if axis else place
            place = builder.add(place, index[axis]) if axis < len(index) else place
        return builder.gep(array.data, [place])

    def _product(self, sizes: Sequence[Any]) -> Any:
        return reduce(self.builder.mul, sizes, _INT(1))

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
        return self.cast(self.operand(cast.value), _type(cast.dtype))

    def call(self, call: loops.Call) -> Typed:
        given = [self.operand(argument) for argument in call.arguments]
        if call.function == "u":
            return self.cast(given[0], types.uintp)
        if call.function == "min":
            one, other = (self.cast(value, types.int64).value for value in given)
            return Typed(self.builder.select(self.builder.icmp_signed("<", one, other), one, other), types.int64)
        if call.function in self.declared:
            return self._call_declared(self.declared[call.function], given)
        values = [self.typed(value) for value in given]
        function, kinds = self.called[call.function], tuple(value.type for value in values)
        if (call.function, kinds) not in self.linked:
            self.linked[call.function, kinds] = linkable(function, kinds)
        linked = self.linked[call.function, kinds]
        if linked is None:
            return self._apply(dispatcher_of(function), values)
        if call.dtype == COUNT:
            self.of_sizes.add(linked.name)
        value = linked.call(self.context, self.builder, [each.value for each in values])
        return self._owned(Typed(value, linked.returns))

    def _call_declared(self, function: _Declared, given: Sequence[Typed | _Array]) -> Typed:
        """Call another function of the source."""
        values: list[Any] = []
        for parameter, value in zip(function.parameters, given, strict=True):
            if isinstance(value, _Array):
                sizes = zip(value.shape, parameter.shape or (), strict=True)
                values += [value.data, *(size for size, declared in sizes if declared is None)]
            else:
                values.append(self.cast(value, _type(parameter.dtype)).value)
        sig = signature(types.boolean, *function.description.argtypes)
        return Typed(self.context.call_internal(self.builder, function.description, sig, values), types.boolean)

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

    def _array(self, name: str) -> _Array:
        return self._as_array(self._named(name))

    def array(self, array: loops.Array) -> _Array:
        found = self._array(array.name)
        if array.rows is None:
            return found
        low, high = (self.cast(self.operand(bound), types.int64).value for bound in array.rows)
        return _Array(self._place(found, [low]), found.dtype, [self.builder.sub(high, low), *found.shape[1:]])

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
        elements, strides = _INT(1), [item]
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
        found: Any = ir.Constant(self.context.get_value_type(kind), None)
        for path, part in fields:
            found = self.builder.insert_value(found, part, path)
        return Typed(found, kind)


class _Whole:
    """A runtime integer, for the arithmetic of sizes."""

    def __init__(self, builder: Any, value: Any):
        self.builder, self.value = builder, value

    def _with(self, other: _Whole | int) -> Any:
        return other.value if isinstance(other, _Whole) else ir.Constant(_INT, other)

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
    zero = ir.Constant(_INT, 0)
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
_OPERANDS: dict[type, Callable[[_Emitter, Any], Typed | _Array]] = {
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
