"""A cache of objects built from Programs, such as compiled code, that is valid until a Program changes."""

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Generic, TypeVar

from app.graph.program import Block, Body, Program
from app.ops.settings import key_of

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class ProgramCache(Generic[K, V]):
    """Values built from Programs, by keys. They are rebuilt after any change of the Program.

    Changes need not be reported: the contents of a Program are compared, object by object, with the earlier contents.
    The Program holds the values, so they are freed with it, and the earlier contents, so their ids are not reused.
    """

    def get(self, program: Program, key: K, make: Callable[[], V]) -> V:
        """The value of a key; `make` builds it if there is none, or if the Program has changed."""
        contents = list(_contents(program.global_block()))
        before: list[object]
        values: dict[K, V]
        before, values = program.cached.get(self, ([], {}))
        if len(before) != len(contents) or not all(map(operator.is_, before, contents)):
            values = values if _equal(before, contents) else {}
            program.cached[self] = contents, values
        if key not in values:
            values[key] = make()
        return values[key]

    def forget(self, program: Program) -> None:
        """Drop the values of a Program, so that they are built again."""
        program.cached.pop(self, None)


def _contents(block: Block) -> Iterator[object]:
    """Everything that a block consists of, including what runs inside its operators."""
    for op in block.ops:
        yield from (op.definition, op.inputs, op.outputs, op.role)
        for name, value in op.attributes.items():
            yield name
            if isinstance(value, Body):
                yield from (value.inputs, value.outputs)
                yield from _contents(value.block)
            else:
                yield value
    for name, v in block.vars.items():
        yield from (name, v.shape, v.dtype, v.persistable, v.is_data, v.stop_gradient)


def _equal(some: Sequence[object], others: Sequence[object]) -> bool:
    """Whether contents are equal, even if they are different objects."""
    return len(some) == len(others) and all(a is b or key_of(a) == key_of(b) for a, b in zip(some, others, strict=True))
