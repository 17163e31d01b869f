"""torch.utils"""

from app.compat.missing import missing
from app.compat.torch.utils import data

__all__ = ["data"]

__getattr__ = missing(__name__)
