"""`if` and `a if test else b`. For a Tensor they append the operator `cond`, which runs one of two sub-blocks.

Each branch is traced once, into its sub-block. Values that differ between the branches are the operator's outputs.
"""

from __future__ import annotations

import ast
import copy
import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from app.graph.control import Traced, append_cond
from app.graph.program import Block
from app.jit.convert.build import expression, name, statements
from app.jit.convert.leaving import VALUE, is_flag
from app.jit.convert.names import Names, cannot_wait
from app.jit.convert.state import (
    CONTAINERS,
    NOTHING,
    NUMBERS,
    Copies,
    Held,
    Kind,
    Snapshot,
    State,
    Undefined,
    as_condition,
    as_variable,
    common_dtype,
    is_tuple,
    is_value,
    items_of,
    rebuilt,
    same,
    shape_text,
    stand_in,
    tracer,
)
from app.jit.variable import RefusedError, TracedVariable
from app.ops.spec import UNKNOWN
from app.reading import place_of

# Rewriting


def rewrite_if(rewriter: Any, node: ast.If) -> list[ast.stmt]:
    """Rewrite an `if` as a call of `_jit.if_` with a function for each branch."""
    names = rewriter.scope.names([*node.body, *node.orelse])
    test, body, orelse = rewriter.visit(node.test), rewriter.block(node.body), rewriter.block(node.orelse)
    line = str(node.lineno)
    then, otherwise = f"_jit_if_{line}", f"_jit_else_{line}"
    before, state = state_of(rewriter, names, node, line)
    declared = rewriter.scope.declarations([*names.assigned, *names.outer], node)
    return [
        *statements("def then():\n    body", node, then=then, body=[*declared, *body]),
        *statements(
            "def otherwise():\n    body", node, otherwise=otherwise, body=[*declared, *(orelse or _nothing(node))]
        ),
        *before,
        *statements(
            "_jit.if_(test, then, otherwise, state)", node, test=test, then=then, otherwise=otherwise, state=state
        ),
    ]


def rewrite_choice(rewriter: Any, node: ast.IfExp) -> ast.expr:
    """Rewrite `a if test else b` as `_jit.choose(test, lambda: a, lambda: b)`."""
    rewriter.generic_visit(node)
    if cannot_wait(node.body, node.orelse):
        return node
    parts = {"test": node.test, "a": node.body, "b": node.orelse}
    return expression("_jit.choose(test, lambda: a, lambda: b)", node, **parts)


def state_of(rewriter: Any, names: Names, at: ast.AST, line: str) -> tuple[list[ast.stmt], ast.expr]:
    """Return the source of a State: a function that sets the variables, and the expression."""
    names_of_state = [*names.assigned, *names.read]
    if not (names_of_state or names.outer):
        return [], expression("_jit.NOTHING", at)
    setter = f"_jit_set_{line}"
    put: Any = statements("x = _jit_values", at)
    targets = [name(n, at, store=True) for n in names_of_state]
    put[0].targets = [ast.copy_location(ast.Tuple(targets, ast.Store()), at)]
    body = [*rewriter.scope.declarations(names_of_state, at), *put]
    before = statements("def setter(_jit_values):\n    body", at, setter=setter, body=body)
    getters = ast.Tuple([expression("lambda: value", at, value=name(n, at)) for n in names_of_state], ast.Load())
    assigned, read, outer = (expression(repr(tuple(each)), at) for each in (names.assigned, names.read, names.outer))
    parts = {"assigned": assigned, "read": read, "outer": outer, "getters": getters, "setter": setter}
    return before, expression("_jit.State(assigned, read, outer, getters, setter)", at, **parts)


def _nothing(at: ast.AST) -> list[ast.stmt]:
    return [ast.copy_location(ast.Pass(), at)]


# Meaning

RESULT = "the returned value"


def if_(test: Any, then: Callable[[], Any], otherwise: Callable[[], Any], state: State, where: str = "") -> None:
    """Python's `if`, or the operator."""
    if not is_value(test):
        (then if test else otherwise)()
    else:
        _choice(test, then, otherwise, state, where or place_of(then))


def choose(test: Any, then: Callable[[], Any], otherwise: Callable[[], Any], where: str = "") -> Any:
    """Return the result of one of two functions: chosen by Python or by the operator."""
    if not is_value(test):
        return then() if test else otherwise()
    return _choice(test, then, otherwise, NOTHING, where or place_of(then))


