"""Pictures: data sets of them, what is done to each before it goes into a network, and networks for them."""

from app.vision import datasets, models, transforms

__all__ = ["datasets", "models", "transforms"]


def __dir__() -> list[str]:
    return __all__
