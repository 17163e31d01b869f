"""The gradient of a function on arrays with loops, as source that can be read and derived again."""

from __future__ import annotations

import ast
import linecache
import math
import re
import tokenize
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import count
from types import FunctionType
from typing import Any

import numpy as np

from app.derivative.arrays.choices import with_last_choices
from app.derivative.arrays.complete import CompleteReader
from app.derivative.arrays.contraction import contracted
from app.derivative.arrays.core import (
    Assign,
    Copied,
    Expr,
    Function,
    Guard,
    Stmt,
    Store,
    call,
    compare,
    mapped,
    named_in,
    renamed,
    tree_of,
    walk,
)
from app.derivative.arrays.effects import with_joined_branches
from app.derivative.arrays.first_touches import first_touched
from app.derivative.arrays.flow import without_dead
from app.derivative.arrays.reader import Reader
from app.derivative.arrays.reverse import Context, Reverse
from app.derivative.arrays.sums import promoted, without_influence
from app.derivative.arrays.tidy import (
    Zeros,
    ahead,
    defined,
    inlined,
    simplified,
    sunk,
    with_few_signs,
)
from app.derivative.scope import Scope, function_tree
from app.derivative.terms import name, number
from app.errors import AppError
from app.functions import text_of_tree
from app.reading import one_thread_at_a_time

_numbers = count(1)


@dataclass
class Derived:
    """A derived gradient."""

    source: str
    function: FunctionType
    """Takes the arrays, the gradients of the results, and the settings; gives the gradients of the float arrays."""
    gradient_of: list[str]


@one_thread_at_a_time
def derive(function: Any, *specs: Any) -> Derived:
    """The gradient of a function on arrays, from its source.

    `specs` have the number of dimensions and the type of each parameter: arrays, or anything else with a shape and a
    dtype; numbers for settings. Their sizes do not matter, but for axes of size 1 along which broadcasting stretches
    an array beside another one. An UnderivableError names the line that cannot be derived.
    """
    reader = Reader(function, specs)
    try:
        return _derived(reader)
    except AppError:
        raise
    except Exception as error:  # a gap in what follows: a refusal is better than a guess, and than a traceback
        why = f"is more than the derivation can follow ({type(error).__name__}); write it as loops over elements"
        reader.refuse(reader.statement_read or reader.scope.tree, why)


@one_thread_at_a_time
def written_out(
    function: Any, *specs: Any, reading: Callable[[Any, Sequence[Any]], CompleteReader] = CompleteReader
) -> FunctionType:
    """The function itself with loops in place of operations on whole arrays, which Numba compiles.

    An UnderivableError names the line that cannot be written so.
    """
    reader = reading(function, specs)
    source = reader.read()
    body = simplified(without_dead(simplified(source.body), source.outputs), last=True)
    return _function_of(reader, source, f"{_title(source)}_loops", body, [], source.outputs)[1]


def _derived(reader: Reader) -> Derived:
    source = reader.read()
    source.body = with_last_choices(source.body, source.variables, reader.number_variable, set())
    reverse = Reverse(source, set(reader.all_names), reader.scope.all_names & source.variables.keys())
    function_read = reverse.function
    forward, backward = reverse.derived(
        function_read.body, Context(frozenset(a for a in reverse.intact if not reverse.homes[a]))
    )
    pushing = reverse.pushing
    inputs = [key for key in source.inputs if source.variables[key].kind == "float"]
    if not inputs:
        reader.scope.refuse(reader.scope.tree, "has no array of floating-point numbers as a parameter, so no gradient")
    results = [pushing.gradients[key] for key in inputs]
    arriving, start = _arriving(reverse, backward)
    whole: list[Stmt] = [
        Guard(compare(name(key), ast.Eq(), call("int", name(key))), f"{key} is expected to be an integer")
        for key in source.settings
        if reverse.has_integers and source.variables[key].kind == "int"
    ]
    body: list[Stmt] = [*whole, *forward, *start, *backward]
    body = _tidied(body, results, reverse, arriving)
    text, function = _function_of(reader, source, f"{_title(source)}_gradient", body, arriving, results)
    return Derived(text, function, inputs)


def _arriving(reverse: Reverse, backward: list[Stmt]) -> tuple[list[str], list[Stmt]]:
    """The parameters for the gradients of the results, and the gradients that the reverse begins with."""
    pushing, function = reverse.pushing, reverse.function
    start: list[Stmt] = []
    parameters: list[str] = []
    stored = {s.array for s in walk(backward) if isinstance(s, Store)}
    for key in function.outputs:
        gradient = pushing.gradients[key]
        parameters.append(gradient)
        is_array = bool(function.variables[key].rank)
        if is_array and gradient not in stored:
            continue
        left = pushing.fresh(f"{gradient}_left")
        function.variables[left] = function.variables[gradient]
        start.append(Copied(left, "copy", gradient) if is_array else Assign(left, name(gradient)))
        backward[:] = [renamed(statement, {gradient: left}) for statement in backward]
    for key in function.inputs:
        if function.variables[key].kind == "float" and function.variables[key].rank:
            start.append(Copied(pushing.gradients[key], "zeros_like", key))
    for key in sorted({*pushing.active, *function.inputs}):
        variable = function.variables[key]
        if variable.kind == "float" and not variable.rank and key not in function.outputs:
            start.append(Assign(pushing.gradients[key], number(0.0)))
    return parameters, start


