"""torchvision.datasets"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from app.compat.torch._creation import from_numpy
from app.errors import DataError
from app.vision import datasets


class MNIST(datasets.MNIST):
    """Images of digits and their numbers. Without a transform, an image is an array of 28 x 28 bytes.

    The files are where this framework keeps them, whatever `root` says; they are verified, and fetched where they are
    missing.
    """

    classes: ClassVar[list[str]] = [
        f"{number} - {word}"
        for number, word in enumerate(["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"])
    ]

    def __init__(
        self,
        root: Any = None,
        train: bool = True,
        transform: Callable[[Any], Any] | None = None,
        target_transform: Callable[[Any], Any] | None = None,
        download: bool = False,
    ):
        super().__init__(mode="train" if train else "test", transform=transform)
        self.root, self.train, self.target_transform = root, train, target_transform

    @property
    def data(self) -> Any:
        """All images as one Tensor of bytes."""
        return from_numpy(self.images)

    @property
    def targets(self) -> Any:
        """All labels as one Tensor."""
        return from_numpy(self.labels)

    @property
    def class_to_idx(self) -> dict[str, int]:
        return {name: number for number, name in enumerate(self.classes)}

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        image, (label,) = super().__getitem__(index)
        return image, int(label) if self.target_transform is None else self.target_transform(int(label))

    def __repr__(self) -> str:
        part = "Train" if self.train else "Test"
        return f"Dataset {type(self).__name__}\n    Number of datapoints: {len(self)}\n    Split: {part}"


class FashionMNIST(MNIST):
    """Images of clothes, which this framework does not fetch."""

    def __init__(self, *args: Any, **kwargs: Any):
        raise DataError(
            "FashionMNIST is not among the data that this framework fetches; datasets.MNIST has as many images of the "
            "same size. IDX files of your own take its place where OPSMITH_DATA names their folder"
        )
