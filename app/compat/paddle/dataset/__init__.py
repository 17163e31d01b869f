"""paddle.dataset"""

from app.compat.missing import missing
from app.compat.paddle.dataset import mnist

__all__ = ["mnist"]

__getattr__ = missing(__name__)
