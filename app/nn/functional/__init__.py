"""Functional forms of layers and losses, for Tensors and Variables."""

from app.nn.functional import activation as _activation
from app.nn.functional import common as _common
from app.nn.functional import convolution as _convolution
from app.nn.functional import cross_entropy as _cross_entropy
from app.nn.functional import loss as _loss
from app.nn.functional import norm as _norm
from app.nn.functional.activation import *  # noqa: F403
from app.nn.functional.common import *  # noqa: F403
from app.nn.functional.convolution import *  # noqa: F403
from app.nn.functional.cross_entropy import *  # noqa: F403
from app.nn.functional.loss import *  # noqa: F403
from app.nn.functional.norm import *  # noqa: F403

__all__ = [name for part in (_activation, _common, _convolution, _cross_entropy, _loss, _norm) for name in part.__all__]


def __dir__() -> list[str]:
    return __all__
