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


class Framework(Protocol):
    """An adapter."""

    name: str
    shares_memory: bool
    """Whether its tensors have the memory of arrays; others get and give copies, into which nothing can be written."""

    def tensors(self, arrays: Sequence[np.ndarray], wants: Sequence[bool]) -> list[Any]:
        """The framework's tensors for arrays, sharing memory if possible; `wants` says which need a gradient."""

    def array(self, tensor: Any) -> np.ndarray:
        """The numbers of a tensor, sharing memory if possible."""

    def leaves(self, results: Any) -> list[Any]:
        """The tensors among an operator's results, in order."""

    def is_tensor(self, value: Any) -> bool:
        """Whether a value is a tensor of this framework."""

    def run(self, call: Call, arrays: Sequence[np.ndarray], wants: Sequence[bool]) -> Run:
        """Run an operator forward, and keep the framework's graph."""

    def pullback(self, call: Call, count: int, wants: Sequence[bool]) -> Call:
        """The backward pass as an operator of its own, for second derivatives.

        It takes the `count` inputs and the gradients of the differentiable outputs.
        """

    def can_fork(self) -> bool:
        """Whether a forked process can run the framework; not if threads that it needs are running already."""

    def after_fork(self) -> None:
        """Prepare a forked process."""
