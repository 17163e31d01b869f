"""Processes that share out a Program, here threads with memory of their own, come to what one process comes to."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st
from plain_source import left_plain
from recipes import Built, Recipe, batch, build, recipes

import app
from app import static
from app.engine import Scope
from app.engine.compiled import blas, lowering, runtime
from app.engine.compiled.engine import CompiledEngine, why_not_together
from app.engine.compiled.exchanges import exchanges
from app.engine.compiled.lowered import LAST, ROWS, WHOLE
from app.engine.compiled.program import CompiledProgram
from app.engine.compiled.sizes import UnknownSizeError
from app.engine.team import Parted
from app.errors import ProgramError

EXAMPLES = int(os.environ.get("OPSMITH_EXAMPLES", "4"))
careful: Any = {
    "phases": [Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink],
    "deadline": None,
    "derandomize": EXAMPLES == 4,
    "suppress_health_check": list(HealthCheck),
}


class Member:
    """One of a team, which sees what the others have made when all have come."""

    def __init__(self, rank: int, size: int, table: list[Any], barrier: threading.Barrier):
        self.rank, self.size = rank, size
        self._table, self._barrier = table, barrier
        self.passed = 0

    def rooms(self, like: Sequence[np.ndarray]) -> list[np.ndarray] | None:
        return None

    def _all(self, mine: Any) -> list[Any]:
        self._table[self.rank] = mine
        self._barrier.wait(20)
        everything = list(self._table)
        self._barrier.wait(20)
        return everything

    def gather(self, value: Any) -> list[Any]:
        return self._all(value)

    def exchanging(self, parts: Sequence[Parted]) -> Callable[[], None]:
        def exchange() -> None:
            sent = [numbers[ends[self.rank] : ends[self.rank + 1]].copy() for numbers, ends in parts]
            self.passed += sum(part.size for part in sent)
            for rank, received in enumerate(self._all(sent)):
                for (numbers, ends), part in zip(parts, received, strict=True):
                    if rank != self.rank:
                        numbers[ends[rank] : ends[rank + 1]] = part

        return exchange


def in_team(size: int, does: Callable[[Member], Any]) -> list[Any]:
    table, barrier = [None] * size, threading.Barrier(size)

    def be(rank: int) -> Any:
        try:
            return does(Member(rank, size, table, barrier))
        except BaseException:
            barrier.abort()
            raise

    with ThreadPoolExecutor(size) as pool:
        return list(pool.map(be, range(size)))


def data_of(recipe: Recipe) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Rows for four batches, the last of which is smaller, and their order."""
    return batch(recipe, 1, 15), np.random.default_rng(2).permutation(15)


def outcome(built: Built, run: Callable[[dict[str, np.ndarray], np.ndarray, Scope], list[np.ndarray]]) -> list[Any]:
    scope = built.scope()
    results = run(*data_of(built.recipe), scope)
    return [*results, *(scope.values[name] for name in sorted(scope.values))]


def meet_others(shared: np.ndarray, shards: int) -> bool:
    """`meet` of a process of one thread, in plain Python."""
    return bool(runtime._answers[shared.ctypes.data](runtime.MEETING, 0))


@settings(max_examples=20 * EXAMPLES, **careful)
@given(recipes(), st.sampled_from([2, 3, 5]))
def test_a_team_comes_to_what_one_process_comes_to(recipe: Recipe, size: int):
    built = build(recipe)
    fetch = [built.fetch[0], *built.fetch[3:]]
    assume(not recipe.taps)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lowering, "SMALL", 2)  # what is shared out by rows that are not the batch's
        try:
            native = left_plain(CompiledProgram(built.program, fetch), 1)
        except UnknownSizeError:
            assume(False)
        assume(why_not_together(built.program, fetch) == "")
        patch.setattr(blas, "threads", lambda: 1)
        alone = outcome(built, lambda data, order, scope: native.run_many(data, order, 0, 4, 4, scope))
        vars(native.module)["meet"] = meet_others

        def work(member: Member) -> list[Any]:
            mine = native.teamwork(member)
            return outcome(built, lambda data, order, scope: native.run_many(data, order, 0, 4, 4, scope, mine))

        together = in_team(size, work)
    tolerance = 1e-7 if recipe.dtype == "float64" else 2e-3
    for member in together:
        for mine, first, expected in zip(member, together[0], alone, strict=True):
            np.testing.assert_array_equal(mine, first, err_msg=str(built.kept))
            np.testing.assert_allclose(mine, expected, rtol=tolerance, atol=tolerance, err_msg=str(built.kept))


