"""Optimisers against steps written by hand in NumPy, over several steps, eagerly and in Programs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import app
from app import nn, optimizer, static, to_tensor
from app.errors import AppError
from app.graph.defaults import static_mode
from app.nn.initializer import Assign, Constant
from app.optimizer import SGD, Adam, Momentum, Optimizer

RNG = np.random.default_rng(0)
W, B = RNG.normal(size=(3, 2)), RNG.normal(size=2)
BATCHES = [(RNG.normal(size=(n, 3)), RNG.normal(size=(n, 2))) for n in (4, 4, 1, 4, 2, 4)]
State = dict[str, Any]
Step = Callable[[np.ndarray, np.ndarray, float, State], np.ndarray]


def slopes(w: np.ndarray, b: np.ndarray, x: np.ndarray, y: np.ndarray) -> list[np.ndarray]:
    """The gradients of mean((x @ w + b - y)²)."""
    residual = 2 * (x @ w + b - y) / y.size
    return [x.T @ residual, residual.sum(0)]


def by_hand(step: Step, rates: Sequence[float], decay: float = 0.0) -> list[list[np.ndarray]]:
    """The parameters after each step."""
    values, states, history = [W, B], [{}, {}], []
    for (x, y), rate in zip(BATCHES, rates, strict=True):
        gradients = [g + decay * p for p, g in zip(values, slopes(*values, x, y), strict=True)]
        values = [step(p, g, rate, s) for p, g, s in zip(values, gradients, states, strict=True)]
        history.append(values)
    return history


def parameters(dtype: str) -> list[Any]:
    return [nn.create_parameter(p.shape, dtype, Assign(p)) for p in (W, B)]


def loss_of(w: Any, b: Any, x: Any, y: Any) -> Any:
    return nn.functional.mse_loss(app.matmul(x, w) + b, y)


def eagerly(make: Callable[..., Optimizer], dtype: str, between: Callable[[Optimizer], None]) -> list[list[np.ndarray]]:
    w, b = parameters(dtype)
    chosen, history = make(parameters=[w, b]), []
    for x, y in BATCHES:
        loss_of(w, b, to_tensor(x, dtype), to_tensor(y, dtype)).backward()
        chosen.step()
        chosen.clear_grad()
        between(chosen)
        history.append([w.numpy(), b.numpy()])
    return history


def in_program(
    make: Callable[..., Optimizer], dtype: str, between: Callable[[Optimizer], None]
) -> list[list[np.ndarray]]:
    main, startup, scope = static.Program(), static.Program(), static.Scope()
    with static_mode(), static.program_guard(main, startup):
        w, b = parameters(dtype)
        x, y = static.data("x", [-1, 3], dtype), static.data("y", [-1, 2], dtype)
        chosen = make()
        chosen.minimize(loss_of(w, b, x, y))
    run, history = static.Executor().run, []
    run(startup, scope=scope)
    for x, y in BATCHES:
        run(main, {"x": x.astype(dtype), "y": y.astype(dtype)}, scope=scope)
        between(chosen)
        history.append([scope.value(w.name).copy(), scope.value(b.name).copy()])
    return history


def nothing(chosen: Optimizer) -> None:
    """What happens between steps where nothing does."""


def assert_steps(make: Callable[..., Optimizer], expected: list[list[np.ndarray]], between: Any = nothing) -> None:
    eager, compiled = (train(make, "float64", between) for train in (eagerly, in_program))
    for now, then, right in zip(eager, compiled, expected, strict=True):
        for a, b, c in zip(now, then, right, strict=True):
            np.testing.assert_array_equal(a, b)
            np.testing.assert_allclose(a, c, rtol=1e-12, atol=1e-14)
    narrow = [train(make, "float32", between) for train in (eagerly, in_program)]
    for now, then, right in zip(*narrow, expected, strict=True):
        for a, b, c in zip(now, then, right, strict=True):
            assert a.dtype == b.dtype == "float32"
            np.testing.assert_array_equal(a, b)
            np.testing.assert_allclose(a, c, rtol=1e-3, atol=1e-5)


# The steps


def sgd(p: np.ndarray, g: np.ndarray, rate: float, state: State) -> np.ndarray:
    return p - rate * g


def momentum(mu: float, nesterov: bool) -> Step:
    def step(p: np.ndarray, g: np.ndarray, rate: float, state: State) -> np.ndarray:
        state["v"] = mu * state.get("v", 0.0) + g
        return p - rate * (g + mu * state["v"] if nesterov else state["v"])

    return step


def adam(beta1: float, beta2: float, epsilon: float) -> Step:
    def step(p: np.ndarray, g: np.ndarray, rate: float, state: State) -> np.ndarray:
        t = state["t"] = state.get("t", 0) + 1
        m = state["m"] = beta1 * state.get("m", 0.0) + (1 - beta1) * g
        v = state["v"] = beta2 * state.get("v", 0.0) + (1 - beta2) * g**2
        return p - rate * (m / (1 - beta1**t)) / (np.sqrt(v / (1 - beta2**t)) + epsilon)

    return step


KINDS: list[Any] = [
    pytest.param(SGD, {}, sgd, id="sgd"),
    pytest.param(Momentum, {}, momentum(0.9, False), id="momentum"),
    pytest.param(SGD, {"momentum": 0.8}, momentum(0.8, False), id="sgd with momentum"),
    pytest.param(Momentum, {"momentum": 0.5, "use_nesterov": True}, momentum(0.5, True), id="nesterov"),
    pytest.param(Adam, {}, adam(0.9, 0.999, 1e-8), id="adam"),
    pytest.param(Adam, {"beta1": 0.5, "beta2": 0.8, "epsilon": 1e-2}, adam(0.5, 0.8, 1e-2), id="adam-set"),
]


@pytest.mark.parametrize(("kind", "settings", "step"), KINDS)
@pytest.mark.parametrize("decay", [None, 0.3])
def test_steps(kind: type[Optimizer], settings: dict[str, Any], step: Step, decay: float | None):
    assert_steps(
        lambda **where: kind(learning_rate=0.1, weight_decay=decay, **settings, **where),
        by_hand(step, [0.1] * len(BATCHES), decay or 0.0),
    )


@pytest.mark.parametrize(("kind", "settings", "step"), KINDS)
def test_a_rate_that_is_set_holds_from_the_next_step(kind: type[Optimizer], settings: dict[str, Any], step: Step):
    def halve(chosen: Optimizer) -> None:
        chosen.set_lr(chosen.get_lr() / 2)

    assert_steps(
        lambda **where: kind(0.2, **settings, **where), by_hand(step, [0.2 / 2**i for i in range(len(BATCHES))]), halve
    )


def test_a_schedule_can_be_set_later():
    chosen = SGD(0.3, nn.Linear(1, 1).parameters())
    chosen.set_lr_scheduler(optimizer.lr.StepDecay(0.5, 1))
    assert chosen.get_lr() == 0.5
    with pytest.raises(AppError, match="takes an LRScheduler, not 3"):
        chosen.set_lr_scheduler(3)


def test_the_default_rate_is_paddles():
    assert [kind().get_lr() for kind in (SGD, Momentum, Adam)] == [0.001] * 3


# What a step changes


def test_a_step_changes_numbers_and_nothing_else():
    layer = nn.Linear(2, 1)
    weight, before = layer.weight, layer.weight.numpy()
    y = layer(app.ones([1, 2]))
    y.backward(retain_graph=True)
    Momentum(0.1, parameters=layer.parameters()).step()
    assert layer.weight is weight
    assert (weight.is_leaf, weight.stop_gradient, weight.dtype) == (True, False, "float32")
    assert app.is_grad_enabled()
    np.testing.assert_allclose(weight.numpy(), before - 0.1, rtol=1e-6)
    assert weight.grad.tolist() == [[1.0], [1.0]]


def test_parameters_without_gradient_or_not_trainable_stay():
    used, unused, frozen = (nn.create_parameter([1], attr=Constant(1.0)) for _ in range(3))
    (used * frozen).backward()
    frozen.trainable = False
    SGD(0.5, [used, unused, frozen]).step()
    assert [p.tolist() for p in (used, unused, frozen)] == [[0.5], [1.0], [1.0]]


def test_gradients_are_cleared_on_demand():
    weight = nn.create_parameter([1], attr=Constant(1.0))
    chosen = SGD(0.5, [weight])
    for clear in (chosen.clear_grad, chosen.clear_gradients):
        (weight * 1.0).backward()
        assert weight.grad.tolist() == [1.0]
        clear()
        assert weight.grad.tolist() == [0.0]
        clear(set_to_zero=False)
        assert weight.grad is None


def test_parameters_may_come_from_an_iterator():
    layer = nn.Linear(1, 1)
    chosen = SGD(1.0, (p for p in layer.parameters()))
    for _ in range(2):
        before = layer.bias.item()
        layer(app.ones([1, 1])).backward()
        chosen.step()
        chosen.clear_grad()
        assert layer.bias.item() == before - 1.0


def test_each_parameter_remembers_its_own():
    first, second = (nn.create_parameter([1], attr=Constant(0.0)) for _ in range(2))
    chosen = Momentum(1.0, 1.0, parameters=[first, second])
    for scale in (1.0, 10.0):
        (first * scale + second * 100.0).backward()
        chosen.step()
        chosen.clear_grad()
    assert (first.tolist(), second.tolist()) == ([-1.0 - 11.0], [-100.0 - 200.0])


def test_a_step_moves_parameters_of_each_type():
    wide, narrow = (
        nn.create_parameter([1], "float64", Constant(1.0)),
        nn.create_parameter([1], "float16", Constant(1.0)),
    )
    (wide * narrow).backward()
    Adam(0.25, parameters=[wide, narrow]).step()
    assert [(p.dtype, p.item()) for p in (wide, narrow)] == [
        ("float64", pytest.approx(0.75)),
        ("float16", pytest.approx(0.75, rel=0.01)),
    ]


# In a Program


def program_with(loss: Callable[[Any, Any], Any], minimize: Callable[[Any, list[Any]], Any]) -> tuple[Any, Any, Any]:
    main, startup = static.Program(), static.Program()
    with static_mode(), static.program_guard(main, startup):
        w, b = (nn.create_parameter([2], attr=Constant(1.0), name=name) for name in ("w", "b"))
        made = minimize(loss(w, b), [w, b])
    return main, startup, made


def values_after_a_run(main: Any, startup: Any) -> dict[str, list[float]]:
    scope = static.Scope()
    static.Executor().run(startup, scope=scope)
    static.Executor().run(main, scope=scope)
    return {name: scope.value(name).tolist() for name in ("w", "b")}


def test_minimize_gives_the_operators_and_the_pairs():
    main, startup, (operators, pairs) = program_with(
        lambda w, b: (w * 3.0 + b).sum(), lambda loss, both: SGD(0.5).minimize(loss)
    )
    assert [op.type for op in operators] == ["sgd", "sgd"]
    assert main.global_block().ops[-2:] == operators
    assert [(p.name, g.name) for p, g in pairs] == [("w", "w@GRAD"), ("b", "b@GRAD")]
    assert values_after_a_run(main, startup) == {"w": [-0.5, -0.5], "b": [0.5, 0.5]}


@pytest.mark.parametrize(
    "minimize",
    [
        lambda loss, both: SGD(0.5).minimize(loss, parameters=both[:1]),
        lambda loss, both: SGD(0.5, parameters=both[:1]).minimize(loss),
        lambda loss, both: SGD(0.5).minimize(loss, no_grad_set={both[1]}),
        lambda loss, both: SGD(0.5).minimize(loss, no_grad_set={"b"}),
    ],
)
def test_only_the_parameters_asked_for_are_changed(minimize: Any):
    main, startup, (operators, _) = program_with(lambda w, b: (w * 3.0 + b).sum(), minimize)
    assert len(operators) == 1
    assert values_after_a_run(main, startup) == {"w": [-0.5, -0.5], "b": [1.0, 1.0]}


def test_the_startup_program_can_be_named():
    main, elsewhere = static.Program(), static.Program()
    with static_mode(), static.program_guard(main, static.Program()):
        w = nn.create_parameter([2], attr=Constant(1.0), name="w")
        before = len(static.default_startup_program().global_block().ops)
        Adam(0.1).minimize(w.sum(), startup_program=elsewhere)
        assert len(static.default_startup_program().global_block().ops) == before
    made = {name for op in elsewhere.global_block().ops for name in op.outputs}
    assert {name.rsplit("_", 1)[0] for name in made} == {
        *["learning_rate", "w_moment1", "w_moment2", "w_beta1_pow_acc", "w_beta2_pow_acc"]
    }


def test_two_optimisers_in_one_program_keep_their_own_rates():
    first, second = SGD(0.5), SGD(0.25)

    def minimize(loss: Any, both: list[Any]) -> None:
        first.minimize(loss, parameters=both[:1])
        second.minimize(loss, parameters=both[1:])

    main, startup, _ = program_with(lambda w, b: (w + b).sum(), minimize)
    assert values_after_a_run(main, startup) == {"w": [0.5, 0.5], "b": [0.75, 0.75]}
    second.set_lr(1.0)
    assert values_after_a_run(main, startup) == {"w": [0.5, 0.5], "b": [0.0, 0.0]}


# Errors


def test_a_step_needs_parameters():
    with pytest.raises(AppError, match=r"Adam was made without parameters=; it has nothing to update"):
        Adam(0.1).step()


def test_a_scheduled_rate_cannot_be_set():
    with pytest.raises(AppError, match=r"follows a schedule; set it by the schedule's step\(\)"):
        SGD(optimizer.lr.StepDecay(0.1, 1)).set_lr(0.2)


def test_a_loss_without_trainable_parameters():
    with static_mode(), static.program_guard(static.Program(), static.Program()):
        frozen = nn.create_parameter([2], attr=nn.ParamAttr(trainable=False))
        with pytest.raises(AppError, match="there is no trainable parameter that the loss depends on"):
            SGD(0.1).minimize(frozen.sum())


def test_a_loss_of_several_numbers():
    with static_mode(), static.program_guard(static.Program(), static.Program()):
        weight = nn.create_parameter([2], name="w")
        with pytest.raises(AppError, match=r"the loss must be a single number; w has shape \[2\]: take its mean"):
            SGD(0.1).minimize(weight)


@pytest.mark.parametrize("settings", [{"mometum": 0.9}, {"parmeters": []}])
def test_a_setting_that_there_is_not(settings: dict[str, Any]):
    name = next(iter(settings))
    with pytest.raises(TypeError, match=f"unexpected keyword argument '{name}'"):
        SGD(0.1, **settings)
