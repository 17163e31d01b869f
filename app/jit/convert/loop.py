"""`while` and `for`. If a Tensor decides, they append the operator `while_loop`, which repeats a sub-block.

Variables that the body assigns are carried from one iteration to the next. If the condition or a `break` depends on a
Tensor only after some iterations, these are run by Python, and the others by the operator.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from app.graph.variable import Variable
from app.jit.convert.branch import if_, state_of, words
from app.jit.convert.build import expression, statements
from app.jit.convert.logic import and_, ask, not_
from app.jit.convert.state import (
    NUMBERS,
    Kind,
    State,
    Undefined,
    as_condition,
    as_variable,
    common_dtype,
    copied,
    dtype_of,
    is_value,
    link,
    one_element,
    put_back,
    same,
    settle,
    stand_in,
    tracer,
    widened,
)
from app.jit.tracer import Changes
from app.jit.variable import RefusedError, TracedVariable
from app.ops import creation
from app.ops.dtype import is_float
from app.ops.spec import UNKNOWN
from app.reading import place_of
from app.static.control_flow import while_loop
from app.static.structure import Structure

# Rewriting


def rewrite_while(rewriter: Any, node: ast.While) -> list[ast.stmt]:
    """Rewrite a `while` as a call of `_jit.while_` with functions for its condition and body."""
    changes, needed = rewriter.scope.changes([node.test, *node.body]), rewriter.scope.read_outside(node)
    line = str(node.lineno)
    if hasattr(node, "stop"):
        node.test = expression("not stop and test", node, stop=node.stop, test=node.test)
    ask(node.test)
    test, body = rewriter.visit(node.test), rewriter.block(node.body)
    before, state = state_of(rewriter, changes, node, line)
    declared = rewriter.scope.declarations(changes.names, node)
    parts = {"check": f"_jit_while_{line}", "run": f"_jit_body_{line}"}
    return [
        *statements("def check():\n    body", node, check=parts["check"], body=[*declared, *_return(test)]),
        *statements("def run():\n    body", node, run=parts["run"], body=[*declared, *body]),
        *before,
        *statements(
            "_jit.while_(check, run, state, needed)",
            node,
            **parts,
            state=state,
            needed=_listed(needed, changes.names, node),
        ),
    ]


def rewrite_for(rewriter: Any, node: ast.For) -> list[ast.stmt]:
    """Rewrite a `for` as a call of `_jit.for_` with a function of one item."""
    changes, needed = rewriter.scope.changes([node.target, *node.body]), rewriter.scope.read_outside(node)
    line = str(node.lineno)
    items = rewriter.visit(node.iter)
    item = f"_jit_item_{line}"
    take: Any = statements("x = item", node, item=item)
    take[0].targets = [node.target]
    body = [*take, *rewriter.block(node.body)]
    before, state = state_of(rewriter, changes, node, line)
    declared = rewriter.scope.declarations(changes.names, node)
    stop = expression("None", node)
    if hasattr(node, "stop"):
        ask(node.stop)
        stop = expression("lambda: stop", node, stop=rewriter.visit(node.stop))
    run: Any = statements("def run(item):\n    body", node, run=f"_jit_for_{line}", body=[*declared, *body])
    run[0].args.args[0].arg = item
    call = "_jit.for_(items, run, state, needed, stop)"
    parts = {"items": items, "run": f"_jit_for_{line}", "state": state, "stop": stop}
    return [*run, *before, *statements(call, node, **parts, needed=_listed(needed, changes.names, node))]


def _return(value: ast.expr) -> list[ast.stmt]:
    return [ast.copy_location(ast.Return(value), value)]


def _listed(needed: Sequence[str], names: Sequence[str], at: ast.AST) -> ast.expr:
    return expression(repr(tuple(n for n in names if n in needed)), at)


# Meaning


BATCHES = (
    "{}: a loop over batches cannot be part of a traced function, because each batch would be traced. Apply to_static "
    "to a step for one batch, and call it in the loop; or build a Program, and run it with Executor.train_from_dataset"
)


def while_(test: Callable[[], Any], body: Callable[[], Any], state: State, needed: Sequence[str] = ()) -> None:
    """Run Python's `while` as long as the condition is a plain value; then append the operator."""
    while True:
        holds = test()
        if is_value(holds):
            _Loop(test, body, state, needed).append()
            return
        if not holds:
            return
        body()


