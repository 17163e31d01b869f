"""paddle.device"""

from app.compat.missing import missing
from app.compat.paddle.device import cuda
from app.device import get_device, is_compiled_with_cuda, set_device

__all__ = ["cuda", "get_device", "is_compiled_with_cuda", "set_device"]

__getattr__ = missing(__name__)
