"""Machine code for products of sparse bytes: `(scale * bytes + shift) @ w`, and with the bytes transposed.

With x = scale * p + shift, `x @ w` is `scale * p @ w`, which needs only the nonzero bytes p, plus `shift` times the
column sums of w. A comparison of 64 bytes gives a bit mask, and the code iterates over its set bits. The sums of one
row stay in registers meanwhile, and the 64 rows of the other matrix that the bytes multiply lie in the first-level
cache, from the beginning of a cache line on: of a matrix whose rows lie otherwise they are copied there.

Each row of a result is added up in one order, whichever thread does it and however wide vectors are.
"""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from app.engine.compiled.vector_functions import VectorFunction
from app.engine.compiled.vectors import (
    BYTE,
    FLOAT,
    INT,
    POINTER,
    Code,
    Operand,
    Value,
    Variable,
    column_groups,
    lanes_of_machine,
)

BLOCK = 64
"""The number of bytes compared at once, and thus of matrix rows in use together."""
TILE = 128
"""The number of rows of sums kept in registers."""
AHEAD = 8
"""The prefetch distance in rows."""
SQUARE = 16
"""The side of the square blocks in which bytes are transposed."""
FLOAT_BYTES = 4
ORDER_BYTES = 8


def product_code(name: str, size: int, columns: int, lanes: int) -> Code:
    """Rows `first` to `last` of `(scale * data + shift) @ w`, where a row of the data has `size` bytes.

    Which row of the data is which row of the batch is in `order`.
    """
    code = Code(
        name, lanes, data=POINTER, order=POINTER, first=INT, last=INT,
        scale=FLOAT, shift=FLOAT, w=POINTER, out=POINTER,
    )  # fmt: skip
    data, order, first, last, scale, shift, w, out = code.parameters.values()
    groups = [_Group(code, start, widths) for start, widths in column_groups(columns, lanes)]
    widest = max(group.bytes for group in groups)
    table, block = _multiples(code, scale), code.room(BLOCK * widest)
    totals, column_sums = code.room(TILE * widest), code.room(widest)
    shifts = code.broadcast(shift)
    for group in groups:
        with code.loop(first, last, TILE) as tile:
            count = code.least(last - tile, TILE)
            with code.loop(0, count) as i:
                group.store([code.zeros] * group.vectors, totals, i)
            group.store([code.zeros] * group.vectors, column_sums, 0)
            with code.loop(0, size, BLOCK) as block_start:
                begin = code.least(block_start, size - BLOCK)  # the last block may overlap the one before
                overlap = block_start - begin
                sums = group.variables(group.load(column_sums, 0))
                with code.loop(overlap, BLOCK) as j:
                    row = group.load_row(w, begin + j, columns)
                    group.store(row, block, j)
                    for total, values in zip(sums, row, strict=True):
                        total.value = total.value + values
                group.store([total.value for total in sums], column_sums, 0)
                with code.loop(0, count) as i:
                    if group is groups[0]:
                        with code.when(block_start < BLOCK):
                            ahead = _row(code, order, code.least(tile + i + AHEAD, last - 1), size)
                            for line in range(0, size, BLOCK):
                                code.fetch(data, ahead + line)
                    bytes_ = code.at(data, _row(code, order, tile + i, size) + begin)
                    bits = code.nonzero(bytes_, 0) & (code.value(-1) << overlap)
                    with code.when(bits.differs(0)):
                        sums = group.variables(group.load(totals, i))
                        group.add_multiples(sums, bits, bytes_, table, block)
                        group.store([total.value for total in sums], totals, i)
            with code.loop(0, count) as i:
                pairs = zip(group.load(totals, i), group.load(column_sums, 0), strict=True)
                group.store_row([code.fma(shifts, sums, total) for total, sums in pairs], out, tile + i, columns)
    return code


def transposed_code(name: str, size: int) -> Code:
    """The columns `first` to `last` of the bytes of a batch, in blocks of 64 rows. Rows of the last block beyond the
    batch have no defined values."""
    code = Code(name, SQUARE, data=POINTER, order=POINTER, n=INT, first=INT, last=INT, out=POINTER)
    data, order, n, first, last, out = code.parameters.values()
    kind = ir.VectorType(BYTE, SQUARE)
    with code.loop(0, n, BLOCK) as block, code.loop(0, code.least(n - block, BLOCK), SQUARE) as part:
        rows = [_row(code, order, code.least(block + part + k, n - 1), size) for k in range(SQUARE)]
        target = code.at(out, block * size + part)
        whole = first + ((last - first) & -SQUARE)
        with code.loop(first, whole, SQUARE) as column:
            vectors = [code.load(kind, data, row + column) for row in rows]
            for k, vector in enumerate(code.transposed(vectors)):
                code.store(vector, target, (column + k) * BLOCK)
        with code.loop(whole, last) as column:
            for k, row in enumerate(rows):
                code.store(code.load(BYTE, data, row + column), target, column * BLOCK + k)
    return code


