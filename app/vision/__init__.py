"""Pictures: data sets of them, and what is done to each before it goes into a network."""

from app.vision import datasets, transforms

__all__ = ["datasets", "transforms"]


def __dir__() -> list[str]:
    return __all__
