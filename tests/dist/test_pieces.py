"""In pieces, training gives the same bits with any number of ranks, here threads of this process; alone as well."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import app
from app.custom.shelf.relu import relu as custom_relu
from app.data import Batches
from app.dist.cores import one_thread
from app.dist.pieces import InPieces, check_pieces, in_pieces
from app.dist.running import RankExecutor
from app.dist.shards import pieces_of
from app.dist.world import TimedOperator, using
from app.engine import Executor, Scope
from app.errors import ConfigError, ProgramError
from app.graph import Program, names, static_mode
from app.graph.program import OPTIMIZE

PIECES = 12


class Place(NamedTuple):
    rank: int
    size: int


class Threads(Alone):
    """Ranks that are threads; what they have is added up in any order."""

    def __init__(self, size: int):
        self.size = size
        self._mine = threading.local()
        self._meet = threading.Barrier(size)
        self._brought: list[Any] = [None] * size

    def run(self, rank: int, does: Callable[[Place], Any]) -> Any:
        """Be a rank."""
        self._mine.rank = rank
        try:
            return does(Place(rank, self.size))
        except BaseException:
            self._meet.abort()
            raise

    def _all(self, buffer: np.ndarray) -> list[np.ndarray]:
        self._meet.wait(60)
        self._brought[self._mine.rank] = buffer.copy()
        self._meet.wait(60)
        return list(self._brought)

    def allreduce(self, buffer: np.ndarray, *how: Any) -> None:
        buffer[...] = sum(self._all(buffer)[::-1])

    def reduce(self, buffer: np.ndarray, root: int = 0) -> None:
        arrays = self._all(buffer)
        if self._mine.rank == root:
            buffer[...] = sum(arrays[1:], arrays[0])

    def broadcast(self, buffer: np.ndarray, root: int = 0) -> None:
        buffer[...] = self._all(buffer)[root]


class Network(NamedTuple):
    main: Program
    startup: Program
    test: Program
    loss: str
    count: str


def plain(x: np.ndarray) -> np.ndarray:
    return np.tanh(x)


def plain_grad(x: np.ndarray, y: np.ndarray, dy: np.ndarray) -> np.ndarray:
    return dy * (1 - y * y)


def in_python(hidden: Any) -> Any:
    out = hidden.block.create_var("plain_out", hidden.shape, "float32")
    return app.static.py_func(plain, hidden, out, backward_func=plain_grad)


def network(activation: Callable[[Any], Any] = custom_relu, optimizer: Any = None) -> Network:
    main, startup = Program(), Program()
    startup.random_seed = main.random_seed = 0
    with names.guard(), app.static.program_guard(main, startup), static_mode():
        x, y = app.static.data("x", [None, 6]), app.static.data("y", [None], "int64")
        hidden = activation(app.static.nn.fc(x, 16))
        loss = app.nn.functional.cross_entropy(app.static.nn.fc(hidden, 3), y)
        test = main.clone(for_test=True)
        with app.static.program_guard(test, startup):
            count = app.sum((test.global_block().var(hidden.name) == 0.0).astype("float32"), axis=0)
        (optimizer or app.optimizer.Momentum(0.2)).minimize(loss)
    return Network(main, startup, test, loss.name, count.name)


def batches(rows: int, size: int, epoch: int = 0) -> Batches:
    random = np.random.default_rng(0)
    images = random.standard_normal((rows, 6), np.float32)
    labels = (images[:, 0] > images[:, 1]).astype(np.int64) + (images[:, 2] > 1)
    order = np.random.default_rng(epoch).permutation(rows)
    return Batches(images, labels, order, size)  # type: ignore[arg-type]


class Trained(NamedTuple):
    """What came of training, to the last bit."""

    losses: bytes
    tested: bytes
    weights: bytes


def train(one: Network, place: Place, shape: Any, rows: int = 200, epochs: int = 3) -> Trained:
    asked = {"place": place, "shape": shape, "pieces": PIECES, "bucket": 64}
    here, startup = in_pieces(one.main, one.startup, **asked, loss=one.loss, means=[one.loss])
    test, _ = in_pieces(one.test, Program(), **asked, means=[one.loss], totals=[one.count])
    scope, executor = Scope(), RankExecutor(place)
    executor.run(startup, scope=scope)
    losses, tested = [], []
    for epoch in range(epochs):
        losses += executor.train_from_dataset(here, batches(rows, 32, epoch), ["x", "y"], [one.loss], scope)
        tested += executor.train_from_dataset(test, batches(rows, 70), ["x", "y"], [one.loss, one.count], scope)
    weights = [scope.values[p.name] for p in one.main.all_parameters()]
    return Trained(*(b"".join(np.ascontiguousarray(a).tobytes() for a in arrays) for arrays in (losses, tested, weights)))


def on_ranks(ranks: int, one: Network, shape: str, **more: int) -> list[Trained]:
    """What each of so many ranks has in the end."""
    with using(Threads(ranks)) as world, one_thread(), ThreadPoolExecutor(ranks) as pool:
        running = [
            pool.submit(world.run, rank, lambda place: train(one, place, shape, **more)) for rank in range(ranks)
        ]
        return [each.result() for each in running]


@pytest.mark.parametrize("shape", ["allreduce", "pserver"])
def test_any_number_of_ranks_gives_the_same_bits(shape: str):
    one = network()
    alone = train(one, Place(0, 1), "none")
    for ranks in (1, 2, 3, 4, 6, 12):
        assert set(on_ranks(ranks, one, shape)) == {alone}


def test_so_it_does_with_fewer_rows_than_pieces():
    one = network(in_python, app.optimizer.Adam(0.05))
    alone = train(one, Place(0, 1), "none", rows=37)
    for ranks in (3, 12):
        assert set(on_ranks(ranks, one, "pserver", rows=37)) == {alone}


def test_the_compiled_engine_runs_both_programs_natively():
    one = network()
    here, _ = in_pieces(one.main, one.startup, Place(0, 2), "allreduce", pieces=2, loss=one.loss, means=[one.loss])
    for program, fetch in ((here.piece, []), (here.batch, [one.loss])):
        assert "def train(" in program.explain(fetch)


def test_pieces_add_up_to_the_whole_batch():
    one = network(app.tanh)
    in_parts, startup = in_pieces(one.main, one.startup, Place(0, 1), pieces=5, loss=one.loss, means=[one.loss])
    found = []
    for program, start in ((one.main, one.startup), (in_parts, startup)):
        scope, executor = Scope(), RankExecutor(Place(0, 1))
        executor.run(start, scope=scope)
        losses = executor.train_from_dataset(program, batches(100, 32), ["x", "y"], [one.loss], scope)[0]
        found.append([losses, *(scope.values[p.name] for p in one.main.all_parameters())])
    for whole, parts in zip(*found, strict=True):
        np.testing.assert_allclose(parts, whole, rtol=1e-5, atol=1e-6)


def test_totals_and_means_of_a_test_are_those_of_the_whole_batch():
    one = network()
    test, _ = in_pieces(one.test, Program(), Place(0, 1), pieces=7, means=[one.loss], totals=[one.count])
    scope = Scope()
    Executor().run(one.startup, scope=scope)
    executor, asked = RankExecutor(Place(0, 1)), (["x", "y"], [one.loss, one.count], scope)
    whole, parts = (executor.train_from_dataset(p, batches(50, 20), *asked) for p in (one.test, test))
    np.testing.assert_allclose(parts[0], whole[0], rtol=1e-6)
    np.testing.assert_array_equal(parts[1], whole[1])


def test_an_error_in_the_middle_of_a_batch_leaves_nothing_behind():
    one = network()
    here, startup = in_pieces(one.main, one.startup, Place(0, 1), pieces=4, loss=one.loss, means=[one.loss])
    results = []
    for fails in (False, True):
        scope, executor = Scope(), RankExecutor(Place(0, 1))
        executor.run(startup, scope=scope)
        if fails:
            for name in here.sums:
                scope.values[name] = scope.values[name] + 1
        results.append(executor.train_from_dataset(here, batches(50, 20), ["x", "y"], [one.loss], scope)[0])
    np.testing.assert_array_equal(*results)


@given(st.integers(1, 60), st.sampled_from([1, 2, 3, 4, 6, 12]), st.sampled_from([12, 24, 10**9 * 12]))
def test_the_pieces_of_a_batch_are_the_same_whoever_has_them(count: int, ranks: int, pieces: int):
    batch = batches(count, count)
    cut = [list(_pieces(batch, n, pieces)) for n in (1, ranks)]
    assert cut[0] == cut[1]
    assert [row for rows, _ in cut[0] for row in rows] == batch.order.tolist()  # type: ignore[union-attr]
    assert sum(share for _, share in cut[0]) == pytest.approx(1)
    assert len(cut[0]) == min(count, pieces)


def _pieces(batch: Batches, ranks: int, pieces: int) -> Iterator[tuple[Sequence[int], float]]:
    for rank in range(ranks):
        for shard in pieces_of(batch, Place(rank, ranks), pieces):
            for i in range(len(shard.batches)):
                yield shard.batches[i : i + 1].order.tolist(), shard.share  # type: ignore[union-attr]


def roles(program: Program) -> set[str]:
    return {op.role for op in program.global_block().ops}


def test_the_update_is_in_the_second_program_alone():
    one = network(optimizer=app.optimizer.Adam(0.1))
    here, startup = in_pieces(one.main, one.startup, Place(1, 3), "pserver", pieces=3, loss=one.loss)
    assert OPTIMIZE not in roles(here.piece) | roles(here.batch)
    assert "moment" not in str(startup)
    here, _ = in_pieces(one.main, one.startup, Place(0, 3), "pserver", pieces=3, loss=one.loss)
    assert isinstance(here, InPieces)
    assert (OPTIMIZE in roles(here.piece), OPTIMIZE in roles(here.batch)) == (False, True)


def test_ranks_that_cannot_have_as_many_pieces_each_are_refused():
    with pytest.raises(ConfigError, match=r"^5 ranks cannot have as many of dist\.pieces=12 each: start 4, or another"):
        check_pieces(12, 5)


def refused(one: Network) -> str:
    with pytest.raises(ProgramError) as caught:
        in_pieces(one.main, one.startup, Place(0, 1), pieces=2, loss=one.loss)
    return str(caught.value)


def test_what_would_depend_on_who_computes_it_is_refused():
    dropping = refused(network(lambda hidden: app.nn.functional.dropout(hidden, 0.5)))
    assert "if operator dropout_mask draws random numbers, others at each rank: set dist.pieces=null" in dropping
    assert "before its update, once for every piece" in refused(network(lambda hidden: app.nn.BatchNorm1D(16)(hidden)))