def for_(
    items: Any,
    body: Callable[[Any], Any],
    state: State,
    needed: Sequence[str] = (),
    stop: Callable[[], Any] | None = None,
) -> None:
    """Run Python's `for`. For a range that a Tensor ends, or the rows of a Tensor of open size, append the operator.

    If a Tensor decides about a `break`, the rest of a range is the operator, and the rest of other items is branches.
    """
    if isinstance(items, TensorRange):
        _count(items, body, state, needed, stop)
        return
    if all(hasattr(items, name) for name in ("arrays", "order", "batch_size")):
        raise RefusedError(BATCHES.format(place_of(body)))
    if isinstance(items, Variable) and items.shape[:1] == (UNKNOWN,):
        rows = TensorRange(0, creation.shape(items)[0], 1)
        _count(rows, lambda i: body(items[i]), state, needed, stop, place_of(body))
        return
    iterator = iter(items)
    for place, item in enumerate(iterator):
        body(item)
        if stop is None:
            continue
        stopped = stop()
        if is_value(stopped) and isinstance(items, range):
            rest = items[place + 1 :]
            if rest:
                _count(TensorRange(rest.start, rest.stop, rest.step), body, state, needed, stop)
            return
        if is_value(stopped):
            for other in iterator:
                if_(not_(stop()), partial(body, other), lambda: None, state, place_of(body))
            return
        if stopped:
            return


class TensorRange:
    """`range` with a Tensor among its bounds."""

    def __init__(self, start: Any, stop: Any = None, step: Any = 1):
        self.start: Any = 0 if stop is None else start
        self.stop: Any = start if stop is None else stop
        if is_value(step) or not hasattr(step, "__index__") or not step:
            raise RefusedError(
                f"the step of a range must be a whole number other than 0 while its bounds are Tensors, found {step!r}"
            )
        self.step = int(step)


def _count(
    items: TensorRange,
    body: Callable[[Any], Any],
    state: State,
    needed: Sequence[str],
    stop: Any,
    where: str = "",
) -> None:
    """Append a loop over numbers, which carries its counter too."""
    index = [_scalar(items.start)]
    end = _scalar(items.stop)

    def check() -> Any:
        return index[0] < end if items.step > 0 else index[0] > end

    def run() -> None:
        body(index[0])
        index[0] = index[0] + items.step

    counted = state.after("the counter", lambda: index[0], lambda value: index.__setitem__(0, value))
    test = check if stop is None else lambda: and_(lambda: not_(stop()), check)
    _Loop(test, run, counted, needed, where or place_of(body)).append()


def _scalar(value: Any) -> Any:
    if is_value(value):
        value = one_element(value, "range()")
    if is_float(value.dtype) if is_value(value) else not hasattr(value, "__index__"):
        raise RefusedError(f"the bounds of a range must be whole numbers, found {value!r}; write x.astype('int64')")
    return as_variable(value, "int64")


