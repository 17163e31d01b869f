"""Every optimiser against its rule written out in NumPy, eagerly and in a Program; decay, groups and factors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import app
from app import nn, optimizer, regularizer, static, to_tensor
from app.errors import AppError
from app.graph.defaults import static_mode
from app.nn.initializer import Assign

START = np.array([1.0, -2.0, 3.0])
GRADIENTS = [np.array([0.5, -1.0, 2.0]), np.array([1.0, 1.0, -1.0]), np.array([0.0, 2.0, 0.5])]
Rule = Callable[[np.ndarray, np.ndarray, dict[str, Any]], np.ndarray]


def momentum(p: np.ndarray, g: np.ndarray, s: dict[str, Any]) -> np.ndarray:
    s["v"] = 0.9 * s.get("v", 0) + g
    return p - 0.1 * s["v"]


def nesterov(p: np.ndarray, g: np.ndarray, s: dict[str, Any]) -> np.ndarray:
    s["v"] = 0.9 * s.get("v", 0) + g
    return p - 0.1 * (g + 0.9 * s["v"])


def adam(p: np.ndarray, g: np.ndarray, s: dict[str, Any]) -> np.ndarray:
    s["t"] = s.get("t", 0) + 1
    s["m"], s["v"] = 0.9 * s.get("m", 0) + 0.1 * g, 0.999 * s.get("v", 0) + 0.001 * g * g
    return p - 0.1 * (s["m"] / (1 - 0.9 ** s["t"])) / (np.sqrt(s["v"] / (1 - 0.999 ** s["t"])) + 1e-8)


def adamw(p: np.ndarray, g: np.ndarray, s: dict[str, Any]) -> np.ndarray:
    return adam(p * (1 - 0.1 * 0.2), g, s)


def amsgrad(p: np.ndarray, g: np.ndarray, s: dict[str, Any]) -> np.ndarray:
    s["t"] = s.get("t", 0) + 1
    s["m"], s["v"] = 0.9 * s.get("m", 0) + 0.1 * g, 0.999 * s.get("v", 0) + 0.001 * g * g
    s["top"] = np.maximum(s.get("top", 0), s["v"])
    return p - 0.1 * (s["m"] / (1 - 0.9 ** s["t"])) / (np.sqrt(s["top"] / (1 - 0.999 ** s["t"])) + 1e-8)


def adagrad(p: np.ndarray, g: np.ndarray, s: dict[str, Any]) -> np.ndarray:
    s["h"] = s.get("h", 0.1) + g * g
    return p - 0.1 * g / (np.sqrt(s["h"]) + 1e-6)


def adadelta(p: np.ndarray, g: np.ndarray, s: dict[str, Any]) -> np.ndarray:
    s["h"] = 0.95 * s.get("h", 0) + 0.05 * g * g
    step = g * np.sqrt((s.get("d", 0) + 1e-6) / (s["h"] + 1e-6))
    s["d"] = 0.95 * s.get("d", 0) + 0.05 * step * step
    return p - 0.1 * step


def rmsprop(p: np.ndarray, g: np.ndarray, s: dict[str, Any]) -> np.ndarray:
    s["h"] = 0.95 * s.get("h", 0) + 0.05 * g * g
    return p - 0.1 * g / np.sqrt(s["h"] + 1e-6)


def rmsprop_centered(p: np.ndarray, g: np.ndarray, s: dict[str, Any]) -> np.ndarray:
    s["h"], s["m"] = 0.95 * s.get("h", 0) + 0.05 * g * g, 0.95 * s.get("m", 0) + 0.05 * g
    s["v"] = 0.9 * s.get("v", 0) + 0.1 * g / np.sqrt(s["h"] - s["m"] ** 2 + 1e-6)
    return p - s["v"]


KINDS: list[tuple[Callable[..., Any], Rule]] = [
    (lambda **k: optimizer.SGD(0.1, **k), lambda p, g, s: p - 0.1 * g),
    (lambda **k: optimizer.Momentum(0.1, **k), momentum),
    (lambda **k: optimizer.Momentum(0.1, use_nesterov=True, **k), nesterov),
    (lambda **k: optimizer.Adam(0.1, **k), adam),
    (lambda **k: optimizer.AdamW(0.1, weight_decay=0.2, **k), adamw),
    (lambda **k: optimizer.Adam(0.1, amsgrad=True, **k), amsgrad),
    (lambda **k: optimizer.AdamW(0.1, weight_decay=0.0, amsgrad=True, **k), amsgrad),
    (lambda **k: optimizer.Adagrad(0.1, initial_accumulator_value=0.1, **k), adagrad),
    (lambda **k: optimizer.Adadelta(0.1, **k), adadelta),
    (lambda **k: optimizer.RMSProp(0.1, **k), rmsprop),
    (lambda **k: optimizer.RMSProp(0.1, momentum=0.9, centered=True, **k), rmsprop_centered),
    (lambda **k: optimizer.SGD(0.1, weight_decay=0.3, **k), lambda p, g, s: p - 0.1 * (g + 0.3 * p)),
    (
        lambda **k: optimizer.SGD(0.1, weight_decay=regularizer.L1Decay(0.3), **k),
        lambda p, g, s: p - 0.1 * (g + 0.3 * np.sign(p)),
    ),
    (
        lambda **k: optimizer.Adam(0.1, weight_decay=regularizer.L2Decay(0.3), **k),
        lambda p, g, s: adam(p, g + 0.3 * p, s),
    ),
]
each = pytest.mark.parametrize(("make", "rule"), KINDS)


def expected_of(rule: Rule) -> np.ndarray:
    p, state = START, {}
    for g in GRADIENTS:
        p = rule(p, g, state)
    return p


def eager_run(make: Callable[..., Any], parameter: Any) -> Any:
    stepper = make(parameters=[parameter])
    for g in GRADIENTS:
        (parameter * to_tensor(g)).sum().backward()
        stepper.step()
        stepper.clear_grad()
    return stepper


@each
def test_steps_follow_the_rule(make: Callable[..., Any], rule: Rule):
    parameter = to_tensor(START, stop_gradient=False)
    eager_run(make, parameter)
    np.testing.assert_allclose(parameter.numpy(), expected_of(rule), rtol=1e-9)


@pytest.mark.parametrize("engine", ["reference", "compiled"])
def test_a_program_takes_the_same_steps(engine: str):
    main, startup = static.Program(), static.Program()
    with static_mode(), static.program_guard(main, startup):
        gradient = static.data("g", [3], "float64")
        parameters = [nn.create_parameter([3], "float64", Assign(START)) for _ in KINDS]
        for (make, _), parameter in zip(KINDS, parameters, strict=True):
            make().minimize((parameter * gradient).sum(), parameters=[parameter])
    scope, executor = static.Scope(), static.Executor(engine=engine)
    executor.run(startup, scope=scope)
    for g in GRADIENTS:
        executor.run(main, {"g": g}, scope=scope)
    for (_, rule), parameter in zip(KINDS, parameters, strict=True):
        np.testing.assert_allclose(scope.values[parameter.name], expected_of(rule), rtol=1e-9)


def test_weights_of_some_parameters_do_not_decay():
    parameters = [nn.create_parameter([3], "float64", nn.ParamAttr(n, Assign(START))) for n in ("w", "norm")]
    stepper = optimizer.AdamW(
        0.1, parameters=parameters, weight_decay=0.5, apply_decay_param_fun=lambda name: name != "norm"
    )
    app.add_n([p * 0.0 for p in parameters]).sum().backward()
    stepper.step()
    np.testing.assert_allclose(parameters[0].numpy(), START * 0.95)
    np.testing.assert_allclose(parameters[1].numpy(), START)


def test_what_a_parameter_says_of_itself_comes_before_what_the_optimiser_says():
    attr = nn.ParamAttr(initializer=Assign(START), learning_rate=0.5, regularizer=regularizer.L2Decay(1.0))
    parameter = nn.create_parameter([3], "float64", attr)
    (parameter * 0.0).sum().backward()
    optimizer.SGD(0.1, [parameter], weight_decay=7.0).step()
    np.testing.assert_allclose(parameter.numpy(), START * (1 - 0.5 * 0.1))


def test_the_settings_of_a_group_replace_those_of_a_parameter_as_in_paddle():
    attr = app.ParamAttr(initializer=Assign(START), learning_rate=0.5, regularizer=regularizer.L2Decay(7.0))
    alone, grouped = (nn.create_parameter([3], "float64", attr) for _ in range(2))
    for parameters in ([alone], [{"params": [grouped]}]):
        stepper = optimizer.SGD(0.1, parameters, weight_decay=1.0)
        _step(stepper, parameters[0]["params"][0] if isinstance(parameters[0], dict) else parameters[0])
    np.testing.assert_allclose(alone.numpy(), START - 0.05 * (1 + 7 * START))
    np.testing.assert_allclose(grouped.numpy(), START - 0.1 * (1 + START))


def test_adamw_adds_the_regularizer_of_a_parameter_to_its_gradient():
    plain = nn.create_parameter([3], "float64", app.ParamAttr(initializer=Assign(START)))
    own = nn.create_parameter(
        [3], "float64", app.ParamAttr(initializer=Assign(START), regularizer=regularizer.L2Decay(2.0))
    )
    (plain * to_tensor(1 + 2 * START)).sum().backward()
    own.sum().backward()
    optimizer.AdamW(0.1, parameters=[plain, own]).step()
    np.testing.assert_allclose(own.numpy(), plain.numpy(), rtol=1e-9)


def test_groups_of_parameters_have_settings_of_their_own():
    first, second, third = (to_tensor(START, stop_gradient=False) for _ in range(3))
    stepper = optimizer.Momentum(
        0.1,
        0.9,
        [
            {"params": [first], "learning_rate": 0.5, "weight_decay": 1.0},
            {"params": second, "grad_clip": nn.ClipGradByValue(0.25)},
            {"params": [third], "mu": 0.0},
        ],
    )
    for _ in range(2):
        app.add_n([first, second, third]).sum().backward()
        stepper.step()
        stepper.clear_grad()
    velocity = [1.0 + START, 0.9 * (1.0 + START)]
    once = START - 0.05 * velocity[0]
    np.testing.assert_allclose(first.numpy(), once - 0.05 * (velocity[1] + 1.0 + once))
    np.testing.assert_allclose(second.numpy(), START - 0.1 * (0.25 + 0.9 * 0.25 + 0.25))
    np.testing.assert_allclose(third.numpy(), START - 0.1 * 2)
    stepper.groups[2].settings["mu"] = 0.5
    assert [group.learning_rate for group in stepper.groups] == [0.5, 1.0, 1.0]


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda p: optimizer.SGD(0.1, p), "takes a list of parameters, such as network.parameters"),
        (lambda p: optimizer.SGD(0.1, [{"param": [p]}]), "a dictionary with the key 'params'"),
        (lambda p: optimizer.SGD(0.1, [{"params": [p], "mu": 1}]), "has no setting mu; it can have params, learning"),
        (lambda p: _step(optimizer.SGD(0.1, [p], weight_decay="much"), p), "weight_decay is a number, L1Decay or L2"),
        (lambda p: optimizer.Momentum(0.1, parameters=[p], rescale_grad=0.5), "rescale_grad is 1.0.*multiply the loss"),
        (lambda p: optimizer.SGD(0.1, [p]).set_lr_scheduler(0.1), "set_lr_scheduler takes an LRScheduler, not 0.1"),
    ],
)  # fmt: skip
def test_mistakes_are_told(call: Callable[[Any], Any], told: str):
    with pytest.raises(AppError, match=told):
        call(to_tensor(START, stop_gradient=False))


def _step(stepper: Any, parameter: Any) -> None:
    parameter.sum().backward()
    stepper.step()


# What is remembered


@pytest.mark.parametrize("make", [make for make, _ in KINDS])
def test_training_goes_on_where_the_state_says(make: Callable[..., Any]):
    parameter, other = (to_tensor(START, stop_gradient=False) for _ in range(2))
    parameter.name = other.name = "p"
    stepper, resumed = eager_run(make, parameter), make(parameters=[other])
    other.set_value(parameter.numpy())
    resumed.set_state_dict({name: np.asarray(value) for name, value in stepper.state_dict().items()})
    for one, by in ((parameter, stepper), (other, resumed)):
        (one * to_tensor(GRADIENTS[0])).sum().backward()
        by.step()
    assert other.tolist() == parameter.tolist()


def test_the_state_has_names_and_the_schedule():
    parameter = to_tensor(START, stop_gradient=False)
    parameter.name = "w"
    stepper = optimizer.Adam(optimizer.lr.StepDecay(0.1, 2), parameters=[parameter])
    assert list(stepper.state_dict()) == ["LR_Scheduler"]
    _step(stepper, parameter)
    state = stepper.state_dict()
    assert list(state) == [
        *["w_moment1_0", "w_moment2_0", "w_beta1_pow_acc_0", "w_beta2_pow_acc_0", "LR_Scheduler"],
    ]
    assert state["LR_Scheduler"] == {"last_epoch": 0, "last_lr": 0.1}
    np.testing.assert_allclose(stepper.states_of(parameter)["moment1"].numpy(), [0.1] * 3)
    with pytest.raises(AppError, match="v_moment1_0 belong to none of its parameters, whose names are w"):
        stepper.set_state_dict({"v_moment1_0": np.zeros(3)})
    with pytest.raises(AppError, match=r"w_moment1_0 has shape \[3\], the state dict has \[2\]"):
        stepper.set_state_dict({"w_moment1_0": np.zeros(2)})


@pytest.mark.parametrize("make", [make for make, _ in KINDS])
def test_half_precision_loses_no_more_than_its_own_digits(make: Callable[..., Any]):
    half, single = (to_tensor(START.astype(dtype), stop_gradient=False) for dtype in ("float16", "float32"))
    for parameter in (half, single):
        stepper = make(parameters=[parameter])
        for g in (*GRADIENTS, np.zeros(3)):
            (parameter * to_tensor(g.astype(parameter.dtype))).sum().backward()
            stepper.step()
            stepper.clear_grad()
    assert {state.dtype for state in stepper.states_of(half).values()} <= {"float32"}
    assert half.dtype == "float16"
    np.testing.assert_allclose(half.numpy(), single.numpy(), rtol=5e-3)


def test_a_schedule_may_go_on_with_every_step():
    parameter = to_tensor(START, stop_gradient=False)
    rate = optimizer.lr.ExponentialDecay(0.5, 0.5)
    rate.each_step = True
    stepper, seen = optimizer.SGD(rate, [parameter]), []
    for _ in range(3):
        seen.append(stepper.get_lr())
        _step(stepper, parameter)
    assert seen == [0.5, 0.25, 0.125]


def test_backward_and_minimize_on_tensors():
    parameter = to_tensor(START, stop_gradient=False)
    stepper = optimizer.SGD(0.1, [parameter])
    pairs = stepper.backward((parameter * 2.0).sum())
    assert [(p is parameter, g.tolist()) for p, g in pairs] == [(True, [2.0, 2.0, 2.0])]
    stepper.minimize(parameter.sum())
    np.testing.assert_allclose(parameter.numpy(), START - 0.2)
