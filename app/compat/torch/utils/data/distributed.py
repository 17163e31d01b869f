"""torch.utils.data.distributed"""

from app.compat.missing import missing
from app.io import DistributedSampler

__all__ = ["DistributedSampler"]

__getattr__ = missing(__name__)
