"""torchvision, as far as MNIST and the usual transforms go"""

from app.compat.missing import missing
from app.compat.torchvision import datasets, transforms

__all__ = ["datasets", "transforms"]

__getattr__ = missing(__name__)