class _Loop:
    """A loop over a Tensor, which carries every name that its body assigns.

    The body is traced once, or twice if a carried value needs another type or a Tensor is changed in place, which the
    first time has shown.
    """

    def __init__(self, test: Any, body: Any, state: State, needed: Sequence[str], where: str = ""):
        self.test, self.body, self.state, self.needed = test, body, state, needed
        self.where = where or place_of(body)
        self.before = state.read()
        """The variables before the loop; a placeholder for one without a value."""
        self.kinds = [[_kind(leaf) for leaf in Structure.of(value).leaves] for value in self.before]
        """For each variable, the kinds of its leaves; None for a leaf that can only stay the same."""
        self.tensors: list[tuple[TracedVariable, Kind]] = []
        """The traced Tensors that an iteration changes in place."""
        self.local: set[int] = set()
        """Variables that have a value only inside an iteration."""
        self.same: list[list[bool]] = []
        """For each variable, which leaves an iteration does not change."""
        self.ends: list[Any] = self.before
        """The variables at the end of an iteration."""
        self.changes = Changes()
        self.links: list[tuple[int, int, Any]] = []
        """The carried leaves that may share the memory of another value from the second iteration on."""
        self.misfit = ""
        """The variables for which the body must be traced again."""

    def append(self) -> None:
        """Append the operator, and assign its results to the variables."""
        with tracer().control_flow(self.where):
            self._assign(self._made())

    def _made(self) -> list[Any]:
        """Append the operator; return its results."""
        program = tracer().program
        block = program.current_block()
        operators, blocks = len(block.ops), len(program.blocks)
        made = self._appended()
        if self.misfit:
            for operator in block.ops[operators:]:
                for name in operator.outputs:
                    if not (block.var(name).persistable or block.var(name).is_data):
                        del block.vars[name]
            del block.ops[operators:], program.blocks[blocks:]
            made = self._appended()
            if self.misfit:
                raise RefusedError(
                    f"{self.misfit} changes its type from one iteration to the next in the loop over a Tensor at "
                    f"{self.where}; give it a Tensor of its last shape and type before the loop"
                )
        return made

    def _assign(self, made: Sequence[Any]) -> None:
        reason = f": it gets one only inside the loop over a Tensor at {self.where}; give it one before"
        ends: list[Any] = []
        for place, (name, old, new) in enumerate(zip(self.state.names, self.before, self._filled(made), strict=True)):
            if place in self.local:
                ends.append(Undefined(name, reason))
                continue
            structure = Structure.of(new)
            pairs = zip(Structure.of(old).leaves, structure.leaves, strict=True)
            kept = self.same[place] or [False] * len(structure.leaves)
            leaves = [a if same else b for same, (a, b) in zip(kept, pairs, strict=True)]
            ends.append(put_back(old, structure.filled(leaves)))
        self.state.write(ends)
        lasts = zip(self.tensors, self._last(made), strict=True)
        settle([self.changes], [(tensor, new) for (tensor, _), new in lasts])
        for (_, new), *olds in zip(self.state.current(), self.before, self.ends, strict=True):
            for old in olds:
                link(new, old)

    def _appended(self) -> list[Any]:
        self.misfit = ""
        return while_loop(self._holds, self._step, self._initial() or [as_variable(0, "int64")])

    def _initial(self) -> list[Any]:
        """The initial values of the carried variables."""
        return [*self._carried(self.before), *self._changed()]

    def _changed(self) -> list[Any]:
        """The current values of the Tensors that are changed in place."""
        return [as_variable(tensor, kind.dtype, kind.shape) for tensor, kind in self.tensors]

    def _carried(self, values: Sequence[Any]) -> list[Any]:
        """Return the carried leaves of the variables."""
        carried = []
        for value, kinds in zip(values, self.kinds, strict=True):
            if any(kinds):
                pairs = zip(Structure.of(value).leaves, kinds, strict=True)
                carried += [as_variable(leaf, kind.dtype, kind.shape) for leaf, kind in pairs if kind is not None]
        return carried

    def _filled(self, values: Sequence[Any]) -> list[Any]:
        """Return the variables filled with carried values."""
        given = iter(values)
        filled = []
        for old, kinds in zip(self.before, self.kinds, strict=True):
            structure = Structure.of(old)
            pairs = zip(structure.leaves, kinds, strict=True) if any(kinds) else ()
            leaves = [leaf if kind is None else next(given) for leaf, kind in pairs]
            filled.append(structure.filled(leaves) if leaves else copied(old))
        return filled

    def _last(self, values: Sequence[Any]) -> list[Any]:
        """Return the carried values of Tensors that are changed in place, which come last."""
        return list(values)[len(values) - len(self.tensors) :] if self.tensors else []

    def _enter(self, values: Sequence[Any]) -> list[Any]:
        """Assign the carried values before the condition or the body; return the variables."""
        filled = self._filled(values)
        for new, old in zip(filled, self.before, strict=True):
            link(new, old)
        self.state.write(filled)
        for (tensor, _), value in zip(self.tensors, self._last(values), strict=True):
            tensor.stand_for(value)
        for place, number, other in self.links:
            if isinstance(other, tuple):
                other = Structure.of(filled[other[0]]).leaves[other[1]]
            link(Structure.of(filled[place]).leaves[number], other)
        return filled

    def _holds(self, *values: Any) -> Any:
        with tracer().changes():
            self._enter(values)
            with tracer().changes() as changes, self.state.region(self.where):
                holds = as_condition(self.test(), self.where)
        if changes.values:
            names = ", ".join(tensor.name for tensor, _ in changes.values.values())
            raise RefusedError(f"the condition of the loop at {self.where} changes {names} in place; do it in the body")
        return holds

    def _step(self, *values: Any) -> list[Any]:
        with tracer().changes() as self.changes:
            filled, count = self._enter(values), tracer().changed_in_place
            entered = [[_name(leaf) for leaf in Structure.of(value).leaves] for value in filled]
            with self.state.region(self.where):
                self.body()
            self.ends = self.state.read()
            links = self._shared(filled) if tracer().changed_in_place > count else []
            self.same = [self._is_same(*pair) for pair in zip(entered, self.ends, strict=True)]
            kinds = [self._kinds_after(place, end) for place, end in enumerate(self.ends)]
            grown = [name for name, a, b in zip(self.state.names, kinds, self.kinds, strict=True) if a != b]
            made = [] if grown else [*self._carried(self.ends), *self._changed()]
        known = {id(tensor) for tensor, _ in self.tensors}
        more = [tensor for key, (tensor, _) in self.changes.values.items() if key not in known]
        self.kinds = kinds
        self.tensors += [(tensor, Kind(tensor.spec.dtype, tensor.spec.shape)) for tensor in more]
        self.links += links
        self.misfit = ", ".join([*grown, *(t.name for t in more), *(self.state.names[place] for place, *_ in links)])
        return list(values) if self.misfit else made or list(values)

    def _shared(self, filled: Sequence[Any]) -> list[tuple[int, int, Any]]:
        """The leaves that share memory from the second iteration on, with a value from before the loop or each other.

        `filled` are the variables at the beginning of the body.
        """
        here, links = tracer().program.current_block().idx, []
        seen: list[tuple[Any, Any, tuple[int, int]]] = []
        for place, (begin, end) in enumerate(zip(filled, self.ends, strict=True)):
            pairs = zip(Structure.of(begin).leaves, Structure.of(end).leaves, strict=False)
            for number, (formal, leaf) in enumerate(pairs):
                if not (isinstance(formal, TracedVariable) and isinstance(leaf, TracedVariable)):
                    continue
                others = [other for other in (leaf, *(leaf.group or ())) if other.home < here]
                if others and not _share(formal, others[0]):
                    links.append((place, number, others[0]))
                alike = [at for first, known, at in seen if _share(known, leaf) and not _share(first, formal)]
                links += [(place, number, at) for at in alike]
                seen.append((formal, leaf, (place, number)))
        return links

    def _is_same(self, entered: Sequence[str | None], end: Any) -> list[bool]:
        """Which leaves of a variable are at the end of the body what they were at its beginning."""
        names = [_name(leaf) for leaf in Structure.of(end).leaves]
        return [a is not None and a == b for a, b in zip(entered, names, strict=False)]

    def _kinds_after(self, place: int, new: Any) -> list[Kind | None]:
        """Decide what is carried of a variable, from its value after an iteration."""
        name, old = self.state.names[place], self.before[place]
        if isinstance(old, Undefined):
            if isinstance(new, Undefined):
                return self.kinds[place]
            leaves = Structure.of(new).leaves
            if name not in self.needed or not all(isinstance(x, NUMBERS) or _has_known_shape(x) for x in leaves):
                self.local.add(place)
                return self.kinds[place]
            old = self.before[place] = stand_in(new)
            self.kinds[place] = []
        first, second = Structure.of(old), Structure.of(new)
        if first.shape != second.shape:
            raise RefusedError(
                f"{name} changes from {words(old)} to {words(new)} in the loop over a Tensor at {self.where}, where "
                "every iteration must leave it with the same structure; instead of a list that grows, "
                "set rows of a Tensor: out[i] = x"
            )
        known = self.kinds[place] or [None] * len(first.leaves)
        return [self._kind_after(name, *each) for each in zip(known, first.leaves, second.leaves, strict=True)]

    def _kind_after(self, name: str, known: Kind | None, old: Any, new: Any) -> Kind | None:
        """What is carried of a leaf."""
        if same(old, new):
            return known
        if not all(is_value(x) or isinstance(x, NUMBERS) for x in (old, new)):
            raise RefusedError(
                f"{name} changes from {words(old)} to {words(new)} in the loop over a Tensor at {self.where}, "
                "where only Tensors and numbers can change"
            )
        shape: Any = tuple(new.shape) if is_value(new) else ()
        if known is None:
            return Kind(common_dtype(old, new), shape)
        return Kind(widened(known.dtype, new), known.shape if is_value(old) else shape or known.shape)


def _kind(leaf: Any) -> Kind | None:
    """The kind with which a leaf is carried at first."""
    if not (is_value(leaf) or isinstance(leaf, NUMBERS)):
        return None
    shape: Any = tuple(leaf.shape) if is_value(leaf) else ()
    return Kind(dtype_of(leaf), shape)


def _share(a: TracedVariable, b: TracedVariable) -> bool:
    """Whether two values share memory."""
    return a is b or (a.group is not None and a.group is b.group)


def _name(leaf: Any) -> str | None:
    return leaf.name if isinstance(leaf, Variable) else None


def _has_known_shape(value: Any) -> bool:
    return is_value(value) and UNKNOWN not in value.shape
