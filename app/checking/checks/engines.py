"""Whether all engines agree, and whether it is inlined; if not, the line of the user's file that prevents it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import FunctionType
from typing import TYPE_CHECKING, Any

import numpy as np

from app import static
from app.checking.subject import Subject, are_near
from app.checking.verdict import Verdict, failed, note, ok
from app.custom.elementwise import looped
from app.custom.gradcheck import worst_of
from app.custom.on_numbers import stops_on_numbers
from app.custom.operator import CustomOperator
from app.engine import Executor
from app.errors import AppError
from app.functions import is_compiled, python_function
from app.graph.program import Operator
from app.ops.lowering import Returning
from app.reading import parameters_of, place_in

if TYPE_CHECKING:
    from app.engine.compiled.steps import Lowered


def engines(subject: Subject) -> Iterator[Verdict]:
    """Tensors, the reference engine and the compiled engine give the same."""
    arrays = subject.arrays(dtype="float32")
    eager = subject.run(arrays)
    arriving = [np.ones_like(o) for o in eager.outputs]
    backward = subject.run(arrays, arriving).gradients if subject.has_gradient else []
    eager_results = [*eager.outputs, *backward]
    with subject.in_program([i.shape for i in subject.inputs]) as (program, data, outputs):
        floats = [v for v, i in zip(data, subject.inputs, strict=True) if i.is_float]
        gradients = static.gradients(outputs, floats) if subject.has_gradient else []
        fetched = [*outputs, *gradients]
        feed = {v.name: a for v, a in zip(data, arrays, strict=True)}
        for engine in ("reference", "compiled"):
            targets = [v for v in fetched if v is not None]
            try:
                results = Executor(engine=engine).run(program, feed=feed, fetch_list=targets)
            except AppError as error:
                yield failed(f"the {engine} engine fails: {error}")
                return
            expected = [w for w, v in zip(eager_results, fetched, strict=True) if v is not None]
            for variable, result, number in zip(targets, results, expected, strict=True):
                if number is not None and not np.allclose(result, number, rtol=1e-3, atol=1e-5, equal_nan=True):
                    yield failed(f"the {engine} engine gives another {variable.name} than Tensors do")
                    return
    difference = _difference_from_python(subject)
    if difference:
        yield failed(difference)
        return
    yield ok("Tensors, the reference engine and the compiled engine agree")


def _difference_from_python(subject: Subject) -> str:
    """Where a function of single numbers gives something else when it is compiled; '' where it does not.

    Where Python raises an error, compiled code may have an infinity or NaN.
    """
    operator = subject.operator.call
    if not (isinstance(operator, CustomOperator) and operator.elementwise) or is_compiled(operator.function):
        return ""
    arrays = np.broadcast_arrays(*(array.astype(subject.precision.dtype) for array in subject.arrays()))
    settings = {**operator.attributes, **subject.settings}
    try:
        expected = looped(operator.function, len(operator.outputs), arrays[0].dtype, settings)(*arrays)
    except (ArithmeticError, ValueError):
        return ""
    for output, actual, by_python in zip(operator.outputs, subject.outputs(list(arrays)), expected, strict=True):
        wrong, named = ~are_near(actual, by_python, 1e-6), subject.named(list(arrays))
        worst = worst_of(actual, by_python, wrong, "it gives", "Python gives", named)
        if worst:
            return (
                f"compiled, {output} is {worst}; integers of compiled code have 64 bits, and wrap around: compute with "
                "floats (1.0 in place of 1)"
            )
    return ""


def inlined(subject: Subject) -> Iterator[Verdict]:
    """How the compiled engine runs it, and what prevents it from being inlined."""
    from app.engine.compiled.engine import compile_program  # imported late: it needs Numba

    with subject.in_program([i.shape for i in subject.inputs]) as (program, data, outputs):
        floats = [v for v, i in zip(data, subject.inputs, strict=True) if i.is_float]
        try:
            gradients = static.gradients(outputs, floats)
        except AppError:  # the check `gradient` reports it
            gradients = []
        native = compile_program(program, [v.name for v in (*outputs, *gradients) if v is not None])
    if isinstance(native, str):
        yield note(f"there is no native form: {native}")
        return
    steps = [(user, step) for step in native.lowered.steps for user in step.users if user.definition.custom]
    if not steps:
        yield ok("it consists of the framework's operators, which are compiled")
    for user, step in steps:
        in_loop = step.verdict.startswith("inlined")
        more = "" if in_loop else _what_would_help(user, native.lowered)
        yield (ok if in_loop else note)(f"{user.type}: {step.verdict.partition(' with ')[0]}{more}")


def _what_would_help(op: Operator, lowered: Lowered) -> str:
    """The line that prevents inlining, or what to write instead; follows the engine's verdict."""
    definition = op.definition
    source = python_function(definition.function) if isinstance(definition, CustomOperator) else None
    if not isinstance(definition, CustomOperator) or not isinstance(source, FunctionType):
        return ""
    if isinstance(definition.lowering, Returning):  # a Numba function
        stop = stops_on_numbers(definition.function)
        if stop is None:
            why = f"; not inlined because it is a lambda: write a def, {place_in(source.__code__)}"
            return why if source.__name__ == "<lambda>" else ""
        number, text = stop
        return f"; not inlined because of {place_in(source.__code__, number)}: `{text}` may depend on other elements"
    if definition.lowering is None and not is_compiled(definition.function):
        reason = _why_numba_refuses(source, _arrays_for(source, op, lowered), op)
        hint = f"Numba cannot compile it: {reason}" if reason else "it would compile as it is: put @njit above it"
        return f", {place_in(source.__code__)}; {hint}"
    return ""


def _arrays_for(function: FunctionType, op: Operator, lowered: Lowered) -> list[Any]:
    """Numba's types of the arrays that a function gets, by parameter name if they match, else in order.

    There is no array for the gradient of an output that is not used.
    """
    from numba import types
    from numba.np.numpy_support import from_dtype

    from app.engine.compiled.read_only import array_type

    names = dict(zip(op.definition.inputs, op.inputs, strict=False))
    parameters = [p for p in parameters_of(function) if p not in op.attributes]
    by_name = all(p in names for p in parameters)
    arguments = [names[p] for p in parameters] if by_name else op.inputs[len(op.inputs) - len(parameters) :]

    def type_of(name: str) -> Any:
        return array_type(from_dtype(np.dtype(lowered.dtype(name))), len(lowered.shapes[name]))

    return [types.none if name is None else type_of(str(name)) for name in arguments]


def _why_numba_refuses(function: FunctionType, types: Sequence[Any], op: Operator) -> str:
    """Why Numba cannot compile a function for these types, with the line; '' if it can. Kept on disk."""
    from numba import typeof

    from app.engine.compiled import cache
    from app.engine.compiled.fingerprint import fingerprint
    from app.engine.compiled.numba_api import lower
    from app.engine.compiled.read_only import is_refusal, why_refused
    from app.engine.compiled.shape_errors import compiled_quickly

    def refusal() -> str:
        try:
            with compiled_quickly():
                lower(function, [*types, *map(typeof, op.attributes.values())])
        except Exception as error:  # Numba raises many kinds
            reason = why_refused(error, function)
            if not is_refusal(error):
                raise cache.Passing(reason) from error
            return reason
        return ""

    key = fingerprint(function, place_in(function.__code__), repr(types), repr(op.attributes))  # the reason names these
    return cache.remembered(f"njit {key}", refusal)
