"""paddle.nn.loss: the losses of paddle.nn, where Paddle 2.0 had them."""

from app import nn as _below
from app.compat.missing import missing
from app.compat.table import everything

_TAKEN = {name: value for name, value in everything(_below).items() if name.endswith("Loss")}
globals().update(_TAKEN)

__all__ = [*_TAKEN]

__getattr__ = missing(__name__)
