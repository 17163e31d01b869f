"""Data sets and samplers, and the batches that DataLoader makes of them, whatever the number of workers."""

from __future__ import annotations

import itertools
from collections import namedtuple
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import app
from app import io, static, to_tensor
from app.errors import DataError

TEN = range(10)


class Squares(io.Dataset):
    """(i, i²) as an array and a number."""

    def __init__(self, count: int = 10):
        self.count = count

    def __getitem__(self, index: int) -> tuple[np.ndarray, int]:
        return np.full(2, index, "float32"), index * index

    def __len__(self) -> int:
        return self.count


class Stream(io.IterableDataset):
    """The numbers up to `count`, which workers would share."""

    def __init__(self, count: int):
        self.count = count

    def __iter__(self) -> Iterator[int]:
        info = io.get_worker_info()
        first, step = (0, 1) if info is None else (info.id, info.num_workers)
        return iter(range(first, self.count, step))


# Data sets and samplers


def test_a_tensor_dataset_gives_rows():
    data = io.TensorDataset([to_tensor([[1, 2], [3, 4]]), np.array([5, 6])])
    x, y = data[1]
    assert (x.tolist(), int(y), len(data)) == ([3, 4], 6, 2)


def test_data_sets_can_be_joined_and_examples_chosen():
    joined = io.ConcatDataset([range(2), range(0), range(10, 13)])
    assert (list(joined), len(joined), joined[-1], joined[1]) == ([0, 1, 10, 11, 12], 5, 12, 1)
    with pytest.raises(IndexError):
        joined[5]
    assert list(io.Subset(TEN, [0, 1]) + io.Subset(TEN, [7])) == [0, 1, 7]
    assert list(io.Subset(TEN, [7, 2])) == [7, 2]


@pytest.mark.parametrize(("lengths", "counts"), [([2, 8], [2, 8]), ([0.25, 0.75], [3, 7]), ([1.0], [10])])
def test_random_split_assigns_each_example_once(lengths: list[float], counts: list[int]):
    app.seed(0)
    parts = io.random_split(TEN, lengths)
    assert [len(part) for part in parts] == counts
    assert sorted(n for part in parts for n in part) == list(TEN)
    app.seed(0)
    assert [list(part) for part in io.random_split(TEN, lengths)] == [list(part) for part in parts]


def test_samplers_give_indices_in_order_or_at_random():
    assert list(io.SequenceSampler(TEN)) == list(TEN)
    app.seed(0)
    shuffled = io.RandomSampler(TEN)
    first, second = list(shuffled), list(shuffled)
    assert sorted(first) == sorted(second) == list(TEN)
    assert first != second
    app.seed(0)
    assert list(io.RandomSampler(TEN)) == first
    assert len(list(io.RandomSampler(TEN, replacement=True, num_samples=25))) == 25
    assert len(set(io.RandomSampler(TEN, num_samples=4))) == 4
    assert list(io.RandomSampler(TEN, num_samples=3, generator=iter([5, 5, 1]))) == [5, 5, 1]
    own = [list(io.RandomSampler(TEN, generator=np.random.default_rng(1))) for _ in range(2)]
    assert own[0] == own[1]


@pytest.mark.parametrize(("drop_last", "batches"), [(False, [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]),
                                                    (True, [[0, 1, 2, 3], [4, 5, 6, 7]])])  # fmt: skip
def test_a_batch_sampler_groups_indices(drop_last: bool, batches: list[list[int]]):
    for sampler in (
        io.BatchSampler(TEN, batch_size=4, drop_last=drop_last),
        io.BatchSampler(sampler=io.SequenceSampler(TEN), batch_size=4, drop_last=drop_last),
    ):
        assert (list(sampler), len(sampler)) == (batches, len(batches))


def test_distributed_samplers_share_the_examples():
    parts = [io.DistributedBatchSampler(TEN, 2, 3, rank, shuffle=True) for rank in range(3)]
    first = [list(part) for part in parts]
    assert [len(part) for part in parts] == [2, 2, 2]
    assert {n for part in first for batch in part for n in batch} == set(TEN)
    assert [list(part) for part in parts] != first
    for part in parts:
        part.set_epoch(0)
    assert [list(part) for part in parts] == first


# Loaders

workers = pytest.mark.parametrize("num_workers", [0, 1, 3])


@workers
def test_batches_are_tensors_in_order(num_workers: int):
    loader = io.DataLoader(Squares(), batch_size=4, num_workers=num_workers)
    for _ in range(2):
        batches = list(loader)
        assert [x.shape for x, _ in batches] == [[4, 2], [4, 2], [2, 2]]
        assert [y.tolist() for _, y in batches] == [[0, 1, 4, 9], [16, 25, 36, 49], [64, 81]]
        assert (batches[0][0].dtype, batches[0][1].dtype, isinstance(batches[0], list)) == ("float32", "int64", True)
    assert len(loader) == 3


