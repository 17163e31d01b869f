"""torch.linalg"""

from app.compat.missing import missing
from app.compat.torch._matrices import LINALG

globals().update(LINALG)

__all__ = [*LINALG]

__getattr__ = missing(__name__)