def _tidied(body: list[Stmt], results: list[str], reverse: Reverse, arriving: list[str]) -> list[Stmt]:
    pushing = reverse.pushing
    makers = {pushing.gradients[key]: reverse.allocs[key] for key in reverse.function.outputs if key in reverse.allocs}
    function = replace(reverse.function, shapes={key: value for key, value in makers.items() if key in arriving})
    variables = function.variables
    user_names = {*function.inputs, *function.settings, *function.outputs, *reverse.user_names}
    gradients = {key for key in pushing.all_names if key in variables and not variables[key].rank} - user_names

    def temporary(key: str) -> bool:
        return key not in reverse.user_names

    body = without_dead(simplified(body), results)
    numbers = {g for g in gradients if g.startswith("d")}
    body = Zeros(numbers).block(body, set())
    body = without_dead(body, results)
    body = inlined(body, results, temporary)
    body = simplified(body)
    body = ahead(body, results, function)
    free = {key for key in without_influence(body) if variables[key].kind == "float"}
    body = promoted([mapped(s) for s in body], function, reverse.new_variable, free)
    body = first_touched(with_joined_branches(body), function)
    body = contracted(body, results, variables, free)
    body = without_dead(body, results)
    body = inlined(body, results, temporary)
    body = with_few_signs(simplified(body))
    parameters = [*function.inputs, *function.settings, *arriving]
    return simplified(defined(sunk(body, temporary), parameters, lambda key: variables[key].kind), last=True)


def _title(source: Function) -> str:
    return source.name if source.name.isidentifier() else "function"


def _function_of(
    reader: Reader, source: Function, title: str, body: list[Stmt], arriving: list[str], results: list[str]
) -> tuple[str, FunctionType]:
    """The text and the function of statements."""
    returned: Expr = name(results[0]) if len(results) == 1 else ast.Tuple([name(r) for r in results], ast.Load())
    defaults = reader.defaults
    settings = [key for key in source.settings if key not in source.inputs]
    required = [key for key in settings if key not in defaults]
    defaults = {**defaults, **reader.constants}
    optional = [*(key for key in settings if key in defaults), *reader.constants]
    parameters = [*source.inputs, *arriving]
    arguments = ast.arguments(
        posonlyargs=[],
        args=[ast.arg(key) for key in [*parameters, *required, *optional]],
        kwonlyargs=[],
        kw_defaults=[],
        defaults=[ast.Constant(defaults[key]) for key in optional],
    )
    used = set[str]().union(*map(named_in, walk(body)))
    numbers = [key for key in parameters if key in used and not source.variables[key].rank]
    lines = [ast.parse(f"{key} = {key}.item()").body[0] for key in numbers]  # Numba lacks operations on such arrays
    guards = [ast.parse(_guard_of(key, value)).body[0] for key, value in reader.constants.items()]
    tree = function_tree(title, arguments, [*lines, *guards, *tree_of(body), ast.Return(returned)])
    module = ast.fix_missing_locations(ast.Module([tree], []))
    temporaries = _Temporaries({*reader.scope.all_names, *parameters})
    tree_of_text = ast.parse(text_of_tree(module))  # of which each node is there once
    text = _with_comments(ast.unparse(temporaries.visit(tree_of_text)), reader.scope) + "\n"
    file = f"<{title} {next(_numbers)}, derived from {reader.scope.place(reader.scope.tree)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    space: dict[str, Any] = {"np": np, "math": math, "__name__": reader.scope.function.__module__}
    exec(compile(text, file, "exec"), space)
    function = space[title]
    function.derived_from = reader.scope.function
    return text, function


def _guard_of(key: str, value: Any) -> str:
    """The statement that refuses another value of a setting than that for which a function was read."""
    differs = f"{key} is not None" if value is None else f"{key} != {value!r}"
    if isinstance(value, tuple):
        differs = " or ".join(f"{key}[{place}] != {part!r}" for place, part in enumerate(value))
    message = f"{key} is expected to be {value!r}, its default, for which this was derived"
    return f"if {differs}:\n    raise ValueError({message!r})"


class _Temporaries(ast.NodeTransformer):
    """Numbers temporaries, and their gradients, as they appear."""

    def __init__(self, all_names: set[str]):
        self._all_names = all_names
        self._names: dict[str, str] = {}
        self._counts = dict.fromkeys("gt", 0)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        match = _TEMPORARY.fullmatch(node.id)
        if match is None or node.id in self._all_names:
            return node
        prefix, letter, number = match.groups()
        key = letter + number
        while key not in self._names:
            self._counts[letter] += 1
            text = letter + (str(self._counts[letter]) if self._counts[letter] > 1 else "")
            if not {text, f"d{text}"} & self._all_names:
                self._names[key] = text
        return ast.Name(prefix + self._names[key], node.ctx)


_TEMPORARY = re.compile(r"(d?)([gt])(\d*)")


def _with_comments(text: str, scope: Scope) -> str:
    """The source with the user's comments at the first of the lines that are as the user wrote them."""
    comments: dict[str, str] = {}
    lines = linecache.getlines(scope.function.__code__.co_filename, scope.function.__globals__)
    for node in ast.walk(scope.tree):
        if isinstance(node, ast.stmt) and node is not scope.tree:
            comment = _comment_of(lines[node.lineno - 1 : node.lineno])
            if comment:
                comments[ast.unparse(node).partition("\n")[0]] = comment
    result = []
    for line in text.split("\n"):
        comment = comments.pop(line.strip(), "")
        result.append(f"{line}  {comment}" if comment else line)
    return "\n".join(result)


def _comment_of(lines: Sequence[str]) -> str:
    try:
        tokens = [*tokenize.generate_tokens(iter([line.lstrip() for line in lines]).__next__)]
    except (tokenize.TokenError, SyntaxError):  # the statement has more than one line
        return ""
    return next((t.string for t in tokens if t.type == tokenize.COMMENT), "")
