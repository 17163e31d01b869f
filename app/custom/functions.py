"""A user's function as the kernel of an operator: called with arrays, its result checked, its errors explained."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from traceback import walk_tb
from types import FunctionType
from typing import Any

import numpy as np

from app.custom.again import derive_again
from app.custom.composed import Body
from app.custom.origin import Origin
from app.custom.untouched import ADVICE, call_watched, guarded, looking, read_only
from app.errors import AppError, DtypeError, OperatorError, ReadOnlyError, ShapeError, add_note
from app.ops.creation import zeros_like
from app.ops.definition import OpDef, apply
from app.ops.dtype import NAMES
from app.ops.spec import Spec, broadcast
from app.reading import parameters_of

_HERE = os.path.dirname(__file__)  # as code objects have it, symbolic links and all
_PACKAGE, _SHELF = os.path.dirname(_HERE) + os.sep, os.path.join(_HERE, "shelf") + os.sep


def registered_at() -> str:
    """File and line of the code that is registering an operator: a user's, or that of one on the shelf."""
    frame = sys._getframe(1)
    while frame.f_back is not None and _is_machinery(frame.f_code.co_filename):
        frame = frame.f_back
    return f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}"


def _is_machinery(file: str) -> bool:
    return file.startswith(_PACKAGE) and not file.startswith(_SHELF)


def function_name(function: Any) -> str:
    return getattr(function, "__name__", type(function).__name__)


def require_callable(function: Any, role: str, label: str) -> None:
    """Refuse what is not a function where an operator is registered, not when it first runs."""
    if not callable(function):
        raise OperatorError(f"{label}: {role} must be a function, found {function!r} ({type(function).__name__})")


def call_function(
    function: Callable[..., Any],
    operator: OpDef | str,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    about: str = "",
) -> Any:
    """Call a user's function; what it raises is told with the operator's label and kept as the cause.

    An `Exception` can be caught as what the function raised, too. What else it raises, such as SystemExit, would end
    the program without a word. `about` is put before its words.
    """
    try:
        if looking.on:
            return call_watched(function, args, kwargs)
        return function(*args, **kwargs)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        label = about + (operator if isinstance(operator, str) else operator.label)
        raise _told(error, label, function) from error


def let_through(
    function: Callable[..., Any],
    operator: OpDef,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    about: str = "",
) -> Any:
    """Call a user's function; what it raises itself passes as it is, with a note that names the operator.

    What the framework raises inside it, of an operator on wrong shapes perhaps, is told with the operator's label.
    """
    try:
        return function(*args, **kwargs)
    except AppError as error:
        raise _told(error, about + operator.label, function) from error
    except Exception as error:
        add_note(error, f"{about}{operator.label}: raised in its function {function_name(function)}")
        raise
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise _told(error, about + operator.label, function) from error


def _told(error: BaseException, label: str, function: Callable[..., Any]) -> AppError:
    """An error that says in which function of which operator another was raised, and in which line of it."""
    name = function_name(function)
    if isinstance(error, AppError):
        return type(error)(f"{label}: in its function {name}: {error}")
    hint = ""
    if isinstance(error, ValueError) and "ambiguous" in str(error):
        hint = " (a function of one number needs custom_op(elementwise=True))"
    if isinstance(error, Exception) and type(error).__module__.startswith("numba."):  # as it compiled a helper
        from app.engine.compiled.read_only import where_it_writes

        place = where_it_writes(error)
        if place is not None:
            return ReadOnlyError(f"{label}: its function {name} writes into an array that it is given{place}; {ADVICE}")
    line = _line_of(error, function)
    words = f"{label}: its function {name} raised {type(error).__name__}: {error}{hint}{line}"
    if isinstance(error, ValueError) and "read-only" in str(error):  # as NumPy says in each of several ways
        return ReadOnlyError(f"{words}; {ADVICE}")
    if isinstance(error, SystemExit):
        words += "; only the program around an operator may end it"
    return _told_as(_builtin(type(error)), words)


def _line_of(error: BaseException, function: Callable[..., Any]) -> str:
    """` (my_ops.py:7)`: where in the function's own file the error was raised, or passed through; '' if nowhere."""
    file = getattr(getattr(inspect.unwrap(python_function(function)), "__code__", None), "co_filename", None)
    lines = [line for frame, line in walk_tb(error.__traceback__) if frame.f_code.co_filename == file]
    return f" ({os.path.basename(file)}:{lines[-1]})" if file and lines else ""


