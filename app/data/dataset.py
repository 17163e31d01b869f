"""`Dataset`: images and labels of matching sizes, and their origin."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

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
    final_images: NDArray[np.uint8] | None = None
    """The test images, where `test_images` are validation images held back from training."""
    final_labels: NDArray[np.int64] | None = None

    @property
    def tested_on(self) -> str:
        """The name of the images that are evaluated after every epoch: "test" or "validation"."""
        return "test" if self.final_images is None else "validation"

    def hold_back(self, count: int, seed: int) -> Dataset:
        """Replace the test images with `count` training images, drawn by the seed.

        The order of the other training images stays.
        """
        images = len(self.train_images)
        if not 0 < count < images:
            raise DataError(
                f"data.validation={count}: between 1 and {images - 1:,} of {images:,} images can be held back"
            )
        # A spawn key, so that the draw is independent of the seed's other uses.
        random = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(0, 0)))
        held = np.zeros(images, bool)
        held[random.permutation(images)[:count]] = True
        return replace(
            self,
            train_images=self.train_images[~held],
            train_labels=self.train_labels[~held],
            test_images=self.train_images[held],
            test_labels=self.train_labels[held],
            final_images=self.test_images,
            final_labels=self.test_labels,
        )

    def digest(self) -> str:
        """Hash all images and labels, which takes 30 ms for MNIST."""
        digest = hashlib.sha256()
        final = [array for array in (self.final_images, self.final_labels) if array is not None]
        for array in (self.train_images, self.train_labels, self.test_images, self.test_labels, *final):
            digest.update(f"{array.shape}".encode())
            digest.update(np.ascontiguousarray(array, np.uint8).data)
        return digest.hexdigest()

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
