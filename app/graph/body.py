"""What runs inside a control-flow operator: a block of the same Program, with names for what it takes and gives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from app.graph.program import Block
    from app.graph.variable import Variable


class Body:
    """A sub-block as the attribute of an operator. It reads nothing but its inputs, each under a name of its own."""

    def __init__(self, block: Block, inputs: Sequence[str], outputs: Sequence[str | None]):
        self.block = block
        self.inputs = tuple(inputs)
        """The variables of the block that stand for the values given, in order."""
        self.outputs = tuple(outputs)
        """The variables that are handed out, in order; None stands for one that another body of the operator has."""

    def output(self, index: int) -> Variable | None:
        """The variable that is handed out at that place."""
        name = self.outputs[index]
        return None if name is None else self.block.var(name)

    def copied(self, copy_block: Callable[[Block], Block]) -> Body:
        """The same with a copy of the block."""
        return Body(copy_block(self.block), self.inputs, self.outputs)

    def __repr__(self) -> str:
        return f"block {self.block.idx}"

    def __eq__(self, other: object) -> bool:
        """Whether the other does the same; which numbers the blocks have does not matter."""
        return (
            isinstance(other, Body)
            and (self.inputs, self.outputs) == (other.inputs, other.outputs)
            and self.block.says_the_same(other.block)
        )

    __hash__ = object.__hash__
