"""Read the Tensors in a file that PyTorch's `torch.save` wrote. Nothing in the file is executed.

The file is a zip archive: `data.pkl`, a pickle, says which Tensors there are, and `data/0`, `data/1`, ... hold their
numbers. A pickle is a list of instructions. Those that build containers, numbers and text are carried out here, by a
machine that has no instruction to import or to call anything; a name in the pickle is looked up in a small table.
"""

from __future__ import annotations

import io
import math
import pickletools
import struct
import zipfile
import zlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from app.errors import FileError
from app.tensor import Parameter, Tensor

LARGEST_PICKLE = 1 << 26
"""Bytes of `data.pkl`, which has about a hundred for each Tensor."""

_TYPES = {
    "BoolStorage": "bool",
    "ByteStorage": "uint8",
    "CharStorage": "int8",
    "ShortStorage": "int16",
    "IntStorage": "int32",
    "LongStorage": "int64",
    "HalfStorage": "float16",
    "FloatStorage": "float32",
    "DoubleStorage": "float64",
}


_DAMAGES = (
    zipfile.BadZipFile,
    ArithmeticError,
    AttributeError,
    EOFError,
    LookupError,
    NotImplementedError,
    TypeError,
    ValueError,
    struct.error,
)
"""What Python raises where a file is not as it should be."""


class _Name(NamedTuple):
    """A name that the pickle mentions. It is never looked up in a module."""

    module: str
    name: str

    def __str__(self) -> str:
        return f"{self.module}.{self.name}"


def is_archive(content: bytes) -> bool:
    """Whether a file is a zip archive, as those of PyTorch are since version 1.6."""
    return content[:4] == b"PK\x03\x04"


def read(content: bytes, file: str) -> Any:
    """The dictionaries, lists, numbers, text and Tensors in a file. Tensors that shared memory share it again."""
    try:
        return _Reader(content, file).value()
    except FileError:
        raise
    except _DAMAGES as error:
        raise FileError(f"load: {file} is damaged, or was not written by torch.save ({error})") from error


