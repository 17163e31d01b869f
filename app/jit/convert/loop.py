"""`while` and `for`. If a Tensor decides, they append the operator `while_loop`, which repeats a sub-block.

Variables that the body assigns are carried from one iteration to the next. If the condition or a `break` depends on a
Tensor only after some iterations, these are run by Python, and the others by the operator.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from app.errors import ProgramError
from app.graph.variable import Variable
from app.jit.convert.branch import if_, state_of, words
from app.jit.convert.build import expression, statements
from app.jit.convert.logic import and_, ask, not_
from app.jit.convert.state import (
    NUMBERS,
    State,
    Undefined,
    as_condition,
    as_variable,
    common_dtype,
    copied,
    is_value,
    link,
    one_element,
    put_back,
    same,
    stand_in,
    tracer,
    widened,
)
from app.jit.convert.watch import watched
from app.jit.tracer import Again, Findings, Kind
from app.jit.variable import Memory, settle
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
            _Loop(test, body, state, needed).make()
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
    """Run Python's `for`. For a range that a Tensor ends, or the rows of a Tensor of open size, append the operator."""
    if isinstance(items, TensorRange):
        _count(items, body, state, needed, stop)
        return
    if all(hasattr(items, name) for name in ("arrays", "order", "batch_size")):
        raise ProgramError(BATCHES.format(place_of(body)))
    if isinstance(items, Variable) and items.shape[:1] == (UNKNOWN,):
        rows = TensorRange(0, creation.shape(items)[0], 1)
        _count(rows, lambda i: body(items[i]), state, needed, stop, place_of(body))
        return
    if stop is not None and isinstance(items, range) and len(items) > 1:
        _range_with_break(items, body, state, needed, stop)
        return
    iterator = iter(items)
    for item in iterator:
        body(item)
        if stop is None:
            continue
        stopped = stop()
        if is_value(stopped):
            for other in iterator:
                if_(not_(stop()), partial(body, other), lambda: None, state, place_of(body))
            return
        if stopped:
            return


def _range_with_break(items: range, body: Any, state: State, needed: Sequence[str], stop: Any) -> None:
    """Run Python's `for` over a range with a `break`. If a Tensor decides about the `break`, append the operator.

    This is known after the first iteration. The loop is then traced again as an operator from the first iteration on.
    Otherwise the Program would have the body twice, and four times inside another such loop.
    """
    around = tracer().findings
    found = around.of(place_of(body))
    if found.by_operator:
        _count(TensorRange(items.start, items.stop, items.step), body, state, needed, stop, found=found)
        return
    for place, item in enumerate(items):
        if place == 0:
            found.begin()
            tracer().findings = found
        try:
            body(item)
        finally:
            tracer().findings = around
        stopped = stop()
        if is_value(stopped):
            if place == 0:
                found.by_operator = True
                raise Again
            rest = items[place + 1 :]
            if len(rest):
                _count(TensorRange(rest.start, rest.stop, rest.step), body, state, needed, stop)
            return
        if stopped:
            return


