"""`if` and `a if test else b`. For a Tensor they append the operator `cond`, which runs one of two sub-blocks.

Each branch is traced once, into its sub-block. Values that differ between the branches are the operator's outputs.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from app.graph.control import Traced, append_cond
from app.graph.program import Block
from app.jit.convert.build import expression, name, statements
from app.jit.convert.leaving import VALUE, is_flag
from app.jit.convert.logic import cannot_wait
from app.jit.convert.names import Changes as ChangedNames
from app.jit.convert.state import (
    NOTHING,
    NUMBERS,
    Kind,
    State,
    Undefined,
    as_condition,
    as_variable,
    common_dtype,
    copied,
    frozen,
    is_value,
    link,
    put_back,
    same,
    settle,
    stand_in,
    tracer,
    words_of,
)
from app.jit.tracer import Changes
from app.jit.variable import RefusedError, TracedVariable
from app.ops.spec import UNKNOWN
from app.reading import place_of
from app.static.structure import Structure

# Rewriting


def rewrite_if(rewriter: Any, node: ast.If) -> list[ast.stmt]:
    """Rewrite an `if` as a call of `_jit.if_` with a function for each branch."""
    changes = rewriter.scope.changes([*node.body, *node.orelse])
    test, body, orelse = rewriter.visit(node.test), rewriter.block(node.body), rewriter.block(node.orelse)
    line = str(node.lineno)
    then, otherwise = f"_jit_if_{line}", f"_jit_else_{line}"
    before, state = state_of(rewriter, changes, node, line)
    declared = rewriter.scope.declarations(changes.names, node)
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


def state_of(rewriter: Any, changes: ChangedNames, at: ast.AST, line: str) -> tuple[list[ast.stmt], ast.expr]:
    """Return the source of a State: a function that sets the names, and the expression."""
    names, containers = changes
    if not (names or containers):
        return [], expression("_jit.NOTHING", at)
    setter: str | ast.expr = ast.copy_location(ast.Constant(None), at)
    before: list[ast.stmt] = []
    if names:
        setter = f"_jit_set_{line}"
        target = ast.Tuple([name(n, at, store=True) for n in names], ast.Store())
        put: Any = statements("x = _jit_values", at)
        put[0].targets = [ast.copy_location(target, at)]
        body = [*rewriter.scope.declarations(names, at), *put]
        before = statements("def setter(_jit_values):\n    body", at, setter=setter, body=body)
    every = [*names, *containers]
    outer = [n for n in names if n in rewriter.scope.globals | rewriter.scope.nonlocals]
    getters = ast.Tuple([expression("lambda: value", at, value=name(n, at)) for n in every], ast.Load())
    listed, held, others = (expression(repr(tuple(each)), at) for each in (every, containers, outer))
    parts = {"names": listed, "getters": getters, "setter": setter, "held": held, "outer": others}
    return before, expression(f"_jit.State(names, getters, setter, held{', outer' if outer else ''})", at, **parts)


def _nothing(at: ast.AST) -> list[ast.stmt]:
    return [ast.copy_location(ast.Pass(), at)]


# Meaning

RESULT = "the returned value"


def if_(test: Any, then: Callable[[], Any], otherwise: Callable[[], Any], state: State, where: str = "") -> None:
    """Python's `if`, or the operator."""
    if not is_value(test):
        (then if test else otherwise)()
    else:
        _Choice(test, then, otherwise, state, where or place_of(then)).make()


def choose(test: Any, then: Callable[[], Any], otherwise: Callable[[], Any]) -> Any:
    """Return the result of one of two functions: chosen by Python or by the operator."""
    if not is_value(test):
        return then() if test else otherwise()
    return _Choice(test, then, otherwise, NOTHING, place_of(then)).make()


@dataclass
class _Branch:
    """A traced branch: its block and its results."""

    block: Block
    result: Any
    values: list[Any]
    """The values of the State at the end of the branch, with a copy of each traced Tensor."""
    known: list[Any]
    """The same values, not copied."""
    tensors: Changes
    """The Tensors that it changes in place."""
    raw: Any
    """The result, not copied."""


