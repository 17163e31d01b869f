"""paddle.optimizer"""

from app import optimizer as _below
from app.compat.missing import missing
from app.compat.paddle.optimizer import lr
from app.compat.table import table

_TAKEN = table(_below, "Adadelta Adagrad Adam AdamW Momentum Optimizer RMSProp SGD")
globals().update(_TAKEN)

__all__ = ["lr", *_TAKEN]

__getattr__ = missing(__name__)
