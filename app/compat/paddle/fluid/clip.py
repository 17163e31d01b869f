"""paddle.fluid.clip"""

from app.compat.missing import missing
from app.nn import ClipGradByGlobalNorm as GradientClipByGlobalNorm
from app.nn import ClipGradByNorm as GradientClipByNorm
from app.nn import ClipGradByValue as GradientClipByValue

__all__ = ["GradientClipByGlobalNorm", "GradientClipByNorm", "GradientClipByValue"]

__getattr__ = missing(__name__)