class _Choice:
    """An `if` over a Tensor."""

    def __init__(self, test: Any, then: Callable[[], Any], otherwise: Callable[[], Any], state: State, where: str):
        self.where = where
        self.test = as_condition(test, where)
        self.functions, self.state = (then, otherwise), state
        self.before = state.read()

    def make(self) -> Any:
        """Trace the branches and append the operator; return the results of the functions."""
        with tracer().control_flow(self.where):
            return self._appended()

    def _appended(self) -> Any:
        branches = [self._traced(function) for function in self.functions]
        result = self._merged(RESULT, [b.result for b in branches])
        merged = [self._of_name(place, branches) for place in range(len(self.before))]
        stale = {id(tensor) for b in branches for tensor in b.tensors.stale}
        changed = {k: tensor for b in branches for k, (tensor, _) in b.tensors.values.items() if k not in stale}
        tensors = {key: self._of_tensor(tensor, branches) for key, tensor in changed.items()}
        merges = [result, *merged, *tensors.values()]
        true, false = (self._gives(side, branch, merges) for side, branch in enumerate(branches))
        made = iter(append_cond(self.test, true, false))
        value, *after = [merge.filled(made) for merge in merges]
        self.state.write([put_back(old, new) for old, new in zip(self.before, after, strict=False)])
        settle([b.tensors for b in branches], list(zip(changed.values(), after[len(merged) :], strict=True)))
        for new, *olds in zip((value, *after), *((b.raw, *b.known) for b in branches), strict=False):
            for old in olds:
                link(new, old)
        return value

    def _traced(self, function: Callable[[], Any]) -> _Branch:
        self.state.write([copied(value) for value in self.before])
        with tracer().program.sub_block() as block, tracer().changes() as tensors:
            with self.state.region(self.where):
                raw = function()
                result = frozen(raw)
            known = [copied(value) for value in self.state.read()]
            values = [frozen(value) for value in known]
        return _Branch(block, result, values, known, tensors, raw)

    def _gives(self, side: int, branch: _Branch, merges: Sequence[Merge]) -> Traced:
        """Return the block with its results, cast to the common types of both branches."""
        with tracer().program.appending_to(branch.block):
            return Traced(branch.block, [variable for merge in merges for variable in merge.variables(side)])

    def _of_name(self, place: int, branches: Sequence[_Branch]) -> Merge:
        """Return the value of a variable after the `if`."""
        before, name = self.before[place], self.state.names[place]
        if all(same(branch.known[place], before) for branch in branches):
            return Merge(before)
        return self._merged(name, self._with_stand_ins(name, place, branches))

    def _with_stand_ins(self, name: str, place: int, branches: Sequence[_Branch]) -> list[Any]:
        """Return a name's values in both branches. A missing value that nothing reads gets a placeholder."""
        values = [branch.values[place] for branch in branches]
        for side, value in enumerate(values):
            other = values[1 - side]
            one_sided = isinstance(value, Undefined) and not isinstance(other, Undefined)
            if one_sided and (name == VALUE or self._has_left(branches[side])):
                values[side] = stand_in(other)
        return values

    def _has_left(self, branch: _Branch) -> bool:
        """Return whether a branch always ends in `return`, `break` or `continue`, so that nothing after it is run."""
        flags = zip(self.state.names, self.before, branch.values, strict=True)
        return any(new is True and old is not True for name, old, new in flags if is_flag(name))

    def _of_tensor(self, tensor: TracedVariable, branches: Sequence[_Branch]) -> Merge:
        """Return the value of a Tensor that is changed in place after the `if`."""
        values = [branch.tensors.values.get(id(tensor), (None, tensor))[1] for branch in branches]
        return self._merged(tensor.name, values, needed=True)

    def _merged(self, name: str, values: Sequence[Any], needed: bool = False) -> Merge:
        a, b = values
        where = f"of the `if` over a Tensor at {self.where}"
        if a is None and b is None:
            return Merge(None)
        if isinstance(a, Undefined) or isinstance(b, Undefined):
            reason = "has a value in only one branch"
        else:
            first, second = Structure.of(a), Structure.of(b)
            if first.shape == second.shape:
                merge = Merge(a, first, second.leaves)
                if not merge.misfit:
                    return merge
                reason = f"is {merge.misfit} in the two branches"
            else:
                reason = f"is {words(a)} in one branch and {words(b)} in the other"
        if name in (RESULT, VALUE):
            kinds = "return values of the same kind, shape and type in both"
            raise RefusedError(f"{RESULT} {reason} {where}: {kinds}")
        if needed:
            raise RefusedError(
                f"{name}, which is changed in place, {reason} {where}; both must leave it with the same shape and type"
            )
        return Merge(Undefined(name, f": it {reason} {where}; give it one before"))


class Merge:
    """The results of two branches for one variable: which leaves differ, and their common types."""

    def __init__(self, nest: Any, structure: Structure | None = None, others: Sequence[Any] = ()):
        self.nest, self.structure = nest, structure
        self.leaves = [structure.leaves if structure else [], others]
        self.kinds: list[Kind | None] = []
        """The type and shape of each leaf; None for a leaf that is the same in both."""
        self.misfit = ""
        for a, b in zip(*self.leaves, strict=True):
            self.kinds.append(self._kind(a, b))

    def _kind(self, a: Any, b: Any) -> Kind | None:
        if not (is_value(a) or is_value(b)) and same(a, b):
            return None
        if all(is_value(x) or isinstance(x, NUMBERS) for x in (a, b)):
            shapes = [tuple(x.shape) for x in (a, b) if is_value(x)]
            if _agree(shapes):
                return Kind(common_dtype(a, b), next(iter(shapes), ()))
        self.misfit = f"{words(a)} and {words(b)}"
        return None

    def variables(self, side: int) -> list[Any]:
        """Return the leaves of one branch that differ, as variables."""
        pairs = zip(self.leaves[side], self.kinds, strict=True)
        return [as_variable(leaf, kind.dtype, kind.shape) for leaf, kind in pairs if kind is not None]

    def filled(self, made: Iterator[Any]) -> Any:
        """Return the nest filled with the operator's results."""
        if self.structure is None:
            return self.nest
        pairs = zip(self.structure.leaves, self.kinds, strict=True)
        leaves = [leaf if kind is None else next(made) for leaf, kind in pairs]
        return self.structure.filled(leaves)


def _agree(shapes: Sequence[tuple[int, ...]]) -> bool:
    """Return whether shapes may be equal."""
    if len({len(shape) for shape in shapes}) > 1:
        return False
    return all(len({size for size in sizes if size != UNKNOWN}) < 2 for sizes in zip(*shapes, strict=True))


def words(value: Any) -> str:
    """Describe a value for messages."""
    if is_value(value):
        return f"a Tensor of shape {words_of(value.shape)}"
    if value is None or isinstance(value, (*NUMBERS, str)):
        return repr(value)
    kind = type(value).__name__
    return f"a {kind} of {len(value)}" if isinstance(value, (list, tuple, dict, set)) else kind
