"""Derives expressions: the source of a value and of its slopes along the inputs."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from functools import partial
from types import FunctionType
from typing import Any

import numpy as np

from app.derivative.scope import Scope
from app.derivative.slopes import (
    BY_EXPONENT,
    EXTREMES,
    by_base,
    row_of,
    share_of_exponential,
    slopes_along,
    slopes_of,
)
from app.derivative.terms import (
    Slope,
    difference,
    filled,
    is_atom,
    name,
    names_in,
    names_in_template,
    number,
    number_in,
    product,
    quotient,
    total,
)
from app.functions import python_function

Slopes = dict[str, ast.expr]
"""The slopes of a value, by input, without those that are zero everywhere."""


COUNTS = {"power": 2, "where": 3}
"""The number of arguments of the rows without templates."""


class Term:
    """The value of an expression: written in place, or under a name once it is needed twice."""

    def __init__(self, build: Callable[[], ast.expr], keep: Callable[[ast.expr, str], str], wish: str = ""):
        self._build, self._keep, self._wish = build, keep, wish
        self._variable = ""
        """The variable that holds the value, if there is one."""
        self.slopes: Slopes = {}
        self.relative: Callable[[], Slopes] | None = None
        """Its slopes divided by itself, if they can be computed without an overflow, as for exponentials."""

    def source(self) -> ast.expr:
        """The value as source."""
        return name(self._variable) if self._variable else self._build()

    def assign_to(self, variable: str) -> None:
        """The value was assigned to a variable."""
        self._variable = variable

    def atom(self) -> ast.expr:
        """The value as a variable or a constant, which can be repeated for free."""
        source = self.source()
        if not is_atom(source):
            self._variable = self._keep(source, self._wish)
            source = name(self._variable)
        return source


class Expressions:
    """Derives the expressions of one function. Statements that must run first are put into `before`."""

    def __init__(self, scope: Scope, numpy: str, slopes_function: Callable[[Any, list[str], int, ast.AST], str]):
        self.scope = scope
        self.before: list[ast.stmt] = []
        self._numpy = numpy
        self._slopes_function = slopes_function
        self._slope_variables: dict[tuple[str, str], str] = {}
        self._relatives: dict[str, Callable[[], Slopes]] = {}
        """The relative slopes of variables."""

    def slope_name(self, variable: str, along: str) -> ast.expr:
        """The slope of a variable along an input."""
        if variable == along and variable not in self.scope.assigned:
            return number(1.0)
        return name(self.slope_variable(variable, along))

    def slope_variable(self, variable: str, along: str) -> str:
        key = variable, along
        if key not in self._slope_variables:
            self._slope_variables[key] = self.scope.fresh(f"d{variable}_d{along}")
        return self._slope_variables[key]

    def keep(self, source: ast.expr, wish: str) -> str:
        """Compute a value first, in the variable that it is assigned to anyway, or in a new one."""
        target = wish or self.scope.fresh("v")
        self.before.append(ast.Assign([ast.Name(target, ast.Store())], source))
        return target

    def term(self, node: ast.expr, wish: str = "") -> Term:
        """The value and the slopes of an expression."""
        if not self.scope.depends(node):
            return Term(lambda: node, self.keep, wish)
        kinds: dict[type[ast.expr], Callable[[Any, str], Term]] = {
            ast.Name: self._of_name,
            ast.UnaryOp: self._of_sign,
            ast.BinOp: self._of_arithmetic,
            ast.IfExp: self._of_choice,
            ast.BoolOp: self._of_and_or,
            ast.Call: self._of_call,
        }
        if type(node) not in kinds:
            self.scope.refuse(node, "has no known slope")
        return kinds[type(node)](node, wish)

    def _combined(self, build: Callable[[], ast.expr], wish: str, slope: Callable[[str], Slope]) -> Term:
        """A term with the slope that `slope` gives for each input."""
        term = Term(build, self.keep, wish)
        self._set(term, slope)
        return term

    def _set(self, term: Term, slope: Callable[[str], Slope]) -> None:
        for along in self.scope.inputs:
            value = slope(along)
            if value is not None and number_in(value) != 0:
                term.slopes[along] = value

    def _chain(self, term: Term, parts: list[tuple[Term, Callable[[], ast.expr]]]) -> Term:
        """Give a term its slopes by the chain rule, from its arguments and the partial derivatives by them."""
        inner = [(part, factor()) for part, factor in parts if part.slopes]
        if sum(len(part.slopes) for part, _ in inner) > len(inner):  # the factor is used by several slopes
            inner = [(p, f if is_atom(f) else name(self.keep(f, ""))) for p, f in inner]

        def slope(along: str) -> Slope:
            sum_of_parts: Slope = None
            for part, factor in inner:
                sum_of_parts = total(sum_of_parts, product(factor, part.slopes.get(along)))
            return sum_of_parts

        self._set(term, slope)
        return term

    # Kinds of expressions

    def _of_name(self, node: ast.Name, wish: str) -> Term:
        along = self.scope.active[node.id]
        term = self._combined(
            lambda: name(node.id), wish, lambda i: self.slope_name(node.id, i) if i in along else None
        )
        term.relative = self._relatives.get(node.id)
        return term

    def remember(self, variable: str, term: Term, once: Callable[[str], bool]) -> None:
        """Remember the relative slopes of a variable, if neither it nor what they consist of is assigned again."""
        if term.relative is None or not once(variable):
            return
        term.assign_to(variable)
        before, self.before = self.before, []
        slopes = term.relative()
        added, self.before = self.before, before
        variables = {text: key for (key, _), text in self._slope_variables.items()}
        parts = {variables.get(key, key) for slope in slopes.values() for key in names_in(slope)}
        if not added and all(map(once, parts)):
            self._relatives[variable] = lambda: slopes

    def _of_sign(self, node: ast.UnaryOp, wish: str) -> Term:
        operand = self.term(node.operand)
        if not isinstance(node.op, (ast.USub, ast.UAdd)):
            self.scope.refuse(node, "works on bits, and has no slope")
        sign = number(-1.0 if isinstance(node.op, ast.USub) else 1.0)
        term = Term(lambda: ast.UnaryOp(node.op, operand.source()), self.keep, wish)
        term.relative = operand.relative
        return self._chain(term, [(operand, lambda: sign)])

    def _of_arithmetic(self, node: ast.BinOp, wish: str) -> Term:
        left, right = self.term(node.left), self.term(node.right)
        term = Term(lambda: ast.BinOp(left.source(), node.op, right.source()), self.keep, wish)
        if isinstance(node.op, (ast.Add, ast.Sub)):
            combine = total if isinstance(node.op, ast.Add) else difference
            self._set(term, lambda i: combine(left.slopes.get(i), right.slopes.get(i)))
            self._shifted(term, node.op, left, right)
            return term
        if isinstance(node.op, ast.Mult):
            if not (left.slopes and right.slopes):
                term.relative = left.relative or right.relative
            return self._chain(term, [(left, right.atom), (right, left.atom)])
        if isinstance(node.op, ast.Div):
            return self._divided(term, left, right)
        if isinstance(node.op, ast.Mod):
            return self._by_table("remainder", term, [left, right])
        if isinstance(node.op, ast.Pow):
            return self._power(term, left, right)
        return self.scope.refuse(node, "works on bits or matrices, and has no slope for single numbers")

    def _shifted(self, term: Term, op: ast.operator, left: Term, right: Term) -> None:
        """Relative slopes of a constant plus an exponential, which stay finite when the exponential overflows."""
        constant, grown = (right, left) if left.slopes else (left, right)
        grows = grown.relative
        if constant.slopes or grows is None:
            return
        subtracted = isinstance(op, ast.Sub) and grown is right
        term.relative = lambda: _multiplied(
            share_of_exponential(grown.atom(), term.atom(), subtracted, self._numpy), grows()
        )

    def _divided(self, term: Term, left: Term, right: Term) -> Term:
        if not right.slopes:
            below = right.atom()
            self._set(term, lambda i: quotient(left.slopes.get(i), below))
            return term
        below, value = right.atom(), term.atom()
        relative = right.relative() if right.relative is not None else None

        def slope(i: str) -> Slope:
            if relative is not None:
                first = quotient(left.slopes.get(i), below)
                return difference(first, product(value, relative.get(i)))
            above = difference(left.slopes.get(i), product(value, right.slopes.get(i)))
            return quotient(above, below)

        self._set(term, slope)
        return term

    def _power(self, term: Term, base: Term, exponent: Term) -> Term:
        grows = base.relative
        if grows is not None and not exponent.slopes:
            term.relative = lambda: _multiplied(exponent.atom(), grows())

        def by_exponent() -> ast.expr:
            parts = {"a": base.atom(), "n": exponent.atom(), "y": term.atom(), "np": name(self._numpy)}
            return filled(BY_EXPONENT, parts)

        return self._chain(term, [(base, lambda: by_base(base.atom(), exponent.atom())), (exponent, by_exponent)])

    def _of_choice(self, node: ast.IfExp, wish: str) -> Term:
        outside = self.before
        branches: list[tuple[Term, list[ast.stmt]]] = []
        for part in (node.body, node.orelse):
            self.before = []
            branches.append((self.term(part), self.before))
        (yes, first), (no, second) = branches
        self.before = outside
        along = [i for i in self.scope.inputs if i in yes.slopes or i in no.slopes]

        def chosen(i: str) -> list[ast.expr]:
            return [part.slopes.get(i, number(0.0)) for part in (yes, no)]

        if not first and not second:
            term = Term(lambda: ast.IfExp(node.test, yes.source(), no.source()), self.keep, wish)
            self._set(term, lambda i: ast.IfExp(node.test, *chosen(i)) if i in along else None)
            return term
        target = wish or self.scope.fresh("v")
        slopes = {i: self.slope_variable(target, i) for i in along}
        for place, (branch, inside) in enumerate(branches):
            results = {target: branch.source(), **{slopes[i]: chosen(i)[place] for i in along}}
            inside += [ast.Assign([ast.Name(k, ast.Store())], value) for k, value in results.items()]
        self.before.append(ast.If(node.test, first, second))
        term = Term(lambda: name(target), self.keep)
        term.slopes = {i: name(text) for i, text in slopes.items()}
        return term

    def _of_and_or(self, node: ast.BoolOp, wish: str) -> Term:
        first, *others = node.values
        rest = others[0] if len(others) == 1 else ast.copy_location(ast.BoolOp(node.op, others), node)
        parts = (rest, first) if isinstance(node.op, ast.And) else (first, rest)
        return self.term(ast.copy_location(ast.IfExp(first, *parts), node), wish)

    def _of_call(self, node: ast.Call, wish: str) -> Term:
        function = self.scope.meaning(node.func)
        if function is np.clip:
            return self.term(self._limited(node), wish)
        row = row_of(function)
        if not row:
            return self.of_user(node, function, [wish])[0]
        arguments, arity = self.scope.numbers_of(node), COUNTS.get(row) or len(slopes_of(row))
        count = 2 if row in ("max", "min") and len(arguments) > 2 else len(arguments)
        if count != arity or any(map(_is_none, arguments)):
            self.scope.refuse(node, f"is a call with {len(arguments)} arguments; a slope is known for {arity} numbers")
        if row == "where":
            return self._of_choice(ast.copy_location(ast.IfExp(*arguments), node), wish)
        return self._of_row(node, row, [self.term(part) for part in arguments], wish)

    def _limited(self, node: ast.Call) -> ast.expr:
        """`np.clip` as extremes."""
        value, *bounds = self.scope.numbers_of(node)
        if len(bounds) != 2 or all(map(_is_none, bounds)) or _is_none(value):
            self.scope.refuse(node, "can be derived only with a number, and two limits of which one may be None")
        for extreme, bound in zip(("maximum", "minimum"), bounds, strict=True):
            if not _is_none(bound):
                function = ast.Attribute(name(self._numpy), extreme, ast.Load())
                value = ast.copy_location(ast.Call(function, [value, bound], []), node)
        return value

    def _of_row(self, node: ast.Call, row: str, parts: list[Term], wish: str) -> Term:
        if row in EXTREMES and len(parts) > 2:
            parts = [self._of_row(node, row, parts[:-1], ""), parts[-1]]
        term = Term(lambda: ast.Call(node.func, [part.source() for part in parts], []), self.keep, wish)
        if row == "power":
            return self._power(term, *parts)
        if row in ("log", "log1p") and parts[0].relative is not None:
            return self._logarithm(row, term, parts[0])
        if row == "exp":
            term.relative = lambda: parts[0].slopes
        return self._by_table(row, term, parts)

    def _logarithm(self, row: str, term: Term, grown: Term) -> Term:
        assert grown.relative is not None
        slopes = grown.relative()
        if row == "log1p":
            whole = ast.BinOp(number(1.0), ast.Add(), grown.atom())
            slopes = _multiplied(share_of_exponential(grown.atom(), whole, False, self._numpy), slopes)
        self._set(term, slopes.get)
        return term

    def _by_table(self, row: str, term: Term, parts: list[Term]) -> Term:
        parts, templates = slopes_along(row, parts, [bool(part.slopes) for part in parts])

        def factor(template: str) -> Callable[[], ast.expr]:
            names = names_in_template(template)
            by_name: Mapping[str, Term] = {**dict(zip("abc", parts, strict=False)), "y": term}

            def fill() -> ast.expr:
                atoms = {key: part.atom() for key, part in by_name.items() if key in names}
                return filled(template, {**atoms, "np": name(self._numpy)})

            return fill

        return self._chain(term, [(part, factor(t)) for part, t in zip(parts, templates, strict=True)])

    def of_user(self, node: ast.Call, function: Any, wishes: list[str]) -> list[Term]:
        """The results of a call of a user's function, from a derived function that also returns their slopes."""
        source = python_function(function)
        if not isinstance(source, FunctionType):
            self.scope.refuse(node, "calls something without a known slope")
        bound = self.scope.arguments_of(node, source)
        arguments = {key: self.term(value) for key, value in bound.arguments.items() if isinstance(value, ast.expr)}
        if len(arguments) < len(bound.arguments):
            self.scope.refuse(node, "gives any number of arguments, and cannot be derived")
        along = [key for key, part in arguments.items() if part.slopes]
        helper = self._slopes_function(function, along, len(wishes), node)
        call = ast.Call(name(helper), [], [ast.keyword(k, part.source()) for k, part in arguments.items()])
        values = [wish or self.scope.fresh("v") for wish in wishes]
        slope_names = [{key: self.scope.fresh(f"d{value}_d{key}") for key in along} for value in values]
        targets = [*values, *(text for of_value in slope_names for text in of_value.values())]
        stored = ast.Tuple([ast.Name(n, ast.Store()) for n in targets], ast.Store())
        self.before.append(ast.Assign([stored], call))
        return [self._slopes_of_call(value, arguments, names) for value, names in zip(values, slope_names, strict=True)]

    def _slopes_of_call(self, value: str, arguments: dict[str, Term], names: dict[str, str]) -> Term:
        term = Term(lambda: name(value), self.keep)
        return self._chain(term, [(arguments[key], partial(name, text)) for key, text in names.items()])


def _multiplied(factor: ast.expr, slopes: Slopes) -> Slopes:
    products = {i: product(factor, slope) for i, slope in slopes.items()}
    return {i: slope for i, slope in products.items() if slope is not None}


def numpy_in(scope: Scope) -> str:
    """The name of NumPy in a function's globals; a new one if there is none."""
    names = [key for key, value in scope.around.items() if value is np and key.isidentifier()]
    free = [key for key in names if key not in scope.local]
    if not free:
        return scope.add_variable("np", np)
    chosen = "np" if "np" in free else free[0]
    scope.all_names.add(chosen)
    return chosen


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None
