"""From eager code to Programs: functions are traced, and run by the compiled engine."""

from app.jit.api import enable_to_static, not_to_static, to_static
from app.jit.concrete import ConcreteProgram
from app.jit.function import StaticFunction, static_layer
from app.jit.saving import load, save
from app.jit.translated import TranslatedLayer

__all__ = [
    "ConcreteProgram",
    "StaticFunction",
    "TranslatedLayer",
    "enable_to_static",
    "load",
    "not_to_static",
    "save",
    "static_layer",
    "to_static",
]


def __dir__() -> list[str]:
    return __all__