@workers
def test_a_shuffle_is_the_same_however_many_workers_there_are(num_workers: int):
    def order(num_workers: int) -> list[int]:
        app.seed(7)
        loader = io.DataLoader(Squares(), batch_size=3, shuffle=True, drop_last=True, num_workers=num_workers)
        assert len(loader) == 3
        return [n for _, y in loader for n in y.tolist()]

    assert order(num_workers) == order(0)
    assert order(0) != sorted(order(0))


@workers
def test_a_stream_is_read_once(num_workers: int):
    loader = io.DataLoader(Stream(10), batch_size=2, num_workers=num_workers)
    assert sorted(n for batch in loader for n in batch.tolist()) == list(range(10))
    dropped = io.DataLoader(Stream(9), batch_size=2, num_workers=num_workers, drop_last=True)
    assert [batch.tolist() for batch in dropped] == [[0, 1], [2, 3], [4, 5], [6, 7]]


@workers
def test_an_error_of_a_data_set_is_raised_unchanged(num_workers: int):
    class Broken(Squares):
        def __getitem__(self, index: int) -> tuple[np.ndarray, int]:
            if index == 5:
                raise KeyError("no picture 5")
            return super().__getitem__(index)

    batches = iter(io.DataLoader(Broken(), batch_size=2, num_workers=num_workers))
    assert [next(batches)[1].tolist() for _ in range(2)] == [[0, 1], [4, 9]]
    with pytest.raises(KeyError, match="no picture 5"):
        next(batches)
    assert [y.tolist() for _, y in batches] == [[36, 49], [64, 81]]


def test_batches_after_one_that_cannot_be_made_are_given():
    def collate(examples: list[int]) -> np.ndarray:
        if 2 in examples:
            raise ValueError("no batch with 2")
        return np.array(examples)

    for loader in (
        io.DataLoader(range(6), batch_size=2, collate_fn=collate),
        io.DataLoader(Stream(6), batch_size=2, collate_fn=collate),
        io.DataLoader([[n, n + 1] for n in (0, 2, 4)], batch_size=None, collate_fn=collate),
    ):
        batches = iter(loader)
        assert next(batches).tolist() == [0, 1]
        with pytest.raises(ValueError, match="no batch with 2"):
            next(batches)
        assert [batch.tolist() for batch in batches] == [[4, 5]]


def test_stop_iteration_in_a_batch_is_an_error_and_not_the_end():
    class Reads(io.Dataset):
        lines = iter(range(7))

        def __len__(self) -> int:
            return 10

        def __getitem__(self, index: int) -> int:
            return next(self.lines)

    for settings in ({"batch_size": None}, {"batch_size": 4}):
        with pytest.raises(DataError, match=r"raised StopIteration, .* give next a default, or use an IterableDataset"):
            list(io.DataLoader(Reads(), **settings))
    with pytest.raises(DataError, match="the data set or collate_fn raised StopIteration"):
        list(io.DataLoader(Squares(), collate_fn=lambda batch: next(iter(()))))


