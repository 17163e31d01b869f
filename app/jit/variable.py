"""The value of a traced function: a Variable that captures the Tensors that it is combined with."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from app.errors import ProgramError
from app.graph.variable import Parameter, Variable
from app.ops.creation import assign
from app.ops.definition import REGISTRY, OpDef
from app.ops.public import PUBLIC
from app.tensor.modes import modes

CHOOSE = (
    "Python wants to know whether it is true here, where it was not converted: in code whose source cannot be "
    "read (a lambda, the prompt, exec), in a library, or in a statement of an unusual form. Write it as an "
    "`if` or `while` of a function in a file, or with app.static.nn.cond, app.static.nn.while_loop or app.where"
)
NUMBER = (
    "Python wants its number here, which is not known while the function is traced: compute with the Tensor itself, "
    "or do this outside of the function, or in one under @app.jit.not_to_static that is called outside"
)


class NumberlessError(ProgramError, AttributeError):
    """A number that is asked for while it is not known; `hasattr` says that it is not there."""


class Memory:
    """Stands for the memory that an eager Tensor and its views would share, and counts the changes in place."""

    __slots__ = ("owner", "version")

    def __init__(self, owner: Any = None):
        self.owner = owner
        """The argument, or what stands for the captured Tensor, whose memory it is; None for what the function made."""
        self.version = 0


def _in_place(name: str) -> Any:
    definition = REGISTRY[name]
    return lambda self, other: self._take(definition(self, other))


class TracedVariable(Variable):
    """A Variable of a function that is being traced; outside tracing it behaves like any other."""

    grad: Any = None
    """Its gradient, after `backward` in the function."""
    _memory: Memory | None = None
    _version = 0
    """The version of the memory when the value was made, or changed itself."""
    _home: int | None = None
    _base: tuple[Any, Callable[[Any], Any]] | None = None
    """Of a view: what it is a part of, and what makes of the part's new value that of the whole."""

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

    def __bool__(self) -> bool:
        if self._tracer is None:
            return super().__bool__()
        raise self._valueless(CHOOSE)

    def _valueless(self, wish: str, advice: str = "") -> ProgramError:
        if self._tracer is None:
            return super()._valueless(wish, advice)
        return ProgramError(f"{self.name} has no value yet, as it is part of a function that is being traced. {wish}")

    def _numberless(self, *_: Any, **__: Any) -> NoReturn:
        raise self._valueless(NUMBER)

    __float__ = __int__ = __index__ = __array__ = _numberless

    # What Tensors can do beside operators

    def backward(self, grad_tensor: Any = None, retain_graph: bool | None = False, create_graph: bool = False) -> None:
        """Append what computes the gradients of everything captured that wants one, and add them to `.grad`."""
        tracer = self._tracer
        if tracer is None:
            raise ProgramError("a Variable of a Program has no backward(); use app.static.append_backward(loss)")
        tracer.backward(self, grad_tensor)

    @property
    def is_leaf(self) -> bool:
        """Whether no operator of the function made it."""
        return self.is_data or self.persistable

    def clone(self) -> Any:
        """A copy through which gradients flow."""
        return assign(self)

    def clear_grad(self, set_to_zero: bool = False) -> None:
        """Forget the gradient."""
        self.grad = None

    clear_gradient = clear_grad

    # Changes in place: the object comes to stand for another variable

    @property
    def memory(self) -> Memory:
        """What an eager Tensor would share with its views."""
        if self._memory is None:
            self._memory = Memory(self if self.is_leaf else None)
        return self._memory

    def share_memory(self, other: Any, whole: Callable[[Any], Any] | None = None) -> None:
        """Be a view of another value; `whole` makes of this one's new value what the other becomes by that."""
        self._memory = other.memory
        self._version = other.memory.version
        self._base = None if whole is None else (other, whole)

    def changed(self) -> None:
        """Note that the memory holds this value now: views of it from before do not know that."""
        self.memory.version += 1
        self._version = self.memory.version

    def check_current(self) -> None:
        """Refuse to read what an eager Tensor would show changed, since it shares memory with what was changed."""
        if self._memory is not None and self._memory.version != self._version:
            raise ProgramError(
                f"{self.name} shares memory with a Tensor that was changed in place since, and is traced as it was "
                "before; take it again after the change, or change a copy (x.clone())"
            )

    @property
    def home(self) -> int:
        """The block in which this object came to be."""
        return self.block.idx if self._home is None else self._home

    def here(self) -> Any:
        """Another object for the same variable, of the current block."""
        other = copy.copy(self)
        other._home = self.program.current_block().idx
        return other

    def frozen(self) -> Any:
        """A copy, of the current block, that keeps the value of now when this one is changed in place."""
        other = self.here()
        stale = self._memory is not None and self._memory.version != self._version
        other._memory, other._version, other._base = Memory(), -1 if stale else 0, None
        return other

    def stand_for(self, other: Any) -> None:
        """Be another name for a variable."""
        if self._tracer is not None:
            self._tracer.note_change(self)
        memory, version, home, base = self.memory, self._version, self.home, self._base
        if self.block.vars.get(self.name) is self:
            self.block.vars[self.name] = copy.copy(self)  # the Program goes on to know the old value
        self.__dict__.update(other.__dict__)
        self._memory, self._version, self._home, self._base = memory, version, home, base

    def _become(self, new: Any) -> Any:
        """Be another name for what a change in place gives, and so what it is a view of."""
        self.check_current()
        changes: list[tuple[TracedVariable, Any]] = [(self, new)]
        while changes[-1][0]._base is not None:
            whole, made_of = changes[-1][0]._base
            changes.append((whole, made_of(changes[-1][1])))
        owner = self.memory.owner
        if owner is not None and owner is not changes[-1][0]:
            raise ProgramError(
                f"{self.name}, which shares memory with an argument of the function that is being traced, or with a "
                "Tensor from outside, cannot be changed in place; change a copy (x = x.clone())"
            )
        for variable, _ in changes:
            if self._tracer is not None and not self._tracer.may_change(variable):
                raise ProgramError(
                    f"{variable.name} cannot be changed in place inside a function that was given to cond or "
                    "while_loop; return the new value from it"
                )
        for variable, value in changes:
            if variable.persistable:
                self._tracer.replace(self._tracer.captured_as(variable), value)
            else:
                variable.stand_for(value)
        self.memory.version += 1
        for variable, _ in changes:
            variable._version = self.memory.version
        return self

    def _take(self, result: Any) -> Any:
        return self._become(self._tracer.like(result, self, "same_kind"))

    def _reshape(self, operator: Callable[[Any], Any]) -> Any:
        """Show the same numbers in another shape."""
        if self.is_leaf:
            raise ProgramError(
                f"{self.name}, an argument of the function that is being traced, cannot get another shape in place; "
                "give its name to the result (x = x.reshape(...))"
            )
        view = operator(self.here())
        self.stand_for(view)
        self._base = view._base
        return self

    __iadd__, __isub__ = _in_place("add"), _in_place("subtract")
    __imul__, __itruediv__ = _in_place("multiply"), _in_place("divide")

    def __setitem__(self, index: Any, value: Any) -> None:
        self._become(self._tracer.with_item(self, index, value))

    def set_value(self, value: Any) -> None:
        """Replace the numbers by others of the same shape; no gradient flows through this."""
        if not self.stop_gradient and modes().on:
            raise ProgramError(
                f"set_value on {self.name}, of which a gradient is wanted, in a function that is being traced; "
                "do it inside app.no_grad(), or give the name a new value"
            )
        self._become(self._tracer.like(value, self).detach())

    def copy_(self, other: Any, blocking: bool = True) -> Any:
        """Take the numbers of another value, stretched to this shape where they need to be."""
        self[...] = other
        return self

    def fill_(self, value: Any) -> Any:
        """Replace every number by one."""
        return self.copy_(value)

    def zero_(self) -> Any:
        """Replace every number by zero."""
        return self.copy_(0)

    def detach(self) -> Any:
        """The same value, in the same memory, with no gradient flowing back through it."""
        copied: Any = super().detach()
        if self._tracer is not None:
            copied.share_memory(self)
        return copied

    def __getattr__(self, name: str) -> Any:
        """The methods `x.name_()` of Tensors, from `x.name()`; methods that give numbers are missing."""
        if name in ("numpy", "item", "tolist") and self.__dict__.get("block") is not None and self._tracer is not None:
            raise NumberlessError(str(self._valueless(NUMBER)))
        entry = PUBLIC.get(name[:-1]) if name.endswith("_") else None
        if entry is None or not entry.in_place:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        function = entry.function
        if isinstance(function, OpDef) and function.views:
            return lambda *args, **kwargs: self._reshape(lambda value: function(value, *args, **kwargs))
        return lambda *args, **kwargs: self._take(function(self, *args, **kwargs))


def settle(changes: Sequence[tuple[TracedVariable, Any]]) -> None:
    """Let traced Tensors be what a branch or a loop has made of them; views from before do not know that."""
    for tensor, new in changes:
        tensor.stand_for(new)
        tensor.memory.version += 1
    for tensor, _ in changes:
        tensor._version = tensor.memory.version


class TracedParameter(TracedVariable, Parameter):
    """What stands for a Parameter."""
