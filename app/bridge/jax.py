"""JAX: `jax.custom_vjp`, `jax.custom_jvp`, and plain functions."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import jax
import numpy as np

from app.bridge.framework import Arrays, Call, Run, Transforming
from app.bridge.function import Foreign, ForeignFunction
from app.bridge.recognising import parameters, remembered, uses
from app.reading import place_of

_KINDS = {jax.custom_vjp: "jax.custom_vjp", jax.custom_jvp: "jax.custom_jvp"}


class Jax(Transforming):
    """The adapter. Finite differences need float64, which JAX has only where it is switched on."""

    name = "jax"

    def types_of(self, arrays: Sequence[Any]) -> AbstractContextManager[Any]:
        """Inside, JAX has types of 64 bits if an array has one. What an operator makes itself, such as `jnp.arange` or
        random numbers, is otherwise what it is in the user's program."""
        return jax.enable_x64(jax.config.jax_enable_x64 or any(a.dtype.itemsize == 8 for a in arrays))

    def tensors(self, arrays: Sequence[np.ndarray], wants: Sequence[bool]) -> list[Any]:
        with self.types_of(arrays):
            return [jax.numpy.asarray(a) for a in arrays]

    def array(self, tensor: Any) -> np.ndarray:
        return np.array(tensor)  # a copy: what JAX gives cannot be written

    def leaves(self, results: Any) -> list[Any]:
        return [leaf for leaf in jax.tree_util.tree_leaves(results) if hasattr(leaf, "dtype")]

    def needs_gradient(self, tensor: Any) -> bool:
        return False

    def is_tensor(self, value: Any) -> bool:
        return isinstance(value, jax.Array)

    def run(self, call: Call, arrays: Sequence[np.ndarray], wants: Sequence[bool]) -> Run:
        """Run forward. A function of JAX is pure, so the graph is made when it is needed, from the same inputs."""
        values = self.tensors(arrays, wants)
        with self.types_of(arrays):
            results = self.leaves(call(*values))
        graph: list[Any] = []

        def pull(arriving: Arrays) -> list[np.ndarray | None]:
            with self.types_of(arrays):
                if not graph:
                    graph.append(jax.vjp(self.of_floats(call, values, wants), *chosen(values, wants))[1])
                return [self.array(g) for g in graph[0]([jax.numpy.asarray(d) for d in arriving])]

        has_gradient = [any(wants) and r.dtype.kind == "f" for r in results]
        return Run([self.array(r) for r in results], has_gradient, pull)

    def of_floats(self, call: Call, values: Sequence[Any], wants: Sequence[bool]) -> Callable[..., list[Any]]:
        """The float outputs as a function of the wanted inputs alone."""

        def function(*floats: Any) -> list[Any]:
            remaining = iter(floats)
            inputs = [next(remaining) if needed else v for v, needed in zip(values, wants, strict=True)]
            return [r for r in self.leaves(call(*inputs)) if r.dtype.kind == "f"]

        return function

    def pullback(self, call: Call, count: int, wants: Sequence[bool]) -> Call:
        def gradients(*values: Any) -> Any:
            inputs, arriving = values[:count], values[count:]
            _, graph = jax.vjp(self.of_floats(call, inputs, wants), *chosen(inputs, wants))
            return list(graph(list(arriving)))

        return gradients

    def vmap(self, call: Call) -> Call:
        return jax.vmap(call)

    def push(
        self, call: Call, arrays: Sequence[np.ndarray], wants: Sequence[bool], directions: Sequence[np.ndarray],
        differentiable: Sequence[bool],
    ) -> list[np.ndarray | None]:  # fmt: skip
        values = self.tensors(arrays, wants)
        with self.types_of(arrays):
            moves = tuple(map(jax.numpy.asarray, directions))
            _, tangents = jax.jvp(self.of_floats(call, values, wants), tuple(chosen(values, wants)), moves)
        return [self.array(t) for t in tangents]

    def random_state(self) -> Any:
        """None, as functions of JAX are given their random numbers."""

    def can_fork(self) -> bool:
        bridge = getattr(getattr(jax, "_src", None), "xla_bridge", None)  # JAX has no public name for this
        return bridge is not None and not bridge.backends_are_initialized()

    def after_fork(self) -> None:
        """JAX has no threads yet."""


def chosen(values: Sequence[Any], wants: Sequence[bool]) -> list[Any]:
    return [v for v, needed in zip(values, wants, strict=True) if needed]


JAX = Jax()


def recognise(thing: Any) -> type[ForeignFunction] | None:
    """The class of Function for an operator of JAX; None for anything else."""
    return remembered(thing, _described)


def _described(thing: Any) -> Foreign | None:
    kind = _KINDS.get(type(thing))
    function = inspect.unwrap(thing) if callable(thing) else thing
    if kind is None and not uses(function, "jax"):
        return None
    rules = [getattr(thing, name, None) for name in ("fwd", "bwd", "jvp")] if kind else []
    written = tuple(f for f in (function, *rules) if f is not None)
    backward = f"backward ({written[-1].__name__}, {place_of(written[-1])})" if len(written) > 1 else ""
    return Foreign(
        function.__name__, kind or "jax function", JAX, thing, _parameters(thing, function), thing, written, backward,
        is_definite=kind is not None,
    )  # fmt: skip


def _parameters(thing: Any, function: Any) -> tuple[inspect.Parameter, ...]:
    """The parameters. Those in `nondiff_argnums` of a custom_vjp are settings."""
    signature = list(parameters(function))
    for place, parameter in enumerate(signature):
        if place in getattr(thing, "nondiff_argnums", ()) and parameter.default is parameter.empty:
            signature[place] = parameter.replace(annotation=float)
    return tuple(signature)
