"""paddle.vision"""

from app.compat.missing import missing
from app.compat.paddle.vision import datasets, transforms

__all__ = ["datasets", "transforms"]

__getattr__ = missing(__name__)
