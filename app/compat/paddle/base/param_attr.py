"""paddle.base.param_attr"""

from app.compat.missing import missing
from app.nn import ParamAttr

__all__ = ["ParamAttr"]

__getattr__ = missing(__name__)
