"""Optimisers' steps that count: whose size depends on how many there were, beside what `app.ops.update` says of all."""

from __future__ import annotations

from typing import Any

import numpy as np

from app.ops.form import Filling
from app.ops.update import update


def _fill_adam(
    param: Any, grad: Any, learning_rate: Any, moment1: Any, moment2: Any, beta1_pow: Any, beta2_pow: Any,
    new_param: Any, new_moment1: Any, new_moment2: Any, new_beta1_pow: Any, new_beta2_pow: Any,
    beta1: float, beta2: float, epsilon: float, coeff: float,
) -> bool:  # fmt: skip
    rate, p1, p2 = learning_rate.flat[0], beta1_pow.flat[0] * beta1, beta2_pow.flat[0] * beta2
    kept = 1 - rate * coeff
    for i in range(param.size):
        m = beta1 * moment1.flat[i] + (1 - beta1) * grad.flat[i]
        v = beta2 * moment2.flat[i] + (1 - beta2) * grad.flat[i] * grad.flat[i]
        new_param.flat[i] = param.flat[i] * kept - rate * (m / (1 - p1) / (np.sqrt(v / (1 - p2)) + epsilon))
        new_moment1.flat[i], new_moment2.flat[i] = m, v
    new_beta1_pow.flat[0], new_beta2_pow.flat[0] = p1, p2
    return True


@update("moment1", "moment2", "beta1_pow", "beta2_pow", form=Filling(_fill_adam, row_by_row=False))
def adam(
    param: Any,
    grad: Any,
    learning_rate: Any,
    moment1: Any,
    moment2: Any,
    beta1_pow: Any,
    beta2_pow: Any,
    *,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
    coeff: float = 0.0,
) -> Any:
    """One step of Adam: the mean gradient over the root of the mean square, both corrected for their start at 0.

    `coeff` is the share of the parameter itself that each step takes away, apart from the gradient (AdamW).
    """
    m = beta1 * moment1 + (1 - beta1) * grad
    v = beta2 * moment2 + (1 - beta2) * grad * grad
    p1, p2 = beta1_pow * beta1, beta2_pow * beta2
    step = m / (1 - p1) / (np.sqrt(v / (1 - p2)) + epsilon)
    kept = param * (1 - learning_rate * coeff) if coeff else param
    return kept - learning_rate * step, m, v, p1, p2


def _fill_amsgrad(
    param: Any, grad: Any, learning_rate: Any,
    moment1: Any, moment2: Any, moment2_max: Any, beta1_pow: Any, beta2_pow: Any,
    new_param: Any, new_moment1: Any, new_moment2: Any, new_moment2_max: Any, new_beta1_pow: Any, new_beta2_pow: Any,
    beta1: float, beta2: float, epsilon: float, coeff: float,
) -> bool:  # fmt: skip
    rate, p1, p2 = learning_rate.flat[0], beta1_pow.flat[0] * beta1, beta2_pow.flat[0] * beta2
    kept = 1 - rate * coeff
    for i in range(param.size):
        m = beta1 * moment1.flat[i] + (1 - beta1) * grad.flat[i]
        v = beta2 * moment2.flat[i] + (1 - beta2) * grad.flat[i] * grad.flat[i]
        top = np.maximum(moment2_max.flat[i], v)
        new_param.flat[i] = param.flat[i] * kept - rate * (m / (1 - p1) / (np.sqrt(top / (1 - p2)) + epsilon))
        new_moment1.flat[i], new_moment2.flat[i], new_moment2_max.flat[i] = m, v, top
    new_beta1_pow.flat[0], new_beta2_pow.flat[0] = p1, p2
    return True


@update("moment1", "moment2", "moment2_max", "beta1_pow", "beta2_pow", form=Filling(_fill_amsgrad, row_by_row=False))
def amsgrad(
    param: Any,
    grad: Any,
    learning_rate: Any,
    moment1: Any,
    moment2: Any,
    moment2_max: Any,
    beta1_pow: Any,
    beta2_pow: Any,
    *,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
    coeff: float = 0.0,
) -> Any:
    """One step of Adam that is taken over the largest mean square so far, so that steps never grow again."""
    m = beta1 * moment1 + (1 - beta1) * grad
    v = beta2 * moment2 + (1 - beta2) * grad * grad
    top = np.maximum(moment2_max, v)
    p1, p2 = beta1_pow * beta1, beta2_pow * beta2
    step = m / (1 - p1) / (np.sqrt(top / (1 - p2)) + epsilon)
    return param * (1 - learning_rate * coeff) - learning_rate * step, m, v, top, p1, p2


