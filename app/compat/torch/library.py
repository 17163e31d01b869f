"""torch.library"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from inspect import signature
from typing import Any

import numpy as np

import app
from app.autograd import Function
from app.compat.torch._device import check_device
from app.errors import CustomOperatorError
from app.tensor import Tensor
from app.tensor.modes import modes


class CustomOpDef:
    """A function as an operator: nothing inside it is recorded, and its gradient is what is registered."""

    def __init__(self, name: str, function: Callable[..., Any], mutates_args: Sequence[str]):
        self._name, self._function, self._mutates = name, function, tuple(mutates_args)
        self._fake: Callable[..., Any] | None = None
        self._layer = self._layer_of(self._no_formula, None)
        OPERATORS[name] = self

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not self._mutates:
            return self._layer.apply(*args, **kwargs)
        if modes().tracer is None:
            with app.no_grad():
                return self._function(*args, **kwargs)
        layer: type[Function] = type("Changed", (Function,), {"forward": staticmethod(self._changed)})
        changed = layer.apply(*args, **kwargs)
        given = signature(self._function).bind(*args, **kwargs).arguments
        for name, value in zip(self._mutates, changed if isinstance(changed, tuple) else (changed,), strict=True):
            given[name].copy_(value)
        return None

    default = property(lambda self: self)
    """The operator itself, which `torch.ops` calls an overload."""

    def register_autograd(
        self, backward: Callable[..., Any], /, *, setup_context: Callable[..., Any] | None = None
    ) -> None:
        """Register how the gradients of the inputs follow from those of the outputs.

        `setup_context(ctx, inputs, output)` saves in `ctx` what `backward(ctx, *gradients)` needs.
        """
        if self._mutates:
            raise CustomOperatorError(f"{self._name} changes {', '.join(self._mutates)}, so it has no gradient")
        self._layer = self._layer_of(backward, setup_context)

    def _layer_of(self, backward: Callable[..., Any], setup_context: Callable[..., Any] | None) -> type[Function]:
        members = {
            "forward": staticmethod(wraps(self._function)(lambda *args, **kwargs: self._run(*args, **kwargs))),
            "setup_context": staticmethod(setup_context or (lambda ctx, inputs, output: None)),
            "backward": staticmethod(backward),
        }
        return type(self._name.rpartition("::")[2], (Function,), members)

    def _changed(self, ctx: Any, *args: Any, **kwargs: Any) -> Any:
        """The values that the function gives to the arguments that it changes, without changing these."""
        call = signature(self._function).bind(*args, **kwargs)
        for name in self._mutates:
            call.arguments[name] = call.arguments[name].clone()
        if self._function(*call.args, **call.kwargs) is not None:
            raise CustomOperatorError(
                f"{self._name} changes {', '.join(self._mutates)} and returns a value; a traced function can only "
                "call an operator that does one of the two"
            )
        changed = tuple(call.arguments[name] for name in self._mutates)
        return changed if len(changed) > 1 else changed[0]

    def _run(self, *args: Any, **kwargs: Any) -> Any:
        result = self._function(*args, **kwargs)
        if any(isinstance(part, list) for part in (result if isinstance(result, tuple) else (result,))):
            raise CustomOperatorError(
                f"{self._name} returned a list, which is not supported in this façade; return a tuple of Tensors"
            )
        return result

    def _no_formula(self, ctx: Any, *gradients: Any) -> Any:
        raise CustomOperatorError(
            f"{self._name}: trying to backward through it, but no autograd formula was registered; use "
            "register_autograd to add one"
        )

    def register_fake(self, function: Callable[..., Any], /) -> Callable[..., Any]:
        """Register a function that gives the shapes and types of the outputs. Only `opcheck` uses it."""
        self._fake = function
        return function

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._name})>"


OPERATORS: dict[str, CustomOpDef] = {}
"""The operators by name; a later one of the same name replaces an earlier one."""


class _Operators:
    """`torch.ops`: the operators that `custom_op` made, as `torch.ops.my_operators.cube`."""

    def __init__(self, space: str = ""):
        self._space = space

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if not self._space:
            return _Operators(name)
        if f"{self._space}::{name}" not in OPERATORS:
            known = ", ".join(OPERATORS) or "none"
            raise AttributeError(f"torch.ops has no operator {self._space}::{name}; registered are {known}")
        return OPERATORS[f"{self._space}::{name}"]


ops = _Operators()


def custom_op(
    name: str,
    fn: Callable[..., Any] | None = None,
    /,
    *,
    mutates_args: str | Sequence[str] = (),
    device_types: Any = None,
    schema: None = None,
) -> Any:
    """Make a function an operator with a name like `my_operators::cube`."""
    for device in [device_types] if isinstance(device_types, str) else device_types or ():
        check_device(device)
    if "::" not in name:
        raise CustomOperatorError(f"custom_op: a name is like my_operators::cube, found {name!r}")
    if schema is not None:
        raise CustomOperatorError(
            f"{name}: a schema is not supported in this façade; leave it out, and list in mutates_args what is changed"
        )

    def make(function: Callable[..., Any]) -> CustomOpDef:
        parameters = list(signature(function).parameters)
        changed = parameters if mutates_args == "unknown" else list(mutates_args)
        unknown = [parameter for parameter in changed if parameter not in parameters]
        if unknown:
            raise CustomOperatorError(
                f"{name}: mutates_args names {', '.join(unknown)}, but the function takes {', '.join(parameters)}; "
                'list parameters of the function, or give "unknown"'
            )
        return CustomOpDef(name, function, changed)

    return make if fn is None else make(fn)


# opcheck


def opcheck(
    op: CustomOpDef,
    args: Sequence[Any],
    kwargs: Mapping[str, Any] | None = None,
    *,
    test_utils: str | Sequence[str] = (),
    raise_exception: bool = True,
    atol: float | None = None,
    rtol: float | None = None,
) -> dict[str, Any]:
    """Check an operator with some inputs. `gradcheck` checks whether its gradient is right.

    It may change only the inputs in `mutates_args`, its outputs may not share memory with an input, its fake must give
    the shapes and types of its outputs, and it needs a gradient if an input requires one. `atol` and `rtol` have no
    effect, as no numbers are compared.
    """
    wanted = [test_utils] if isinstance(test_utils, str) else list(test_utils or _CHECKS)
    unknown = [name for name in wanted if name not in _CHECKS]
    if unknown:
        raise CustomOperatorError(f"opcheck: there is no check {unknown[0]!r}; there are {', '.join(_CHECKS)}")
    found: dict[str, Any] = {}
    for name in wanted:
        try:
            _CHECKS[name](op, tuple(args), dict(kwargs or {}))
            found[name] = "SUCCESS"
        except Exception as error:
            if raise_exception:
                raise CustomOperatorError(f"opcheck: {name} of {op._name} failed: {error}") from error
            found[name] = error
    return found


Arguments = tuple[Any, ...]


def _copied(values: Arguments, named: dict[str, Any]) -> tuple[Arguments, dict[str, Any]]:
    def copied(value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return type(value)(map(copied, value))
        if not isinstance(value, Tensor):
            return value
        clone = value.detach().clone()
        clone.stop_gradient = value.stop_gradient
        return clone

    return tuple(map(copied, values)), {name: copied(value) for name, value in named.items()}


def _tensors(value: Any) -> list[Any]:
    if isinstance(value, (list, tuple)):
        return [tensor for item in value for tensor in _tensors(item)]
    return [value] if isinstance(value, Tensor) else []


def _check_schema(op: CustomOpDef, args: Arguments, kwargs: dict[str, Any]) -> None:
    given, named = _copied(args, kwargs)
    outputs = _tensors(op(*given, **named))
    before = signature(op._function).bind(*args, **kwargs).arguments
    after = signature(op._function).bind(*given, **named).arguments
    for name, value in after.items():
        for tensor, old in zip(_tensors(value), _tensors(before[name]), strict=True):
            if name not in op._mutates and not np.array_equal(tensor._array, old._array, equal_nan=True):
                raise CustomOperatorError(
                    f"it changed {name} in place; name it in mutates_args, or change a clone of it"
                )
            if any(np.shares_memory(tensor._array, output._array) for output in outputs):
                raise CustomOperatorError(f"its output has the memory of {name}; return a clone")


def _check_fake(op: CustomOpDef, args: Arguments, kwargs: dict[str, Any]) -> None:
    given, named = _copied(args, kwargs)
    real = _tensors(op(*given, **named))
    if op._fake is None and not real:
        return  # there is nothing to say
    if op._fake is None:
        raise CustomOperatorError(
            f"it has no fake; register a function with @{op._name.rpartition('::')[2]}.register_fake"
        )
    fake = _tensors(op._fake(*given, **named))
    if len(real) != len(fake):
        raise CustomOperatorError(f"it returned {len(real)} Tensors, its fake {len(fake)}")
    for place, (one, other) in enumerate(zip(real, fake, strict=True)):
        if (one.shape, one.dtype) != (other.shape, other.dtype):
            raise CustomOperatorError(
                f"output {place} is of shape {list(one.shape)} and {one.dtype}, its fake says {list(other.shape)} and "
                f"{other.dtype}"
            )


def _check_gradient(op: CustomOpDef, args: Arguments, kwargs: dict[str, Any]) -> None:
    given, named = _copied(args, kwargs)
    wanting = [output for output in _tensors(op(*given, **named)) if output.requires_grad]
    if wanting:
        app.autograd.backward(wanting, [app.ones_like(output) for output in wanting])


_CHECKS: dict[str, Callable[[CustomOpDef, Arguments, dict[str, Any]], None]] = {
    "test_schema": _check_schema,
    "test_autograd_registration": lambda op, args, kwargs: None,
    "test_faketensor": _check_fake,
    "test_aot_dispatch_dynamic": _check_gradient,
}
"""The checks under PyTorch's names for them. A gradient can only be registered where it belongs."""
