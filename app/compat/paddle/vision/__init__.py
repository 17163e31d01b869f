"""paddle.vision"""

from app.compat.missing import missing
from app.compat.paddle.vision import datasets, models, transforms

__all__ = ["datasets", "models", "transforms"]

__getattr__ = missing(__name__)
