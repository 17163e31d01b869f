"""torch.autograd"""

from __future__ import annotations

from typing import Any

from app import autograd
from app.compat.table import table
from app.tensor import backward as run_backward
from app.tensor import grad as gradients

GRADCHECK = table(
    autograd,
    """
    gradcheck = gradcheck(func, inputs, *, eps, atol, rtol, raise_exception, nondet_tol, check_undefined_grad, \
        check_grad_dtypes?=False, check_batched_grad!=False, check_batched_forward_grad!=False, \
        check_forward_ad!=False, check_backward_ad!=True, fast_mode?=False, masked?)
    gradgradcheck = gradgradcheck(func, inputs, grad_outputs, *, eps, atol, rtol, gen_non_contig_grad_outputs!=False, \
        raise_exception, nondet_tol, check_undefined_grad, check_grad_dtypes?=False, check_batched_grad!=False, \
        check_fwd_over_rev!=False, check_rev_over_rev!=True, fast_mode?=False, masked?=False)
    """,
)
"""Every element is checked, `fast_mode` or not; derivatives that go forward, and batches of gradients, are refused."""


def backward(
    tensors: Any,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Any = None,
) -> None:
    """Add the gradients of `tensors` to the `.grad` of every leaf that requires one."""
    run_backward(tensors, grad_tensors, create_graph if retain_graph is None else retain_graph, create_graph, inputs)


def grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Any, ...]:
    """The gradients of the sum of `outputs` with respect to `inputs`; no `.grad` is touched."""
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, which makes zeros"
        )
    listed = [inputs] if hasattr(inputs, "dtype") else list(inputs)
    unused = materialize_grads if allow_unused is None else allow_unused
    found = gradients(outputs, listed, grad_outputs, retain_graph, create_graph, allow_unused=unused)
    if materialize_grads:
        zeros = [x.new_zeros(x.shape, requires_grad=create_graph) for x in listed]
        found = [z if g is None else g for g, z in zip(found, zeros, strict=True)]
    return tuple(found)


def Variable(data: Any, requires_grad: bool = False, volatile: bool = False) -> Any:
    """A Tensor with the same memory; once a class of its own."""
    return data.detach().requires_grad_(requires_grad)
