"""torch.optim"""

from app.compat.missing import missing
from app.compat.torch.optim import lr_scheduler
from app.compat.torch.optim._optimizers import SGD, Adadelta, Adagrad, Adam, AdamW, Optimizer, RMSprop

__all__ = ["SGD", "Adadelta", "Adagrad", "Adam", "AdamW", "Optimizer", "RMSprop", "lr_scheduler"]

__getattr__ = missing(__name__)
