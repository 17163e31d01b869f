"""PyTorch: `torch.autograd.Function`, `torch.library.custom_op`, plain functions, modules without parameters."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import torch
from torch.autograd import forward_ad

from app.bridge.framework import Call, Recording, Transforming
from app.bridge.function import IN_PLACE, KEYWORD, POSITIONAL, Foreign, ForeignFunction
from app.bridge.recognising import parameters, remembered, uses
from app.custom.calling import ReturnedError
from app.reading import place_of


class Torch(Recording, Transforming):
    """The adapter."""

    name = "torch"

    def tensors(self, arrays: Sequence[np.ndarray], wants: Sequence[bool]) -> list[Any]:
        return [self._tensor(a).requires_grad_(needed) for a, needed in zip(arrays, wants, strict=True)]

    def _tensor(self, array: np.ndarray) -> Any:
        """A tensor with the memory and the strides of an array; a copy where PyTorch cannot have them."""
        array = np.asarray(array)  # what NumPy computes of an array without axes is a number
        if not array.flags.writeable or any(stride < 0 for stride in array.strides):
            array = array.copy()
        return torch.from_numpy(array)

    def array(self, tensor: Any) -> np.ndarray:
        return np.asarray((tensor if tensor.layout == torch.strided else tensor.to_dense()).numpy(force=True))

    def leaves(self, results: Any) -> list[Any]:
        return [leaf for leaf in torch.utils._pytree.tree_leaves(results) if isinstance(leaf, torch.Tensor)]

    def is_tensor(self, value: Any) -> bool:
        return isinstance(value, torch.Tensor)

    def has_gradient(self, tensor: Any) -> bool:
        return bool(tensor.requires_grad)

    def recorded(self, call: Call, tensors: Sequence[Any]) -> list[Any]:
        try:
            with torch.enable_grad():
                return self.leaves(call(*tensors))
        except RuntimeError as error:
            if "a leaf Variable that requires grad" not in str(error):
                raise
            raise ReturnedError(IN_PLACE) from error

    def grad(self, results: list[Any], sources: list[Any], arriving: list[Any], again: bool) -> list[Any]:
        if any(type(r.grad_fn).__name__ == "Error" for r in results):  # for which allow_unused=True would give None
            raise RuntimeError("its backward is marked with @once_differentiable")
        options = {"create_graph": True} if again else {"retain_graph": True}
        return list(torch.autograd.grad(results, sources, arriving, allow_unused=True, **options))

    def zeros_like(self, tensor: Any) -> Any:
        return torch.zeros_like(tensor)

    def vmap(self, call: Call) -> Call:
        return torch.vmap(lambda *tensors: tuple(self.leaves(call(*tensors))))

    def push(
        self, call: Call, arrays: Sequence[np.ndarray], wants: Sequence[bool], directions: Sequence[np.ndarray],
        differentiable: Sequence[bool],
    ) -> list[np.ndarray | None]:  # fmt: skip
        remaining = iter(self.tensors(directions, [False] * len(directions)))
        with forward_ad.dual_level():
            tensors = [self._tensor(a.copy()) for a in arrays]
            duals = [
                forward_ad.make_dual(t, next(remaining)) if has else t for t, has in zip(tensors, wants, strict=True)
            ]
            derived = [r for r, has in zip(self.leaves(call(*duals)), differentiable, strict=True) if has]
            tangents = [forward_ad.unpack_dual(r).tangent for r in derived]
        return [None if t is None else self.array(t) for t in tangents]

    def is_changed(self, tensor: Any) -> bool:
        return bool(tensor._version)

    def random_state(self) -> Any:
        return torch.get_rng_state().numpy().tobytes()

    def can_fork(self) -> bool:
        return not torch.cuda.is_initialized()

    def after_fork(self) -> None:
        torch.set_num_threads(1)  # those of the parent do not exist in the child


TORCH = Torch()


def recognise(thing: Any) -> type[ForeignFunction] | None:
    """The class of Function for an operator of PyTorch; None for anything else."""
    owner = getattr(thing, "__self__", None)
    if _is_kind(owner, torch.autograd.Function) and thing.__name__ == "apply":
        thing = owner  # MyReLU.apply
    return remembered(thing, _described)


def _described(thing: Any) -> Foreign | None:
    if _is_kind(thing, torch.autograd.Function):
        plain = thing.setup_context is not torch.autograd.Function.setup_context
        signature = parameters(thing.forward, 0 if plain else 1)
        return Foreign(
            thing.__name__, "torch.autograd.Function", TORCH, _applying(thing), signature, thing, (thing,),
            f"backward ({place_of(thing.backward)})",
        )  # fmt: skip
    overload = getattr(thing, "_opoverload", thing)
    if isinstance(overload, torch._ops.OpOverloadPacket):
        overload = overload.default
    if isinstance(overload, torch._ops.OpOverload):
        return _of_library(thing, overload)
    if isinstance(thing, torch.nn.Module) or _is_kind(thing, torch.nn.Module):
        return _of_module(thing)
    if uses(thing, "torch"):
        kind, signature = "torch function", parameters(thing)
        return Foreign(thing.__name__, kind, TORCH, thing, signature, thing, (thing,), is_definite=False)
    return None


def _applying(thing: Any) -> Call:
    """The call of a Function, which refuses a list: PyTorch passes it on, and its tensors have no gradient."""
    plain = thing.setup_context is not torch.autograd.Function.setup_context

    def apply(*args: Any) -> Any:
        if plain and [p.name for p in parameters(thing.forward)][:1] == ["ctx"]:
            raise ReturnedError(
                f"{thing.__name__} has a setup_context, so its forward ({place_of(thing.forward)}) takes no ctx: write "
                "forward(x), or remove setup_context"
            )
        results = thing.apply(*args)
        if isinstance(results, list):
            raise ReturnedError("its forward returns a list, whose tensors have no gradient: return a tuple")
        return results

    return apply


def _is_kind(thing: Any, base: Any) -> bool:
    return isinstance(thing, type) and issubclass(thing, base)


def _of_library(thing: Any, overload: Any) -> Foreign:
    """An operator of torch.library; `thing` is the operator or what `custom_op` makes."""
    function = getattr(thing, "_init_fn", None)
    name, kind = overload._schema.name.rpartition("::")[2], "torch.library.custom_op"
    signature = tuple(map(_of_argument, overload._schema.arguments))
    backward = getattr(thing, "_backward_fn", None)
    functions = tuple(f for f in (function, backward, getattr(thing, "_setup_context_fn", None)) if f is not None)
    return Foreign(
        name, kind, TORCH, thing, signature, thing, functions,
        f"backward ({place_of(backward)})" if backward else "", has_backward=_has_backward(thing, overload),
    )  # fmt: skip


def _of_argument(argument: Any) -> inspect.Parameter:
    """A parameter of an operator's schema."""
    default = argument.default_value if argument.has_default_value() else inspect.Parameter.empty
    annotation = inspect.Parameter.empty if "Tensor" in str(argument.type) else str(argument.type)
    kind = KEYWORD if argument.kwarg_only else POSITIONAL
    return inspect.Parameter(argument.name, kind, default=default, annotation=annotation)


