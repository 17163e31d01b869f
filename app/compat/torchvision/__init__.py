"""torchvision, as far as data sets in MNIST's form and the usual transforms go"""

from app.compat.facade import make_modules

make_modules(
    """
torchvision.datasets app.compat.torchvision.datasets EMNIST FashionMNIST KMNIST MNIST
torchvision.io app.compat.torchvision.utils decode_image read_image
torchvision.models app.compat.torchvision.models ResNet18_Weights VGG16_Weights
torchvision.models app.compat.torchvision.models:MODELS *
torchvision.transforms app.compat.torchvision.transforms CenterCrop ConvertImageDtype Grayscale InterpolationMode
    Lambda Normalize Pad PILToTensor RandomCrop RandomHorizontalFlip RandomRotation RandomVerticalFlip Resize
    ToPILImage ToTensor
torchvision.transforms app.vision.transforms Compose
torchvision.transforms.functional app.compat.torchvision.transforms:FUNCTIONAL *
torchvision.transforms.v2 app.compat.torchvision.transforms CenterCrop Grayscale InterpolationMode
    Lambda Normalize Pad PILToTensor RandomCrop RandomHorizontalFlip RandomRotation RandomVerticalFlip Resize
    ToDtype ToImage ToPILImage ToTensor
torchvision.transforms.v2 app.vision.transforms Compose
torchvision.transforms.v2.functional app.compat.torchvision.transforms:FUNCTIONAL *
torchvision.utils app.compat.torchvision.utils make_grid save_image
"""
)
