"""The four files of MNIST: their names, sizes and hashes.

A file is known by the SHA-256 of its *unpacked* content, so it may come from anywhere, packed in any way.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from app.errors import DataError


@dataclass(frozen=True)
class File:
    """A file whose content is known in advance."""

    name: str
    size: int
    sha256: str

    @property
    def dimensions(self) -> int:
        """Of the array in an IDX file, as MNIST's names have it."""
        return 3 if "idx3" in self.name else 1

    def check(self, content: bytes | memoryview, size: int | None = None) -> None:
        """Raise a DataError that says what `content` is instead, unless it is exactly this file.

        `size` is that of the file which `content` was read from, of which the end may have been left unread.
        """
        if len(content) != self.size:
            beginning, found = bytes(content[:16]), max(len(content), size or 0)
            raise DataError(f"{self.name} should be {self.size:,} bytes; found {found:,} that begin with {beginning!r}")
        digest = hashlib.sha256(content).hexdigest()
        if digest != self.sha256:
            raise DataError(f"{self.name} should have the SHA-256 {self.sha256}; found {digest}")


TRAIN_IMAGES = File(
    "train-images-idx3-ubyte",
    47_040_016,
    "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
)
TRAIN_LABELS = File(
    "train-labels-idx1-ubyte",
    60_008,
    "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
)
TEST_IMAGES = File(
    "t10k-images-idx3-ubyte",
    7_840_016,
    "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
)
TEST_LABELS = File(
    "t10k-labels-idx1-ubyte",
    10_008,
    "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
)

FILES = (TRAIN_IMAGES, TRAIN_LABELS, TEST_IMAGES, TEST_LABELS)
