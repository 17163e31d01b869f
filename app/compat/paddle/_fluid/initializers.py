"""paddle.fluid.initializer: initialisers with a `seed` parameter."""

from typing import Any

from app.nn import initializer as _below


def _seeded(initializer: Any, seed: int) -> Any:
    initializer.seed = seed
    return initializer


def Uniform(low: float = -1.0, high: float = 1.0, seed: int = 0) -> Any:
    return _seeded(_below.Uniform(low, high), seed)


def Normal(loc: float = 0.0, scale: float = 1.0, seed: int = 0) -> Any:
    return _seeded(_below.Normal(loc, scale), seed)


def TruncatedNormal(loc: float = 0.0, scale: float = 1.0, seed: int = 0) -> Any:
    return _seeded(_below.TruncatedNormal(loc, scale), seed)


def Xavier(uniform: bool = True, fan_in: float | None = None, fan_out: float | None = None, seed: int = 0) -> Any:
    return _seeded((_below.XavierUniform if uniform else _below.XavierNormal)(fan_in, fan_out), seed)


def MSRA(uniform: bool = True, fan_in: float | None = None, seed: int = 0) -> Any:
    return _seeded((_below.KaimingUniform if uniform else _below.KaimingNormal)(fan_in), seed)
