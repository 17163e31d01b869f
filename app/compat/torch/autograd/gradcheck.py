"""torch.autograd.gradcheck"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from app import autograd
from app.errors import OperatorError


def gradcheck(
    func: Callable[..., Any],
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Whether the gradients of `func` agree with central differences; every element is checked, `fast_mode` or not."""
    _require_backward_alone(check_batched_grad or check_batched_forward_grad, check_forward_ad, check_backward_ad)
    return autograd.gradcheck(func, inputs, eps, atol, rtol, raise_exception, nondet_tol, check_undefined_grad)


def gradgradcheck(
    func: Callable[..., Any],
    inputs: Any,
    grad_outputs: Any = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool = False,
) -> bool:
    """Whether the gradients of the gradients of `func` agree with central differences."""
    _require_backward_alone(check_batched_grad, check_fwd_over_rev, check_rev_over_rev)
    return autograd.gradgradcheck(
        func, inputs, grad_outputs, eps, atol, rtol, raise_exception, nondet_tol, check_undefined_grad
    )


def _require_backward_alone(batched: bool, forward: bool, backward: bool) -> None:
    if batched or forward or not backward:
        asked = "batches of gradients" if batched else "derivatives that go forward (jvp)"
        raise OperatorError(f"gradcheck checks backward passes here, one at a time; it was asked to check {asked}")
