"""The gradient of a traced function: a separate Program, made by the reverse walk over the function's Program. The
forward pass saves the values that it reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from app.errors import InPlaceError, OperatorError
from app.graph import names
from app.graph.gradients import active_names, gradients
from app.graph.passes.rewrite import is_pure
from app.graph.program import BACKWARD, Operator, Program
from app.graph.scope import Scope
from app.jit.running import Runner
from app.ops.definition import OpDef
from app.ops.rules import Reads
from app.tensor.modes import modes

if TYPE_CHECKING:
    from app.jit.concrete import ConcreteProgram

ARRIVED = "@ARRIVED"


class GradientProgram:
    """The Program that computes the gradients of some inputs from the output gradients."""

    def __init__(self, concrete: ConcreteProgram, needs: Sequence[bool]):
        both = concrete.program.clone()
        block = both.global_block()
        sources = [name for name, need in zip(concrete.inputs, needs, strict=True) if need]
        active = active_names(block, sources)
        self.outputs = [name for name in concrete.fetch if name in active]
        """The differentiable outputs."""
        arrived = []
        for name in self.outputs:
            output = block.var(name)
            flags = {"is_data": True, "stop_gradient": True}
            arrived.append(block.create_var(name + ARRIVED, output.shape, output.dtype, **flags))
        for name in sources:
            block.var(name).stop_gradient = False
        with (
            names.guard(),
            names.prefixed("back."),
        ):  # deterministic names, because compiled code is cached by them
            derived = gradients([block.var(n) for n in self.outputs], [block.var(n) for n in sources], arrived)
        self.fetch = [None if v is None else v.name for v in derived]
        self.source_places = [place for place, need in enumerate(needs) if need]
        forward = [op for op in block.ops if op.role != BACKWARD]
        self._split(concrete, both, forward)
        self.runner = Runner(self.program, [n for n in dict.fromkeys(self.fetch) if n], concrete.backend)

    def _split(self, concrete: ConcreteProgram, both: Program, forward: Sequence[Operator]) -> None:
        """Split off the operators of the backward pass, and find the forward values that they read."""
        block = both.global_block()
        makers = {name: op for op in forward for name in op.outputs}
        own, copied = [op for op in block.ops if op.role == BACKWARD], []
        outputs = {name for op in own for name in op.outputs}
        reads = dict.fromkeys(n for op in own for n in op.inputs if n is not None and n not in outputs)
        reads.update(dict.fromkeys(n for n in self.fetch if n is not None and n not in outputs))
        self.saved: list[str] = []
        """The variables of the forward pass that it reads, and that are neither inputs nor outputs of the function."""
        self.feeds: list[str] = [name for name in reads if name.endswith(ARRIVED)]
        for name in reads:
            maker = makers.get(name)
            if name in self.feeds:
                continue
            if maker is not None and not maker.inputs and is_pure(both.global_block(), maker):
                copied.append(maker)
                continue
            if maker is not None and name in concrete.inputs:
                raise InPlaceError(
                    f"{concrete.label}: {name} is needed for the gradient, but the function changes it in place; "
                    "change a copy of it (x.clone())"
                )
            self.feeds.append(name)
            if maker is not None and name not in concrete.fetch:
                self.saved.append(name)
        for name in self.feeds:
            block.var(name).is_data, block.var(name).persistable = True, False
        block.ops = [*copied, *own]
        used = {n for op in block.ops for n in (*op.inputs, *op.outputs)} | set(self.feeds)
        block.vars = {name: v for name, v in block.vars.items() if name in used}
        self.program = both

    def run(self, values: dict[str, Any]) -> list[Any]:
        """Compute the gradients of the wanted inputs from the fed arrays."""
        feed = {name: values[name] for name in self.feeds}
        results = dict(zip(self.runner.fetch, self.runner.run(feed, Scope()), strict=True))
        return [None if name is None else results[name] for name in self.fetch]


class TracedOperator(OpDef):
    """A traced function as one operator on the tape."""

    custom = True

    def __init__(self, concrete: ConcreteProgram, gradient: GradientProgram):
        super().__init__(concrete.name, lambda *arrays: None, lambda *specs: (), inputs=[], where=concrete.where)
        self.concrete, self.of_gradient = concrete, gradient
        self.names = [*concrete.fetch, *gradient.saved]
        """The outputs, followed by the saved values."""
        self.reads = Reads(())
        self.reads.inputs_from = 0
        self.reads.outputs = frozenset(i for i, name in enumerate(self.names) if name in gradient.feeds)

    def differentiate(self, call: Any, douts: Sequence[Any]) -> list[Any]:
        gradients: list[Any] = [None] * len(call.needs)
        if modes().on:
            raise OperatorError(
                f"{self.label} cannot be differentiated twice from outside; take the first derivative in the function "
                "(opsmith.grad(..., create_graph=True)), or run it eagerly (opsmith.jit.enable_to_static(False))"
            )
        computed = self.of_gradient.run(self._fed(call, douts))
        for place, gradient in zip(self.of_gradient.source_places, computed, strict=True):
            gradients[place] = gradient
        return gradients

    def _fed(self, call: Any, douts: Sequence[Any]) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for name in self.of_gradient.feeds:
            if name.endswith(ARRIVED):
                slot = self.names.index(name.removesuffix(ARRIVED))
                values[name] = call.zeros(slot) if douts[slot] is None else np.asarray(douts[slot])
            elif name in self.concrete.inputs:
                values[name] = call.input(self.concrete.inputs.index(name))
            else:
                values[name] = call.output(self.names.index(name))
        return values
