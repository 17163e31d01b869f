"""paddle.dataset.mnist: readers of the images and labels of MNIST."""

from app.data.readers import Reader, mnist


def train() -> Reader:
    """A reader of the training images."""
    return mnist("train")


def test() -> Reader:
    """A reader of the test images."""
    return mnist("test")