def _builtin(kind: type[BaseException]) -> type[BaseException]:
    """The nearest class of exceptions that Python itself has."""
    return next(k for k in kind.__mro__ if k.__module__ == "builtins")


def _told_as(kind: type[BaseException], words: str) -> OperatorError:
    """An OperatorError that is of another kind as well, where one class can be both."""
    if kind is Exception or issubclass(OperatorError, kind) or not issubclass(kind, Exception):
        return OperatorError(words)
    try:
        both = type("OperatorError", (OperatorError, kind), {"__str__": AppError.__str__})
        return both(words)
    except TypeError:  # an exception that is made of more than its words
        return OperatorError(words)


def arrays_of(values: Sequence[Any]) -> list[Any]:
    """What an engine holds (NumPy's scalars among it) as the read-only arrays that a user's function gets."""
    return [v if v is None else read_only(np.asarray(v)) for v in values]


def returned_arrays(
    result: Any, wanted: int, label: str, function: Callable[..., Any], optional: bool = False
) -> list[Any]:
    """What a function returned, one value or a tuple or list of them, as that many arrays, or None where `optional`."""
    if wanted == 0 and result is None:
        return []
    results = list(result) if isinstance(result, (tuple, list)) else [result]
    if len(results) != wanted:
        raise OperatorError(
            f"{label}: its function {function_name(function)} returned {_counted(len(results))}, expected {wanted}, "
            f"one for each {'input' if optional else 'output'}"
        )
    return [None if r is None and optional else _as_array(r, i, label, function) for i, r in enumerate(results)]


def _counted(number: int) -> str:
    return f"{number} value" if number == 1 else f"{number} values"


def _as_array(value: Any, position: int, label: str, function: Callable[..., Any]) -> np.ndarray:
    try:
        array = np.asarray(value)
    except ValueError:  # rows of different lengths
        array = np.empty((), object)
    if array.dtype.name not in NAMES:
        found = "None" if value is None else f"{type(value).__name__} ({array.dtype})"
        raise DtypeError(
            f"{label}: its function {function_name(function)} returned {found} as output {position}, "
            f"expected an array of {', '.join(NAMES)}{'; is its return missing?' if value is None else ''}"
        )
    return array if array.flags.writeable else array.copy()  # it may be what was given, or a view of it


def attach_backward(
    definition: OpDef,
    function: Callable[..., Any],
    takes: Sequence[str],
    *,
    keep_type: bool,
    materialize: bool,
    attributes: Sequence[str] = (),
    kernel: Callable[..., Any] | None = None,
    form: Any = None,
) -> OpDef:
    """Give an operator the gradient that a user's function computes from the values named in `takes`.

    The function becomes an operator of its own. It gets the inputs too, as the gradients must have their shapes.
    `keep_type` casts gradients to the types of the inputs, where else another type is an error; `materialize`
    passes zeros, where else None, as the gradient of an output that got none.
    """
    gradient = OpDef(
        definition.name + "_grad",
        _gradient_kernel(definition, function, kernel or guarded(function), keep_type),
        _like_the_inputs_of(definition),
        inputs=[*definition.inputs, *(f"value{i}" for i in range(len(takes)))],
        outputs=["d" + name for name in definition.inputs],
        custom=True,
        where=definition.where,
    )
    gradient.declare_attributes({name: definition.attributes[name] for name in attributes})
    gradient.form = form
    gradient.origin = Origin("gradient", {"operator": definition})
    definition.own_gradient = gradient

    source = python_function(function)
    body = source if kernel is None else by_name(source, takes)
    gradient.body = Body(_as_one_of_values(body, len(definition.inputs)))
    derive_again(
        gradient,
        f"{definition.label} cannot be differentiated twice: its backward function works on arrays; "
        "write it with the framework's operators (a PyLayer on Tensors) for second derivatives",
    )

    def rule(*values: Any) -> Any:
        settings = dict(zip(attributes, values[len(values) - len(attributes) :], strict=True))
        return apply(gradient, values[: len(values) - len(attributes)], settings)

    definition.optional_gradients = not materialize
    definition.gradient(rule, [*definition.inputs, *takes, *attributes])
    return gradient