@pytest.mark.parametrize("shuffle", [False, True])
def test_each_pass_goes_through_the_examples_that_there_are_then(shuffle: bool):
    examples = [0, 1, 2]
    loader = io.DataLoader(examples, batch_size=2, shuffle=shuffle)
    for _ in range(2):
        assert sorted(n for batch in loader for n in batch.tolist()) == examples
        assert len(loader) == -(-len(examples) // 2)
        examples += [3, 4]


def test_an_iteration_over_a_loader_can_be_stopped():
    loader = io.DataLoader(Squares(1000), num_workers=2)
    assert len(list(itertools.islice(loader, 3))) == 3
    assert next(iter(loader))[1].item() == 0


Pair = namedtuple("Pair", "x y")


@pytest.mark.parametrize(
    ("examples", "batch"),
    [
        ([1.5, 2.5], [1.5, 2.5]),
        ([to_tensor([1]), to_tensor([2])], [[1], [2]]),
        ([{"a": 1, "b": [2.0, 3.0]}, {"a": 4, "b": [5.0, 6.0]}], {"a": [1, 4], "b": [[2.0, 5.0], [3.0, 6.0]]}),
        ([(1, (2, 3)), (4, (5, 6))], [[1, 4], [[2, 5], [3, 6]]]),
        (["one", "two"], ["one", "two"]),
        ([True, False], [True, False]),
    ],
)
def test_each_field_is_stacked(examples: list[Any], batch: Any):
    assert plain(batch_of(examples)) == batch


def batch_of(examples: list[Any]) -> Any:
    (batch,) = io.DataLoader(examples, batch_size=2)
    return batch


def plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    return [plain(v) for v in value] if isinstance(value, list) else value if isinstance(value, str) else value.tolist()


def test_collate_fn_makes_a_batch_and_no_batch_size_makes_none():
    def padded(examples: list[list[int]]) -> Pair:
        width = max(map(len, examples))
        return Pair(np.array([e + [0] * (width - len(e)) for e in examples]), [len(e) for e in examples])

    (batch,) = io.DataLoader([[1], [2, 3]], batch_size=2, collate_fn=padded)
    assert (batch.x.tolist(), batch.y, type(batch)) == ([[1, 0], [2, 3]], [1, 2], Pair)
    singles = list(io.DataLoader(Squares(3), batch_size=None))
    assert [(x.shape, int(y)) for x, y in singles] == [([2], 0), ([2], 1), ([2], 4)]


def test_a_batch_sampler_chooses_the_batches():
    loader = io.DataLoader(Squares(), batch_sampler=[[3, 1], [2]])
    assert [y.tolist() for _, y in loader] == [[9, 1], [4]]
    assert len(loader) == 2


def test_a_loader_with_a_feed_list_gives_dictionaries():
    program = static.Program()
    with static.program_guard(program, static.Program()):
        x, y = static.data("x", [-1, 2]), static.data("y", [-1], "int64")
        total = x.sum() + y.sum()
    loader = io.DataLoader(Squares(4), feed_list=[x, y], return_list=False, batch_size=2)
    found = [float(static.Executor().run(program, feed, [total])[0]) for feed in loader()]
    assert found == [2 * (0 + 1) + 1, 2 * (2 + 3) + 13]


# Errors


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: io.TensorDataset([np.zeros(2), np.zeros(3)]), r"equally many rows, found \[2, 3\]"),
        (lambda: io.random_split(TEN, [3]), r"parts of \[3\] are 3 examples, the data set has 10"),
        (lambda: io.ConcatDataset([]), "takes at least one data set"),
        (lambda: Stream(1)[0], "Stream cannot be indexed; iterate over it"),
        (lambda: io.BatchSampler(), "takes either a data set or a sampler"),
        (lambda: io.BatchSampler(TEN, io.SequenceSampler(TEN)), "takes either a data set or a sampler"),
        (lambda: io.BatchSampler(TEN, batch_size=0), "found batch_size = 0"),
        (lambda: io.RandomSampler(TEN, num_samples=11), "11 of 10 examples need replacement=True"),
        (lambda: io.RandomSampler(TEN, num_samples=0), "num_samples must be at least 1"),
        (lambda: io.DistributedBatchSampler(TEN, 1, 2, 2), "there is no rank 2 among 2"),
        (lambda: io.DataLoader(Squares(), batch_size=0), "found batch_size = 0"),
        (lambda: io.DataLoader(Stream(3), shuffle=True), "cannot be shuffled"),
        (
            lambda: io.DataLoader(Squares(), batch_sampler=[[1]], shuffle=True),
            "batch_size, shuffle and drop_last cannot be given with a batch_sampler",
        ),
        (lambda: io.DataLoader(Squares(), return_list=False), "return_list=False needs a feed_list"),
        (lambda: next(io.DataLoader(Squares(), ["x"], return_list=False)()), "2 fields, but 1 variables to feed: x"),
        (lambda: batch_of([np.zeros(2), np.zeros(3)]), r"examples of one batch have shapes \[2\] and \[3\]"),
        (lambda: batch_of([(1, 2), (1,)]), r"have \[1, 2\] fields"),
        (lambda: batch_of([object(), object()]), "examples of type object cannot be made a batch"),
    ],
)
def test_wrong_arguments_are_errors(make: Callable[[], Any], told: str):
    with pytest.raises(DataError, match=told):
        make()


@pytest.mark.parametrize(
    ("use", "told"),
    [
        (lambda: io.Dataset()[0], "Dataset needs a method __getitem__"),
        (lambda: len(io.Dataset()), "Dataset needs a method __len__"),
        (lambda: iter(io.IterableDataset()), "IterableDataset needs a method __iter__"),
        (lambda: len(Stream(1)), "Stream has no length"),
    ],
)
def test_a_method_that_a_data_set_lacks_is_named(use: Callable[[], Any], told: str):
    with pytest.raises(TypeError if "no length" in told else NotImplementedError, match=told):
        use()
