"""paddle.autograd.py_layer"""

from app.autograd import PyLayer
from app.compat.missing import missing
from app.custom.layer_operator import PyLayerContext

__all__ = ["PyLayer", "PyLayerContext"]

__getattr__ = missing(__name__)
