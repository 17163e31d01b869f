"""A function of single numbers called on Variables: every way through its `if`s, chosen between by `where`.

A comparison that Python asks for true or false splits the call in two: the function runs once for each way. So `if`,
`and`, `or`, `max` and `min` become choices between the results.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import CellType, FunctionType, SimpleNamespace
from typing import Any

import numpy as np

from app.custom.numba_functions import is_of_users
from app.derivative.slopes import ALIASES
from app.errors import OperatorError
from app.functions import is_compiled, python_function
from app.ops.definition import REGISTRY, OpDef, apply
from app.ops.dtype import is_float
from app.ops.methods import ValueMethods
from app.ops.settings import key_of, key_of_settings
from app.ops.values import Attributes
from app.reading import codes_in

MOST = 64
"""The number of ways through a function above which it is refused."""


def by_cases(function: Any) -> Callable[..., Any]:
    """The function of numbers as one of Variables."""

    def call(*variables: Any, **settings: Any) -> Any:
        cases = _Cases(variables[0].dtype)
        numbers = [Number(cases, variable) for variable in variables]
        source = _on_numbers(function, {})
        results = cases.results(lambda: source(*numbers, **settings), [])
        return [_whole(result, variables) for result in results]

    return call


class Number(ValueMethods):
    """A number in a function of numbers: a Variable, which has one for each element."""

    __slots__ = ("_cases", "variable")
    __hash__ = ValueMethods.__hash__

    def __init__(self, cases: _Cases, variable: Any):
        self._cases, self.variable = cases, variable

    @property
    def shape(self) -> Any:
        return self.variable.shape

    @property
    def dtype(self) -> Any:
        return self.variable.dtype

    def apply_operator(self, definition: OpDef, inputs: Sequence[Any], attributes: Attributes, into: Any = None) -> Any:
        return self._cases.applied(definition, inputs, attributes)

    def __bool__(self) -> bool:
        return self._cases.decided(self if self.dtype == "bool" else self != 0)

    def __round__(self, digits: int = 0) -> Any:
        return REGISTRY["round"](self, decimals=digits)

    def __floor__(self) -> Any:
        return REGISTRY["floor"](self)

    def __ceil__(self) -> Any:
        return REGISTRY["ceil"](self)

    def __trunc__(self) -> Any:
        return REGISTRY["trunc"](self)


class _Cases:
    """The ways through one call."""

    def __init__(self, dtype: str) -> None:
        self._dtype = dtype
        self._decisions: list[bool] = []
        self._conditions: list[Number] = []
        self._ways = 0
        self._cache: dict[Any, Any] = {}

    def results(self, call: Callable[[], Any], decisions: list[bool]) -> list[Any]:
        """The results of a call in which the first conditions are decided like this, whatever the others are."""
        self._ways += 1
        if self._ways > MOST:
            raise OperatorError(f"there are more than {MOST} ways through the function")
        self._decisions, self._conditions = [*decisions], []
        returned = call()
        results = list(returned) if isinstance(returned, tuple) else [returned]
        conditions = self._conditions
        for place in range(len(conditions) - 1, len(decisions) - 1, -1):  # each was true, and may be false
            others = self.results(call, [*decisions, *[True] * (place - len(decisions)), False])
            pairs = zip(results, others, strict=True)
            results = [self._either(conditions[place], yes, no) for yes, no in pairs]
        return results

    def _either(self, condition: Number, yes: Any, no: Any) -> Any:
        """One of two results. Of two plain numbers, they have the type of the inputs, not that of a number alone."""
        if is_float(self._dtype) and not isinstance(yes, Number) and not isinstance(no, Number):
            yes, no = np.asarray(yes, self._dtype), np.asarray(no, self._dtype)
        return self.applied(REGISTRY["where"], [condition, yes, no], {})

    def decided(self, condition: Number) -> bool:
        """What a condition is in this way; true at first."""
        self._conditions.append(condition)
        if len(self._conditions) > len(self._decisions):
            self._decisions.append(True)
        return self._decisions[len(self._conditions) - 1]

    def applied(self, definition: OpDef, inputs: Sequence[Any], attributes: Attributes) -> Any:
        """The result of an operator, appended once for all ways that need it."""
        values = [x.variable if isinstance(x, Number) else x for x in inputs]
        named = tuple(v.name if hasattr(v, "name") else key_of(v) for v in values)
        key = definition.name, named, key_of_settings(attributes)
        if key not in self._cache:
            self._cache[key] = Number(self, apply(definition, values, attributes))
        return self._cache[key]


def _whole(result: Any, variables: Sequence[Any]) -> Any:
    """A result as a Variable of the type of the inputs; a number is one for each element."""
    like = variables[0]
    if not isinstance(result, Number):
        return REGISTRY["full_like"](like, fill_value=float(result))
    value = result.variable
    return value if value.dtype == like.dtype else REGISTRY["cast"](value, dtype=like.dtype)


_OF_NUMPY = {**ALIASES, "pow": "power"}


def _float(number: Any = 0.0) -> Any:
    return number if isinstance(number, Number) else float(number)


_INSTEAD: dict[Any, Any] = {
    f: getattr(np, _OF_NUMPY.get(name, name))
    for name, f in vars(math).items()
    if isinstance(getattr(np, _OF_NUMPY.get(name, name), None), np.ufunc)
}
"""The functions of `math`, which take numbers only, as NumPy has them."""
_INSTEAD[math.erf] = REGISTRY["erf"]
_MATH = SimpleNamespace(**{name: _INSTEAD.get(f, f) if callable(f) else f for name, f in vars(math).items()})


def _on_numbers(function: Any, copies: dict[Any, Any]) -> Any:
    """The function, and the users' functions that it calls, as Python, with NumPy's functions in place of `math`'s.

    They are copies: others may be calling the functions themselves.
    """
    function = python_function(function)
    if not isinstance(function, FunctionType):
        return function
    if function in copies:
        return copies[function]

    def instead(value: Any) -> Any:
        if value is math:
            return _MATH
        if is_compiled(value) or (type(value) is FunctionType and is_of_users(value.__module__ or "")):
            return _on_numbers(value, copies)
        return _INSTEAD.get(value, value) if type(value) is type(math.exp) else value

    names = {**function.__globals__, "__builtins__": {**vars(builtins), "float": _float}}  # read when it is made
    closure = tuple(CellType() for _ in function.__closure__ or ())
    copied = FunctionType(function.__code__, names, function.__name__, function.__defaults__, closure or None)
    copied.__kwdefaults__ = function.__kwdefaults__
    copies[function] = copied
    for name in {name for code in codes_in(function.__code__) for name in code.co_names} & names.keys():
        names[name] = instead(names[name])
    for new, old in zip(closure, function.__closure__ or (), strict=True):
        with suppress(ValueError):  # an empty cell
            new.cell_contents = instead(old.cell_contents)
    return copied
