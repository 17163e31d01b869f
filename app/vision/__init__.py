"""Vision: data sets, transforms and models."""

from app.vision import datasets, models, transforms

__all__ = ["datasets", "models", "transforms"]


def __dir__() -> list[str]:
    return __all__