def _fill_adamax(
    param: Any, grad: Any, learning_rate: Any, moment: Any, inf_norm: Any, beta1_pow: Any,
    new_param: Any, new_moment: Any, new_inf_norm: Any, new_beta1_pow: Any,
    beta1: float, beta2: float, epsilon: float,
) -> bool:  # fmt: skip
    p1 = beta1_pow.flat[0] * beta1
    rate = learning_rate.flat[0] / (1 - p1)
    for i in range(param.size):
        m = beta1 * moment.flat[i] + (1 - beta1) * grad.flat[i]
        largest = np.maximum(np.abs(grad.flat[i]), beta2 * inf_norm.flat[i] + epsilon)
        new_param.flat[i] = param.flat[i] - rate * m / largest
        new_moment.flat[i], new_inf_norm.flat[i] = m, largest
    new_beta1_pow.flat[0] = p1
    return True


@update("moment", "inf_norm", "beta1_pow", form=Filling(_fill_adamax, row_by_row=False))
def adamax(
    param: Any,
    grad: Any,
    learning_rate: Any,
    moment: Any,
    inf_norm: Any,
    beta1_pow: Any,
    *,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
) -> Any:
    """One step of Adam in which the largest gradient of late stands for the root of the mean square."""
    m = beta1 * moment + (1 - beta1) * grad
    largest = np.maximum(np.abs(grad), beta2 * inf_norm + epsilon)
    p1 = beta1_pow * beta1
    return param - learning_rate / (1 - p1) * m / largest, m, largest, p1


def _fill_nadam(
    param: Any, grad: Any, learning_rate: Any, moment1: Any, moment2: Any, step: Any, mu_product: Any,
    new_param: Any, new_moment1: Any, new_moment2: Any, new_step: Any, new_mu_product: Any,
    beta1: float, beta2: float, epsilon: float, momentum_decay: float, coeff: float,
) -> bool:  # fmt: skip
    rate, t = learning_rate.flat[0], step.flat[0] + 1.0
    mu = beta1 * (1 - 0.5 * 0.96 ** (t * momentum_decay))
    next_mu = beta1 * (1 - 0.5 * 0.96 ** ((t + 1) * momentum_decay))
    product = mu_product.flat[0] * mu
    for_grad, for_moment = (1 - mu) / (1 - product), next_mu / (1 - product * next_mu)
    start, kept = 1 - beta2**t, 1 - rate * coeff
    for i in range(param.size):
        m = beta1 * moment1.flat[i] + (1 - beta1) * grad.flat[i]
        v = beta2 * moment2.flat[i] + (1 - beta2) * grad.flat[i] * grad.flat[i]
        ahead = for_grad * grad.flat[i] + for_moment * m
        new_param.flat[i] = param.flat[i] * kept - rate * ahead / (np.sqrt(v / start) + epsilon)
        new_moment1.flat[i], new_moment2.flat[i] = m, v
    new_step.flat[0], new_mu_product.flat[0] = t, product
    return True


@update("moment1", "moment2", "step", "mu_product", form=Filling(_fill_nadam, row_by_row=False))
def nadam(
    param: Any,
    grad: Any,
    learning_rate: Any,
    moment1: Any,
    moment2: Any,
    step: Any,
    mu_product: Any,
    *,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
    momentum_decay: float = 0.004,
    coeff: float = 0.0,
) -> Any:
    """One step of Adam that looks ahead, as Nesterov's momentum does."""
    t = step.item() + 1.0
    mu = beta1 * (1 - 0.5 * 0.96 ** (t * momentum_decay))
    next_mu = beta1 * (1 - 0.5 * 0.96 ** ((t + 1) * momentum_decay))
    product = mu_product.item() * mu
    m = beta1 * moment1 + (1 - beta1) * grad
    v = beta2 * moment2 + (1 - beta2) * grad * grad
    ahead = (1 - mu) / (1 - product) * grad + next_mu / (1 - product * next_mu) * m
    kept = param * (1 - learning_rate * coeff)
    return kept - learning_rate * ahead / (np.sqrt(v / (1 - beta2**t)) + epsilon), m, v, step + 1, mu_product * mu


