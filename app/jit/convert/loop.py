"""`while` and `for`. If a Tensor decides, they append the operator `while_loop`, which repeats a sub-block.

Variables that the body assigns are carried from one iteration to the next. If the condition or a `break` depends on a
Tensor only after some iterations, these are run by Python, and the others by the operator.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from app.graph.variable import Variable
from app.jit.convert.branch import agree, if_, state_of, text_of
from app.jit.convert.build import expression, statements
from app.jit.convert.leaving import VALUE
from app.jit.convert.logic import and_, ask, not_
from app.jit.convert.state import (
    CONTAINERS,
    NUMBERS,
    Copies,
    Key,
    Kind,
    State,
    Undefined,
    as_condition,
    as_variable,
    common_dtype,
    dtype_of,
    is_tuple,
    is_value,
    items_of,
    one_element,
    rebuilt,
    same,
    stand_in,
    tracer,
    widened,
)
from app.jit.variable import RefusedError, TracedVariable
from app.ops import creation
from app.ops.dtype import is_float
from app.ops.spec import UNKNOWN
from app.reading import place_of
from app.static.control_flow import while_loop

# Rewriting


def rewrite_while(rewriter: Any, node: ast.While) -> list[ast.stmt]:
    """Rewrite a `while` as a call of `_jit.while_` with functions for its condition and body."""
    line = str(node.lineno)
    if hasattr(node, "stop"):
        node.test = expression("not stop and test", node, stop=node.stop, test=node.test)
    names = rewriter.scope.names([node.test, *node.body])
    ask(node.test)
    test, body = rewriter.visit(node.test), rewriter.block(node.body)
    before, state = state_of(rewriter, names, node, line)
    declared = rewriter.scope.declarations([*names.assigned, *names.outer], node)
    parts = {"check": f"_jit_while_{line}", "run": f"_jit_body_{line}"}
    return [
        *statements("def check():\n    body", node, check=parts["check"], body=[*declared, *_return(test)]),
        *statements("def run():\n    body", node, run=parts["run"], body=[*declared, *body]),
        *before,
        *statements("_jit.while_(check, run, state)", node, **parts, state=state),
    ]


def rewrite_for(rewriter: Any, node: ast.For) -> list[ast.stmt]:
    """Rewrite a `for` as a call of `_jit.for_` with a function of one item."""
    line = str(node.lineno)
    names = rewriter.scope.names([node.target, *node.body, *([node.stop] if hasattr(node, "stop") else [])])
    items = rewriter.visit(node.iter)
    item = f"_jit_item_{line}"
    take: Any = statements("x = item", node, item=item)
    take[0].targets = [node.target]
    body = [*take, *rewriter.block(node.body)]
    before, state = state_of(rewriter, names, node, line)
    declared = rewriter.scope.declarations([*names.assigned, *names.outer], node)
    stop = expression("None", node)
    if hasattr(node, "stop"):
        ask(node.stop)
        stop = expression("lambda: stop", node, stop=rewriter.visit(node.stop))
    run: Any = statements("def run(item):\n    body", node, run=f"_jit_for_{line}", body=[*declared, *body])
    run[0].args.args[0].arg = item
    parts = {"items": items, "run": f"_jit_for_{line}", "state": state, "stop": stop}
    return [*run, *before, *statements("_jit.for_(items, run, state, stop)", node, **parts)]


def _return(value: ast.expr) -> list[ast.stmt]:
    return [ast.copy_location(ast.Return(value), value)]


# Meaning


BATCHES = (
    "{}: a loop over batches cannot be part of a traced function, because each batch would be traced. Apply to_static "
    "to a step for one batch, and call it in the loop; or build a Program, and run it with Executor.train_from_dataset"
)


def while_(test: Callable[[], Any], body: Callable[[], Any], state: State) -> None:
    """Run Python's `while` as long as the condition is a plain value; then append the operator."""
    while True:
        holds = test()
        if is_value(holds):
            _append_loop(test, body, state, place_of(body))
            return
        if not holds:
            return
        body()


