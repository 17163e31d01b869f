"""paddle.device.cuda"""

from app.compat.missing import missing
from app.device import device_count

__all__ = ["device_count"]

__getattr__ = missing(__name__)