class Rows:
    """Images and labels in batches."""

    def __init__(self, images: np.ndarray, labels: np.ndarray, batch_size: int):
        self.arrays, self.order, self.batch_size = (images, labels), None, batch_size

    def __len__(self) -> int:
        return -(-len(self.arrays[0]) // self.batch_size)

    def __iter__(self) -> Any:
        yield tuple(array[: self.batch_size] for array in self.arrays)


def network(hidden: int = 48, activation: Any = app.tanh) -> tuple[Any, Any, str]:
    main, startup = static.Program(), static.Program()
    startup.random_seed = 3
    with app.graph.names.guard(), static.program_guard(main, startup):
        image, label = static.data("image", [None, 64], "uint8"), static.data("label", [None], "int64")
        values = activation(static.nn.fc(image.astype("float32") / 255.0, hidden))
        loss = app.nn.functional.cross_entropy(static.nn.fc(values, 3), label, ignore_index=None)
        app.optimizer.Momentum(0.1).minimize(loss)
    return main, startup, loss.name


def started(startup: Any) -> Scope:
    static.Executor().run(startup, scope=(scope := Scope()))
    return scope


DATA = Rows(np.random.default_rng(0).integers(0, 256, (70, 64)).astype("uint8"), np.arange(70) % 3, 16)


def test_native_threads_of_many_processes_give_the_bits_of_as_many_of_one(monkeypatch: pytest.MonkeyPatch):
    main, startup, loss = network()
    monkeypatch.setattr("app.engine.compiled.program.threads_worth", lambda lowered, n, most: 4)
    scope = started(startup)
    alone = CompiledEngine().run_many(main, DATA, ["image", "label"], [loss], scope)
    monkeypatch.setattr(blas, "threads", lambda: 2)

    def work(member: Member) -> tuple[Any, Scope]:
        here = started(startup)
        found = CompiledEngine(member).run_many(main, DATA, ["image", "label"], [loss], here)
        return found, here

    for found, here in in_team(2, work):
        np.testing.assert_array_equal(found, alone)
        for name, value in scope.values.items():
            np.testing.assert_array_equal(here.values[name], value, err_msg=name)


def test_what_passes_is_what_others_read_and_no_more():
    main, _, loss = network()
    found = exchanges(CompiledProgram(main, [loss]).lowered, [loss])
    first, second = found.meetings
    assert {each.name: each.share for each in first if "fc_0" in each.name} == {"fc_0.w_0": 64, "fc_0.b_0": 48}
    assert {each.share for each in second} == {ROWS}
    names = {each.name for each in second}
    assert "tanh.out_0" in names
    assert not names & {"image", "label", "matmul.out_0", "matmul.out_1"}
    assert {"fc_0.w_0_velocity_0", "fc_0.w_0"} <= {each.name for each in found.lasting}
    assert set(found.fetched.values()) <= {WHOLE, LAST}


def test_a_program_that_calls_python_is_refused_by_the_operator():
    def plain(x: Any) -> Any:
        out = x.block.create_var("plain_out", x.shape, "float32")
        return static.py_func(np.tanh, x, out, backward_func=lambda x, y, dy: dy * (1 - y * y))

    main, startup, loss = network(activation=plain)

    def work(member: Member) -> Any:
        return CompiledEngine(member).run_many(main, DATA, ["image", "label"], [loss], started(startup))

    with pytest.raises(ProgramError, match=r"cannot be shared out by rows: .*tanh.* runs as a Python call"):
        in_team(2, work)


def test_what_raises_at_one_process_is_raised_there():
    main, startup, loss = network()

    class Lost(Member):
        def exchanging(self, parts: Sequence[Parted]) -> Callable[[], None]:
            def exchange() -> None:
                raise ProgramError("rank 1 of 2: its disk is full")

            return exchange

    member = Lost(0, 1, [None], threading.Barrier(1))
    member.size = 2
    member.gather = lambda value: [value, value]  # type: ignore[method-assign]
    with pytest.raises(ProgramError, match="its disk is full"):
        CompiledEngine(member).run_many(main, DATA, ["image", "label"], [loss], started(startup))