def _choice(test: Any, then: Callable[[], Any], otherwise: Callable[[], Any], state: State, where: str) -> Any:
    with tracer().control_flow(where):
        return _Choice(test, then, otherwise, state, where).append()


@dataclass
class _Branch:
    """A traced branch: its block, its result, its Tensors, and the variables at its end."""

    block: Block
    result: Any
    copies: Copies
    end: Snapshot


class _MisfitError(Exception):
    """Why two values cannot be one, and what to do."""

    def __init__(self, reason: str, remedy: str):
        super().__init__(reason)
        self.remedy = remedy


class _Choice:
    """An `if` over a Tensor."""

    def __init__(self, test: Any, then: Callable[[], Any], otherwise: Callable[[], Any], state: State, where: str):
        self.where, self.state = where, state
        self.test = as_condition(test, where)
        self.before = state.read()
        self.branches = [self._traced(then), self._traced(otherwise)]
        self.outputs: list[tuple[Any, Any, Kind]] = []
        """The values that differ: in both branches, and their common type and shape."""
        self.results: list[Any] = []
        """What the operator gives for them."""
        self.joined: dict[tuple[int, int], Callable[[], Any]] = {}
        self.partners: dict[int, Any] = {}
        """For a list or a dict of a branch, that of the other one, by identity."""

    def append(self) -> Any:
        """Append the operator, and assign what it gives; return the result of the functions."""
        result = self._of(RESULT, [branch.result for branch in self.branches])
        values = [self._of_name(place) for place in range(len(self.before.values))]
        changed = {id(tensor): tensor for branch in self.branches for tensor in branch.copies.changed()}
        tensors = [(tensor, self._of_tensor(tensor)) for tensor in changed.values()]
        contents = [self._of_content(held) for held in self.before.held.values()]
        self.results = append_cond(self.test, self._gives(0), self._gives(1))
        for tensor, take in tensors:
            tensor.stand_for(take())
        after = copy.copy(self.before)
        after.values = [take() for take in values]
        after.held = {id(held.container): held._replace(content=take()) for held, take in contents}
        self.state.write(after)
        return result()

    def _traced(self, function: Callable[[], Any]) -> _Branch:
        copies = Copies(self.before)
        with tracer().program.sub_block() as block, self.state.region(self.where, self.before, copies.enter):
            result = function()
            end = self.state.read(self.before, result)
        return _Branch(block, result, copies, end)

    def _gives(self, side: int) -> Traced:
        """The block of a branch with the values that differ, cast to the common types of both branches."""
        branch = self.branches[side]
        with tracer().program.appending_to(branch.block):
            return Traced(branch.block, [self._variable(branch, pair[side], pair[2]) for pair in self.outputs])

    def _variable(self, branch: _Branch, value: Any, kind: Kind) -> Any:
        if id(value) in branch.end.stale:
            value.check_current()
        return as_variable(value, kind.dtype, kind.shape)

    # What makes the values after the `if`

    def _of_name(self, place: int) -> Callable[[], Any]:
        name, values = self.state.names[place], [branch.end.values[place] for branch in self.branches]
        for side, branch in enumerate(self.branches):
            one_sided = isinstance(values[side], Undefined) and not isinstance(values[1 - side], Undefined)
            if one_sided and (name == VALUE or self._has_left(branch)):  # nothing reads it
                values[side] = stand_in(values[1 - side])
        return self._of(name, values)

    def _has_left(self, branch: _Branch) -> bool:
        """Return whether a branch always ends in `return`, `break` or `continue`, so that nothing after it is run."""
        flags = zip(self.state.names, self.before.values, branch.end.values, strict=True)
        return any(new is True and old is not True for name, old, new in flags if is_flag(name))

    def _of_content(self, held: Held) -> tuple[Held, Callable[[], Any]]:
        return held, self._of(held.name, [b.end.content(held.container) for b in self.branches], True)

    def _of_tensor(self, tensor: TracedVariable) -> Callable[[], Any]:
        """For a Tensor that is changed in place."""
        a, b = (branch.copies.enter((), tensor) for branch in self.branches)
        if not agree([a.shape, b.shape]):
            Undefined(
                tensor.name, f": its shape changes in one branch of the `if` over a Tensor at {self.where}"
            ).refuse()
        return self._output(a, b, Kind(a.dtype, a.shape))

    def _of(self, name: str, values: Sequence[Any], needed: bool = False) -> Callable[[], Any]:
        saved = len(self.outputs), dict(self.joined)
        try:
            return self._one_of(*values)
        except _MisfitError as misfit:
            reason, remedy = f"{misfit} of the `if` over a Tensor at {self.where}", misfit.remedy
        if name in (RESULT, VALUE):
            raise RefusedError(f"{RESULT} {reason}: return values of the same kind, shape and type in both") from None
        if needed:
            Undefined(name, f": it {reason}; {remedy}").refuse()
        del self.outputs[saved[0] :]
        self.joined = saved[1]
        return lambda: Undefined(name, f": it {reason}; {remedy}")

    def _one_of(self, a: Any, b: Any) -> Callable[[], Any]:
        key = id(a), id(b)
        if key not in self.joined:
            self.joined[key] = functools.cache(self._joined(a, b))  # what is one object in both branches stays one
        return self.joined[key]

    def _joined(self, a: Any, b: Any) -> Callable[[], Any]:
        olds = [branch.copies.original(value) for branch, value in zip(self.branches, (a, b), strict=True)]
        old, other = olds
        if old is other or (type(old) not in CONTAINERS and same(old, other)):
            return lambda: old
        if isinstance(a, Undefined) or isinstance(b, Undefined):
            raise _MisfitError("has a value in only one branch", "give it one before")
        contents = [branch.end.content(value) for branch, value in zip(self.branches, (a, b), strict=True)]
        if type(a) is type(b) and (is_tuple(a) or type(a) in CONTAINERS):
            first, second = (dict(items_of(content)) for content in contents)
            if type(a) in CONTAINERS:
                self._check_one(a, b)
            if list(first) == list(second):
                takes = {place: self._one_of(first[place], second[place]) for place in first}
                return lambda: tracer().own(rebuilt(contents[0], lambda place, _: takes[place]()))
        shapes = [tuple(value.shape) for value in olds if is_value(value)]
        if not (all(is_value(value) or isinstance(value, NUMBERS) for value in olds) and agree(shapes)):
            reason = "is {} in one branch and {} in the other".format(*map(text_of, contents))
            raise _MisfitError(reason, "give it values of the same kind and shape in both")
        return self._output(a, b, Kind(common_dtype(old, other), next(iter(shapes), ())), *olds)

    def _check_one(self, a: Any, b: Any) -> None:
        """Refuse two lists or dicts of which one may have another name, under which changes would be seen."""
        partners = [self.partners.setdefault(id(x), y) for x, y in ((a, b), (b, a))]
        olds = [self.before.held[id(x)].name for x in (a, b) if id(x) in self.before.held]
        if partners[0] is not b or partners[1] is not a or any(name != VALUE for name in olds):
            kind = type(a).__name__
            reason = f"is another {kind} than before, or than another variable, in one branch only"
            raise _MisfitError(reason, f"change that {kind} itself, or make a new one in both")

    def _output(self, a: Any, b: Any, kind: Kind, *olds: Any) -> Callable[[], Any]:
        """For a value that differs; it may be one of the old ones, in the same memory."""
        self.outputs.append((a, b, kind))
        place = len(self.outputs) - 1

        def take() -> Any:
            result = self.results[place]
            result.share_memory(*olds)
            result.carried = any(getattr(old, "carried", False) for old in olds)
            return result

        return take


def agree(shapes: Sequence[tuple[int, ...]]) -> bool:
    """Return whether shapes may be equal."""
    if len({len(shape) for shape in shapes}) > 1:
        return False
    return all(len({size for size in sizes if size != UNKNOWN}) < 2 for sizes in zip(*shapes, strict=True))


def text_of(value: Any) -> str:
    """Describe a value for messages."""
    if is_value(value):
        return f"a Tensor of shape {shape_text(value.shape)}"
    if value is None or isinstance(value, (*NUMBERS, str)):
        return repr(value)
    kind = type(value).__name__
    return f"a {kind} of {len(value)}" if isinstance(value, (list, tuple, dict, set)) else kind