class TensorRange:
    """`range` with a Tensor among its bounds."""

    def __init__(self, start: Any, stop: Any = None, step: Any = 1):
        self.start: Any = 0 if stop is None else start
        self.stop: Any = start if stop is None else stop
        if is_value(step) or not hasattr(step, "__index__") or not step:
            raise ProgramError(
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
    found: Findings | None = None,
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
    _Loop(test, run, counted, needed, where or place_of(body)).make(found)


def _scalar(value: Any) -> Any:
    if is_value(value):
        value = one_element(value, "range()")
    if is_float(value.dtype) if is_value(value) else not hasattr(value, "__index__"):
        raise ProgramError(f"the bounds of a range must be whole numbers, found {value!r}; write x.astype('int64')")
    return as_variable(value, "int64")


class _Loop:
    """A loop over a Tensor. Its body is traced until the carried variables are known, mostly once or twice."""

    def __init__(self, test: Any, body: Any, state: State, needed: Sequence[str], where: str = ""):
        self.test, self.body, self.state, self.needed = test, body, state, needed
        self.where = where or place_of(body)
        self.before = state.read()
        self.local: set[int] = set()
        """Variables that have a value only inside an iteration."""
        self.found = Findings()
        self.memory: list[Memory] = []
        """The memory that the body changes."""
        self.ends: list[Any] = self.before
        """The variables at the end of an iteration."""

    def make(self, found: Findings | None = None) -> None:
        """Append the operator, and assign its results to the variables."""
        around = tracer().findings
        self.found = tracer().findings = self._known(around.of(self.where) if found is None else found)
        try:
            made = self._appended()
        finally:
            tracer().findings = around
        reason = f": it gets one only inside the loop over a Tensor at {self.where}; give it one before"
        ends = zip(self.state.names, self.before, self._filled(made), strict=True)
        self.state.write(
            [
                Undefined(name, reason) if place in self.local else put_back(old, new)
                for place, (name, old, new) in enumerate(ends)
            ]
        )
        lasts = zip(self.found.tensors, self._last(made), strict=True)
        settle(tracer(), self.memory, [(tensor, new) for (tensor, _), new in lasts])
        for (_, new), *olds in zip(self.state.current(), self.before, self.ends, strict=True):
            for old in olds:
                link(new, old)

    def _known(self, found: Findings) -> Findings:
        """Return the findings of earlier traces, without those that no longer apply to this loop."""
        if len(found.kinds) != len(self.before):
            found.kinds = [[] for _ in self.before]
        for place, value in found.begins.items():
            if isinstance(self.before[place], Undefined):
                self.before[place] = value
        for place, (value, kinds) in enumerate(zip(self.before, found.kinds, strict=True)):
            if len(kinds) != len(Structure.of(value).leaves):
                found.kinds[place] = []
        blocks = tracer().program.blocks
        found.tensors = [(t, kind) for t, kind in found.tensors if t.block in blocks]
        return found

    def _appended(self) -> list[Any]:
        while True:
            self.found.begin()
            self.local = set()
            try:
                with tracer().attempt():
                    return while_loop(self._says, self._makes, self._initial() or [as_variable(0, "int64")])
            except Again:
                continue

    def _initial(self) -> list[Any]:
        """The initial values of the carried variables."""
        carried = self._carried(self.before)
        return [*carried, *self._changed()]

    def _changed(self) -> list[Any]:
        """The current values of the Tensors that are changed in place."""
        return [as_variable(tensor, kind.dtype, kind.shape) for tensor, kind in self.found.tensors]

    def _carried(self, values: Sequence[Any]) -> list[Any]:
        """Return the carried leaves of the variables."""
        carried = []
        for value, kinds in zip(values, self.found.kinds, strict=True):
            if any(kinds):
                pairs = zip(Structure.of(value).leaves, kinds, strict=True)
                carried += [as_variable(leaf, kind.dtype, kind.shape) for leaf, kind in pairs if kind is not None]
        return carried

    def _filled(self, values: Sequence[Any]) -> list[Any]:
        """Return the variables filled with carried values."""
        given = iter(values)
        filled = []
        for old, kinds in zip(self.before, self.found.kinds, strict=True):
            if not any(kinds):
                filled.append(copied(old))
                continue
            structure = Structure.of(old)
            pairs = zip(structure.leaves, kinds, strict=True)
            leaves = [leaf if kind is None else next(given) for leaf, kind in pairs]
            filled.append(structure.filled(leaves))
        return filled

    def _last(self, values: Sequence[Any]) -> list[Any]:
        """Return the carried values of Tensors that are changed in place, which come last."""
        return list(values)[len(values) - len(self.found.tensors) :] if self.found.tensors else []

    def _enter(self, values: Sequence[Any]) -> None:
        """Assign the carried values before the condition or the body."""
        filled = self._filled(values)
        for new, old in zip(filled, self.before, strict=True):
            link(new, old)
        self.state.write(filled)
        for (tensor, _), value in zip(self.found.tensors, self._last(values), strict=True):
            tensor.stand_for(value)

    def _says(self, *values: Any) -> Any:
        with tracer().changes():
            self._enter(values)
            with tracer().changes() as changed, watched(self.state, self.where):
                says = as_condition(self.test(), self.where)
        if changed:
            names = ", ".join(tensor.name for tensor, _ in changed.values())
            raise ProgramError(f"the condition of the loop at {self.where} changes {names} in place; do it in the body")
        return says

    def _makes(self, *values: Any) -> list[Any]:
        with tracer().changes() as changed:
            self._enter(values)
            with watched(self.state, self.where):
                self.body()
            news = self.state.read()
            kinds = [self._carry(place, new) for place, new in enumerate(news)]
            grown = kinds != self.found.kinds
            made = [] if grown else self._carried(news)
            made += self._changed()
        self.memory, self.ends = changed.memory, news
        known = {id(tensor) for tensor, _ in self.found.tensors}
        more = [(t, Kind(t.spec.dtype, t.spec.shape)) for key, (t, _) in changed.items() if key not in known]
        if grown or more:  # a carried number is a Tensor in the body, on which more may depend
            self.found.kinds = kinds
            self.found.tensors += more
            raise Again
        return made or list(values)

    def _carry(self, place: int, new: Any) -> list[Kind | None]:
        """Decide which leaves of a variable are carried, from its values before and after an iteration."""
        name, old = self.state.names[place], self.before[place]
        if isinstance(old, Undefined):
            if isinstance(new, Undefined):
                return []
            leaves = Structure.of(new).leaves
            if name not in self.needed or not all(isinstance(x, NUMBERS) or _has_known_shape(x) for x in leaves):
                self.local.add(place)
                return []
            old = self.before[place] = self.found.begins[place] = stand_in(new)
        first, second = Structure.of(old), Structure.of(new)
        if first.shape != second.shape:
            raise ProgramError(
                f"{name} changes from {words(old)} to {words(new)} in the loop over a Tensor at {self.where}, where "
                "every iteration must leave it with the same structure; instead of a list that grows, "
                "set rows of a Tensor: out[i] = x"
            )
        earlier = self.found.kinds[place] or [None] * len(first.leaves)
        kinds = [
            self._carry_leaf(name, a, b, kind) for kind, a, b in zip(earlier, first.leaves, second.leaves, strict=True)
        ]
        return kinds if any(kinds) else []

    def _carry_leaf(self, name: str, old: Any, new: Any, known: Kind | None) -> Kind | None:
        """What is carried for a leaf; the type that is `known` from an earlier trace may become wider."""
        if known is not None:
            return known._replace(dtype=widened(known.dtype, new))
        if same(old, new):
            return None
        if not all(is_value(x) or isinstance(x, NUMBERS) for x in (old, new)):
            raise ProgramError(
                f"{name} changes from {words(old)} to {words(new)} in the loop over a Tensor at {self.where}, "
                "where only Tensors and numbers can change"
            )
        return Kind(common_dtype(old, new), tuple(new.shape) if is_value(new) else ())


def _has_known_shape(value: Any) -> bool:
    return is_value(value) and UNKNOWN not in value.shape
