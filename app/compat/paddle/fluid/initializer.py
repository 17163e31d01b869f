"""paddle.fluid.initializer"""

from typing import Any

from app.compat.missing import missing
from app.nn import initializer as _below
from app.nn.initializer import Assign, Constant

ConstantInitializer = Constant
NumpyArrayInitializer = Assign


def Uniform(low: float = -1.0, high: float = 1.0, seed: int = 0) -> Any:
    return _below.Uniform(low, high)


def Normal(loc: float = 0.0, scale: float = 1.0, seed: int = 0) -> Any:
    return _below.Normal(loc, scale)


def Xavier(uniform: bool = True, fan_in: float | None = None, fan_out: float | None = None, seed: int = 0) -> Any:
    return (_below.XavierUniform if uniform else _below.XavierNormal)(fan_in, fan_out)


def MSRA(uniform: bool = True, fan_in: float | None = None, seed: int = 0) -> Any:
    return (_below.KaimingUniform if uniform else _below.KaimingNormal)(fan_in)


UniformInitializer, NormalInitializer, XavierInitializer, MSRAInitializer = Uniform, Normal, Xavier, MSRA

__all__ = [
    "MSRA",
    "Constant",
    "ConstantInitializer",
    "MSRAInitializer",
    "Normal",
    "NormalInitializer",
    "NumpyArrayInitializer",
    "Uniform",
    "UniformInitializer",
    "Xavier",
    "XavierInitializer",
]

__getattr__ = missing(__name__)
