"""paddle.dataset.mnist"""

from app.compat.missing import missing
from app.data.readers import Reader
from app.data.readers import mnist as _reader


def train() -> Reader:
    return _reader("train")


def test() -> Reader:
    return _reader("test")


__all__ = ["test", "train"]

__getattr__ = missing(__name__)