def _fill_radam(
    param: Any, grad: Any, learning_rate: Any, moment1: Any, moment2: Any, step: Any,
    new_param: Any, new_moment1: Any, new_moment2: Any, new_step: Any,
    beta1: float, beta2: float, epsilon: float, coeff: float,
) -> bool:  # fmt: skip
    t = step.flat[0] + 1.0
    p2, longest = beta2**t, 2 / (1 - beta2) - 1
    length = longest - 2 * t * p2 / (1 - p2)
    trusted, rectified = length > 5, 1.0
    if trusted:
        rectified = (length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length)
    rate, kept = learning_rate.flat[0] / (1 - beta1**t), 1 - learning_rate.flat[0] * coeff
    scale = np.sqrt(rectified * (1 - p2))
    for i in range(param.size):
        m = beta1 * moment1.flat[i] + (1 - beta1) * grad.flat[i]
        v = beta2 * moment2.flat[i] + (1 - beta2) * grad.flat[i] * grad.flat[i]
        size = scale / (np.sqrt(v) + epsilon) if trusted else 1.0
        new_param.flat[i] = param.flat[i] * kept - rate * m * size
        new_moment1.flat[i], new_moment2.flat[i] = m, v
    new_step.flat[0] = t
    return True


@update("moment1", "moment2", "step", form=Filling(_fill_radam, row_by_row=False))
def radam(
    param: Any,
    grad: Any,
    learning_rate: Any,
    moment1: Any,
    moment2: Any,
    step: Any,
    *,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
    coeff: float = 0.0,
) -> Any:
    """One step of Adam that adapts its size only once the mean square is of enough gradients to be trusted."""
    t = step.item() + 1.0
    p2, longest = beta2**t, 2 / (1 - beta2) - 1
    length = longest - 2 * t * p2 / (1 - p2)  # of the mean: how many gradients it is of, as it were
    m = beta1 * moment1 + (1 - beta1) * grad
    v = beta2 * moment2 + (1 - beta2) * grad * grad
    change = m / (1 - beta1**t)
    if length > 5:
        rectified = (length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length)
        change = change * (rectified * (1 - p2)) ** 0.5 / (np.sqrt(v) + epsilon)
    return param * (1 - learning_rate * coeff) - learning_rate * change, m, v, step + 1


def _fill_averaged(
    param: Any, grad: Any, learning_rate: Any, average: Any, eta: Any, mu: Any, step: Any,
    new_param: Any, new_average: Any, new_eta: Any, new_mu: Any, new_step: Any,
    lambd: float, alpha: float, t0: float,
) -> bool:  # fmt: skip
    t, rate, share = step.flat[0] + 1.0, eta.flat[0], mu.flat[0]
    for i in range(param.size):
        new = param.flat[i] * (1 - lambd * rate) - rate * grad.flat[i]
        new_param.flat[i] = new
        new_average.flat[i] = average.flat[i] + (new - average.flat[i]) * share
    new_eta.flat[0] = learning_rate.flat[0] / (1 + lambd * learning_rate.flat[0] * t) ** alpha
    new_mu.flat[0], new_step.flat[0] = 1 / max(1.0, t - t0), t
    return True


@update("average", "eta", "mu", "step", form=Filling(_fill_averaged, row_by_row=False))
def averaged_sgd(
    param: Any,
    grad: Any,
    learning_rate: Any,
    average: Any,
    eta: Any,
    mu: Any,
    step: Any,
    *,
    lambd: float = 1e-4,
    alpha: float = 0.75,
    t0: float = 1e6,
) -> Any:
    """One step against the gradient at a rate that falls; the average of the parameter from step `t0` on is kept."""
    t = step.item() + 1.0
    new = param * (1 - lambd * eta) - eta * grad
    next_eta = learning_rate / (1 + lambd * learning_rate * t) ** alpha
    next_mu = np.asarray(1 / max(1.0, t - t0), mu.dtype)
    return new, average + (new - average) * mu, next_eta, next_mu, step + 1
