"""torchvision, as far as data sets in MNIST's form and the usual transforms go"""

from app.compat.facade import make_modules

make_modules(
    """
torchvision.datasets app.compat.torchvision.datasets FashionMNIST MNIST
torchvision.io app.compat.torchvision.io read_image
torchvision.models app.compat.torchvision.models ResNet18_Weights VGG16_Weights
torchvision.models app.compat.torchvision.models:MODELS *
torchvision.transforms app.compat.torchvision.transforms CenterCrop InterpolationMode Lambda Normalize Pad RandomCrop
    RandomHorizontalFlip RandomRotation Resize ToTensor
torchvision.transforms app.vision.transforms Compose
torchvision.transforms.v2 torchvision.transforms
torchvision.transforms.v2 app.compat.torchvision.transforms ToDtype ToImage
"""
)
