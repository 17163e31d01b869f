"""Variables, which name the values that a Program computes, and Parameters, which training updates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from app.errors import ProgramError
from app.ops.creation import assign
from app.ops.definition import REGISTRY, OpDef
from app.ops.dtype import DTypeLike, canonical, fitting
from app.ops.methods import ValueMethods
from app.ops.size import AnySize
from app.ops.spec import UNKNOWN, OpenSize, Spec, plain_sizes
from app.ops.values import Applied, Attributes, Operand

if TYPE_CHECKING:
    from app.graph.program import Block, Program


class Variable(ValueMethods):
    """A named value of a Program: its shape (-1 for unknown sizes), element type and flags. An Executor computes it."""

    def __init__(
        self,
        block: Block,
        name: str,
        shape: Sequence[AnySize | None],
        dtype: DTypeLike = "float32",
        *,
        persistable: bool = False,
        stop_gradient: bool = False,
        is_data: bool = False,
    ):
        self.block = block
        self.name = name
        self.shape = shape
        self._dtype = canonical(dtype)
        self.persistable = persistable
        self.stop_gradient = stop_gradient
        self.is_data = is_data
        self.gradient: str | None = None
        """The name of its gradient, or None; several variables may share one."""

    @property
    def shape(self) -> tuple[Any, ...]:
        """The sizes of the axes. Unknown sizes equal -1, and arithmetic with them raises an error (see `OpenSize`)."""
        return self._shape

    @shape.setter
    def shape(self, shape: Sequence[AnySize | OpenSize | None]) -> None:
        self._sizes = plain_sizes(shape)
        self._shape = tuple(OpenSize(self.name, i) if n == UNKNOWN else n for i, n in enumerate(self._sizes))

    @property
    def dtype(self) -> str:
        """The element type."""
        return self._dtype

    @dtype.setter
    def dtype(self, dtype: str) -> None:
        self._dtype = dtype

    @property
    def spec(self) -> Spec:
        return Spec(self._sizes, self._dtype)

    @property
    def program(self) -> Program:
        return self.block.program

    @property
    def grad_name(self) -> str:
        """The name of the gradient of this variable, even if there is none yet."""
        return self.gradient or self.name + "@GRAD"

    @property
    def flags(self) -> list[str]:
        """The names of the flags that are set, as printed."""
        marks = {"data": self.is_data, "persistable": self.persistable, "stop_gradient": self.stop_gradient}
        return [word for word, holds in marks.items() if holds]

    def __str__(self) -> str:
        return " ".join([f"var {self.name} : {self.spec}", *self.flags])

    __repr__ = __str__

    def __eq__(self, other: object) -> Applied:
        if other is None or isinstance(other, str):
            return NotImplemented
        return REGISTRY["equal"](self, other)

    __hash__ = object.__hash__

    def __bool__(self) -> bool:
        raise self._valueless("branch on it", self._advice_on_truth())

    def _advice_on_truth(self) -> str:
        """What to write instead of a condition on this variable, depending on the operator that computes it."""
        maker = next((op for op in reversed(self.block.ops) if self.name in op.outputs), None)
        if maker is None or maker.definition is not REGISTRY["equal"]:
            return ", or choose with opsmith.where or opsmith.static.nn.cond"
        return (
            f". It is the result of ==, which on Variables is opsmith.equal({', '.join(map(str, maker.inputs))}): "
            "write opsmith.where or opsmith.static.nn.cond to choose by it, `a is b` to ask whether two names stand "
            "for one Variable, and any(v is x for v in found) where `x in found` compares with another Variable first"
        )

    def __float__(self) -> float:
        raise self._valueless("make a number of it")

    __int__ = __index__ = __float__

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> np.ndarray:
        raise self._valueless("make an array of it")

    def _valueless(self, wish: str, advice: str = "") -> ProgramError:
        return ProgramError(
            f"variable {self.name} has no value while the Program is built, so Python cannot {wish}; "
            f"fetch it with an Executor{advice}"
        )

    def fitting(self, value: np.ndarray) -> np.ndarray:
        """A stored value in the element type of this variable; an error if it is of another kind."""
        return fitting(self.name, value, self.dtype)

    def detach(self) -> Variable:
        """The same value, without a gradient flowing through it."""
        copied: Variable = assign(self)
        copied.stop_gradient = True
        return copied

    def changed(self) -> None:
        """Called when an operator has written a new value to it; subclasses may override it."""

    def apply_operator(
        self, definition: OpDef, inputs: Sequence[Operand], attributes: Attributes, into: Sequence[Any] | None = None
    ) -> Applied:
        """Append the operator to the current block of this variable's Program; its outputs are new Variables."""
        block = self.program.current_block()
        variables = [block.as_variable(x) for x in definition.prepared(inputs)]
        outputs = block.append_op(definition, variables, attributes, into)
        return outputs[0] if len(outputs) == 1 and not definition.many_outputs else tuple(outputs) or None


class Parameter(Variable):
    """A persistable Variable that training updates."""

    def __init__(
        self, block: Block, name: str, shape: Sequence[AnySize], dtype: DTypeLike = "float32", trainable: bool = True
    ):
        super().__init__(block, name, shape, dtype, persistable=True, stop_gradient=not trainable)

    @property
    def trainable(self) -> bool:
        return not self.stop_gradient

    def __str__(self) -> str:
        return super().__str__().replace("var ", "param ", 1)

    __repr__ = __str__
