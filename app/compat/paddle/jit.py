"""paddle.jit"""

from app import jit as _below
from app.compat.missing import missing
from app.compat.table import everything

_TAKEN = everything(_below)
globals().update(_TAKEN)

__all__ = [*_TAKEN]

__getattr__ = missing(__name__)