def for_(items: Any, body: Callable[[Any], Any], state: State, stop: Callable[[], Any] | None = None) -> None:
    """Run Python's `for`. For a range that a Tensor ends, or the rows of a Tensor of open size, append the operator.

    If a Tensor decides about a `break`, the rest of a range is the operator, and the rest of other items is branches.
    """
    if isinstance(items, TensorRange):
        _count(items, body, state, stop)
        return
    if all(hasattr(items, name) for name in ("arrays", "order", "batch_size")):
        raise RefusedError(BATCHES.format(place_of(body)))
    if isinstance(items, Variable) and items.shape[:1] == (UNKNOWN,):
        _count(TensorRange(creation.shape(items)[0]), lambda i: body(items[i]), state, stop, place_of(body))
        return
    iterator = iter(items)
    for place, item in enumerate(iterator):
        body(item)
        stopped = stop is not None and stop()
        if is_value(stopped):
            if isinstance(items, range) and items[place + 1 :]:
                rest = items[place + 1 :]
                _count(TensorRange(rest.start, rest.stop, rest.step), body, state, stop)
                return
            for other in iterator:
                if_(not_(stop()), partial(body, other), lambda: None, state, place_of(body))  # type: ignore[misc]
        elif stopped:
            return


class TensorRange:
    """`range` with a Tensor among its bounds."""

    def __init__(self, start: Any, stop: Any = None, step: Any = 1):
        self.start: Any = 0 if stop is None else start
        self.stop: Any = start if stop is None else stop
        if is_value(step):
            raise RefusedError("the step of a range cannot be a Tensor; count in a `while` loop")
        if not hasattr(step, "__index__") or not step:
            raise RefusedError(
                f"the step of a range must be a whole number other than 0 while its bounds are Tensors, found {step!r}"
            )
        self.step = int(step)


def _count(items: TensorRange, body: Callable[[Any], Any], state: State, stop: Any, where: str = "") -> None:
    """Append a loop over numbers."""
    start, end = _scalar(items.start), _scalar(items.stop)

    def check(index: Any) -> Any:
        inside = index < end if items.step > 0 else index > end
        return inside if stop is None else and_(lambda: not_(stop()), lambda: inside)

    _append_loop(check, body, state, where or place_of(body), start, items.step)


def _scalar(value: Any) -> Any:
    if is_value(value):
        value = one_element(value, "range()")
    if is_float(value.dtype) if is_value(value) else not hasattr(value, "__index__"):
        raise RefusedError(f"the bounds of a range must be whole numbers, found {value!r}; write x.astype('int64')")
    return as_variable(value, "int64")


def _append_loop(
    test: Callable[..., Any], body: Callable[..., Any], state: State, where: str, start: Any = None, step: int = 0
) -> None:
    with tracer().control_flow(where):
        _Loop(test, body, state, where, [] if start is None else [start], step).append()


