"""Threads: each has its own modes, and what they share stays consistent."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterator
from threading import Event
from typing import Any

import numpy as np
import pytest
from running_threads import in_another_thread, together

import app
from app import is_grad_enabled, nn, no_grad, set_grad_enabled, static, to_tensor
from app.errors import InPlaceError, OperatorError
from app.graph import default_main_program, default_startup_program, in_dynamic_mode, names, static_mode
from app.jit import to_static
from app.ops.random import Streams


def records() -> bool:
    return not (to_tensor([1.0], stop_gradient=False) * 2).stop_gradient


def switch_off() -> bool:
    set_grad_enabled(False)
    return records()


def test_a_thread_records_whatever_others_do():
    for switch in (no_grad, lambda: set_grad_enabled(False)):
        with switch():
            assert in_another_thread(lambda: (records(), is_grad_enabled())) == (True, True)
            assert not records()
    assert not in_another_thread(switch_off)
    assert records()


def test_asyncio_tasks_have_modes_of_their_own():
    async def evaluates() -> bool:
        with no_grad():
            await asyncio.sleep(0)
            return records()

    async def trains() -> list[bool]:
        modes = []
        for _ in range(3):
            modes.append(records())
            await asyncio.sleep(0)
        return modes

    async def all_of_them() -> list[Any]:
        return await asyncio.gather(evaluates(), trains(), trains())

    (modes,) = together([lambda: asyncio.run(all_of_them())])  # this thread may have a loop, as that of a browser
    assert modes == [False, [True] * 3, [True] * 3]


def test_generators_and_coroutines_cannot_be_decorated():
    async def batches() -> AsyncIterator[int]:
        yield 1

    async def evaluates() -> None:
        pass

    def numbers() -> Iterator[int]:
        yield 1

    for function in (batches, evaluates, numbers):
        with pytest.raises(OperatorError, match=rf"no_grad cannot decorate {function.__name__}.*with opsmith.no_grad"):
            no_grad()(function)


def test_programs_built_at_once_do_not_mix():
    def build(units: int) -> tuple[Any, ...]:
        main, startup, scope = static.Program(), static.Program(), static.Scope()
        with static_mode(), static.program_guard(main, startup), static.scope_guard(scope), names.guard():
            for _ in range(3):
                x = static.data("x", [2, 3])
                static.nn.fc(x, units)
            assert static.global_scope() is scope
        return len(main.global_block().ops), [(p.name, p.shape) for p in main.all_parameters()]

    alone = [build(units) for units in (1, 2, 3, 4)]
    assert together([lambda units=units: build(units) for units in (1, 2, 3, 4)]) == alone


def test_guards_hold_in_their_own_thread_only():
    def defaults() -> tuple[object, ...]:
        return default_main_program(), default_startup_program(), static.global_scope(), in_dynamic_mode()

    outside = in_another_thread(defaults)
    guards = static.program_guard(static.Program(), static.Program()), static.scope_guard(static.Scope())
    with static_mode(), guards[0], guards[1], names.guard():
        assert not set(defaults()) & set(outside)
        assert in_another_thread(defaults) == outside
        assert in_another_thread(lambda: names.generate("kept")).startswith("kept")


def test_static_mode_and_the_default_type_are_set_for_all_threads():
    app.enable_static()
    app.set_default_dtype("float64")
    try:
        assert in_another_thread(lambda: (in_dynamic_mode(), app.get_default_dtype())) == (False, "float64")
        with app.graph.dynamic_mode():
            assert not in_another_thread(in_dynamic_mode)
    finally:
        app.disable_static()
        app.set_default_dtype("float32")


def test_each_generated_name_is_unique():
    lists = together([lambda: [names.generate("threads") for _ in range(500)]] * 4)
    assert len({name for some in lists for name in some}) == 2000


def test_no_two_threads_draw_the_same_numbers():
    app.seed(5)
    drawn = together([lambda: [app.rand([2]).tolist() for _ in range(100)]] * 4)
    app.seed(5)
    expected = [app.rand([2]).tolist() for _ in range(400)]
    assert sorted(pair for some in drawn for pair in some) == sorted(expected)


def test_a_thread_changes_tensors_in_place_while_another_traces():
    inside, go_on = Event(), Event()

    @to_static(backend="reference")
    def traced(x: Any) -> Any:
        inside.set()
        assert go_on.wait(30)
        return x * 2

    def changes() -> list[Any]:
        assert inside.wait(30)
        try:
            x, w = app.zeros([2]), to_tensor([1.0, 2.0], stop_gradient=False)
            x.set_value(np.ones(2, np.float32))
            x.add_(to_tensor([1.0, 1.0]))
            x[0] = 5.0
            x += w
            x.sum().backward()
            gradient = w.grad.tolist()
            w.clear_gradient(False)
            layer = nn.Linear(2, 2)
            layer.bias = None
            return [x.detach().tolist(), gradient, w.grad, list(layer(app.ones([1, 2])).shape)]
        finally:
            go_on.set()

    result, changed = together([lambda: traced(app.ones([2])).tolist(), changes])
    assert result == [2.0, 2.0]
    assert changed == [[6.0, 4.0], [1.0, 1.0], None, [1, 2]]


def test_gradients_of_several_threads_for_one_parameter_are_all_added():
    w = app.ones([8])
    w.stop_gradient = False

    def run() -> None:
        for _ in range(100):
            (w * 2.0).sum().backward()

    together([run] * 4)
    assert w.grad.tolist() == [800.0] * 8


def test_a_change_in_place_is_noticed_whatever_other_threads_change():
    def run() -> int:
        refused = 0
        for _ in range(200):
            x = to_tensor([1.0], stop_gradient=False) * 2
            y = x * x
            x.zero_()
            try:
                y.sum().backward()
            except InPlaceError as error:
                refused += re.search("modified by an inplace", str(error)) is not None
        return refused

    assert together([run] * 4) == [200] * 4


def trained(seed: int) -> list[Any]:
    with Streams(seed).drawing():
        network = nn.Sequential(nn.Linear(4, 5), nn.ReLU(), nn.Dropout(0.2), nn.Linear(5, 2))
        optimizer = app.optimizer.Adam(0.01, parameters=network.parameters())
        for _ in range(10):
            loss = nn.functional.cross_entropy(network(app.rand([6, 4])), app.randint(0, 2, [6]))
            loss.backward()
            optimizer.step()
            optimizer.clear_grad()
    return [parameter.tolist() for parameter in network.parameters()]


def test_networks_trained_in_threads_are_those_trained_alone():
    jobs: list[Callable[[], Any]] = [lambda seed=seed: trained(seed) for seed in range(3)]
    assert together(jobs) == [job() for job in jobs]
