"""torchvision.datasets"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from app.compat.torch._creation import from_numpy
from app.errors import DataError
from app.vision import datasets as below
from app.vision.images import to_image


class MNIST(below.MNIST):
    """Images of digits and their numbers. Without a transform, an image is one of Pillow's.

    The files are where this framework keeps them, whatever `root` says; they are verified, and fetched where they are
    missing.
    """

    classes: ClassVar[list[str]] = [
        f"{number} - {word}"
        for number, word in enumerate(["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"])
    ]

    def __init__(
        self,
        root: Any = "data",
        train: bool = True,
        transform: Callable[[Any], Any] | None = None,
        target_transform: Callable[[Any], Any] | None = None,
        download: bool = False,
    ):
        mode = "train" if train else "test"
        super().__init__(*self._paths(root, mode), mode=mode, transform=transform)
        self.root, self.train, self.target_transform = root, train, target_transform

    def _paths(self, root: Any, mode: str) -> tuple[str | None, str | None]:
        """The files of images and of labels; None for those that the framework keeps."""
        return None, None

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
        image, label = to_image(self.images[index]), int(self.labels[index])
        return (
            image if self.transform is None else self.transform(image),
            label if self.target_transform is None else self.target_transform(label),
        )

    def __repr__(self) -> str:
        part = "Train" if self.train else "Test"
        text = f"Dataset {type(self).__name__}\n    Number of datapoints: {len(self)}\n"
        text += f"    Root location: {self.root}\n    Split: {part}"
        if self.transform is not None:
            shown = repr(self.transform).replace("\n", "\n" + " " * len("Transform: "))
            text += f"\n    StandardTransform\nTransform: {shown}"
        return text


class FashionMNIST(MNIST):
    """Images of clothes, from files in `root/FashionMNIST/raw`; they are not fetched."""

    classes: ClassVar[list[str]] = [
        "T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot",
    ]  # fmt: skip

    def _paths(self, root: Any, mode: str) -> tuple[str | None, str | None]:
        return below.paths_of(type(self).__name__, mode, root)


class KMNIST(FashionMNIST):
    """Images of ten Japanese characters, from files in `root/KMNIST/raw`; they are not fetched."""

    classes: ClassVar[list[str]] = ["o", "ki", "su", "tsu", "na", "ha", "ma", "ya", "re", "wo"]


_LETTERS = [chr(code) for first in ("A", "a") for code in range(ord(first), ord(first) + 26)]
_DIGITS = [str(digit) for digit in range(10)]
_LIKE_CAPITALS = set("cijklmopsuvwxyz")
"""Small letters that some splits of EMNIST do not tell from capitals."""


class EMNIST(MNIST):
    """Images of letters and digits, transposed, from files in `root/EMNIST/raw`; they are not fetched."""

    splits: ClassVar[dict[str, list[str]]] = {
        "balanced": _DIGITS + [letter for letter in _LETTERS if letter not in _LIKE_CAPITALS],
        "byclass": _DIGITS + _LETTERS,
        "bymerge": _DIGITS + [letter for letter in _LETTERS if letter not in _LIKE_CAPITALS],
        "digits": _DIGITS,
        "letters": ["N/A", *_LETTERS[26:]],
        "mnist": _DIGITS,
    }

    def __init__(self, root: Any, split: str, **settings: Any):
        if split not in self.splits:
            raise DataError(f"EMNIST: split is one of {', '.join(self.splits)}, found {split!r}")
        self.split, self.classes = split, self.splits[split]  # type: ignore[misc]
        super().__init__(root, **settings)

    def _paths(self, root: Any, mode: str) -> tuple[str | None, str | None]:
        return below.paths_of("EMNIST", mode, root, f"emnist-{self.split}-")
