"""All that the next step of a learner depends on, as arrays by name: its values, the schedule, the random streams."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from app.errors import FileError
from app.ops.random import Streams
from app.optimizer.lr import LRScheduler

State = dict[str, np.ndarray]

_SCHEDULE, _SEED, _COUNT = "schedule.", "random.seed", "random.count"


def state_of(values: Mapping[str, np.ndarray], schedule: LRScheduler, streams: Streams) -> State:
    """Copies of a network's values, and where its schedule and its random streams stand."""
    seed, count = streams.place
    state = {name: np.array(value) for name, value in values.items()}
    state |= {f"{_SCHEDULE}{key}": np.array(value) for key, value in schedule.state_dict().items()}
    return state | {_SEED: np.array(seed), _COUNT: np.array(count)}


def restore_from(
    state: Mapping[str, np.ndarray],
    values: Mapping[str, np.ndarray],
    put: Callable[[str, np.ndarray], None],
    schedule: LRScheduler,
    streams: Streams,
) -> None:
    """Take a state over, if it is one of such a network, of which these are the values now; all of it or nothing."""
    found, expected = _kinds(state), _kinds(state_of(values, schedule, streams))
    if found != expected:
        raise FileError(f"the state is that of another network: expected {expected}, found {found}")
    for name in values:
        put(name, np.array(state[name]))
    schedule.set_state_dict({key: state[f"{_SCHEDULE}{key}"].item() for key in schedule.state_keys()})
    streams.place = int(state[_SEED]), int(state[_COUNT])


def _kinds(state: Mapping[str, np.ndarray]) -> dict[str, str]:
    return {name: f"{value.dtype}{list(value.shape)}" for name, value in state.items()}
