"""torch.backends: what pages ask before they choose a device."""

from app.compat.missing import missing
from app.compat.torch.backends import cuda, mps

__all__ = ["cuda", "mps"]

__getattr__ = missing(__name__)
