"""The loop: who is trained when, where the pieces end, and what is reported and recorded."""

import itertools

import numpy as np
import pytest

from app.data import Dataset
from app.run.callbacks import Callback
from app.run.config import Config, TrainConfig
from app.run.events import Epoch, Iteration
from app.run.run import PIECE, train_epochs


class Clock:
    now = 0.0

    def perf_counter(self):
        return self.now


class Pretended:
    """A learner that only remembers: images are numbered, so it knows which it was given."""

    def __init__(self, operator, log, clock):
        self.operator, self.log, self.clock = operator, log, clock

    def train(self, batches):
        self.log.append((self.operator, "train", [list(labels) for _, labels in batches]))
        self.clock.now += 2.0 * len(batches)
        return np.arange(len(batches), dtype=np.float32), np.full(len(batches), 0.5, np.float32)

    def measure(self, batches):
        self.log.append((self.operator, "measure"))
        self.clock.now += 1000.0
        right = [np.float32(np.mean(labels % 3 == 0)) for _, labels in batches]
        return np.array([labels.sum() for _, labels in batches], np.float32), np.array(right)

    def end_epoch(self):
        self.log.append((self.operator, "end of epoch"))

    def state(self):
        return {}


class Remembers(Callback):
    """A callback that remembers its calls."""

    def __init__(self):
        self.calls = []

    def begin_epoch(self, position):
        self.calls.append(("begin", position.learner.operator, position.epoch))

    def record(self, event):
        self.calls.append((type(event), event.iteration if isinstance(event, Iteration) else event.test_accuracy))

    def advance(self, position):
        self.calls.append(("advance", position.done))

    def end_epoch(self, position):
        self.calls.append(("end of epoch", position.epoch))

    def end_round(self, epoch):
        self.calls.append(("end of round", epoch))

    def end(self):
        self.calls.append(("end",))


class Loop:
    """A loop over operators and images whose labels are their numbers; what it did is kept."""

    def __init__(self, train, test, *callbacks, names="a", first=0, clock=None, **settings):
        self.log, self.events = [], []
        images = [np.zeros((train, 1), np.uint8), np.arange(train), np.zeros((test, 1), np.uint8), np.arange(test)]
        self.learners = [Pretended(name, self.log, clock or Clock()) for name in names]
        config, data = Config(train=TrainConfig(**settings)), Dataset(*images, (1, 1), "", True)
        self._arguments = config, data, self.learners, self._record, [Callback(), *callbacks], first

    def _record(self, event):
        self.events.append(event)
        for callback in self._arguments[4]:
            getattr(callback, "record", id)(event)

    def run(self):
        train_epochs(*self._arguments)
        return self

    @property
    def epochs(self):
        return [event for event in self.events if isinstance(event, Epoch)]

    def trained(self, name="a"):
        """The batches that a learner was trained on."""
        return [batch for entry in self.log if entry[:2] == (name, "train") for batch in entry[2]]


def test_operators_take_turns_in_another_order_in_every_epoch_and_share_the_order_of_images_which_changes():
    loop = Loop(10, 2, names="ab", epochs=2, batch_size=4).run()
    turns = [(name, did) for name in "abba" for did in ("train", "end of epoch", "measure")]
    assert [key for key, _ in itertools.groupby(entry[:2] for entry in loop.log)] == turns
    seen = loop.trained("a")
    assert seen == loop.trained("b")
    assert [len(batch) for batch in seen] == [4, 4, 2, 4, 4, 2]
    first, second = np.concatenate(seen[:3]), np.concatenate(seen[3:])
    assert sorted(first) == sorted(second) == list(range(10))
    assert list(first) != list(second)


