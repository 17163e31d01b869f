"""The gradient of a function as a function of its own, whose source can be read and derived in its turn."""

from __future__ import annotations

import ast
import inspect
import linecache
from collections.abc import Callable, Sequence
from itertools import count
from types import FunctionType
from typing import Any

from app.custom.derivative.body import Body
from app.custom.derivative.expressions import Expressions, Term, numpy_in
from app.custom.derivative.scope import Scope, UnderivableError
from app.custom.derivative.terms import Slope, name, number, product, total
from app.custom.numba_functions import is_compiled, python_function
from app.reading import definitions_of, one_thread_at_a_time, too_deep

_numbers = count(1)

Finish = Callable[[Scope], Callable[[ast.Return, list[Term]], ast.expr]]
"""For a function: what its returns become."""


@one_thread_at_a_time
def derived_gradient(function: Any, inputs: Sequence[str], outputs: Sequence[str]) -> FunctionType:
    """The function that gives the gradients of the inputs, from these and the gradients of the outputs.

    Its parameters are the inputs, those of `outputs`, names for the gradients that arrive which the function does not
    use itself, and the function's settings. An UnderivableError names the line that stands in the way.
    """

    def finish(scope: Scope) -> Callable[[ast.Return, list[Term]], ast.expr]:
        def gradients(statement: ast.Return, terms: list[Term]) -> ast.expr:
            if len(terms) != len(outputs):
                scope.refuse(statement, f"returns {len(terms)} numbers, expected {len(outputs)}")
            found = [_along(i, terms, outputs) or number(0.0) for i in inputs]
            return found[0] if len(found) == 1 else ast.Tuple(found, ast.Load())

        return gradients

    try:
        return _Making({}).function(function, list(inputs), list(outputs), "grad", finish)
    except RecursionError:
        source = python_function(function)
        raise UnderivableError(str(too_deep(definitions_of(source)[0], source.__code__))) from None


def _along(one: str, terms: list[Term], arriving: Sequence[str]) -> Slope:
    found: Slope = None
    for term, gradient in zip(terms, arriving, strict=True):
        found = total(found, product(name(gradient), term.slopes.get(one)))
    return found


def _with_slopes(count: int) -> Finish:
    """What a function that is called by the one that is derived returns: its values, then their slopes."""

    def finish(scope: Scope) -> Callable[[ast.Return, list[Term]], ast.expr]:
        def values_and_slopes(statement: ast.Return, terms: list[Term]) -> ast.expr:
            if len(terms) != count:
                scope.refuse(statement, f"returns {len(terms)} numbers where {count} are taken")
            slopes = [term.slopes.get(i, number(0.0)) for term in terms for i in scope.inputs]
            return ast.Tuple([*(term.source() for term in terms), *slopes], ast.Load())

        return values_and_slopes

    return finish


class _Making:
    """The making of one gradient and of what it calls, each made once. None stands for what is being made."""

    def __init__(self, made: dict[Any, Any]):
        self._made = made

    def function(
        self, function: Any, inputs: list[str], arriving: list[str], ending: str, finish: Finish
    ) -> FunctionType:
        """A function derived from another along these inputs; `arriving` are parameters that come after them."""
        scope = Scope(function, inputs)
        scope.taken.update(arriving)

        def slopes_function(called: Any, along: list[str], values: int, node: ast.AST) -> str:
            made = self._called(called, along, values, scope, node)
            known = [key for key, value in scope.around.items() if value is made]
            text = known[0] if known else scope.fresh(made.__name__)
            scope.around[text] = made
            return text

        expressions = Expressions(scope, numpy_in(scope), slopes_function)
        statements = Body(scope, expressions, finish(scope)).derived()
        title = scope.name if scope.name.isidentifier() else "function"
        arguments, defaults = _parameters(scope.function, inputs, arriving)
        text = _text(f"{title}_{ending}", arguments, statements)
        made = _run(text, f"{title}_{ending}", scope)
        made.__defaults__ = defaults
        return made

    def _called(self, function: Any, along: list[str], values: int, scope: Scope, node: ast.AST) -> Any:
        key = (function, tuple(along))
        if key not in self._made:
            self._made[key] = None
            made = self.function(function, along, [], "slopes", _with_slopes(values))
            self._made[key] = _compiled(made) if is_compiled(function) else made
        if self._made[key] is None:
            scope.refuse(node, "leads back to itself, and cannot be derived")
        return self._made[key]


def _compiled(function: FunctionType) -> Any:
    from numba import njit  # imported late: half a second that a function without such calls need not wait

    return njit(function, error_model="numpy")


def _parameters(
    function: FunctionType, inputs: list[str], arriving: list[str]
) -> tuple[ast.arguments, tuple[Any, ...]]:
    """The parameters of a derived function, and the defaults of the last of them: those of the function's settings."""
    signature = inspect.signature(function, follow_wrapped=False).parameters
    others = [parameter for key, parameter in signature.items() if key not in inputs]
    settings = {p.name: p.default for p in others if p.default is not p.empty}
    required = [p for p in others if p.default is p.empty]
    ordinary = [*inputs, *arriving, *(p.name for p in required if p.kind is not p.KEYWORD_ONLY), *settings]
    arguments = ast.arguments(
        posonlyargs=[],
        args=[ast.arg(key) for key in ordinary],
        kwonlyargs=[ast.arg(p.name) for p in required if p.kind is p.KEYWORD_ONLY],
        kw_defaults=[None for p in required if p.kind is p.KEYWORD_ONLY],
        defaults=[_written(value) for value in settings.values()],
    )
    return arguments, tuple(settings.values())


def _written(value: Any) -> ast.expr:
    """A default as source; the value itself is put into its place afterwards."""
    plain = type(value) in (int, float, str, bool) and value == value  # NaN has no name
    return ast.Constant(value) if plain else number(0)


def _text(title: str, arguments: ast.arguments, statements: list[ast.stmt]) -> str:
    made = ast.FunctionDef(title, arguments, statements, [])
    if hasattr(made, "type_params"):
        made.type_params = []
    return ast.unparse(ast.fix_missing_locations(made)) + "\n"


def _run(text: str, title: str, scope: Scope) -> FunctionType:
    """The function of a source, which is kept where Python looks for the lines of files."""
    file = f"<{title} {next(_numbers)}, derived from {scope.place(scope.tree)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    around = dict(scope.around)
    exec(compile(text, file, "exec", dont_inherit=True), around)
    made: FunctionType = around[title]
    made.__module__ = scope.function.__module__
    return made


def source_of(function: FunctionType) -> str:
    """The source of a derived function, after that of the derived ones that it calls."""
    texts: dict[str, None] = {}
    _collect(function, texts)
    return "\n\n".join(texts)


def _collect(function: FunctionType, texts: dict[str, None]) -> None:
    for called in function.__code__.co_names:
        inner = getattr(function.__globals__.get(called), "py_func", function.__globals__.get(called))
        if isinstance(inner, FunctionType) and inner.__code__.co_filename.startswith("<") and inner is not function:
            _collect(inner, texts)
    texts["".join(linecache.getlines(function.__code__.co_filename))] = None


__all__ = ["UnderivableError", "derived_gradient", "source_of"]
