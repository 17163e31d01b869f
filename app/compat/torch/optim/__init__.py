"""torch.optim"""

from app.compat.missing import missing
from app.compat.torch.optim import lr_scheduler
from app.compat.torch.optim._kinds import KINDS
from app.compat.torch.optim._optimizer import Optimizer

globals().update(KINDS)

__all__ = [*KINDS, "Optimizer", "lr_scheduler"]

__getattr__ = missing(__name__)
