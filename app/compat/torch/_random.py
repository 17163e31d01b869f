"""Where random numbers come from: one source for all, unless a call names its own."""

from __future__ import annotations

import secrets
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import app
from app.compat.torch._device import check_device
from app.ops.random import Streams


class Generator:
    """A source of random numbers of its own."""

    def __init__(self, device: Any = "cpu"):
        check_device(device)
        self.manual_seed(secrets.randbits(32))

    def manual_seed(self, seed: int) -> Generator:
        """Start anew, so that what follows is repeatable."""
        self._streams = Streams(int(seed))
        return self

    def seed(self) -> int:
        """Start anew from a number that chance chooses."""
        return self.manual_seed(secrets.randbits(32)).initial_seed()

    def initial_seed(self) -> int:
        return self._streams.place[0]

    def drawing(self) -> AbstractContextManager[None]:
        """Make it the source that operators draw from inside the block, in this thread."""
        return self._streams.drawing()


class _Default(Generator):
    """The source that operators draw from anyway."""

    def __init__(self) -> None:
        """Nothing starts anew because this module is imported."""

    def manual_seed(self, seed: int) -> Generator:
        app.seed(int(seed))
        return self

    def initial_seed(self) -> int:
        return int(app.get_rng_state()[0][0])

    def drawing(self) -> AbstractContextManager[None]:
        return nullcontext()


default_generator = _Default()


def manual_seed(seed: int) -> Generator:
    """Start the random numbers anew, so that what follows is repeatable."""
    return default_generator.manual_seed(seed)


def seed() -> int:
    """Start the random numbers anew from a number that chance chooses."""
    return default_generator.seed()


def initial_seed() -> int:
    """The number that the random numbers were started from."""
    return default_generator.initial_seed()
