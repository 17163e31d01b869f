"""torchvision, as far as MNIST and the usual transforms go"""

from app.compat.facade import make_modules

make_modules(
    """
torchvision.datasets app.compat.torchvision.datasets FashionMNIST MNIST
torchvision.transforms app.compat.torchvision.transforms *
torchvision.transforms app.vision.transforms Compose
"""
)
