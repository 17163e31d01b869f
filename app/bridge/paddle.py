"""Paddle: `paddle.autograd.PyLayer`, and plain functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import paddle

from app.bridge.framework import Arrays, Call, Run
from app.bridge.function import Foreign, ForeignFunction
from app.bridge.recognising import parameters, remembered, uses
from app.reading import place_of


class Paddle:
    """The adapter. Paddle copies arrays, and has no strides of zero."""

    name = "paddle"
    shares_memory = False

    def tensors(self, arrays: Sequence[np.ndarray], wants: Sequence[bool]) -> list[Any]:
        return [self.tensor(a, stop_gradient=not needed) for a, needed in zip(arrays, wants, strict=True)]

    def tensor(self, array: np.ndarray, stop_gradient: bool = True) -> Any:
        return paddle.to_tensor(np.array(array, order="C"), stop_gradient=stop_gradient)

    def array(self, tensor: Any) -> np.ndarray:
        return np.array(tensor.numpy())

    def leaves(self, results: Any) -> list[Any]:
        if isinstance(results, (list, tuple)):
            return [leaf for each in results for leaf in self.leaves(each)]
        return [results] if self.is_tensor(results) else []

    def is_tensor(self, value: Any) -> bool:
        return isinstance(value, paddle.Tensor)

    def run(self, call: Call, arrays: Sequence[np.ndarray], wants: Sequence[bool]) -> Run:
        tensors = self.tensors(arrays, wants)
        with paddle.enable_grad():
            results = self.leaves(call(*tensors))
        derived = [r for r in results if not r.stop_gradient]
        sources = [t for t, needed in zip(tensors, wants, strict=True) if needed]

        def pull(arriving: Arrays) -> list[np.ndarray | None]:
            if not (derived and sources):
                return [None] * len(sources)
            flowing = [self.tensor(d) for d in arriving]
            gradients = paddle.grad(derived, sources, flowing, retain_graph=True, allow_unused=True)
            return [None if g is None else self.array(g) for g in gradients]

        return Run([self.array(r) for r in results], [not r.stop_gradient for r in results], pull)

    def pullback(self, call: Call, count: int, wants: Sequence[bool]) -> Call:
        def gradients(*values: Any) -> Any:
            inputs, arriving = values[:count], values[count:]
            derived = [r for r in self.leaves(call(*inputs)) if not r.stop_gradient]
            sources = [x for x, needed in zip(inputs, wants, strict=True) if needed]
            pulled = paddle.grad(derived, sources, list(arriving), create_graph=True, allow_unused=True)
            return [paddle.zeros_like(x) if g is None else g for x, g in zip(sources, pulled, strict=True)]

        return gradients

    def can_fork(self) -> bool:
        return True

    def after_fork(self) -> None:
        """Paddle computes such small tensors in the thread that calls it."""


PADDLE = Paddle()


def recognise(thing: Any) -> type[ForeignFunction] | None:
    """The class of Function for an operator of Paddle; None for anything else."""
    owner = getattr(thing, "__self__", None)
    if _is_layer(owner) and thing.__name__ == "apply":
        thing = owner  # MyLayer.apply
    return remembered(thing, _described)


def _described(thing: Any) -> Foreign | None:
    if _is_layer(thing):
        return Foreign(
            thing.__name__, "paddle.autograd.PyLayer", PADDLE, thing.apply, parameters(thing.forward, 1), thing,
            (thing,), place_of(thing.forward), thing.__module__, f"backward ({place_of(thing.backward)})",
        )  # fmt: skip
    if uses(thing, "paddle"):
        return Foreign(
            thing.__name__, "paddle function", PADDLE, thing, parameters(thing), thing, (thing,), place_of(thing),
            thing.__module__, is_definite=False,
        )  # fmt: skip
    return None


def _is_layer(thing: Any) -> bool:
    return isinstance(thing, type) and issubclass(thing, paddle.autograd.PyLayer)
