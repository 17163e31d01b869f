"""The values of a traced function: Variables with the methods of eager Tensors."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from app.errors import ProgramError, ShapeError
from app.graph.variable import Parameter, Variable
from app.ops.creation import assign, numel
from app.ops.definition import OpDef
from app.ops.spec import UNKNOWN, OpenSize
from app.reading import user_place
from app.tensor import Tensor
from app.tensor.inplace import ChangesInPlace
from app.tensor.modes import modes

CHOOSE = (
    "Python needs its truth value here, in code that is not converted. Write `a < b and b < c` instead of `a < b < c`, "
    "opsmith.maximum instead of max, and opsmith.where or an `if` of a function in a file instead of a condition in a "
    "lambda, at the prompt, in exec or in a library"
)
NUMBER = (
    "Python needs its number here, which is not known while the function is traced. Compute with the Tensor itself "
    "(`if x > 1`, not `if x.item() > 1`), or do this outside of the function"
)
FORMAT = "A format needs its number, which is not known while the function is traced; print(x) shows it in every call"
EAGER_ONLY = "Only Tensors outside of a traced function have {name!r}: use it before or after the function"


class NumberlessError(ProgramError, AttributeError):
    """An attribute that needs values, which are unknown while tracing."""


class RefusedError(ProgramError):
    """What cannot be traced. It ends tracing even if the user's code handles it, as eager code would go another way."""

    def __init__(self, *args: Any):
        super().__init__(*args)
        note_refusal(self)


def note_refusal(error: Any) -> Any:
    """Note an error that ends tracing even if it is handled, with the line of the user's code that runs."""
    if modes().tracer is not None:
        modes().tracer.refusals.append((error, user_place()))
    return error


class TracedSize(OpenSize):
    """An open size that cannot be compared either: eager code would see the size of the call."""

    __slots__ = ()

    def _refusal(self) -> ShapeError:
        error: ShapeError = note_refusal(super()._refusal())
        return error

    __eq__ = __ne__ = __hash__ = __repr__ = __str__ = __format__ = OpenSize._refuse  # type: ignore[assignment]


class Memory:
    """What a value shares with its views, and with those that control flow may make of it."""

    def __init__(self, home: int, outside: bool):
        self.home, self.outside = home, outside
        """The block of the value, and whether it is an argument or a captured Tensor."""
        self.changed = 0
        """When it was changed last."""


