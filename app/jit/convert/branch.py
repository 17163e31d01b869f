"""`if` and `a if test else b`: of a Tensor, the operator `cond`, which runs one of two sub-blocks.

Both branches are run while tracing, once to see what they change and once into their sub-blocks. What they give values
to becomes what the operator gives.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

from app.errors import ProgramError
from app.jit.convert.build import expression, name, statements
from app.jit.convert.logic import cannot_wait, with_numbers
from app.jit.convert.names import Changes
from app.jit.convert.returns import VALUE
from app.jit.convert.state import (
    NUMBERS,
    State,
    Undefined,
    as_condition,
    as_variable,
    common_dtype,
    copied,
    is_value,
    place_of,
    put_back,
    same,
    tracer,
    zeros_in_place_of,
)
from app.ops.spec import UNKNOWN
from app.static.control_flow import cond
from app.static.structure import Structure

# Rewriting


def rewrite_if(rewriter: Any, node: ast.If) -> list[ast.stmt]:
    """The branches as functions, given to `_jit.if_`; or, where they return, to `_jit.choose`."""
    node.test = with_numbers(node.test)
    if hasattr(node, "plain"):
        node.test = expression("_jit.plain(test, why)", node, test=node.test, why=ast.Constant(node.plain))
        rewriter.generic_visit(node)
        return [node]
    changes = rewriter.scope.changes([*node.body, *node.orelse])
    test, body, orelse = rewriter.visit(node.test), rewriter.block(node.body), rewriter.block(node.orelse)
    line = str(node.lineno)
    then, otherwise = f"if_{line}_", f"else_{line}_"
    before, state = state_of(rewriter, changes, node, line)
    declared = rewriter.scope.declarations(changes.names, node)
    call = "_jit.if_" if not hasattr(node, "returning") else "return _jit.choose"
    return [
        *statements("def then():\n    body", node, then=then, body=[*declared, *body]),
        *statements(
            "def otherwise():\n    body", node, otherwise=otherwise, body=[*declared, *(orelse or _nothing(node))]
        ),
        *before,
        *statements(
            f"{call}(test, then, otherwise, state)", node, test=test, then=then, otherwise=otherwise, state=state
        ),
    ]


def rewrite_choice(rewriter: Any, node: ast.IfExp) -> ast.expr:
    """`a if test else b` as `_jit.choose(test, lambda: a, lambda: b)`."""
    node.test = with_numbers(node.test)
    rewriter.generic_visit(node)
    if cannot_wait(node.body, node.orelse):
        return node
    parts = {"test": node.test, "a": node.body, "b": node.orelse}
    return expression("_jit.choose(test, lambda: a, lambda: b)", node, **parts)


def state_of(rewriter: Any, changes: Changes, at: ast.AST, line: str) -> tuple[list[ast.stmt], ast.expr]:
    """The source of a State: a function that sets the names, and the expression."""
    names, containers = changes
    if not (names or containers):
        return [], expression("_jit.NOTHING", at)
    setter, before = "None", []
    if names:
        setter = f"set_{line}_"
        target = ast.Tuple([name(n, at, store=True) for n in names], ast.Store())
        put: Any = statements("x = values", at)
        put[0].targets = [ast.copy_location(target, at)]
        body = [*rewriter.scope.declarations(names, at), *put]
        before = statements("def setter(values):\n    body", at, setter=setter, body=body)
    every = [*names, *containers]
    getters = ast.Tuple([expression("lambda: value", at, value=name(n, at)) for n in every], ast.Load())
    listed, held = (expression(repr(tuple(each)), at) for each in (every, containers))
    parts = {"names": listed, "getters": getters, "setter": setter, "held": held}
    return before, expression("_jit.State(names, getters, setter, held)", at, **parts)


def _nothing(at: ast.AST) -> list[ast.stmt]:
    return [ast.copy_location(ast.Pass(), at)]


# Meaning

NOTHING = State((), (), None)


def if_(test: Any, then: Callable[[], Any], otherwise: Callable[[], Any], state: State) -> None:
    """Python's `if`, or the operator."""
    if not is_value(test):
        (then if test else otherwise)()
    else:
        _Choice(test, then, otherwise, state).make()


def choose(test: Any, then: Callable[[], Any], otherwise: Callable[[], Any], state: State = NOTHING) -> Any:
    """What one of two functions gives: as Python chooses, or the operator."""
    if not is_value(test):
        return then() if test else otherwise()
    return _Choice(test, then, otherwise, state, of_result=True).make()


def plain(test: Any, why: str) -> Any:
    """A condition that has to be a plain Python value."""
    if is_value(test):
        raise ProgramError(
            f"an `if` or a loop over a Tensor cannot be converted here, as {why}; "
            "give a variable its value in the branches, and return it at the end of the function"
        )
    return test


