"""What stands for a value while a function is traced: a Variable that captures the Tensors it meets."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from app.errors import ProgramError
from app.graph.variable import Parameter, Variable
from app.ops.definition import OpDef
from app.tensor.modes import recording

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


class TracedVariable(Variable):
    """A Variable of a function that is being traced; outside of tracing it is like any other."""

    grad: Any = None
    """Its gradient, after `backward` in the function."""

    @property
    def _tracer(self) -> Any:
        return getattr(self.program, "tracer", None)

    def apply_operator(
        self, definition: OpDef, inputs: Sequence[Any], attributes: Mapping[str, Any], into: Any = None
    ) -> Any:
        tracer = None if self._tracer is None else recording.tracer
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
        return self.assign()

    def clear_grad(self, set_to_zero: bool = False) -> None:
        """Forget the gradient."""
        self.grad = None

    clear_gradient = clear_grad

    def set_value(self, value: Any) -> None:
        """Stand for another value from here on."""
        self._become(self._tracer.like(value, self))

    def __setitem__(self, index: Any, value: Any) -> None:
        self._become(self._tracer.with_item(self, index, value))

    def _become(self, other: Any) -> Any:
        """Be another name for what a change in place gives."""
        if self.is_leaf:
            raise ProgramError(
                f"{self.name}, an argument of the function that is being traced, cannot be changed in place; "
                "change a copy of it (x = x.clone())"
            )
        if self.block.vars.get(self.name) is self:
            self.block.vars[self.name] = copy.copy(self)  # the Program goes on to know the old value
        self.__dict__.update(other.__dict__)
        return self

    def __getattr__(self, name: str) -> Any:
        """`x.name_()`, which changes a value in place, from `x.name()`; what gives numbers is not there."""
        if name in ("numpy", "item", "tolist") and self.__dict__.get("block") is not None and self._tracer is not None:
            raise NumberlessError(str(self._valueless(NUMBER)))
        plainly = None if not name.endswith("_") or name.startswith("_") else getattr(type(self), name[:-1], None)
        if plainly is None:
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        return lambda *args, **kwargs: self._become(plainly(self, *args, **kwargs))


class TracedParameter(TracedVariable, Parameter):
    """What stands for a Parameter."""
