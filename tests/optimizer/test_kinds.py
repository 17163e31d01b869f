"""Every optimizer against its rule written out in NumPy, eagerly and in Programs, and what it remembers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from app import nn, optimizer, static, to_tensor
from app.graph.defaults import static_mode
from app.nn.initializer import Assign

START = np.array([1.0, -2.0, 3.0])
GRADIENTS = [np.array([0.5, -1.0, 0.0]), np.array([1.0, 1.0, -1.0]), np.array([0.0, 2.0, 0.5])]
State = dict[str, Any]
Rule = Callable[[np.ndarray, np.ndarray, float, State], np.ndarray]
"""The parameter after a step: of itself, its gradient, the learning rate, and what the rule remembers."""


def sgd(p: np.ndarray, g: np.ndarray, rate: float, s: State) -> np.ndarray:
    return p - rate * g


def momentum(mu: float = 0.9, nesterov: bool = False) -> Rule:
    def rule(p: np.ndarray, g: np.ndarray, rate: float, s: State) -> np.ndarray:
        s["v"] = mu * s.get("v", 0) + g
        return p - rate * (g + mu * s["v"] if nesterov else s["v"])

    return rule


def adam(beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-8) -> Rule:
    def rule(p: np.ndarray, g: np.ndarray, rate: float, s: State) -> np.ndarray:
        s["t"] = s.get("t", 0) + 1
        s["m"] = beta1 * s.get("m", 0) + (1 - beta1) * g
        s["v"] = beta2 * s.get("v", 0) + (1 - beta2) * g * g
        return p - rate * (s["m"] / (1 - beta1 ** s["t"])) / (np.sqrt(s["v"] / (1 - beta2 ** s["t"])) + epsilon)

    return rule


def adamw(p: np.ndarray, g: np.ndarray, rate: float, s: State) -> np.ndarray:
    return adam()(p * (1 - rate * 0.2), g, rate, s)


def rmsprop(p: np.ndarray, g: np.ndarray, rate: float, s: State) -> np.ndarray:
    s["h"] = 0.95 * s.get("h", 0) + 0.05 * g * g
    return p - rate * g / np.sqrt(s["h"] + 1e-6)


def rmsprop_centered(p: np.ndarray, g: np.ndarray, rate: float, s: State) -> np.ndarray:
    s["h"], s["m"] = 0.95 * s.get("h", 0) + 0.05 * g * g, 0.95 * s.get("m", 0) + 0.05 * g
    s["v"] = 0.9 * s.get("v", 0) + rate * g / np.sqrt(s["h"] - s["m"] ** 2 + 1e-6)
    return p - s["v"]


def decayed(rule: Rule) -> Rule:
    return lambda p, g, rate, s: rule(p, g + 0.3 * p, rate, s)


KINDS: list[tuple[type[optimizer.Optimizer], dict[str, Any], Rule]] = [
    (optimizer.SGD, {}, sgd),
    (optimizer.SGD, {"momentum": 0.8}, momentum(0.8)),
    (optimizer.Momentum, {}, momentum()),
    (optimizer.Momentum, {"momentum": 0.5, "use_nesterov": True}, momentum(0.5, nesterov=True)),
    (optimizer.Adam, {}, adam()),
    (optimizer.Adam, {"beta1": 0.5, "beta2": 0.8, "epsilon": 1e-2}, adam(0.5, 0.8, 1e-2)),
    (optimizer.AdamW, {"weight_decay": 0.2}, adamw),
    (optimizer.AdamW, {"weight_decay": 0.0}, adam()),
    (optimizer.RMSProp, {}, rmsprop),
    (optimizer.RMSProp, {"momentum": 0.9, "centered": True}, rmsprop_centered),
    (optimizer.SGD, {"weight_decay": 0.3}, decayed(sgd)),
    (optimizer.Adam, {"weight_decay": 0.3}, decayed(adam())),
    (optimizer.Momentum, {"weight_decay": 0.3}, decayed(momentum())),
]
each = pytest.mark.parametrize(("kind", "settings", "rule"), KINDS)


def by_rule(rule: Rule) -> list[np.ndarray]:
    """The parameter after each step, with half the learning rate each time."""
    p, state, history = START, {}, []
    for number, g in enumerate(GRADIENTS):
        p = rule(p, g, 0.2 / 2**number, state)
        history.append(p)
    return history


def eagerly(kind: Any, settings: dict[str, Any], dtype: str) -> tuple[list[np.ndarray], Any, Any]:
    """The parameter after each step; itself; and the optimizer."""
    parameter = to_tensor(START, dtype, stop_gradient=False)
    parameter.name = "p"
    stepper, history = kind(0.2, parameters=[parameter], **settings), []
    for g in GRADIENTS:
        (parameter * to_tensor(g, dtype)).sum().backward()
        stepper.step()
        stepper.clear_grad()
        stepper.set_lr(stepper.get_lr() / 2)
        history.append(parameter.numpy())
    return history, parameter, stepper


@each
def test_eager_steps_follow_the_rule(kind: Any, settings: dict[str, Any], rule: Rule):
    for dtype, near in (("float64", 1e-12), ("float32", 1e-5)):
        history, _, _ = eagerly(kind, settings, dtype)
        assert history[0].dtype == dtype
        np.testing.assert_allclose(history, by_rule(rule), rtol=near)


@pytest.mark.parametrize(
    ("engine", "dtype"), [("reference", "float64"), ("reference", "float32"), ("compiled", "float64")]
)
def test_a_program_takes_the_same_steps(engine: str, dtype: str):
    main, startup = static.Program(), static.Program()
    with static_mode(), static.program_guard(main, startup):
        gradient = static.data("g", [3], dtype)
        parameters = [nn.create_parameter([3], dtype, attr=Assign(START)) for _ in KINDS]
        steppers = [kind(0.2, **settings) for kind, settings, _ in KINDS]
        for stepper, parameter in zip(steppers, parameters, strict=True):
            stepper.minimize((parameter * gradient).sum(), parameters=[parameter])
    scope, executor = static.Scope(), static.Executor(engine=engine)
    executor.run(startup, scope=scope)
    histories: list[list[np.ndarray]] = [[] for _ in KINDS]
    for g in GRADIENTS:
        executor.run(main, {"g": g.astype(dtype)}, scope=scope)
        for stepper, parameter, history in zip(steppers, parameters, histories, strict=True):
            history.append(scope.values[parameter.name].copy())
            stepper.set_lr(stepper.get_lr() / 2)
    for (kind, settings, rule), history in zip(KINDS, histories, strict=True):
        np.testing.assert_allclose(history, by_rule(rule), rtol=1e-9 if dtype == "float64" else 1e-5)
        if engine == "reference":
            np.testing.assert_array_equal(history, eagerly(kind, settings, dtype)[0])


@each
def test_training_resumes_from_the_state(kind: Any, settings: dict[str, Any], rule: Rule):
    _, parameter, stepper = eagerly(kind, settings, "float64")
    other = to_tensor(parameter.numpy(), stop_gradient=False)
    other.name = "p"
    resumed = kind(stepper.get_lr(), parameters=[other], **settings)
    resumed.set_state_dict({name: np.asarray(value) for name, value in stepper.state_dict().items()})
    for one, by in ((parameter, stepper), (other, resumed)):
        (one * to_tensor(GRADIENTS[0])).sum().backward()
        by.step()
    assert other.tolist() == parameter.tolist()


@each
def test_half_precision_loses_no_more_than_its_own_digits(kind: Any, settings: dict[str, Any], rule: Rule):
    history, parameter, stepper = eagerly(kind, settings, "float16")
    assert {state.dtype for state in stepper.states_of(parameter).values()} <= {"float32"}
    assert parameter.dtype == "float16"
    np.testing.assert_allclose(history, by_rule(rule), rtol=5e-3)