def _gradient_kernel(
    definition: OpDef, function: Callable[..., Any], call: Callable[..., Any], keep_type: bool
) -> Callable[..., Any]:
    """The user's function as the kernel of a gradient: on arrays, and with what it returns checked."""
    count = len(definition.inputs)
    label = f"the gradient of {definition.label}"

    def run(*values: Any, **settings: Any) -> Any:
        values = tuple(arrays_of(values))
        result = call_function(call, label, values[count:], settings)
        gradients = returned_arrays(result, count, label, function, optional=True)
        shapes = [x.shape for x in values[:count]]
        if definition.broadcasts:  # gradients of stretched inputs are summed back afterwards
            shapes = [np.broadcast_shapes(*shapes)] * count
        checked = [
            _checked_gradient(g, x, shape, name, label, keep_type)
            for g, x, shape, name in zip(gradients, values[:count], shapes, definition.inputs, strict=True)
        ]
        return checked[0] if count == 1 else tuple(checked)

    return run


def _like_the_inputs_of(definition: OpDef) -> Callable[..., tuple[Spec, ...]]:
    """Inference for gradients, which come before the sums over axes along which an input was stretched."""
    count = len(definition.inputs)

    def infer(*specs: Spec, **settings: Any) -> tuple[Spec, ...]:
        if not definition.broadcasts:
            return tuple(specs[:count])
        return tuple(Spec(broadcast(*(s.shape for s in specs[:count])), s.dtype) for s in specs[:count])

    return infer


def _as_one_of_values(function: Callable[..., Any], count: int) -> Callable[..., Any]:
    """A backward function, with zeros for gradients that it does not give, which come after so many inputs."""

    def body(*values: Any, **settings: Any) -> Any:
        result = function(*values[count:], **settings)
        gradients = result if isinstance(result, (tuple, list)) else [result]
        return [zeros_like(x) if g is None else g for x, g in zip(values[:count], gradients, strict=True)]

    return body


def _checked_gradient(
    gradient: Any, x: np.ndarray, shape: tuple[int, ...], name: str, label: str, keep_type: bool
) -> np.ndarray:
    """A gradient in the shape, and of the type, of the input that it is for; None stands for zeros."""
    if gradient is None or x.dtype.kind != "f":
        return np.zeros(shape, x.dtype)
    if gradient.shape != shape:
        raise ShapeError(
            f"{label}: the gradient of {name} has shape {list(gradient.shape)}, expected that of {name}, {list(shape)}"
        )
    if gradient.dtype != x.dtype and not keep_type:
        raise DtypeError(
            f"{label}: the gradient of {name} has type {gradient.dtype}, expected that of {name}, {x.dtype}"
        )
    return np.asarray(gradient.astype(x.dtype, copy=False))


def is_compiled(function: Any) -> bool:
    """Whether a function is Numba's, so that compiled code can call it."""
    return hasattr(function, "py_func") and hasattr(function, "signatures")


def python_function(function: Any) -> Any:
    """The Python function inside a Numba one, or the function itself."""
    return getattr(function, "py_func", function)


def dispatcher_of(function: Any) -> Any:
    """A function as one of Numba's. It knows no parameters by keyword only, so they become ordinary ones."""
    if is_compiled(function):
        return function
    from numba import njit  # imported late: half a second that a run without such a function need not wait

    code = function.__code__
    code = code.replace(co_argcount=code.co_argcount + code.co_kwonlyargcount, co_kwonlyargcount=0)
    ordinary = FunctionType(code, function.__globals__, function.__name__, None, function.__closure__)
    return njit(ordinary, error_model="numpy")


def by_name(function: Any, names: Sequence[str]) -> Callable[..., Any]:
    """A function that is given its values under these names, wherever it has the parameters."""

    @wraps(function)
    def call(*values: Any, **settings: Any) -> Any:
        return function(**dict(zip(names, values, strict=True)), **settings)

    return call


def by_position(function: Any, order: Sequence[str]) -> Any:
    """A function that compiled code can give the parameters in this order; itself where it has them so already."""
    parameters = parameters_of(python_function(function))
    if list(parameters) == list(order) and all(p.kind is not p.KEYWORD_ONLY for p in parameters.values()):
        return function
    call = ", ".join(f"{name}={name}" for name in order)
    reordered = eval(f"lambda {', '.join(order)}: inner({call})", {"inner": dispatcher_of(function)})
    reordered.__name__ = function_name(function)
    return dispatcher_of(reordered) if is_compiled(function) else reordered