class TracedVariable(ChangesInPlace, Variable):
    """A Variable of a function that is being traced; after tracing it behaves like any other Variable."""

    own_gradient: Any = None
    """Its gradient, after `backward` in the function."""
    outside = False
    """Whether it is an argument or a captured Tensor."""
    copied = False
    """Whether it stands for a Tensor from before a branch or a loop."""
    carried = False
    """Whether it may be what a variable is that the loop over a Tensor around it assigns: another in each iteration."""
    read_at = 0
    """When its value was that of its memory."""
    recorded: tuple[TracedVariable, str] | None = None
    """What it was before `x.stop_gradient = True`, and its name after that."""
    _memories: tuple[Memory, ...] = ()
    _home: int | None = None

    @property
    def _tracer(self) -> Any:
        return getattr(self.program, "tracer", None)

    def apply_operator(
        self, definition: OpDef, inputs: Sequence[Any], attributes: Mapping[str, Any], into: Any = None
    ) -> Any:
        tracer = None if self._tracer is None else modes().tracer
        if tracer is None:
            return super().apply_operator(definition, inputs, attributes, into)
        return tracer.apply(definition, inputs, attributes, into)

    @property
    def asked_shape(self) -> Any:
        """The shape as the user's code sees it: an open size cannot be computed with, nor compared."""
        sizes = [TracedSize(*size.where) if isinstance(size, OpenSize) else size for size in self.shape]
        return sizes if type(self.shape) is tuple else type(self.shape)(sizes)

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "stop_gradient" and self.outside and self.is_data and bool(value) is not self.stop_gradient:
            wish = "use x.detach()" if value else "set it before the call"
            raise RefusedError(
                f"stop_gradient of {self.name}, an argument of the traced function, cannot be set to {value} there, "
                f"as it would stay {not value} for the caller: {wish}"
            )
        super().__setattr__(name, value)

    @property
    def grad(self) -> Any:
        """Its gradient, after `backward` in the function."""
        self._note_gradient()
        return self.own_gradient

    @grad.setter
    def grad(self, value: Any) -> None:
        self._note_gradient()
        self.own_gradient = value

    def _note_gradient(self) -> None:
        if self.is_data and self._tracer is not None:
            self._tracer.gradients_of_arguments.add(self.name)

    def set_stop_gradient(self, stop: bool) -> None:
        """What `x.stop_gradient = …` means in a traced function: later operators see it, but not earlier ones.

        A value that has no gradient becomes a leaf: none flows on to what it was computed from.
        """
        if stop is self.stop_gradient or self.outside:
            self.stop_gradient = stop
            return
        before, self.recorded = self.recorded, None
        if stop:
            recorded = copy.copy(self)
            self.stand_for(self.detach())
            self.recorded = recorded, self.name
        elif before is not None:
            if before[1] != self.name:
                raise RefusedError(
                    f"{self.name} was changed in place while its stop_gradient was True; change a copy (x = x.clone())"
                )
            self.stand_for(before[0])
        else:
            self.stand_for(self._tracer.as_leaf(assign(self), False, self))

    # Methods that need values are refused

    def __bool__(self) -> bool:
        if self._tracer is None:
            return super().__bool__()
        raise note_refusal(self._valueless(CHOOSE))

    def _valueless(self, wish: str, advice: str = "") -> ProgramError:
        if self._tracer is None:
            return super()._valueless(wish, advice)
        return ProgramError(f"{self.name} has no value yet, because it is part of a traced function. {wish}")

    def _numberless(self, *_: Any, **__: Any) -> NoReturn:
        raise note_refusal(self._valueless(NUMBER))

    __float__ = __int__ = __index__ = __array__ = _numberless

    def __format__(self, form: str) -> str:
        if form and self._tracer is not None:
            raise note_refusal(self._valueless(FORMAT))
        return super().__format__(form)

    def __getattr__(self, name: str) -> Any:
        if name[:2] != "__" and hasattr(Tensor, name) and self._tracer is not None:
            asks = NUMBER if name in ("numpy", "item", "tolist") else EAGER_ONLY.format(name=name)
            error = NumberlessError(str(self._valueless(asks)))
            raise error if name[0] == "_" else note_refusal(error)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    # Methods of Tensors that are not operators

    def backward(self, grad_tensor: Any = None, retain_graph: bool | None = False, create_graph: bool = False) -> None:
        """Append the backward pass of this value, which adds to the `.grad` of arguments and captured Tensors."""
        if self._tracer is None:
            raise RefusedError("a Variable of a Program has no backward(); use opsmith.static.append_backward(loss)")
        self._tracer.backward([self], [grad_tensor])

    def __len__(self) -> int:
        if self._tracer is not None and self.shape[:1] == (UNKNOWN,):
            raise note_refusal(
                ShapeError(
                    f"the length of {self.name} is known only when the function runs; use "
                    f"opsmith.shape({self.name})[0], which is a Tensor, or `for row in {self.name}`"
                )
            )
        return super().__len__()

    def numel(self) -> Any:
        """The number of elements: a value, if a size is open."""
        return numel(self) if UNKNOWN in self.shape else math.prod(self.shape)

    @property
    def size(self) -> Any:
        """The number of elements, as `numel`."""
        return self.numel()

    @property
    def is_leaf(self) -> bool:
        """Whether it was not computed by an operator that has a gradient."""
        given = self.is_data or self.persistable or (self.stop_gradient and self.recorded is None)
        return given or any(leaf is self for leaf in getattr(self._tracer, "leaves", ()))

    def dim(self) -> int:
        """The number of axes."""
        return self.ndim

    def clone(self) -> Any:
        """A copy through which gradients flow."""
        return assign(self)

    def detach(self) -> Any:
        """The same value, in the same memory, with no gradient flowing back through it."""
        copied: Any = super().detach()
        if self._tracer is not None:
            copied.share_memory(self)
        return copied

    def clear_grad(self, set_to_zero: bool = False) -> None:
        """Remove the gradient."""
        self.grad = None

    clear_gradient = clear_grad

    # Shared memory

    @property
    def memories(self) -> tuple[Memory, ...]:
        """The memory that an eager Tensor would have; several if that depends on control flow."""
        self._memories = self._memories or (Memory(self.home, self.outside),)
        return self._memories

    def share_memory(self, *others: Any) -> None:
        """Note that an eager Tensor would have the memory of other values, or of one of them."""
        values = [self._tracer.value(v) if isinstance(v, Tensor) else v for v in others]
        memories = [memory for v in values if isinstance(v, TracedVariable) for memory in v.memories]
        self._memories, self.read_at = tuple(dict.fromkeys(memories)), self._tracer.ticks

    def note_change(self) -> None:
        """Note that the memory has the value of this variable now."""
        self._tracer.ticks += 1
        self.read_at = self._tracer.ticks
        for memory in self.memories:
            memory.changed = self.read_at

    @property
    def stale(self) -> bool:
        """Whether the memory was changed through another value, so that an eager Tensor would have other elements."""
        return any(memory.changed > self.read_at for memory in self._memories)

    def check_current(self) -> None:
        """Refuse to read a stale value: an eager Tensor would show the change."""
        if self.stale:
            raise RefusedError(
                f"{self.name} shares memory with a Tensor that was changed in place later, and still has the old "
                "value in the traced function; take it again after the change, or change a copy (x.clone())"
            )

    # Changes in place: the object comes to stand for another variable

    @property
    def home(self) -> int:
        """The block in which this object was made."""
        return self.block.idx if self._home is None else self._home

    def here(self) -> Any:
        """Return a new object for the same variable, with memory of its own, in the current block."""
        other = copy.copy(self)
        other._home, other._memories, other.outside, other.copied = self.program.current_block().idx, (), False, True
        return other

    def stand_for(self, other: Any) -> None:
        """Become another name for a variable."""
        own = {name: getattr(self, name) for name in ("_memories", "outside", "copied", "carried")}
        own.update(_home=self.home, read_at=self.read_at if self._tracer is None else self._tracer.ticks)
        if self.block.vars.get(self.name) is self:
            self.block.vars[self.name] = copy.copy(self)  # the Program keeps the old value
        self.__dict__.update({**other.__dict__, **own})

    def become(self, result: Any) -> Any:
        """Take the value of a result of the same shape."""
        return self._take(self._tracer.like(result, self, "same_kind"))

    def _take(self, new: Any) -> Any:
        """Take a new value; those that share the memory become stale."""
        self.check_current()
        if not self.outside and any(memory.outside for memory in self.memories):
            raise RefusedError(
                f"{self.name} shares memory with an argument of the traced function, or with a Tensor from outside, "
                "and cannot be changed in place; change a copy (x = x.clone())"
            )
        if self.home != self.program.current_block().idx:
            raise RefusedError(
                f"{self.name} cannot be changed in place in a branch or a loop over a Tensor, as it is no variable of "
                "the function that this is in; return the new value, and assign it there"
            )
        if not (modes().on or self.stop_gradient or self.persistable):
            raise RefusedError(
                f"{self.name} requires a gradient and is changed in place inside no_grad: its gradient would be that "
                "of the old value, which a traced function cannot keep; write x = x + (new - x).detach() to keep that "
                "gradient, or x = new to have none"
            )
        if self.persistable:
            self._tracer.replace(self._tracer.captured_as(self), new)
        else:
            self.stand_for(new)
            self.note_change()
        return self

    def __setitem__(self, index: Any, value: Any) -> None:
        self._take(self._tracer.with_item(self, index, value))

    def set_value(self, value: Any) -> None:
        """Replace the value by another of the same shape, without gradient."""
        if not self.stop_gradient and modes().on:
            raise RefusedError(
                f"set_value on {self.name}, which requires a gradient, in a traced function; "
                "do it inside opsmith.no_grad(), or assign a new value to the name"
            )
        self._take(self._tracer.like(value, self).detach())


class StopGradient:
    """Stands for a value in `x.stop_gradient = …` of converted code."""

    def __init__(self, variable: TracedVariable):
        object.__setattr__(self, "_variable", variable)

    def __getattr__(self, name: str) -> Any:
        return getattr(object.__getattribute__(self, "_variable"), name)

    def __setattr__(self, name: str, value: Any) -> None:
        object.__getattribute__(self, "_variable").set_stop_gradient(bool(value))


class TracedParameter(TracedVariable, Parameter):
    """The variable of a captured Parameter."""
