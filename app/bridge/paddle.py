"""Paddle: `paddle.autograd.PyLayer`, and plain functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import paddle

from app.bridge.framework import Call, Recording
from app.bridge.function import Foreign, ForeignFunction
from app.bridge.recognising import parameters, remembered, uses
from app.reading import place_of


class Paddle(Recording):
    """The adapter. Paddle copies arrays, and has no strides of zero."""

    name = "paddle"

    def tensors(self, arrays: Sequence[np.ndarray], wants: Sequence[bool]) -> list[Any]:
        return [
            paddle.to_tensor(np.array(a, order="C"), stop_gradient=not needed)
            for a, needed in zip(arrays, wants, strict=True)
        ]

    def array(self, tensor: Any) -> np.ndarray:
        return np.array(tensor.numpy())

    def leaves(self, results: Any) -> list[Any]:
        if isinstance(results, (list, tuple)):
            return [leaf for each in results for leaf in self.leaves(each)]
        return [results] if self.is_tensor(results) else []

    def is_tensor(self, value: Any) -> bool:
        return isinstance(value, paddle.Tensor)

    def has_gradient(self, tensor: Any) -> bool:
        return not tensor.stop_gradient

    def recorded(self, call: Call, tensors: Sequence[Any]) -> list[Any]:
        with paddle.enable_grad():
            return self.leaves(call(*tensors))

    def grad(self, results: list[Any], sources: list[Any], arriving: list[Any], again: bool) -> list[Any]:
        options = {"create_graph": True} if again else {"retain_graph": True}
        return list(paddle.grad(results, sources, arriving, allow_unused=True, **options))

    def zeros_like(self, tensor: Any) -> Any:
        return paddle.zeros_like(tensor)

    def is_changed(self, tensor: Any) -> bool:
        return False  # Paddle copies arrays

    def random_state(self) -> Any:
        texts = [str(state) for state in paddle.get_rng_state()]
        return [[word for word in text.split() if not word.startswith("0x")] for text in texts]  # addresses of copies

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
            (thing,), f"backward ({place_of(thing.backward)})",
        )  # fmt: skip
    if uses(thing, "paddle"):
        kind, signature = "paddle function", parameters(thing)
        return Foreign(thing.__name__, kind, PADDLE, thing, signature, thing, (thing,), is_definite=False)
    return None


def _is_layer(thing: Any) -> bool:
    return isinstance(thing, type) and issubclass(thing, paddle.autograd.PyLayer)