class _Loop:
    """A loop over a Tensor, which carries the Tensors and numbers among the variables that its body assigns.

    What else the body changes, such as an item of a list, is carried when it is traced again.
    """

    def __init__(self, test: Any, body: Any, state: State, where: str, start: Sequence[Any], step: int):
        self.test, self.body, self.state, self.where = test, body, state, where
        self.start, self.step = start, step
        """For a range, its first number, which the condition and the body take."""
        self.before = state.read()
        self.kinds: dict[Key, Kind] = {}
        """The type and shape of each carried value."""
        self.tensors: dict[int, TracedVariable] = {}
        """Other Tensors that the body changes in place, by identity."""
        self.local: set[int] = set()
        """The variables that have a value only inside an iteration."""
        self.grown = True
        """Whether the body has to be traced again."""
        for place in range(state.assigned):
            self._each((place,), self.before.values[place], self._carry)

    def _carry(self, key: Key, value: Any) -> None:
        if is_value(value) or isinstance(value, NUMBERS):
            self.kinds[key] = Kind(dtype_of(value), _shape_of(value))

    def append(self) -> None:
        """Append the operator, and assign its results."""
        program = tracer().program
        block = program.current_block()
        operators, blocks = len(block.ops), len(program.blocks)
        while self.grown:
            for operator in block.ops[operators:]:
                for name in operator.outputs:
                    if not (block.var(name).persistable or block.var(name).is_data):
                        del block.vars[name]
            del block.ops[operators:], program.blocks[blocks:]
            results = while_loop(self._holds, self._step, self._initial())
        self._assign(results[len(self.start) :])

    def _initial(self) -> list[Any]:
        values: dict[Key, Any] = {}
        self.before.replaced(lambda key, value: self._each(key, value, values.__setitem__))
        return self._carried(self.start, values, lambda tensor: tensor) or [as_variable(0, "int64")]

    def _carried(self, index: Sequence[Any], values: Mapping[Key, Any], current: Callable[[Any], Any]) -> list[Any]:
        """What is carried, in order."""
        of_tensors = [as_variable(current(t), t.dtype, t.shape) for t in self.tensors.values()]
        return [*index, *(as_variable(values[key], *kind) for key, kind in self.kinds.items()), *of_tensors]

    def _each(self, key: Key, value: Any, function: Callable[[Key, Any], Any]) -> Any:
        """A value in which a function has replaced what may be carried; lists and dicts stay the same objects."""
        if not self._is_nest(key, value):
            return function(key, value)
        return rebuilt(value, lambda place, item: self._each((*key, place), item, function))

    def _is_nest(self, key: Key, value: Any) -> bool:
        """Whether the items of a value are carried: of a tuple, and of what the function returns."""
        returned = key[0] in range(self.state.assigned) and self.state.names[key[0]] == VALUE
        return is_tuple(value) or (returned and type(value) in CONTAINERS)

    # An iteration

    def _enter(self, values: Sequence[Any]) -> Callable[[Key, Any], Any]:
        """What gives the variables for an iteration that begins with these values."""
        remaining = iter(values[len(self.start) :])
        self.formals = {key: next(remaining) for key in self.kinds}
        self.entered: dict[Key, Any] = {}
        """The carried values at the beginning."""
        self.copies = Copies(self.before)
        for tensor in self.tensors.values():
            self.copies.add(tensor, next(remaining).here())

        def leaf(key: Key, old: Any) -> Any:
            if key not in self.formals:
                return self.copies.enter(key, old)
            self.entered[key] = self.copies.linked(old, self.formals[key].here())
            self.entered[key].carried = True
            return self.entered[key]

        return lambda key, old: self._each(key, old, leaf)

    def _holds(self, *values: Any) -> Any:
        with self.state.region(self.where, self.before, self._enter(values)):
            holds = as_condition(self.test(*values[: len(self.start)]), self.where)
        changed = [tensor.name for tensor in self.copies.changed()]
        changed += [self.formals[key].name for key in self.formals if self._is_changed(key)]
        if changed:
            names = ", ".join(changed)
            raise RefusedError(f"the condition of the loop at {self.where} changes {names} in place; do it in the body")
        return holds

    def _step(self, *values: Any) -> list[Any]:
        index, begin, self.grown = values[: len(self.start)], tracer().ticks, False
        with self.state.region(self.where, self.before, self._enter(values)):
            self.body(*index)
            self.end = self.state.read(self.before)
        self.ends: dict[Key, Any] = {}
        """The carried values at the end."""
        for place, name in enumerate(self.state.names):
            self._note((place,), name, self.before.values[place], self.end.values[place])
        for place, (name, container, content) in self.before.held.items():
            self._note_items((place,), name, content, self.end.content(container))
        for tensor in self.copies.changed():
            self.grown |= id(tensor) not in self.tensors
            self.tensors[id(tensor)] = tensor
        self._check_memory(begin)
        if self.grown:
            return list(values)
        ends = {key: self.formals[key] if self._is_kept(key) else end for key, end in self.ends.items()}
        for end in ends.values():
            if id(end) in self.end.stale:
                end.check_current()
        return self._carried([i + self.step for i in index], ends, lambda t: self.copies.enter((), t)) or list(values)

    def _is_changed(self, key: Key) -> bool:
        """Whether a carried value was changed in place."""
        return bool(self.entered[key].name != self.formals[key].name)

    def _is_kept(self, key: Key) -> bool:
        """Whether a carried value is at the end what it was at the beginning."""
        return self.ends[key] is self.entered[key] and not self._is_changed(key)

    def _note(self, key: Key, name: str, old: Any, new: Any) -> None:
        """Note how an iteration changes a value."""
        if isinstance(old, Undefined):
            if name != VALUE or isinstance(new, Undefined):
                self.local.add(key[0])
                return
            old = self.before.values[key[0]] = stand_in(new)
            self.local.discard(key[0])
            self.grown = True
        if self._is_nest(key, old):
            self._note_items(key, name, old, new)
        elif type(old) in CONTAINERS and new is not old:
            raise RefusedError(
                f"{name}, {text_of(old)}, becomes another object in the loop over a Tensor at {self.where}; change it "
                "(x[:] = ..., x.update(...)), or use a tuple"
            )
        elif key in self.formals or not same(old, self.copies.original(new)):
            self._note_leaf(key, name, old, new)

    def _note_items(self, key: Key, name: str, old: Any, new: Any) -> None:
        if type(new) is not type(old) or [p for p, _ in items_of(old)] != [p for p, _ in items_of(new)]:
            raise RefusedError(
                f"{name} changes from {text_of(old)} to {text_of(new)} in the loop over a Tensor at {self.where}, "
                "where every iteration must leave it with the same structure; instead of a list that grows, "
                "set rows of a Tensor: out[i] = x"
            )
        for (place, before), (_, after) in zip(items_of(old), items_of(new), strict=True):
            self._note((*key, place), name, before, after)

    def _note_leaf(self, key: Key, name: str, old: Any, new: Any) -> None:
        self.ends[key] = new
        if new is self.entered.get(key):
            return
        if not all(is_value(x) or isinstance(x, NUMBERS) for x in (old, new)):
            raise RefusedError(
                f"{name} changes from {text_of(old)} to {text_of(new)} in the loop over a Tensor at {self.where}, "
                "where only Tensors and numbers can change"
            )
        if is_value(old) and is_value(new) and not agree([_shape_of(old), _shape_of(new)]):
            raise RefusedError(
                f"{name} changes from {text_of(old)} to {text_of(new)} in the loop over a Tensor at {self.where}, "
                "where every iteration must leave it with the same shape; reshape or pad it, or set rows of a Tensor "
                "of the final shape: out[i] = x"
            )
        previous = self.kinds.get(key, Kind(common_dtype(old, new), _shape_of(old)))
        kind = Kind(widened(previous.dtype, new), previous.shape if is_value(old) else previous.shape or _shape_of(new))
        self.grown |= kind != self.kinds.get(key)
        self.kinds[key] = kind

    def _check_memory(self, begin: int) -> None:
        """Refuse a change in place of a value that shares memory with another one in the next iteration."""
        here = tracer().program.current_block().idx
        entered = {key: self.entered[key] for key in self.formals}
        moved = {k: v for k, v in self.ends.items() if v is not entered.get(k) and isinstance(v, TracedVariable)}
        changed: dict[Key, Any] = {key: value for key, value in entered.items() if _changed_since(value, begin)}
        copies = (((key,), copied) for key, (_, copied, _) in self.copies.pairs.items())
        changed.update((key, copied) for key, copied in copies if _changed_since(copied, begin))
        for key, value in changed.items():
            end = moved.get(key, value)
            others = {memory for other in moved if other != key for memory in moved[other].memories}
            if not others.isdisjoint(end.memories) or (key in moved and any(m.home < here for m in end.memories)):
                raise RefusedError(
                    f"{value.name} is changed in place in the loop over a Tensor at {self.where}, and shares memory "
                    "with another value in the next iteration; change a copy (x.clone())"
                )

    # After the loop

    def _assign(self, outputs: Sequence[Any]) -> None:
        reason = f": it gets one only inside the loop over a Tensor at {self.where}; give it one before"
        results = dict(zip(self.kinds, outputs, strict=False))
        olds: dict[Key, Any] = {}
        self.before.replaced(lambda key, value: self._each(key, value, olds.__setitem__))
        for tensor, result in zip(self.tensors.values(), outputs[len(self.kinds) :], strict=False):
            tensor.stand_for(result)

        def leaf(key: Key, old: Any) -> Any:
            if key not in self.kinds or self._is_kept(key):
                return old
            if self.ends[key] is self.entered[key] and isinstance(old, TracedVariable):
                old.stand_for(results[key])
                return old
            sources = [value for one in self._sources(key) for value in (olds[one], self.ends[one])]
            results[key].share_memory(*sources)
            results[key].carried = any(getattr(value, "carried", False) for value in sources)
            return results[key]

        after = self.before.replaced(lambda key, value: self._each(key, value, leaf))
        for place in self.local:
            after.values[place] = Undefined(self.state.names[place], reason)
        self.state.write(after)

    def _sources(self, key: Key) -> list[Key]:
        """The values whose objects this one may be after some iterations: all three of `a, b, c = b, c, a`."""
        keys = [key]
        for one in keys:  # which grows
            end = self.ends[one]
            memories = tracer().value(end).memories if is_value(end) else ()
            keys += [k for k in self.kinds if k not in keys and not set(memories).isdisjoint(self.entered[k].memories)]
        return keys


def _shape_of(value: Any) -> tuple[Any, ...]:
    return tuple(value.shape) if is_value(value) else ()


def _changed_since(value: Any, begin: int) -> bool:
    return isinstance(value, TracedVariable) and any(memory.changed > begin for memory in value.memories)
