"""Makes the gradient of a function as a Python function, whose source can be read and derived again."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Sequence
from itertools import count
from types import FunctionType
from typing import Any

from app.derivative.body import Body
from app.derivative.expressions import Expressions, Term, numpy_in
from app.derivative.scope import Scope, UnderivableError, function_tree
from app.derivative.slopes import is_flat, row_of
from app.derivative.terms import Slope, name, number, product, total
from app.functions import function_beside, is_compiled, python_function, text_of_tree
from app.reading import definition_of, definitions_of, one_thread_at_a_time, too_deep

_numbers = count(1)

Finish = Callable[[Scope, list[str]], Callable[[ast.Return, list[Term]], ast.expr]]
"""For a scope, and the names of the gradients of its outputs, what makes the expressions of its return statements."""


@one_thread_at_a_time
def derived_gradient(function: Any, inputs: Sequence[str], outputs: Sequence[str]) -> FunctionType:
    """The function that gives the gradients of the inputs, from the inputs and the gradients of the outputs.

    Its parameters are the inputs, the gradients of the outputs, called `outputs` or like them where the function has
    such a name itself, and the function's settings. An UnderivableError names the line that cannot be derived.
    """

    def finish(scope: Scope, arriving: list[str]) -> Callable[[ast.Return, list[Term]], ast.expr]:
        def gradients(statement: ast.Return, terms: list[Term]) -> ast.expr:
            if len(terms) != len(arriving):
                scope.refuse(statement, f"returns {len(terms)} numbers, expected {len(arriving)}")
            slopes = [_along(i, terms, arriving) or number(0.0) for i in inputs]
            return slopes[0] if len(slopes) == 1 else ast.Tuple(slopes, ast.Load())

        return gradients

    try:
        return _Making().function(function, list(inputs), list(outputs), "grad", finish)
    except RecursionError:
        source = python_function(function)
        raise UnderivableError(str(too_deep(definitions_of(source)[0], source.__code__))) from None


def _along(one: str, terms: list[Term], arriving: Sequence[str]) -> Slope:
    slope: Slope = None
    for term, gradient in zip(terms, arriving, strict=True):
        slope = total(slope, product(name(gradient), term.slopes.get(one)))
    return slope


def _with_slopes(count: int) -> Finish:
    """For a function that the derived one calls: it returns its values, then their slopes."""

    def finish(scope: Scope, _arriving: list[str]) -> Callable[[ast.Return, list[Term]], ast.expr]:
        def values_and_slopes(statement: ast.Return, terms: list[Term]) -> ast.expr:
            if len(terms) != count:
                scope.refuse(statement, f"returns {len(terms)} numbers where {count} are taken")
            slopes = [term.slopes.get(i, number(0.0)) for term in terms for i in scope.inputs]
            return ast.Tuple([*(term.source() for term in terms), *slopes], ast.Load())

        return values_and_slopes

    return finish


class _Making:
    """Makes one gradient and the functions that it calls, each once. None stands for one that is being made."""

    def __init__(self) -> None:
        self._functions: dict[Any, Any] = {}

    def function(
        self, function: Any, inputs: list[str], arriving: list[str], ending: str, finish: Finish
    ) -> FunctionType:
        """Derive a function along these inputs; `arriving` are like the names of parameters that follow them."""
        scope = Scope(function, inputs)
        arriving = [scope.fresh(each) for each in arriving]

        def slopes_function(called: Any, along: list[str], values: int, node: ast.AST) -> str:
            helper = self._called(called, along, values, scope, node)
            names = [key for key, value in scope.around.items() if value is helper]
            return names[0] if names else scope.add_variable(helper.__name__, helper)

        expressions = Expressions(scope, numpy_in(scope), slopes_function)
        statements = Body(scope, expressions, finish(scope, arriving)).derived()
        statements = _WithoutUnused(scope).applied(statements)
        title = scope.name if scope.name.isidentifier() else "function"
        arguments, defaults = _parameters(scope.function, inputs, arriving)
        tree = function_tree(f"{title}_{ending}", arguments, statements)
        file = f"<{tree.name} {next(_numbers)}, derived from {scope.place(scope.tree)}>"
        derived = function_beside(scope.function, tree, scope.extra, file)
        derived.__module__ = scope.function.__module__
        vars(derived)["derived_from"] = scope.function  # what depends on it depends on the functions that this calls
        derived.__defaults__ = defaults
        return derived

    def _called(self, function: Any, along: list[str], values: int, scope: Scope, node: ast.AST) -> Any:
        key = (function, tuple(along))
        if key not in self._functions:
            self._functions[key] = None
            derived = self.function(function, along, [], "slopes", _with_slopes(values))
            self._functions[key] = _compiled(derived) if is_compiled(function) else derived
        if self._functions[key] is None:
            scope.refuse(node, "is recursive, and cannot be derived")
        return self._functions[key]


class _WithoutUnused(ast.NodeTransformer):
    """Removes assignments of values that the function needs, but its gradient does not."""

    def __init__(self, scope: Scope):
        self._scope = scope
        self._read: set[str] = set()
        self._has_removed = False

    def applied(self, statements: list[ast.stmt]) -> list[ast.stmt]:
        """Return the statements in which each value that is computed is read."""
        block = ast.Module(statements, [])
        self._has_removed = True
        while self._has_removed:
            names = (part for part in ast.walk(block) if isinstance(part, ast.Name))
            self._read = {part.id for part in names if isinstance(part.ctx, ast.Load)}
            self._has_removed = False
            self.visit(block)
        return block.body

    def visit_Assign(self, node: ast.Assign) -> ast.Assign | None:
        are_read = [not isinstance(target, ast.Name) or target.id in self._read for target in node.targets]
        calls = [self._scope.meaning(part.func) for part in ast.walk(node.value) if isinstance(part, ast.Call)]
        is_known = all(is_flat(function) or row_of(function) for function in calls)
        if any(are_read) or not is_known:
            return node
        self._has_removed = True
        return None

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        if isinstance(node, (ast.If, ast.For, ast.While)):
            node.body = node.body or [ast.Pass()]
        return node


def _compiled(function: FunctionType) -> Any:
    from numba import njit  # imported late: half a second that a function without such calls need not wait

    return njit(function, error_model="numpy")


def _parameters(
    function: FunctionType, inputs: list[str], arriving: list[str]
) -> tuple[ast.arguments, tuple[Any, ...]]:
    """The parameters of a derived function, and the defaults of its settings, which are the last ones."""
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
    """A default as source; it is replaced by the value itself afterwards."""
    plain = type(value) in (int, float, str, bool) and value == value  # NaN is not a literal
    return ast.Constant(value) if plain else number(0)


def source_of(function: FunctionType) -> str:
    """The source of a derived function, preceded by those of the derived functions that it calls."""
    texts: dict[str, None] = {}
    _collect(function, texts)
    return "\n\n".join(texts)


def _collect(function: FunctionType, texts: dict[str, None]) -> None:
    for value in inspect.getclosurevars(function).nonlocals.values():
        inner = python_function(value)
        if isinstance(inner, FunctionType) and inner.__code__.co_filename.startswith("<"):
            _collect(inner, texts)
    texts[text_of_tree(definition_of(function)) + "\n"] = None


__all__ = ["UnderivableError", "derived_gradient", "source_of"]
