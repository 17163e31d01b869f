"""paddle.fluid.optimizer: the optimisers under Paddle 1's names, of themselves and of their parameters."""

from collections.abc import Callable
from typing import Any

from app import optimizer as _below
from app.compat.missing import missing


def _renamed(optimizer: Callable[..., Any]) -> Callable[..., Any]:
    def make(*settings: Any, parameter_list: Any = None, regularization: Any = None, **named: Any) -> Any:
        return optimizer(*settings, parameters=parameter_list, weight_decay=regularization, **named)

    return make


SGD = SGDOptimizer = _renamed(_below.SGD)
Momentum = MomentumOptimizer = _renamed(_below.Momentum)
Adam = AdamOptimizer = _renamed(_below.Adam)
Adagrad = AdagradOptimizer = _renamed(_below.Adagrad)
Adadelta = AdadeltaOptimizer = _renamed(_below.Adadelta)
RMSPropOptimizer = _renamed(_below.RMSProp)

__all__ = [
    "SGD",
    "Adadelta",
    "AdadeltaOptimizer",
    "Adagrad",
    "AdagradOptimizer",
    "Adam",
    "AdamOptimizer",
    "Momentum",
    "MomentumOptimizer",
    "RMSPropOptimizer",
    "SGDOptimizer",
]

__getattr__ = missing(__name__)
