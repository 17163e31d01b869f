"""torch.autograd.function"""

from app.autograd import Function, once_differentiable
from app.compat.missing import missing
from app.custom.layer_operator import PyLayerContext as FunctionCtx

__all__ = ["Function", "FunctionCtx", "once_differentiable"]

__getattr__ = missing(__name__)