class _Reader:
    """The machine: a stack of values, and a memo of those that are mentioned again."""

    def __init__(self, content: bytes, file: str):
        self.file = file
        self._bytes = np.frombuffer(bytearray(content), np.uint8)  # Tensors are views of these, and can be written to
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            entries = {info.filename.partition("/")[2]: info for info in archive.infolist()}
            if "constants.pkl" in entries:
                self._refuse("is a TorchScript program, which is code")
            if "data.pkl" not in entries:
                self._refuse("is a zip archive without data.pkl; torch.save writes it")
            self._entries = entries
            self._pickle = self._content("data.pkl", LARGEST_PICKLE).tobytes()
            if "byteorder" in entries and self._content("byteorder", 16).tobytes() != b"little":
                self._refuse("has its numbers in another byte order")
        self._stack: list[Any] = []
        self._marks: list[int] = []
        self._memo: dict[int, Any] = {}
        self._storages: dict[str, np.ndarray] = {}

    def _refuse(self, what: str) -> None:
        raise FileError(
            f"load: {self.file} {what}; in PyTorch, torch.save(model.state_dict(), path) makes a file for here"
        )

    def _content(self, name: str, most: int | None = None) -> np.ndarray:
        """The bytes of a part of the archive: a view of the file, so that no part can be larger than the file."""
        info = self._entries[name]
        if info.compress_type != zipfile.ZIP_STORED or info.flag_bits & 1:
            self._refuse(f"has {name} packed or encrypted, which torch.save does not do")
        if most is not None and info.file_size > most:
            self._refuse(f"has {info.file_size:,} bytes in {name}, more than the {most:,} that are read")
        lengths = self._bytes[info.header_offset + 26 : info.header_offset + 30].tobytes()
        start = info.header_offset + 30 + sum(struct.unpack("<HH", lengths))
        part = self._bytes[start : start + info.file_size]
        if len(part) != info.file_size:
            raise ValueError(f"{name} ends early")
        if zlib.crc32(part.data) != info.CRC:
            raise ValueError(f"the checksum of {name} is another")
        return part

    def value(self) -> Any:
        """Carry out the instructions of the pickle; the last value is the result."""
        for opcode, argument, place in pickletools.genops(self._pickle):
            if opcode.name == "STOP":
                break
            step = _STEPS.get(opcode.name)
            if step is None:
                about = next((f" for {value}" for value in reversed(self._stack) if isinstance(value, _Name)), "")
                self._refuse(f"has the instruction {opcode.name}{about} at byte {place}, which could run code")
            else:
                step(self, argument)
        (result,) = self._stack
        return self._data([result])[0]

    # Instructions

    def push(self, value: Any) -> None:
        self._stack.append(value)

    def pop(self) -> Any:
        if self._marks and len(self._stack) <= self._marks[-1]:
            raise ValueError("a value is missing")
        return self._stack.pop()

    def mark(self, _: Any) -> None:
        self._marks.append(len(self._stack))

    def since_mark(self) -> list[Any]:
        start = self._marks.pop()
        found, self._stack[start:] = self._stack[start:], []
        return found

    def tuple_of(self, count: int | None) -> None:
        items = self.since_mark() if count is None else [self.pop() for _ in range(count)][::-1]
        self.push(tuple(items))

    def memoize(self, place: int | None) -> None:
        self._memo[len(self._memo) if place is None else place] = self._stack[-1]

    def append(self, items: list[Any]) -> None:
        self._top(list).extend(self._data(items))

    def add(self, _: Any) -> None:
        items = self.since_mark()
        self._top(set).update(self.key(item) for item in items)

    def set_items(self, items: list[Any]) -> None:
        found, items = self._top(dict), self._data(items)
        for key, value in zip(items[::2], items[1::2], strict=True):
            found[self.key(key)] = value

    def _data(self, items: list[Any]) -> list[Any]:
        """The items, none of which may be a name."""
        for item in items:
            if isinstance(item, _Name):
                self._refuse_object(item)
        return items

    def _top(self, kind: type) -> Any:
        if not isinstance(self._stack[-1], kind):
            raise ValueError(f"something is put into a {type(self._stack[-1]).__name__}")
        return self._stack[-1]

    def key(self, key: Any) -> Any:
        """A key of a dictionary, or a member of a set."""
        if not isinstance(key, (str, int, float)):  # a tuple could be nested so deeply that its hash ends the process
            raise ValueError(f"a key is a {type(key).__name__}; keys are text or numbers")
        return key

    def name(self, words: str) -> None:
        self.push(_Name(*words.split(" ", 1)))

    def name_on_stack(self, _: Any) -> None:
        name, module = self.pop(), self.pop()
        self.push(_Name(str(module), str(name)))

    def reduce(self, _: Any) -> None:
        """Make what one of the names in the table stands for; refuse every other call."""
        arguments, name = self.pop(), self.pop()
        make = _MAKERS.get(name) if isinstance(name, _Name) else None
        if make is None:
            self._refuse_object(name)
        else:  # a method of this class, or a container
            self.push(make(self, *arguments))

    def build(self, _: Any) -> None:
        """Leave out the attributes of a dictionary; those of anything else are refused."""
        self.pop()
        if not isinstance(self._stack[-1], dict):
            self._refuse("sets attributes of an object")

    def _refuse_object(self, name: Any) -> None:
        self._refuse(f"holds {name}, which is code and no number, text or Tensor")

    def storage(self, _: Any) -> None:
        """Push the numbers that a Tensor is a part of."""
        kind, storage, key, _place, count = self.pop()
        dtype = _TYPES.get(storage.name) if isinstance(storage, _Name) and storage.module == "torch" else None
        if kind != "storage" or dtype is None:
            self._refuse(f"has numbers of {storage}; .float() converts them")
            return
        if key not in self._storages:
            part = self._content(f"data/{key}")
            aligned = part.ctypes.data % np.dtype(dtype).itemsize == 0
            if not aligned and sum(s.nbytes for s in self._storages.values()) > len(self._bytes):
                raise ValueError("its parts overlap")
            self._storages[key] = (part if aligned else part.copy()).view(dtype)
        numbers = self._storages[key]
        if numbers.dtype != dtype or len(numbers) != count:
            raise ValueError(f"data/{key} has {len(numbers)} numbers of {numbers.dtype}, expected {count} of {dtype}")
        self.push(numbers)

    # What names stand for

    def tensor(
        self,
        numbers: Any,
        offset: int,
        size: Any,
        stride: Any,
        wants_gradient: bool,
        hooks: Any = None,
        marks: Any = None,
    ) -> Tensor:
        """A part of a storage, in the order that `stride` says."""
        if marks:  # of a view with other numbers than those of the storage, such as `x.conj().imag`
            self._refuse(
                f"has a Tensor whose numbers are marked {', '.join(map(str, marks))}; .resolve_neg() writes them"
            )
        if (
            not isinstance(numbers, np.ndarray)
            or len(size) != len(stride)
            or min([offset, *size, *stride], default=0) < 0
        ):
            raise ValueError("a Tensor has a wrong size")
        count = math.prod(size)
        last = offset + sum((n - 1) * step for n, step in zip(size, stride, strict=True))
        if count > len(numbers) > last:
            self._refuse("has a Tensor that repeats its numbers; .contiguous() writes them out")
        if count and last >= len(numbers):
            raise ValueError(f"a Tensor of {count} elements reaches place {last} of {len(numbers)} numbers")
        if numbers.dtype == bool and numbers.view(np.uint8).max(initial=0) > 1:
            raise ValueError("a boolean is neither 0 nor 1")
        width = numbers.itemsize
        steps = [step * width for step in stride]
        return Tensor(
            np.ndarray(tuple(size), numbers.dtype, numbers.data, offset * width if count else 0, steps),
            stop_gradient=not (wants_gradient and numbers.dtype.kind == "f"),
        )

    def parameter(self, data: Any, wants_gradient: bool = True, *_: Any) -> Parameter:
        """A Tensor that training changes."""
        if not isinstance(data, Tensor):
            raise ValueError("a Parameter has no Tensor")
        return Parameter(data._array, trainable=bool(wants_gradient))


