"""torchvision.models: names of networks, which are refused, as their weights would have to be downloaded."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any

from app.errors import DataError

NETWORKS = ("alexnet", "resnet18", "resnet34", "resnet50", "vgg11", "vgg16", "vgg19")


class ResNet18_Weights(Enum):
    """The trained weights of resnet18."""

    DEFAULT = IMAGENET1K_V1 = "IMAGENET1K_V1"


class VGG16_Weights(Enum):
    """The trained weights of vgg16."""

    DEFAULT = IMAGENET1K_V1 = "IMAGENET1K_V1"


def _refused(name: str) -> Callable[..., Any]:
    def network(*args: Any, **kwargs: Any) -> Any:
        raise DataError(
            f"torchvision.models.{name} is not part of this façade, which has no trained networks and fetches no "
            "weights; build a network of torch.nn, as in examples/tutorials/torch_module.py"
        )

    network.__name__, network.__doc__ = name, "Refused: there are no trained networks here."
    return network


MODELS = {name: _refused(name) for name in NETWORKS}
