"""paddle.static"""

from app import static as _below
from app.compat.missing import missing
from app.compat.paddle.static import nn
from app.compat.table import everything

_TAKEN = everything(_below)
globals().update(_TAKEN)

__all__ = ["nn", *_TAKEN]

__getattr__ = missing(__name__)
