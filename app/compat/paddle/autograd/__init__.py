"""paddle.autograd"""

from app.autograd import PyLayer, backward, enable_grad, grad, is_grad_enabled, no_grad, set_grad_enabled
from app.compat.missing import missing
from app.compat.paddle.autograd import py_layer
from app.custom.layer_operator import PyLayerContext

__all__ = [
    "PyLayer",
    "PyLayerContext",
    "backward",
    "enable_grad",
    "grad",
    "is_grad_enabled",
    "no_grad",
    "py_layer",
    "set_grad_enabled",
]

__getattr__ = missing(__name__)
