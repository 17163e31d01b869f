"""paddle.base.backward"""

from app.compat.missing import missing
from app.graph import append_backward, gradients

__all__ = ["append_backward", "gradients"]

__getattr__ = missing(__name__)
