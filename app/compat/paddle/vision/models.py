"""paddle.vision.models"""

from app.compat.missing import missing
from app.compat.table import everything
from app.vision import models as _below

_TAKEN = everything(_below)
globals().update(_TAKEN)

__all__ = [*_TAKEN]

__getattr__ = missing(__name__)
