"""A user's function as the kernel of an operator: called with arrays, its result checked, its errors explained."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from app.errors import AppError, DtypeError, OperatorError, ShapeError
from app.ops.definition import OpDef, apply
from app.ops.spec import Spec, broadcast

_PACKAGE = str(Path(__file__).resolve().parent.parent)


def registered_at() -> str:
    """File and line of the user's code that is registering an operator."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        if "shelf" in frame.f_code.co_filename:
            break
        frame = frame.f_back
    return f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"


def function_name(function: Any) -> str:
    return getattr(function, "__name__", type(function).__name__)


def require_callable(function: Any, role: str, operator: str, where: str) -> None:
    """Refuse what is not a function where an operator is registered, not when it first runs."""
    if not callable(function):
        raise OperatorError(
            f"operator {operator} ({where}): {role} must be a function, found {function!r} ({type(function).__name__})"
        )


def call_function(function: Callable[..., Any], label: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Call a user's function; what it raises is told with the operator's name and kept as the cause."""
    try:
        return function(*args, **kwargs)
    except AppError:
        raise
    except Exception as error:
        hint = ""
        if isinstance(error, ValueError) and "ambiguous" in str(error):
            hint = " (a function of one number needs custom_op(elementwise=True))"
        raise OperatorError(
            f"{label}: its function {function_name(function)} raised {type(error).__name__}: {error}{hint}"
        ) from error


def as_arrays(result: Any, wanted: int, label: str, function: Callable[..., Any]) -> list[Any]:
    """What a function returned as that many arrays; None stays None."""
    results = list(result) if isinstance(result, (tuple, list)) and wanted != 1 else [result]
    if wanted == 1 and isinstance(result, (tuple, list)) and len(result) == 1:
        results = list(result)
    if wanted == 0 and results == [None]:
        return []
    if len(results) != wanted:
        raise OperatorError(
            f"{label}: its function {function_name(function)} returned {_counted(len(results))}, expected {wanted}"
        )
    return [r if r is None else _as_array(r, i, label, function) for i, r in enumerate(results)]


def _counted(number: int) -> str:
    return f"{number} value" if number == 1 else f"{number} values"


def _as_array(value: Any, position: int, label: str, function: Callable[..., Any]) -> np.ndarray:
    array = np.asarray(value)
    if array.dtype.kind not in "biuf":
        raise DtypeError(
            f"{label}: its function {function_name(function)} returned {type(value).__name__} "
            f"({array.dtype}) as output {position}, expected an array of numbers"
        )
    return array


def attach_backward(
    definition: OpDef,
    function: Callable[..., Any],
    takes: Sequence[str],
    *,
    keep_type: bool,
    attributes: Sequence[str] = (),
    kernel: Callable[..., Any] | None = None,
) -> OpDef:
    """Give an operator the gradient that a user's function computes from the values named in `takes`.

    The function becomes an operator of its own. It gets the inputs too, as the gradients must have their shapes.
    """
    count = len(definition.inputs)
    label = f"the gradient of {definition.label}"
    call = kernel or function

    def run(*values: Any, **settings: Any) -> Any:
        result = call_function(call, label, values[count:], settings)
        gradients = as_arrays(result, count, label, function)
        shapes = [x.shape for x in values[:count]]
        if definition.broadcasts:  # gradients of stretched inputs are summed back afterwards
            shapes = [np.broadcast_shapes(*shapes)] * count
        checked = [
            _checked_gradient(g, x, shape, name, label, keep_type)
            for g, x, shape, name in zip(gradients, values[:count], shapes, definition.inputs, strict=True)
        ]
        return checked[0] if count == 1 else tuple(checked)

    def infer(*specs: Spec, **settings: Any) -> tuple[Spec, ...]:
        if not definition.broadcasts:
            return tuple(specs[:count])
        return tuple(Spec(broadcast(*(s.shape for s in specs[:count])), s.dtype) for s in specs[:count])

    gradient = OpDef(
        definition.name + "_grad",
        run,
        infer,
        inputs=[*definition.inputs, *(f"value{i}" for i in range(len(takes)))],
        outputs=["d" + name for name in definition.inputs],
        where=definition.where,
    )
    gradient.declare_attributes({name: definition.attributes[name] for name in attributes})
    gradient.native = function if is_compiled(function) else None

    def opaque(*_: Any) -> Any:
        raise OperatorError(
            f"{definition.label} cannot be differentiated twice: its backward function is Python code that works on "
            "arrays; write it with the framework's operators (a PyLayer) for second derivatives"
        )

    gradient.gradient(opaque, [])

    def rule(*values: Any) -> Any:
        settings = dict(zip(attributes, values[len(values) - len(attributes) :], strict=True))
        return apply(gradient, values[: len(values) - len(attributes)], settings)

    definition.optional_gradients = True
    definition.gradient(rule, [*definition.inputs, *takes, *attributes])
    return gradient


def _checked_gradient(
    gradient: Any, x: np.ndarray, shape: tuple[int, ...], name: str, label: str, keep_type: bool
) -> np.ndarray:
    if gradient is None:
        return np.zeros(shape, x.dtype)
    if gradient.shape != shape:
        raise ShapeError(
            f"{label}: the gradient of {name} has shape {list(gradient.shape)}, expected that of {name}, {list(shape)}"
        )
    if gradient.dtype == x.dtype or x.dtype.kind != "f":
        return np.asarray(gradient)
    if keep_type:
        return np.asarray(gradient.astype(x.dtype))
    raise DtypeError(f"{label}: the gradient of {name} has type {gradient.dtype}, expected that of {name}, {x.dtype}")


def is_compiled(function: Any) -> bool:
    """Whether a function is Numba's, so that compiled code can call it."""
    return hasattr(function, "py_func") and hasattr(function, "signatures")


def python_function(function: Any) -> Any:
    """The Python function inside a Numba one, or the function itself."""
    return getattr(function, "py_func", function)
