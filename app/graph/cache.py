"""What is made of a Program, kept for as long as the Program stays as it is."""

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, Generic, TypeVar

from app.graph.body import Body
from app.graph.program import Block, Program
from app.ops.settings import is_lasting, key_of

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class OfPrograms(Generic[K, V]):
    """Values made of Programs, under keys. They are made again once anything in a Program was changed.

    Nothing has to announce a change: what a Program consists of is held against what it consisted of, object by
    object. The objects are kept meanwhile, so that none can be taken for another one at the same address; the Program
    keeps them, so that they go when it goes.
    """

    def get(self, program: Program, key: K, make: Callable[[], V]) -> V:
        """The value under a key, which `make` makes where there is none, or the Program was changed."""
        contents = list(_contents(program.global_block()))
        before, values = program.made.get(self, ((), {}))
        if len(before) != len(contents) or not all(map(operator.is_, before, contents)):
            values = values if _alike(before, contents) else {}
            program.made[self] = contents, values
        if key not in values:
            values[key] = make()
        return values[key]


def _contents(block: Block) -> Iterator[Any]:
    """All that a block consists of, what runs inside its operators included."""
    for op in block.ops:
        yield from (op, op.definition, op.inputs, op.outputs, op.role)
        for name, value in op.attributes.items():
            yield name
            if isinstance(value, Body):
                yield from (value.inputs, value.outputs)
                yield from _contents(value.block)
            else:
                yield value if is_lasting(value) else key_of(value)
    for name, v in block.vars.items():
        yield from (name, v.shape, v.dtype, v.persistable, v.is_data, v.stop_gradient)


def _alike(some: Sequence[Any], others: Sequence[Any]) -> bool:
    """Whether contents are the same, though a part may be another object."""
    return len(some) == len(others) and all(a is b or key_of(a) == key_of(b) for a, b in zip(some, others, strict=True))
