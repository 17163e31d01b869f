"""Vectors as values: functions of machine code that keep what they add up in registers.

Numba leaves it to LLVM to make vectors of a loop over numbers, and a sum over many rows then goes through memory at
each row. Here a function is written as LLVM's own instructions on vectors. Python writes it down: a `with` block is a
loop of the function, a Python loop is one that is unrolled.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir
from numba.core import config

INT, FLOAT, BYTE, BIT = ir.IntType(64), ir.FloatType(), ir.IntType(8), ir.IntType(1)
POINTER = BYTE.as_pointer()
_INT32 = ir.IntType(32)
LINE = 64
"""The bytes of a cache line, and how many bytes are compared at once."""
MOST_ON_STACK = 1 << 16
"""The size of a room, in bytes, above which it lies on the heap: the stack of a thread may hold 2 MiB, or less."""


def processor() -> tuple[str, str]:
    """The name and the features of the processor that code is made for: this one, or the one that `NUMBA_CPU_NAME` and
    `NUMBA_CPU_FEATURES` name, as they do for Numba.
    """
    name, features = (getattr(config, setting, None) for setting in ("CPU_NAME", "CPU_FEATURES"))
    usual = llvm.get_host_cpu_features().flatten() if features is None else features
    return name or llvm.get_host_cpu_name(), usual


@lru_cache(maxsize=1)
def lanes_of_machine() -> int:
    """How many numbers of single precision a vector of the processor holds."""
    features = processor()[1].split(",")
    return 16 if "+avx512f" in features else 8 if "+avx" in features else 4


def registers(lanes: int) -> int:
    """How many vectors a function may add up at once: they and what it reads have to stay in registers, and the rows
    that they come from in the first-level cache.
    """
    if lanes == 16:
        return 10  # of 32 registers: 64 rows of more vectors fill the cache
    return 25 if "+neon" in processor()[1].split(",") else 13  # of 32 and 16


@dataclass(frozen=True)
class Value:
    """A number, a vector or an address in a function that is being written."""

    code: Code
    ir: Any

    @property
    def _is_float(self) -> bool:
        kind = self.ir.type
        return isinstance(getattr(kind, "element", kind), ir.FloatType)

    def _with(self, other: Operand, on_ints: str, on_floats: str) -> Value:
        of = self.code.value(other, self.ir.type).ir
        return Value(self.code, getattr(self.code.builder, on_floats if self._is_float else on_ints)(self.ir, of))

    def __add__(self, other: Operand) -> Value:
        return self._with(other, "add", "fadd")

    def __sub__(self, other: Operand) -> Value:
        return self._with(other, "sub", "fsub")

    def __mul__(self, other: Operand) -> Value:
        return self._with(other, "mul", "fmul")

    def __and__(self, other: Operand) -> Value:
        return self._with(other, "and_", "")

    def __or__(self, other: Operand) -> Value:
        return self._with(other, "or_", "")

    def __lshift__(self, other: Operand) -> Value:
        return self._with(other, "shl", "")

    def __lt__(self, other: Operand) -> Value:
        return self._compared("<", other)

    def differs(self, other: Operand) -> Value:
        """Whether it is another number."""
        return self._compared("!=", other)

    def _compared(self, how: str, other: Operand) -> Value:
        return Value(self.code, self.code.builder.icmp_signed(how, self.ir, self.code.value(other, self.ir.type).ir))


Operand = Value | int | float


class Variable:
    """A value that changes, in a register as far as there are enough."""

    def __init__(self, code: Code, start: Value):
        self._code = code
        with code.builder.goto_entry_block():
            self._place = code.builder.alloca(start.ir.type)
        self.value = start

    @property
    def value(self) -> Value:
        return Value(self._code, self._code.builder.load(self._place))

    @value.setter
    def value(self, new: Value) -> None:
        self._code.builder.store(new.ir, self._place)


class Code:
    """A function of machine code that is being written. Offsets are in bytes."""

    def __init__(self, name: str, lanes: int, **parameters: ir.Type):
        self.name, self.lanes = name, lanes
        self.module = ir.Module(name)
        self.function = ir.Function(self.module, ir.FunctionType(ir.VoidType(), list(parameters.values())), name)
        self.builder = ir.IRBuilder(self.function.append_basic_block())
        self._on_heap: list[Value] = []
        self.parameters = {}
        for argument, (word, kind) in zip(self.function.args, parameters.items(), strict=True):
            argument.name = word
            if kind == POINTER:
                argument.add_attribute("noalias")
            self.parameters[word] = Value(self, argument)

    def text(self) -> str:
        """The function in LLVM's language."""
        if not self.builder.block.is_terminated:
            for room in self._on_heap:
                self._call("free", ir.VoidType(), room)
            self.builder.ret_void()
        return str(self.module)

    # Values

    def value(self, of: Operand, kind: ir.Type = INT) -> Value:
        """A number as a value, in each lane if the type is one of vectors."""
        if isinstance(of, Value):
            return of
        if isinstance(kind, ir.VectorType):
            return Value(self, ir.Constant(kind, [of] * kind.count))
        return Value(self, ir.Constant(kind, of))

    @property
    def floats(self) -> ir.Type:
        """The type of vectors of numbers."""
        return ir.VectorType(FLOAT, self.lanes)

    @property
    def zeros(self) -> Value:
        return self.value(0.0, self.floats)

    def broadcast(self, number: Value) -> Value:
        """A vector of one number."""
        one = self.builder.insert_element(ir.Constant(self.floats, ir.Undefined), number.ir, _INT32(0))
        none = ir.Constant(ir.VectorType(_INT32, self.lanes), [0] * self.lanes)
        return Value(self, self.builder.shuffle_vector(one, ir.Constant(self.floats, ir.Undefined), none))

    def fma(self, x: Value, y: Value, total: Value) -> Value:
        """x * y + total, in one instruction where the machine has it."""
        return self._call(f"llvm.fmuladd.v{self.lanes}f32", self.floats, x, y, total)

    def least(self, x: Operand, y: Operand) -> Value:
        x, y = self.value(x), self.value(y)
        return Value(self, self.builder.select((x < y).ir, x.ir, y.ir))

    def most(self, x: Operand, y: Operand) -> Value:
        x, y = self.value(x), self.value(y)
        return Value(self, self.builder.select((x < y).ir, y.ir, x.ir))

    def select(self, condition: Value, x: Value, y: Value) -> Value:
        return Value(self, self.builder.select(condition.ir, x.ir, y.ir))

    def is_greater(self, x: Value, y: Value) -> Value:
        """Which numbers of x are greater than those of y; NaN counts as the greatest."""
        greater = self.builder.fcmp_unordered(">", x.ir, y.ir)
        return Value(self, self.builder.and_(greater, self.builder.fcmp_ordered("ord", y.ir, y.ir)))

    def is_same(self, x: Value, y: Value) -> Value:
        """Which numbers of x are those of y, of which each is NaN that is NaN in x."""
        same = self.builder.fcmp_ordered("==", x.ir, y.ir)
        return Value(self, self.builder.or_(same, self.builder.fcmp_unordered("uno", x.ir, x.ir)))

    def as_float(self, number: Value) -> Value:
        """A whole number that is not negative, in single precision."""
        return Value(self, self.builder.uitofp(number.ir, FLOAT))

    def as_int(self, byte: Value) -> Value:
        """A byte as a whole number."""
        return Value(self, self.builder.zext(byte.ir, INT))

    def lowest(self, bits: Value) -> Value:
        """The place of the lowest bit that is set; there has to be one."""
        return Value(self, self.builder.cttz(bits.ir, BIT(1)))

    def _call(self, name: str, kind: ir.Type, *arguments: Value) -> Value:
        callee = self.module.globals.get(name)
        function = callee or ir.Function(self.module, ir.FunctionType(kind, [a.ir.type for a in arguments]), name)
        return Value(self, self.builder.call(function, [a.ir for a in arguments]))

    def masked(self, value: Value, count: Operand) -> Value:
        """A vector with zeros in place of all numbers but the first `count`."""
        kind = ir.VectorType(INT, self.lanes)
        lane = Value(self, ir.Constant(kind, list(range(self.lanes))))
        limit = self.builder.insert_element(ir.Constant(kind, ir.Undefined), self.value(count).ir, _INT32(0))
        none = ir.Constant(ir.VectorType(_INT32, self.lanes), [0] * self.lanes)
        limits = Value(self, self.builder.shuffle_vector(limit, ir.Constant(kind, ir.Undefined), none))
        return self.select(lane < limits, value, self.zeros)

    def total(self, vector: Value) -> Value:
        """The sum of a vector's numbers, each half added to the other."""
        count, halves = self.lanes, vector.ir
        while count > 1:
            count //= 2
            kind = ir.VectorType(_INT32, count)
            low, high = (ir.Constant(kind, list(range(start, start + count))) for start in (0, count))
            parts = [
                self.builder.shuffle_vector(halves, ir.Constant(halves.type, ir.Undefined), m) for m in (low, high)
            ]
            halves = self.builder.fadd(*parts)
        return Value(self, self.builder.extract_element(halves, _INT32(0)))

    def together(self, numbers: Sequence[Value]) -> Value:
        """A vector of so many numbers."""
        vector = ir.Constant(self.floats, ir.Undefined)
        for lane, number in enumerate(numbers):
            vector = self.builder.insert_element(vector, number.ir, _INT32(lane))
        return Value(self, vector)

    def apart(self, vector: Value) -> list[Value]:
        """The numbers of a vector."""
        return [Value(self, self.builder.extract_element(vector.ir, _INT32(k))) for k in range(self.lanes)]

    # Memory

    def table(self, numbers: Sequence[int]) -> Value:
        """Whole numbers that are known, in memory."""
        kind = ir.ArrayType(INT, len(numbers))
        array = ir.GlobalVariable(self.module, kind, f"table_{len(self.module.globals)}")
        array.initializer, array.global_constant, array.linkage = ir.Constant(kind, list(numbers)), True, "internal"
        return Value(self, self.builder.bitcast(array, POINTER))

    def room(self, size: int) -> Value:
        """Memory of the function's own, of so many bytes."""
        with self.builder.goto_entry_block():
            if size > MOST_ON_STACK:
                self._on_heap.append(self._call("malloc", POINTER, self.value(size + LINE)))
                address = self.builder.ptrtoint(self._on_heap[-1].ir, INT)
                return self.at(self._on_heap[-1], Value(self, self.builder.neg(address)) & (LINE - 1))
            place = self.builder.alloca(ir.ArrayType(BYTE, size))
            place.align = LINE
            return Value(self, self.builder.bitcast(place, POINTER))

    def at(self, pointer: Value, offset: Operand) -> Value:
        """The address so many bytes further on."""
        return Value(self, self.builder.gep(pointer.ir, [self.value(offset).ir]))

    def load(self, kind: ir.Type, pointer: Value, offset: Operand, align: int = 1) -> Value:
        place = self.builder.bitcast(self.at(pointer, offset).ir, kind.as_pointer())
        return Value(self, self.builder.load(place, align=align))

    def store(self, value: Value, pointer: Value, offset: Operand, align: int = 1) -> None:
        place = self.builder.bitcast(self.at(pointer, offset).ir, value.ir.type.as_pointer())
        self.builder.store(value.ir, place, align=align)

    def load_floats(self, pointer: Value, offset: Operand, count: int | None = None, own: bool = False) -> Value:
        """A vector, of which `count` numbers are in memory and the others 0. `own` memory is that of a `room`."""
        if count in (None, self.lanes):
            return self.load(self.floats, pointer, offset, 4 * self.lanes if own else 4)
        numbers = [self.load(FLOAT, pointer, self.value(offset) + 4 * lane, 4) for lane in range(count or 0)]
        vector = self.zeros.ir
        for lane, number in enumerate(numbers):
            vector = self.builder.insert_element(vector, number.ir, _INT32(lane))
        return Value(self, vector)

    def store_floats(
        self, value: Value, pointer: Value, offset: Operand, count: int | None = None, own: bool = False
    ) -> None:
        """Store the first `count` numbers of a vector."""
        if count in (None, self.lanes):
            self.store(value, pointer, offset, 4 * self.lanes if own else 4)
            return
        for lane in range(count or 0):
            number = Value(self, self.builder.extract_element(value.ir, _INT32(lane)))
            self.store(number, pointer, self.value(offset) + 4 * lane, 4)

    def nonzero(self, pointer: Value, offset: Operand) -> Value:
        """For each of the 64 bytes from an address on, a bit: whether the byte differs from 0."""
        kind = ir.VectorType(BYTE, LINE)
        is_set = self.load(kind, pointer, offset).differs(0)
        return Value(self, self.builder.bitcast(is_set.ir, INT))

    def fetch(self, pointer: Value, offset: Operand) -> None:
        """Prefetch a cache line."""
        place = self.at(pointer, offset).ir
        arguments = [place, _INT32(0), _INT32(2), _INT32(1)]
        name = "llvm.prefetch.p0"
        function = self.module.globals.get(name)
        kind = ir.FunctionType(ir.VoidType(), [POINTER, _INT32, _INT32, _INT32])
        self.builder.call(function or ir.Function(self.module, kind, name), arguments)

    def transposed(self, vectors: Sequence[Value]) -> list[Value]:
        """The transpose of as many vectors as each has elements."""
        rows, half = list(vectors), len(vectors) // 2
        for _ in range(len(rows).bit_length() - 1):
            pairs = [self.interleaved(rows[k], rows[k + half]) for k in range(half)]
            rows = [vector for pair in pairs for vector in pair]
        return rows

    def interleaved(self, x: Value, y: Value) -> tuple[Value, Value]:
        """Two vectors interleaved: the first halves, and the second halves."""
        count = x.ir.type.count
        halves = [range(count // 2), range(count // 2, count)]
        masks = [[place for i in half for place in (i, count + i)] for half in halves]
        kind = ir.VectorType(_INT32, count)
        low, high = (Value(self, self.builder.shuffle_vector(x.ir, y.ir, ir.Constant(kind, mask))) for mask in masks)
        return low, high

    # Statements

    @contextmanager
    def loop(self, low: Operand, high: Operand, step: int = 1) -> Iterator[Value]:
        """Within, instructions run for each index."""
        index = Variable(self, self.value(low))
        end = self.value(high)
        head, body, after = (self.function.append_basic_block() for _ in range(3))
        self.builder.branch(head)
        self.builder.position_at_end(head)
        current = index.value
        self.builder.cbranch((current < end).ir, body, after)
        self.builder.position_at_end(body)
        yield current
        index.value = current + step
        self.builder.branch(head)
        self.builder.position_at_end(after)

    @contextmanager
    def when(self, condition: Value) -> Iterator[None]:
        """Within, instructions run if a condition holds."""
        with self.builder.if_then(condition.ir):
            yield

    @contextmanager
    def each_bit(self, bits: Value) -> Iterator[Value]:
        """Within, instructions run for the place of each bit that is set, of which there has to be one."""
        left = Variable(self, bits)
        body, after = (self.function.append_basic_block() for _ in range(2))
        self.builder.branch(body)
        self.builder.position_at_end(body)
        current = left.value
        left.value = current & (current - 1)
        yield self.lowest(current)
        self.builder.cbranch(left.value.differs(0).ir, body, after)
        self.builder.position_at_end(after)


def column_groups(columns: int, lanes: int) -> Sequence[tuple[int, list[int]]]:
    """Columns in groups that fit into registers: where each begins, and how many columns are in each of its vectors."""
    vectors = [min(lanes, columns - start) for start in range(0, columns, lanes)]
    groups = -(-len(vectors) // registers(lanes))
    bounds = [len(vectors) * i // groups for i in range(groups + 1)]  # groups alike in size: each reads all bytes
    return [(first * lanes, vectors[first:last]) for first, last in pairwise(bounds)]
