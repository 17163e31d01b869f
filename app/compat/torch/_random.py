"""Generators of random numbers: the default one, and those that are passed to functions."""

from __future__ import annotations

import secrets
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import app
from app.compat.torch._device import check_device
from app.ops.random import Streams


class Generator:
    """A generator with its own state."""

    def __init__(self, device: Any = "cpu"):
        check_device(device)
        self.manual_seed(secrets.randbits(32))

    def manual_seed(self, seed: int) -> Generator:
        """Set the seed, so that what follows is repeatable."""
        self._streams = Streams(int(seed))
        return self

    def seed(self) -> int:
        """Set a random seed, which is returned."""
        return self.manual_seed(secrets.randbits(32)).initial_seed()

    def initial_seed(self) -> int:
        return self._streams.place[0]

    def drawing(self) -> AbstractContextManager[None]:
        """Inside the block, operators of this thread use this generator."""
        return self._streams.drawing()


class _Default(Generator):
    """The generator that operators use by default."""

    def __init__(self) -> None:
        """Importing this module changes no seed."""

    def manual_seed(self, seed: int) -> Generator:
        app.seed(int(seed))
        return self

    def initial_seed(self) -> int:
        return int(app.get_rng_state()[0][0])

    def drawing(self) -> AbstractContextManager[None]:
        return nullcontext()


default_generator = _Default()


def manual_seed(seed: int) -> Generator:
    """Seed the default generator, so that what follows is repeatable."""
    return default_generator.manual_seed(seed)


def seed() -> int:
    """Seed the default generator with a random number, which is returned."""
    return default_generator.seed()


def initial_seed() -> int:
    """The seed of the default generator."""
    return default_generator.initial_seed()
