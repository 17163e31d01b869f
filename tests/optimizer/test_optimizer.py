"""What a step changes, learning rates, Programs, states and errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import app
from app import nn, optimizer, static, to_tensor
from app.errors import AppError, ShapeError
from app.graph.defaults import static_mode
from app.nn.initializer import Assign, Constant
from app.optimizer import SGD, Adam, Momentum

START = np.array([1.0, -2.0, 3.0])


def leaf() -> app.Tensor:
    return to_tensor(START, stop_gradient=False)


def step(stepper: Any, *parameters: Any) -> None:
    """A step with gradients of one."""
    app.add_n([p.sum() for p in parameters]).backward()
    stepper.step()
    stepper.clear_grad()


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


def test_gradients_are_set_to_zero_or_removed():
    weight = nn.create_parameter([1])
    chosen = SGD(0.5, [weight])
    for clear in (chosen.clear_grad, chosen.clear_gradients):
        (weight * 1.0).backward()
        clear()
        assert weight.grad.tolist() == [0.0]
        clear(set_to_zero=False)
        assert weight.grad is None


def test_each_parameter_of_an_iterator_has_its_own_state_and_type():
    first, second = (
        nn.create_parameter([1], "float64", attr=Constant(0.0)),
        nn.create_parameter([1], attr=Constant(0.0)),
    )
    chosen = Momentum(1.0, 1.0, parameters=iter([first, second]))
    for scale in (1.0, 10.0):
        (first * scale + second * 100.0).backward()
        chosen.step()
        chosen.clear_grad()
    assert (first.tolist(), second.tolist()) == ([-1.0 - 11.0], [-100.0 - 200.0])
    assert (first.dtype, second.dtype) == ("float64", "float32")


# Learning rates and decay


def test_a_learning_rate_has_a_default_and_may_follow_a_schedule():
    assert [kind().get_lr() for kind in (SGD, Momentum, Adam)] == [0.001] * 3
    parameter, rate = leaf(), optimizer.lr.StepDecay(0.5, 1, 0.5)
    stepper, seen = SGD(0.3, [parameter]), []
    stepper.set_lr_scheduler(rate)
    for _ in range(3):
        seen.append(stepper.get_lr())
        step(stepper, parameter)
        rate.step()
    assert seen == [0.5, 0.25, 0.125]
    np.testing.assert_allclose(parameter.numpy(), START - 0.875)


def test_some_parameters_do_not_decay():
    weight, norm = (
        nn.create_parameter([3], "float64", attr=nn.ParamAttr(name, Assign(START))) for name in ("w", "norm")
    )
    stepper = optimizer.AdamW(
        0.1, parameters=[weight, norm], weight_decay=0.5, apply_decay_param_fun=lambda name: name != "norm"
    )
    step(stepper, weight * 0.0, norm * 0.0)
    np.testing.assert_allclose(weight.numpy(), START * 0.95)
    np.testing.assert_allclose(norm.numpy(), START)


# State, and minimize() on Tensors


def test_the_state_has_names_and_the_schedule():
    parameter = leaf()
    parameter.name = "w"
    stepper = Adam(optimizer.lr.StepDecay(0.1, 2), parameters=[parameter])
    assert list(stepper.state_dict()) == ["LR_Scheduler"]
    step(stepper, parameter)
    state = stepper.state_dict()
    names = ["w_moment1_0", "w_moment2_0", "w_beta1_pow_acc_0", "w_beta2_pow_acc_0", "LR_Scheduler"]
    assert list(state) == names
    assert state["LR_Scheduler"] == {"last_epoch": 0, "last_lr": 0.1}
    np.testing.assert_allclose(stepper.states_of(parameter)["moment1"].numpy(), [0.1] * 3)
    with pytest.raises(AppError, match="v_moment1_0 belong to none of its parameters, whose names are w"):
        stepper.set_state_dict({"v_moment1_0": np.zeros(3)})


def test_a_state_is_loaded_as_a_whole_or_not_at_all():
    first, second = nn.create_parameter([2, 3], name="first"), nn.create_parameter([1], name="second")
    stepper = Adam(optimizer.lr.StepDecay(0.1, 1), parameters=[first, second])
    step(stepper, first)
    names, before = list(stepper.state_dict()), stepper.states_of(first)["moment1"].numpy()
    zeros = {f"{name}_{moment}_0": np.zeros(p.shape) for name, p in (("first", first), ("second", second))
             for moment in ("moment1", "moment2")}  # fmt: skip
    powers = {
        f"{name}_{power}_0": [0.5] for name in ("first", "second") for power in ("beta1_pow_acc", "beta2_pow_acc")
    }
    good = {**zeros, **powers, "LR_Scheduler": {"last_epoch": 5, "last_lr": 0.5}}
    for wrong, message in (
        ({"second_moment1_0": np.zeros(2)}, r"second_moment1_0 has shape \[1\], the state dict has \[2\]; nothing"),
        ({"first_moment1_0": np.zeros((3, 2))}, r"first_moment1_0 has shape \[2, 3\], the state dict has \[3, 2\]"),
        ({"second_moment2_0": [1j]}, "second_moment2_0 is float32, and was given complex128; nothing was changed"),
        ({"second_moment3_0": [0.0]}, "second_moment3_0 belong to none of its parameters"),
        ({"LR_Scheduler": {"last_epoch": 5}}, "StepDecay.set_state_dict: last_lr missing"),
    ):
        with pytest.raises(AppError, match=message):
            stepper.set_state_dict({**good, **wrong})
    with pytest.raises(AppError, match="second_moment1_0 missing, of second_moment1_0, second_moment2_0, second_beta1"):
        stepper.set_state_dict({name: value for name, value in good.items() if name != "second_moment1_0"})
    assert stepper.get_lr() == 0.1
    assert list(stepper.state_dict()) == names
    np.testing.assert_array_equal(stepper.states_of(first)["moment1"].numpy(), before)
    stepper.set_state_dict(good)
    assert stepper.get_lr() == 0.5
    assert stepper.states_of(second)["beta1_pow_acc"].item() == 0.5


@pytest.mark.parametrize("make", [Momentum, Adam])
def test_parameters_without_a_stored_state_begin_anew(make: Any):
    weight, fresh = (nn.create_parameter([3], "float64", attr=Assign(START)) for _ in range(2))
    stepper = make(0.1, parameters=[weight])
    before = stepper.state_dict()
    step(stepper, weight)
    stepper.set_state_dict(before)
    weight.set_value(START)
    for chosen, parameter in ((stepper, weight), (make(0.1, parameters=[fresh]), fresh)):
        step(chosen, parameter)
    np.testing.assert_array_equal(weight.numpy(), fresh.numpy())


def test_backward_and_minimize_on_tensors():
    parameter = leaf()
    stepper = SGD(0.1, [parameter])
    ((returned, gradient),) = stepper.backward((parameter * 2.0).sum())
    assert (returned is parameter, gradient.tolist()) == (True, [2.0, 2.0, 2.0])
    stepper.minimize(parameter.sum())
    np.testing.assert_allclose(parameter.numpy(), START - 0.2)


def test_minimize_on_tensors_changes_only_the_chosen_parameters():
    a, b = (nn.create_parameter([1], name=name) for name in "ab")
    stepper = SGD(0.5, [a, b])
    for chosen in ({"parameters": [a]}, {"no_grad_set": {b}}, {"no_grad_set": ["b"]}):
        for parameter in (a, b):
            parameter.set_value([0.0])
        loss = a + b
        assert [p.name for p, _ in stepper.backward(loss, **chosen)] == ["a"]
        assert [p.name for p, _ in stepper.minimize(loss, **chosen)[1]] == ["a"]
        assert (a.tolist(), b.tolist()) == ([-0.5], [0.0])
        stepper.clear_grad()
    with pytest.raises(AppError, match="other is none of the parameters that it was made with"):
        stepper.minimize(a + b, parameters=[nn.create_parameter([1], name="other")])
    with pytest.raises(AppError, match=r"apply_gradients changes a Program; .* call step\(\)"):
        stepper.apply_gradients(stepper.backward(a + b))


def test_a_gradient_of_another_shape_than_its_parameter_changes_nothing():
    first, second = leaf(), leaf()
    first.grad, second.grad = app.ones([3], "float64"), app.ones([1], "float64")
    with pytest.raises(ShapeError, match=r"the .grad of .* has shape \[1\], and the parameter \[3\]; set .grad to"):
        SGD(0.5, [first, second]).step()
    assert first.tolist() == START.tolist()


# In a Program


def program_with(minimize: Callable[[Any, list[Any]], Any]) -> tuple[Any, Any, Any]:
    """A Program that minimizes a loss of two parameters of one, its startup Program, and what `minimize` returned."""
    main, startup = static.Program(), static.Program()
    with static_mode(), static.program_guard(main, startup):
        w, b = (nn.create_parameter([2], attr=Constant(1.0), name=name) for name in ("w", "b"))
        result = minimize((w * 3.0 + b).sum(), [w, b])
    return main, startup, result


def values_after_a_run(main: Any, startup: Any) -> dict[str, list[float]]:
    scope = static.Scope()
    static.Executor().run(startup, scope=scope)
    static.Executor().run(main, scope=scope)
    return {name: scope.value(name).tolist() for name in ("w", "b")}


def test_minimize_returns_the_operators_and_the_pairs():
    main, startup, (operators, pairs) = program_with(lambda loss, both: SGD(0.5).minimize(loss))
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
def test_only_the_chosen_parameters_are_changed(minimize: Any):
    main, startup, (operators, _) = program_with(minimize)
    assert len(operators) == 1
    assert values_after_a_run(main, startup) == {"w": [-0.5, -0.5], "b": [1.0, 1.0]}


def test_the_startup_program_can_be_chosen():
    main, startup, elsewhere = static.Program(), static.Program(), static.Program()
    with static_mode(), static.program_guard(main, startup):
        w = nn.create_parameter([2], attr=Constant(1.0), name="w")
        before = len(startup.global_block().ops)
        Adam(0.1).minimize(w.sum(), startup_program=elsewhere)
    assert len(startup.global_block().ops) == before
    variables = {name.rsplit("_", 1)[0] for op in elsewhere.global_block().ops for name in op.outputs}
    assert variables == {"learning_rate", "w_moment1", "w_moment2", "w_beta1_pow_acc", "w_beta2_pow_acc"}


def test_parameters_of_two_types_in_one_program_are_updated_as_eager_ones():
    main, startup, scope = static.Program(), static.Program(), static.Scope()
    single, double = (START.astype(dtype) for dtype in ("float32", "float64"))
    with static_mode(), static.program_guard(main, startup):
        parameters = [nn.create_parameter([3], x.dtype, attr=Assign(x), name=x.dtype.name) for x in (single, double)]
        Adam(0.1).minimize(app.add_n([(p * 3.0).sum().astype("float64") for p in parameters]))
    for program in (startup, main):
        static.Executor().run(program, scope=scope)
    for array in (single, double):
        parameter = to_tensor(array, stop_gradient=False)
        (parameter * 3.0).sum().backward()
        Adam(0.1, parameters=[parameter]).step()
        value = scope.value(array.dtype.name)
        assert value.dtype == array.dtype
        np.testing.assert_array_equal(value, parameter.numpy())


def test_two_optimizers_in_one_program_keep_their_own_rates():
    first, second = SGD(0.5), SGD(0.25)

    def minimize(loss: Any, both: list[Any]) -> None:
        first.minimize(loss, parameters=both[:1])
        second.minimize(loss, parameters=both[1:])

    main, startup, _ = program_with(minimize)
    assert values_after_a_run(main, startup) == {"w": [-0.5, -0.5], "b": [0.75, 0.75]}
    second.set_lr(1.0)
    assert values_after_a_run(main, startup) == {"w": [-0.5, -0.5], "b": [0.0, 0.0]}


# Errors


def same_names() -> list[Any]:
    return [nn.create_parameter([1], attr="w") for _ in range(2)]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda p: SGD(0.1, p), "takes a list of parameters, such as network.parameters"),
        (lambda p: SGD(0.1, [{"params": [p]}]), "found a dictionary with 'params'; .* make an optimizer for them"),
        (lambda p: SGD(0.1, [p, p]), r"generated_tensor_\d+ of shape \[3\] appears more than once .*; give it once"),
        (lambda p: Adam(0.1, parameters=same_names()).state_dict(), "two parameters are named w, and a state dict"),
        (lambda p: Adam(0.1, parameters=same_names()).set_state_dict({}), "give each a name of its own"),
        (lambda p: SGD(0.1, [p], weight_decay="much"), "weight_decay is a number, not 'much'"),
        (lambda p: SGD(0.1, [p]).set_lr_scheduler(0.1), "set_lr_scheduler takes an LRScheduler, not 0.1"),
        (lambda p: SGD(optimizer.lr.StepDecay(0.1, 1)).set_lr(0.2), r"follows a schedule; set it by the schedule's"),
        (lambda p: Adam(0.1).step(), r"Adam was made without parameters=; it has nothing to update"),
    ],
)
def test_wrong_arguments_are_errors(call: Callable[[Any], Any], message: str):
    with pytest.raises(AppError, match=message):
        call(leaf())


def test_an_unknown_setting_is_a_type_error():
    with pytest.raises(TypeError, match="unexpected keyword argument 'mometum'"):
        SGD(0.1, mometum=0.9)


@pytest.mark.parametrize(
    ("shape", "trainable", "message"),
    [
        ([], False, "there is no trainable parameter that the loss depends on"),
        ([2], True, r"the loss must be a single number; w has shape \[2\]: take its mean"),
    ],
)
def test_a_loss_in_a_program_is_a_number_with_trainable_parameters(shape: list[int], trainable: bool, message: str):
    with static_mode(), static.program_guard(static.Program(), static.Program()):
        weight = nn.create_parameter(shape, attr=nn.ParamAttr(name="w", trainable=trainable))
        with pytest.raises(AppError, match=message):
            SGD(0.1).minimize(weight)
