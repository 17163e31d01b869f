"""What training is given: images and labels that fit together, and plain words for where they came from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.errors import DataError

CLASSES = 10


@dataclass(frozen=True, eq=False)
class Dataset:
    """Training and test images, one flat row of bytes each, with their labels 0 to 9.

    Pixels stay uint8: four bytes saved on each of 47 million, and scaling is a matter for the batch.
    """

    train_images: NDArray[np.uint8]  # (images, pixels)
    train_labels: NDArray[np.int64]  # (images,)
    test_images: NDArray[np.uint8]
    test_labels: NDArray[np.int64]
    image_shape: tuple[int, int]  # (rows, columns) of each image; rows * columns = pixels
    origin: str
    verified: bool  # is every byte of it known to be MNIST's own?
    is_sample: bool = False

    @classmethod
    def of(cls, arrays: Sequence[NDArray[np.uint8]], origin: str, verified: bool, is_sample: bool = False) -> Dataset:
        """From training images (three-dimensional), training labels, test images and test labels, checked."""
        train_images, train_labels, test_images, test_labels = arrays
        _check_fit("training", train_images, train_labels, origin)
        _check_fit("test", test_images, test_labels, origin)
        shape, test_shape = train_images.shape[1:], test_images.shape[1:]
        if shape != test_shape:
            raise DataError(f"{origin}: training images are {shape} pixels, test images {test_shape}")
        return cls(
            train_images=train_images.reshape(len(train_images), -1),
            train_labels=train_labels.astype(np.int64),
            test_images=test_images.reshape(len(test_images), -1),
            test_labels=test_labels.astype(np.int64),
            image_shape=shape,
            origin=origin,
            verified=verified,
            is_sample=is_sample,
        )


def _check_fit(part: str, images: NDArray[np.uint8], labels: NDArray[np.uint8], origin: str) -> None:
    if len(images) != len(labels):
        raise DataError(
            f"{origin}: {len(images):,} {part} images but {len(labels):,} {part} labels; they must be as many"
        )
    if labels.max() >= CLASSES:
        wrong = int(np.argmax(labels >= CLASSES))
        raise DataError(f"{origin}: {part} label {wrong} is {labels[wrong]}; labels must be 0 to {CLASSES - 1}")