def transposed_product_code(name: str, columns: int, lanes: int, adds: bool) -> Code:
    """Rows `first` to `last` of `factor * (scale * data + shift).T @ y`, added to those of `out` if it `adds`.

    The bytes were transposed; a row of them has `size` bytes.
    """
    code = Code(
        name, lanes, transposed=POINTER, size=INT, n=INT,
        first=INT, last=INT, factor=FLOAT, scale=FLOAT, shift=FLOAT, y=POINTER, out=POINTER,
    )  # fmt: skip
    transposed, size, n, first, last, factor, scale, shift, y, out = code.parameters.values()
    groups = [_Group(code, start, widths) for start, widths in column_groups(columns, lanes)]
    table, block = _multiples(code, scale * factor), code.room(BLOCK * max(group.bytes for group in groups))
    shifts = code.broadcast(shift * factor)
    for group in groups:
        column_sums = group.variables([code.zeros] * group.vectors)
        with code.loop(0, n, BLOCK) as begin:
            count = code.least(n - begin, BLOCK)
            are_rows = (code.value(2) << (count - 1)) - 1  # the bits of the rows that the block has
            with code.loop(0, count) as j:
                row = group.load_row(y, begin + j, columns)
                group.store(row, block, j)
                for total, values in zip(column_sums, row, strict=True):
                    total.value = total.value + values
            is_first, is_last = begin < 1, (n - begin) < BLOCK + 1
            start = [code.select(is_last, shifts * total.value, code.zeros) for total in column_sums]
            always = is_last if adds else is_last | is_first
            with code.loop(first, last) as q:
                bytes_ = code.at(transposed, (begin * size) + q * BLOCK)
                bits = code.nonzero(bytes_, 0) & are_rows
                with code.when(always | bits.differs(0)):
                    before = group.load_row(out, q, columns)
                    before = before if adds else [code.select(is_first, code.zeros, values) for values in before]
                    sums = group.variables([a + b for a, b in zip(before, start, strict=True)])
                    with code.when(bits.differs(0)):
                        group.add_multiples(sums, bits, bytes_, table, block)
                    group.store_row([total.value for total in sums], out, q, columns)
    return code


def _multiples(code: Code, factor: Value) -> Value:
    """A table of each byte value times a number."""
    table = code.room(256 * FLOAT_BYTES)
    with code.loop(0, 256) as byte:
        code.store(code.as_float(byte) * factor, table, byte * FLOAT_BYTES, FLOAT_BYTES)
    return table


def _row(code: Code, order: Value, i: Value, size: int) -> Value:
    """The offset of the i-th row of the batch in the data."""
    return code.load(INT, order, i * ORDER_BYTES, ORDER_BYTES) * size


class _Group:
    """A group of matrix columns that fits into registers."""

    def __init__(self, code: Code, start: int, widths: Sequence[int]):
        self._code, self._start, self._widths = code, start * FLOAT_BYTES, widths
        vector = FLOAT_BYTES * code.lanes
        self._places = range(0, len(widths) * vector, vector)
        self.vectors, self.bytes = len(widths), len(widths) * vector

    def variables(self, values: Sequence[Value]) -> list[Variable]:
        return [Variable(self._code, value) for value in values]

    def load(self, room: Value, row: Operand) -> list[Value]:
        """A row in the function's own memory, where rows hold this group alone."""
        begin = self._code.value(row) * self.bytes
        return [self._code.load_floats(room, begin + place, own=True) for place in self._places]

    def store(self, values: Sequence[Value], room: Value, row: Operand) -> None:
        begin = self._code.value(row) * self.bytes
        for place, value in zip(self._places, values, strict=True):
            self._code.store_floats(value, room, begin + place, own=True)

    def load_row(self, matrix: Value, row: Value, columns: int) -> list[Value]:
        """This group of a row of a matrix."""
        begin = row * (FLOAT_BYTES * columns) + self._start
        places = zip(self._places, self._widths, strict=True)
        return [self._code.load_floats(matrix, begin + place, width) for place, width in places]

    def store_row(self, values: Sequence[Value], matrix: Value, row: Value, columns: int) -> None:
        begin = row * (FLOAT_BYTES * columns) + self._start
        for place, width, value in zip(self._places, self._widths, values, strict=True):
            self._code.store_floats(value, matrix, begin + place, width)

    def add_multiples(self, sums: Sequence[Variable], bits: Value, data: Value, table: Value, block: Value) -> None:
        """Add the rows of a block whose bits are set, each times the value of its byte."""
        code = self._code
        with code.each_bit(bits) as place:
            byte = code.as_int(code.load(BYTE, data, place))
            number = code.broadcast(code.load(FLOAT, table, byte * FLOAT_BYTES, FLOAT_BYTES))
            for total, values in zip(sums, self.load(block, place), strict=True):
                total.value = code.fma(number, values, total.value)


# Functions for generated source


def product_function(size: int, columns: int) -> VectorFunction:
    """Fills rows of the product of bytes with a matrix."""
    return VectorFunction(f"byte_product_{size}_{columns}", product_code, (size, columns, lanes_of_machine()))


def transposed_function(size: int) -> VectorFunction:
    """Fills columns of the bytes of a batch, transposed."""
    return VectorFunction(f"transposed_bytes_{size}", transposed_code, (size,))


def transposed_product_function(columns: int, adds: bool) -> VectorFunction:
    """Fills rows of the product of transposed bytes with a matrix, or adds a multiple of them."""
    name = f"transposed_byte_{'step' if adds else 'product'}_{columns}"
    return VectorFunction(name, transposed_product_code, (columns, lanes_of_machine(), adds))