_Step = Callable[[_Reader, Any], None]

_STEPS: dict[str, _Step] = {
    **dict.fromkeys(("PROTO", "FRAME"), lambda reader, argument: None),
    **dict.fromkeys(("BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT"), _Reader.push),
    **dict.fromkeys(("BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8"), _Reader.push),
    **dict.fromkeys(("BINPUT", "LONG_BINPUT", "MEMOIZE"), _Reader.memoize),
    **dict.fromkeys(("BINGET", "LONG_BINGET"), lambda reader, place: reader.push(reader._memo[place])),
    "NONE": _Reader.push,
    "NEWTRUE": lambda reader, _: reader.push(True),
    "NEWFALSE": lambda reader, _: reader.push(False),
    "MARK": _Reader.mark,
    "EMPTY_DICT": lambda reader, _: reader.push({}),
    "EMPTY_LIST": lambda reader, _: reader.push([]),
    "EMPTY_SET": lambda reader, _: reader.push(set()),
    "EMPTY_TUPLE": lambda reader, _: reader.push(()),
    "TUPLE": lambda reader, _: reader.tuple_of(None),
    "TUPLE1": lambda reader, _: reader.tuple_of(1),
    "TUPLE2": lambda reader, _: reader.tuple_of(2),
    "TUPLE3": lambda reader, _: reader.tuple_of(3),
    "APPEND": lambda reader, _: reader.append([reader.pop()]),
    "APPENDS": lambda reader, _: reader.append(reader.since_mark()),
    "ADDITEMS": _Reader.add,
    "SETITEM": lambda reader, _: reader.set_items([reader.pop(), reader.pop()][::-1]),
    "SETITEMS": lambda reader, _: reader.set_items(reader.since_mark()),
    "GLOBAL": _Reader.name,
    "STACK_GLOBAL": _Reader.name_on_stack,
    "REDUCE": _Reader.reduce,
    "BUILD": _Reader.build,
    "BINPERSID": _Reader.storage,
}
"""What is done for each instruction of a pickle. Any other is refused."""

_MAKERS: dict[Any, Callable[..., Any]] = {
    _Name("collections", "OrderedDict"): lambda reader: {},
    _Name("__builtin__", "set"): lambda reader, items: {reader.key(item) for item in items},
    _Name("torch", "Size"): lambda reader, sizes: tuple(sizes),
    _Name("torch._utils", "_rebuild_tensor_v2"): _Reader.tensor,
    _Name("torch._utils", "_rebuild_parameter"): _Reader.parameter,
}
"""The names that a pickle may call, with what is made for each."""
