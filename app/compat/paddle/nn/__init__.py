"""paddle.nn"""

from app import nn as _below
from app.compat.missing import missing
from app.compat.paddle.nn import functional, initializer, loss
from app.compat.table import everything

_TAKEN = everything(_below)
globals().update(_TAKEN)

__all__ = ["functional", "initializer", "loss", *_TAKEN]

__getattr__ = missing(__name__)
