"""What an adapter offers: arrays in, arrays out, and a pullback through the framework's own graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

Arrays = list[np.ndarray]
Call = Callable[..., Any]
"""An operator as a function of the framework's tensors alone."""


class Run(NamedTuple):
    """One forward pass."""

    outputs: Arrays
    """They may share memory with the inputs and with what the framework saved."""
    differentiable: list[bool]
    """For each output whether it has a gradient."""
    pull: Callable[[Arrays], list[np.ndarray | None]]
    """From the gradients of the differentiable outputs to those of the wanted inputs, through the framework's graph."""
    changed: tuple[int, ...] = ()
    """The positions of the inputs whose memory it wrote into."""


class Framework(Protocol):
    """An adapter."""

    name: str

    def tensors(self, arrays: Sequence[np.ndarray], wants: Sequence[bool]) -> list[Any]:
        """The framework's tensors for arrays, sharing memory if possible; `wants` says which need a gradient."""

    def array(self, tensor: Any) -> np.ndarray:
        """The numbers of a tensor, sharing memory if possible."""

    def leaves(self, results: Any) -> list[Any]:
        """The tensors among an operator's results, in order."""

    def is_tensor(self, value: Any) -> bool:
        """Whether a value is a tensor of this framework."""

    def needs_gradient(self, tensor: Any) -> bool:
        """Whether the user asked for the gradient of a tensor; False where tensors do not say so."""

    def run(self, call: Call, arrays: Sequence[np.ndarray], wants: Sequence[bool]) -> Run:
        """Run an operator forward, and keep the framework's graph."""

    def pullback(self, call: Call, count: int, wants: Sequence[bool]) -> Call:
        """The backward pass as an operator of its own, for second derivatives.

        It takes the `count` inputs and the gradients of the differentiable outputs.
        """

    def random_state(self) -> Any:
        """The state of the random numbers, equal to an earlier one if none was drawn since."""

    def can_fork(self) -> bool:
        """Whether a forked process can run the framework; not if threads that it needs are running already."""

    def after_fork(self) -> None:
        """Prepare a forked process."""


class Transforming(Framework, Protocol):
    """An adapter of a framework that transforms functions."""

    def vmap(self, call: Call) -> Call:
        """The operator on tensors with one more axis, by the framework's own transformation."""

    def push(
        self, call: Call, arrays: Sequence[np.ndarray], wants: Sequence[bool], directions: Sequence[np.ndarray],
        differentiable: Sequence[bool],
    ) -> list[np.ndarray | None]:  # fmt: skip
        """The tangents of the differentiable outputs, where the wanted inputs move in these directions."""


class Recording(Framework, Protocol):
    """An adapter of a framework that records a graph while it runs."""

    def needs_gradient(self, tensor: Any) -> bool:
        return self.has_gradient(tensor)

    def has_gradient(self, tensor: Any) -> bool:
        """Whether a tensor needs a gradient, or has one through what was recorded."""

    def grad(self, results: list[Any], sources: list[Any], arriving: list[Any], again: bool) -> list[Any]:
        """The gradients of tensors, None for those without one; if `again`, they can be differentiated, too."""

    def recorded(self, call: Call, tensors: Sequence[Any]) -> list[Any]:
        """The results of a call that is recorded."""

    def is_changed(self, tensor: Any) -> bool:
        """Whether a tensor that `tensors` made was changed in place, and the array with it."""

    def zeros_like(self, tensor: Any) -> Any:
        """Zeros of the shape and type of a tensor."""

    def run(self, call: Call, arrays: Sequence[np.ndarray], wants: Sequence[bool]) -> Run:
        tensors = self.tensors(arrays, wants)
        results = self.recorded(call, tensors)
        derived = [r for r in results if self.has_gradient(r)]
        sources = [t for t, needed in zip(tensors, wants, strict=True) if needed]

        def pull(arriving: Arrays) -> list[np.ndarray | None]:
            if not (derived and sources):
                return [None] * len(sources)
            gradients = self.grad(derived, sources, self.tensors(arriving, [False] * len(arriving)), False)
            return [None if g is None else self.array(g) for g in gradients]

        changed = tuple(place for place, t in enumerate(tensors) if self.is_changed(t))
        return Run([self.array(r) for r in results], [self.has_gradient(r) for r in results], pull, changed)

    def pullback(self, call: Call, count: int, wants: Sequence[bool]) -> Call:
        def gradients(*values: Any) -> Any:
            inputs, arriving = values[:count], values[count:]
            derived = [r for r in self.leaves(call(*inputs)) if self.has_gradient(r)]
            sources = [x for x, needed in zip(inputs, wants, strict=True) if needed]
            pulled = self.grad(derived, sources, list(arriving), True)
            return [self.zeros_like(x) if g is None else g for x, g in zip(sources, pulled, strict=True)]

        return gradients
