"""MNIST: where it comes from, how a file is verified and read, and the batches that training walks through.

`load()` is the one door. Behind it, downwards: `mnist` chooses, `files` goes through `sources` until each of the four
is verified and kept, `idx` parses them, and `sample` is the committed stand-in; all end in a `Dataset`. Importing this
package costs NumPy alone: what downloads is imported then.
"""

from app.data.batches import Batches, epoch_order
from app.data.dataset import Dataset
from app.data.mnist import SOURCES, load

__all__ = ["SOURCES", "Batches", "Dataset", "epoch_order", "load"]


def __dir__() -> list[str]:
    return __all__
