"""`for x, y in batches`: over a dataset, one operator that runs the body on every batch, natively in one call.

The body is traced into a Program of its own. What it changes in place changes in the Tensors' memory; variables that
it gives new values to are kept from batch to batch; what it appends to a list is collected.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from app.errors import ProgramError
from app.jit.concrete import ConcreteProgram
from app.jit.convert.branch import words
from app.jit.convert.state import (
    NUMBERS,
    State,
    Undefined,
    as_variable,
    common_dtype,
    copied,
    dtype_of,
    is_value,
    place_of,
    same,
)
from app.jit.effects import Collected, Effects
from app.jit.signature import DatasetArgument
from app.jit.tracer import Tracer
from app.ops.creation import assign
from app.ops.definition import OpDef, apply
from app.ops.spec import UNKNOWN, Spec
from app.tensor.modes import modes

Kind = tuple[str, tuple[int, ...]]


def over_batches(dataset: DatasetArgument, body: Callable[[Any], Any], state: State, stop: Any) -> None:
    """Append the operator that runs a loop's body on all batches of a dataset."""
    loop = _Batches(dataset, body, state)
    if stop is not None:
        raise ProgramError(
            f"a loop over batches at {loop.where} that Tensors may leave early cannot be converted; "
            "look at the values outside of the function"
        )
    loop.make()


class _Batches:
    def __init__(self, dataset: DatasetArgument, body: Callable[[Any], Any], state: State):
        self.dataset, self.body, self.state, self.where = dataset, body, state, place_of(body)
        self.before = state.read()
        self.carried: dict[int, Kind] = {}
        """The type and shape of each variable, by its place, that has another value after a batch."""
        self.local: set[int] = set()

    def make(self) -> None:
        outer: Tracer = modes().tracer
        known: dict[int, Kind] | None = None
        while known != self.carried:  # what is carried is a Tensor, and more may come to depend on it
            known = dict(self.carried)
            tracer, concrete, kept = self._traced(outer)
        self._tell(outer, tracer)
        finals, collected = self._append(outer, tracer, concrete)
        after = []
        for place, (name, old) in enumerate(zip(self.state.names, self.before, strict=True)):
            if place in self.carried:
                after.append(finals[kept[place].name])
            elif place in self.local:
                after.append(Undefined(name, f": it gets one only inside the loop over batches at {self.where}"))
            elif place in kept:
                after.append(Collected(old, [collected[v.name] for v in kept[place]]))
            else:
                after.append(old)
        self.state.write(after)

    def _traced(self, outer: Tracer) -> tuple[Tracer, ConcreteProgram, dict[int, Any]]:
        """The body as a function of one batch, given what is known to be carried."""
        tracer = Tracer(outer.converted)
        tracer.backend = outer.backend
        block = tracer.program.global_block()
        rows = [
            block.create_var(f"rows_{i}", (UNKNOWN, *a.shape[1:]), a.dtype.name, is_data=True, stop_gradient=True)
            for i, a in enumerate(self.dataset.example.arrays)
        ]
        with tracer.active():
            held = {place: tracer.give(self.before[place], kind[1], kind[0]) for place, kind in self.carried.items()}
            self.state.write([held.get(place, copied(value)) for place, value in enumerate(self.before)])
            self.body(tuple(rows))
            kept: dict[int, Any] = dict(held)
            result: list[Any] = []
            ends = enumerate(zip(self.state.names, self.before, self.state.read(), strict=True))
            news = {}
            for place, (name, old, new) in ends:
                if place in held:
                    news[place] = apply(assign, [as_variable(new, *self.carried[place])], {})
                elif isinstance(old, list) and isinstance(new, list) and same(new[: len(old)], old) and new != old:
                    kept[place] = [self._row(name, leaf) for leaf in new[len(old) :]]
                    result += kept[place]
                else:
                    self._look_at(place, name, old, new)
            for place, new in news.items():
                apply(assign, [new], {}, into=[held[place]])
            effects = Effects(tracer)
            captured = list(tracer.captured.values())
            about = "the body of a loop", self.where, tracer.backend
            given = [block.var(f"rows_{i}") for i in range(len(rows))]
            concrete = ConcreteProgram(*about, tracer.program, given, captured, result, effects)
        if any(concrete.effects.names):
            raise ProgramError(
                f"the loop over batches at {self.where} leaves gradients or attributes behind with every batch; "
                "call clear_grad() in it, and register what a layer keeps as a buffer"
            )
        return tracer, concrete, kept

    def _row(self, name: str, value: Any) -> Any:
        if not is_value(value) or UNKNOWN in value.shape:
            raise ProgramError(
                f"{name} is appended {words(value)} in the loop over batches at {self.where}; "
                "it can collect Tensors whose shape does not depend on the batch"
            )
        return apply(assign, [value], {})

    def _look_at(self, place: int, name: str, old: Any, new: Any) -> None:
        """Find out whether a variable is another after a batch."""
        if isinstance(old, Undefined):
            self.local.add(place)
        elif not same(old, new):
            if not all(is_value(x) or isinstance(x, NUMBERS) for x in (old, new)):
                raise ProgramError(
                    f"{name} changes from {words(old)} to {words(new)} in the loop over batches at {self.where}, "
                    "where only Tensors and numbers can change, and lists be appended to"
                )
            dtype = dtype_of(old) if is_value(old) else common_dtype(old, new)
            shape = tuple(new.shape) if is_value(new) else ()
            if UNKNOWN in shape:
                raise ProgramError(f"{name} has a size that depends on the batch in the loop at {self.where}")
            self.carried[place] = dtype, shape

    def _tell(self, outer: Tracer, tracer: Tracer) -> None:
        """Let the function around know what its use now depends on."""
        outer.layers.update(tracer.layers)
        outer.gradients_read.update(tracer.gradients_read)
        outer.of_loops += [*tracer.captured.values(), *tracer.of_loops]
        outer.went_back = outer.went_back or tracer.went_back
        for tensor, _ in tracer.gradients.values():
            outer.note_gradient(tensor)
            tensor.grad = None

    def _append(
        self, outer: Tracer, tracer: Tracer, concrete: ConcreteProgram
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Append the operator; gives what is carried in the end, and what was collected, by the names in the body."""
        names, finals = list(tracer.given), [n for n, v in tracer.given.items() if n in _written(concrete)]
        datasets, place = outer.datasets, self.dataset.place
        block, inner = outer.program.current_block(), concrete.program.global_block()

        def run(*given: Any) -> Any:
            arrays = {name: np.array(value) for name, value in zip(names, given, strict=True)}
            rows = concrete.over(datasets[place], arrays)
            results = (*(concrete.value_of(name) for name in finals), *rows)
            return results if results else None

        specs = [inner.var(n).spec for n in finals]
        specs += [Spec((UNKNOWN, *inner.var(n).shape), inner.var(n).dtype) for n in concrete.fetch]
        definition = OpDef(
            "for_each_batch",
            run,
            lambda *given: tuple(specs),
            inputs=names,
            outputs=[*finals, *concrete.fetch],
            many_outputs=True,
            effects=True,
            where=self.where.rpartition("/")[2],
        )
        definition.custom = True
        given = [as_variable(v, inner.var(n).dtype, inner.var(n).shape) for n, v in tracer.given.items()]
        made = block.append_op(definition, given, {})
        return dict(zip(finals, made, strict=False)), dict(zip(concrete.fetch, made[len(finals) :], strict=True))


def _written(concrete: ConcreteProgram) -> set[str]:
    return {name for op in concrete.program.global_block().ops for name in op.outputs}
