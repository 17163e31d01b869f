"""The loop: who is trained when, where the pieces end, and what is reported and recorded."""

import numpy as np
import pytest

from app.data import Dataset
from app.run.callbacks import Callback, Contestant
from app.run.config import Config, TrainConfig
from app.run.events import Epoch, Iteration
from app.run.loop import Start, TrainingLoop
from app.run.metrics import Metrics


class Pretended:
    """A learner that only remembers: images are numbered, so it knows which it was given."""

    def __init__(self, name, log, seconds=None):
        self.name, self.log, self.seconds = name, log, seconds

    def warm_up(self, batches):
        raise AssertionError("that was to be done before")

    def train(self, batches):
        self.log.append((self.name, "train", [list(labels) for _, labels in batches]))
        if self.seconds is not None:
            self.seconds.now += 2.0 * len(batches)
        return np.arange(len(batches), dtype=np.float32), np.full(len(batches), 0.5, np.float32)

    def measure(self, batches):
        self.log.append((self.name, "measure", [list(labels) for _, labels in batches]))
        if self.seconds is not None:
            self.seconds.now += 1000.0
        right = [np.float32(np.mean(labels % 3 == 0)) for _, labels in batches]
        return np.array([labels.sum() for _, labels in batches], np.float32), np.array(right)

    def activity(self):
        return []

    def end_epoch(self):
        self.log.append((self.name, "end of epoch"))

    def weights(self):
        return {}

    def state(self):
        return {}


def numbered(train, test):
    """Images whose label says which they are."""
    image = np.zeros((1, 1), np.uint8)
    return Dataset(
        np.repeat(image, train, 0), np.arange(train), np.repeat(image, test, 0), np.arange(test), (1, 1), "", True
    )


class Remembers(Callback):
    """A callback that remembers what it was told, in words."""

    def __init__(self, every=None):
        self.every = every
        self.told = []

    def begin(self, place):
        self.told.append(("begin", place.contestant.operator, place.epoch, place.done))

    def report(self, place, loss, accuracy):
        self.told.append(("report", place.done))

    def piece(self, place, losses, accuracies):
        self.told.append(("piece", place.done, len(losses)))

    def epoch(self, place, result):
        self.told.append(("epoch", result.test_accuracy))

    def end(self):
        self.told.append(("end",))


def compared(dataset, *names, callback=None, seconds=None, **settings):
    log = []
    events = []
    config = Config(train=TrainConfig(**settings))
    entered = [Contestant(name, Pretended(name, log, seconds)) for name in names]
    TrainingLoop(config, dataset, entered, [Metrics(events.append), callback or Callback()]).run()
    return log, events, entered


def trained(log, name):
    """The batches that a learner was trained on, as one list."""
    return [batch for entry in log if entry[:2] == (name, "train") for batch in entry[2]]


def test_contestants_take_turns():
    log, _, _ = compared(numbered(4, 2), "a", "b", epochs=2, batch_size=4)
    assert [entry[:2] for entry in log] == [
        *(("a", "train"), ("a", "end of epoch"), ("a", "measure")),
        *(("b", "train"), ("b", "end of epoch"), ("b", "measure")),
        *(("a", "train"), ("a", "end of epoch"), ("a", "measure")),
        *(("b", "train"), ("b", "end of epoch"), ("b", "measure")),
    ]


def test_every_image_is_seen_once_an_epoch_in_an_order_that_all_share_and_that_changes():
    log, _, _ = compared(numbered(10, 2), "a", "b", epochs=2, batch_size=4)
    seen = trained(log, "a")
    assert seen == trained(log, "b")
    assert [len(batch) for batch in seen] == [4, 4, 2, 4, 4, 2]
    first, second = np.concatenate(seen[:3]), np.concatenate(seen[3:])
    assert sorted(first) == sorted(second) == list(range(10))
    assert list(first) != list(second)


@pytest.mark.parametrize(("log_every", "reported"), [(1, [0, 1, 2, 3, 4]), (2, [0, 2, 4]), (3, [0, 3]), (100, [0])])
def test_reports_are_at_multiples_of_log_every(log_every, reported):
    log, events, _ = compared(numbered(10, 2), "a", epochs=1, batch_size=2, log_every=log_every)
    assert [e.iteration for e in events if isinstance(e, Iteration)] == reported
    assert len(trained(log, "a")) == 5