def _has_backward(thing: Any, overload: Any) -> bool:
    """Whether an operator has a formula for its gradient; without one, its backward is an error."""
    if getattr(thing, "_backward_fn", None) is not None:
        return True
    keys = ["CompositeImplicitAutograd"]
    keys += [] if hasattr(thing, "_backward_fn") else ["Autograd", "AutogradCPU"]  # `custom_op` always registers these
    return any(torch._C._dispatch_has_kernel_for_dispatch_key(overload.name(), key) for key in keys)


def _of_module(thing: Any) -> Foreign:
    """A module or a class of modules. Whether it can be checked is seen when it is: a file has modules of all kinds."""
    kind: Any = thing if isinstance(thing, type) else type(thing)
    signature = tuple(p for p in parameters(kind.forward, 1) if p.default is p.empty)

    @cache
    def module() -> Any:
        try:
            made = thing() if thing is kind else thing
        except Exception as error:
            raise ReturnedError(
                f"{kind.__name__} cannot be made without arguments ({type(error).__name__}: {error})"
            ) from error
        if held := [path for path, _ in made.named_parameters()]:
            raise ReturnedError(
                f"{kind.__name__} has parameters ({', '.join(held)}), which would not be checked or trained: give a "
                "function of its inputs and these, such as torch.nn.functional.linear"
            )
        return made

    def call(*args: Any) -> Any:
        return module()(*args)

    def state() -> list[np.ndarray]:
        return [buffer.numpy(force=True) for buffer in module().buffers()]

    return Foreign(
        kind.__name__, "torch.nn.Module", TORCH, call, signature, thing, (kind,), is_definite=False, state=state
    )