class _Choice:
    """An `if` over a Tensor."""

    def __init__(self, test: Any, then: Any, otherwise: Any, state: State, of_result: bool = False):
        self.where = place_of(then)
        self.test = as_condition(test, self.where)
        self.branches, self.state, self.of_result = (then, otherwise), state.fresh(), of_result
        self.before = self.state.read()

    def make(self) -> Any:
        outcomes = self._rehearsed()
        names = ["what is returned", *self.state.names]
        merged = [self._merge(*both) for both in zip(names, *outcomes, [None, *self.before], strict=True)]

        def values(branch: Callable[[], Any]) -> list[Any]:
            chosen = []
            with tracer().changes():
                for merge, nest in zip(merged, self._run(branch), strict=True):
                    chosen += merge.variables(nest)
            return chosen

        self.state.write(self.before)
        made = iter(cond(self.test, lambda: values(self.branches[0]), lambda: values(self.branches[1])) or [])
        result, *after = [merge.filled(made) for merge in merged]
        self.state.write([put_back(old, new) for old, new in zip(self.before, after, strict=True)])
        return result

    def _rehearsed(self) -> list[list[Any]]:
        """What each branch leaves; again, where it is found to change Tensors in place that were not looked at."""
        outcomes: list[list[Any]] = []
        found: list[Any] = []
        for branch in self.branches:
            with tracer().rehearsal() as changed:
                outcomes.append(self._run(branch))
            found += changed
        if not self.state.add(found):
            return outcomes
        self.before += self.state.read()[len(self.before) :]
        return self._rehearsed()

    def _run(self, branch: Callable[[], Any]) -> list[Any]:
        self.state.write([copied(value) for value in self.before])
        result = branch()
        return [copied(value) for value in (result if self.of_result else None, *self.state.read())]

    def _merge(self, name: str, a: Any, b: Any, before: Any) -> Merge:
        if same(a, before) and same(b, before):
            return Merge(before)
        reason = ""
        if name.startswith(VALUE):
            a, b = (zeros_in_place_of(y) if isinstance(x, Undefined) else x for x, y in ((a, b), (b, a)))
        if isinstance(a, Undefined) or isinstance(b, Undefined):
            reason = "has a value in one branch alone"
        else:
            first, second = Structure.of(a), Structure.of(b)
            if first.shape != second.shape:
                reason = f"is {words(a)} in one branch and {words(b)} in the other"
            else:
                merge = Merge(a, first, second.leaves)
                if merge.fits:
                    return merge
                reason = f"is {merge.misfit} in the two branches"
        told = f"{name} {reason} of the `if` over a Tensor at {self.where}"
        if name == "what is returned":
            raise ProgramError(f"{told}: both must give values of one kind; return something of that kind in both")
        return Merge(Undefined(name, f": it {reason} of the `if` over a Tensor at {self.where}; give it one before"))


class Merge:
    """One nest that is the outcome of two branches: which of its leaves differ, and their type."""

    def __init__(self, nest: Any, structure: Structure | None = None, others: Sequence[Any] = ()):
        self.nest, self.structure = nest, structure
        self.kinds: list[tuple[str, tuple[int, ...]] | None] = []
        """For each leaf its type and shape, or None for one that is the same in both."""
        self.misfit = ""
        for a, b in zip(structure.leaves if structure else (), others, strict=True):
            self.kinds.append(self._kind(a, b))

    @property
    def fits(self) -> bool:
        return not self.misfit

    def _kind(self, a: Any, b: Any) -> tuple[str, tuple[int, ...]] | None:
        if not (is_value(a) or is_value(b)) and same(a, b):
            return None
        if all(is_value(x) or isinstance(x, NUMBERS) for x in (a, b)):
            return common_dtype(a, b), next((tuple(x.shape) for x in (a, b) if is_value(x)), ())
        self.misfit = f"{words(a)} and {words(b)}"
        return None

    def variables(self, nest: Any) -> list[Any]:
        """The leaves of one branch's nest that differ, as variables."""
        if self.structure is None:
            return []
        absent = isinstance(nest, Undefined)
        leaves = [0] * len(self.kinds) if absent else Structure.of(nest).leaves
        pairs = zip(leaves, self.kinds, strict=True)
        return [as_variable(leaf, *kind) for leaf, kind in pairs if kind is not None]

    def filled(self, made: Any) -> Any:
        """The nest with the operator's results in the places of those leaves."""
        if self.structure is None:
            return self.nest
        leaves = zip(self.structure.leaves, self.kinds, strict=True)
        return self.structure.filled([leaf if kind is None else next(made) for leaf, kind in leaves])


def words(value: Any) -> str:
    """A value as messages tell of it."""
    if is_value(value):
        shape = ", ".join("any" if size == UNKNOWN else str(size) for size in value.shape)
        return f"a Tensor of shape [{shape}]"
    if value is None or isinstance(value, (*NUMBERS, str)):
        return repr(value)
    return (
        f"a {type(value).__name__} of {len(value)}" if isinstance(value, (list, tuple, dict)) else type(value).__name__
    )