def test_a_report_is_of_its_own_iteration():
    _, events, _ = compared(numbered(8, 2), "a", epochs=1, batch_size=2, log_every=3)
    assert [(e.iteration, e.loss) for e in events[:2]] == [(0, 0.0), (3, 2.0)]  # last of pieces of 1 and of 3


def test_testing_is_over_all_images_whatever_the_batches():
    for size in (1, 2, 3, 4, 7, 100):
        _, events, (contestant,) = compared(numbered(2, 7), "a", epochs=1, eval_batch_size=size)
        assert contestant.epochs[0].test_accuracy == events[-1].test_accuracy == 3 / 7  # labels 0, 3 and 6


def test_the_loss_of_a_smaller_last_batch_counts_less():
    _, events, _ = compared(numbered(2, 5), "a", epochs=1, eval_batch_size=4)
    assert events[-1].test_loss == (4 * (0 + 1 + 2 + 3) + 1 * 4) / 5


class Clock:
    now = 0.0

    def perf_counter(self):
        return self.now


def test_seconds_are_those_of_training_alone(monkeypatch):
    clock = Clock()
    monkeypatch.setattr("app.run.loop.time", clock)
    _, events, (contestant,) = compared(numbered(10, 2), "a", epochs=1, batch_size=2, log_every=2, seconds=clock)
    assert events[-1].seconds == 10.0
    assert contestant.epochs == [Epoch("a", 0, 10.0, 0.5, 1.0)]


def test_slow_iterations_are_checked_for_a_stop_one_by_one(monkeypatch):
    clock, callback = Clock(), Remembers()
    monkeypatch.setattr("app.run.loop.time", clock)
    settings = {"epochs": 1, "batch_size": 1, "log_every": 100, "seconds": clock}
    compared(numbered(6, 2), "a", callback=callback, **settings)
    assert [size for kind, _, size in pieces(callback)] == [1] * 6


def pieces(callback):
    return [told for told in callback.told if told[0] == "piece"]


def test_a_callback_is_told_of_all_in_order():
    callback = Remembers()
    compared(numbered(4, 2), "a", "b", callback=callback, epochs=1, batch_size=2, log_every=2)
    of_each = [("report", 1), ("piece", 1, 1), ("piece", 2, 1), ("epoch", 0.5)]
    assert callback.told == [("begin", "a", 0, 0), *of_each, ("begin", "b", 0, 0), *of_each, ("end",)]


@pytest.mark.parametrize("every", [1, 2, 3, 7])
def test_a_callback_is_told_wherever_it_asks(every):
    callback = Remembers(every)
    compared(numbered(14, 2), "a", callback=callback, epochs=2, batch_size=2, log_every=5)
    halts = {place for _, place, _ in pieces(callback)}
    assert halts >= {*range(every, 8, every), 7}
    assert sum(size for _, _, size in pieces(callback)) == 14


def test_what_a_callback_raises_ends_the_run_and_all_are_told():
    class Stops(Callback):
        def epoch(self, place, result):
            if place.epoch == 1:
                raise KeyboardInterrupt

    last = Remembers()
    entered = [Contestant(name, Pretended(name, [])) for name in "ab"]
    with pytest.raises(KeyboardInterrupt):
        TrainingLoop(Config(), numbered(4, 2), entered, [Stops(), last]).run()
    assert [len(contestant.epochs) for contestant in entered] == [2, 1]
    assert last.told[-1] == ("end",)


@pytest.mark.parametrize(
    ("start", "rest"),
    [
        (Start(0, 1, 0), [("b", 0), ("a", 1), ("b", 1)]),
        (Start(0, 0, 3), [("a", 0), ("b", 0), ("a", 1), ("b", 1)]),
        (Start(1, 1, 4), [("b", 1)]),
        (Start(2, 0, 0), []),
    ],
)
def test_a_run_goes_on_where_it_is_told_to(start, rest):
    log = []
    callback = Remembers()
    entered = [Contestant(name, Pretended(name, log)) for name in "ab"]
    config = Config(train=TrainConfig(epochs=2, batch_size=2))
    TrainingLoop(config, numbered(8, 2), entered, [callback], start).run()
    assert [told[1:3] for told in callback.told if told[0] == "begin"] == rest
    assert len(trained(log, "a") + trained(log, "b")) == 4 * len(rest) - start.done
    whole = compared(numbered(8, 2), "b", epochs=2, batch_size=2)[0]
    seen = trained(log, "b")
    assert seen == trained(whole, "b")[len(trained(whole, "b")) - len(seen) :]