@pytest.mark.parametrize(
    ("log_every", "reported"),
    [
        (1, [(0, 0.0), (1, 0.0), (2, 0.0), (3, 0.0), (4, 0.0)]),
        (2, [(0, 0.0), (2, 1.0), (4, 0.0)]),
        (3, [(0, 0.0), (3, 2.0)]),
        (100, [(0, 0.0)]),
    ],
)
def test_reports_are_at_multiples_of_log_every_and_of_the_last_iteration_of_a_piece(log_every, reported):
    loop = Loop(10, 2, epochs=1, batch_size=2, log_every=log_every).run()
    assert [(e.iteration, e.loss) for e in loop.events if isinstance(e, Iteration)] == reported
    assert len(loop.trained()) == 5


@pytest.mark.parametrize("size", [1, 2, 3, 4, 7, 100])
def test_a_smaller_last_test_batch_counts_less(size):
    loop = Loop(2, 7, epochs=1, eval_batch_size=size).run()
    assert loop.epochs[0].test_accuracy == 3 / 7  # labels 0, 3 and 6
    losses = [sum(range(first, min(first + size, 7))) * min(size, 7 - first) for first in range(0, 7, size)]
    assert loop.events[-1].test_loss == pytest.approx(sum(losses) / 7)


def test_seconds_are_those_of_training_alone(monkeypatch):
    clock = Clock()
    monkeypatch.setattr("app.run.steps.time", clock)
    loop = Loop(6, 2, clock=clock, epochs=1, batch_size=1, log_every=100).run()
    assert loop.epochs == [Epoch("a", 0, 12.0, 0.5, 1.0)]


@pytest.mark.parametrize(
    ("iterations", "log_every", "expected"),
    [
        (235, 100, [1, 101, 201, 234, 235]),
        (235, PIECE + 2, [1, 101, 103, 203, 205, 234, 235]),
        (2 * PIECE + 5, 10**9, [1, 101, 201, 204, 205]),
        (102, 100, [1, 101, 102]),
        (3, 1, [1, 2, 3]),
        (1, 100, [1]),
    ],
)
def test_pieces_of_an_epoch_end_where_a_report_is_due_and_before_the_last_step(iterations, log_every, expected):
    callback = Remembers()
    Loop(iterations, 2, callback, epochs=1, batch_size=1, log_every=log_every).run()
    assert [call[1] for call in callback.calls if call[0] == "advance"] == expected
    reported = [call[1] for call in callback.calls if call[0] == Iteration]
    assert reported == [*range(0, iterations, log_every)]
    assert max(b - a for a, b in itertools.pairwise([0, *expected])) <= PIECE


def test_events_are_recorded_and_callbacks_called_in_order():
    callback = Remembers()
    Loop(4, 2, callback, names="ab", epochs=1, batch_size=2, log_every=2).run()
    of_each = [(Iteration, 0), ("advance", 1), ("advance", 2), (Epoch, 0.5), ("end of epoch", 0)]
    assert callback.calls == [("begin", "a", 0), *of_each, ("begin", "b", 0), *of_each, ("end of round", 0), ("end",)]


def test_an_exception_of_a_callback_ends_the_run_and_all_callbacks():
    class Stops(Callback):
        def end_epoch(self, position):
            if position.epoch == 1:
                raise KeyboardInterrupt

    last = Remembers()
    loop = Loop(4, 2, Stops(), last, names="ab")
    with pytest.raises(KeyboardInterrupt):
        loop.run()
    assert [epoch.operator for epoch in loop.epochs] == ["a", "b", "b"]
    assert last.calls[-1] == ("end",)


@pytest.mark.parametrize(
    ("first", "rest"), [(0, [("a", 0), ("b", 0), ("b", 1), ("a", 1)]), (1, [("b", 1), ("a", 1)]), (2, [])]
)
def test_a_run_continues_with_its_first_unfinished_epoch(first, rest):
    callback, settings = Remembers(), {"epochs": 2, "batch_size": 2}
    loop = Loop(8, 2, callback, names="ab", first=first, **settings).run()
    assert [call[1:] for call in callback.calls if call[0] == "begin"] == rest
    whole, seen = Loop(8, 2, **settings).run().trained(), loop.trained("b")
    assert seen == whole[4 * first :]
