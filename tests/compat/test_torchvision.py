"""The façade of torchvision. Sums of pixels are those of torchvision 0.29 itself, with the same input."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from app.compat import torch
from app.compat.torchvision import datasets, io, models, transforms, utils
from app.errors import AppError

F, v2 = transforms.functional, transforms.v2
PICTURE = np.random.default_rng(0).integers(0, 256, (20, 30, 3)).astype("uint8")


def write_idx(folder: Path, begin: str = "", part: str = "t10k") -> None:
    folder.mkdir(parents=True)
    images, labels = PICTURE[:4, :28].transpose(2, 0, 1), np.array([7, 0, 9], "uint8")
    header = struct.pack(">BBBB3I", 0, 0, 8, 3, *images.shape)
    (folder / f"{begin}{part}-images-idx3-ubyte").write_bytes(header + images.tobytes())
    (folder / f"{begin}{part}-labels-idx1-ubyte").write_bytes(struct.pack(">BBBBI", 0, 0, 8, 1, 3) + labels.tobytes())


# Data sets


def test_mnist_gives_images_and_labels(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OPSMITH_DATA", "sample")
    digits = datasets.MNIST(root="anywhere", train=False, download=True)
    image, label = digits[0]
    assert (image.size, image.mode, type(label)) == ((28, 28), "L", int)
    assert digits.data.shape == (len(digits), 28, 28)
    assert digits.targets[0].item() == label
    assert (digits.classes[3], digits.class_to_idx["3 - three"]) == ("3 - three", 3)
    turned = datasets.MNIST("anywhere", train=False, transform=transforms.ToTensor(), target_transform=lambda y: y + 10)
    image, label = turned[0]
    assert (image.shape, image.dtype) == ((1, 28, 28), torch.float32)
    assert label >= 10


@pytest.mark.parametrize("name", ["FashionMNIST", "KMNIST"])
def test_data_sets_in_the_form_of_mnist_come_from_local_files(name: str, tmp_path: Path):
    write_idx(tmp_path / name / "raw")
    both = transforms.Compose([transforms.ToTensor(), transforms.Normalize((0.5,), (0.5,))])
    data = getattr(datasets, name)(str(tmp_path), train=False, transform=both, download=True)
    assert (len(data), len(data.classes), [label for _, label in data]) == (3, 10, [7, 0, 9])
    np.testing.assert_allclose(data[1][0].numpy()[0], PICTURE[:4, :28, 1] / 127.5 - 1, atol=1e-6)
    assert repr(data) == (
        f"Dataset {name}\n    Number of datapoints: 3\n    Root location: {tmp_path}\n    Split: Test\n"
        "    StandardTransform\nTransform: Compose(\n               ToTensor()\n"
        "               Normalize(mean=(0.5,), std=(0.5,))\n           )"
    )


def test_emnist_has_a_file_for_each_split(tmp_path: Path):
    write_idx(tmp_path / "EMNIST" / "raw", "emnist-letters-", "test")
    data = datasets.EMNIST(tmp_path, "letters", train=False)
    assert (data[0][1], data.classes[7], len(datasets.EMNIST.splits["balanced"])) == (7, "g", 47)


def test_missing_files_are_errors_that_name_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("OPSMITH_DATA", raising=False)
    words = r"FashionMNIST: its files are missing, .* put train-images-idx3-ubyte and .* into .*FashionMNIST/raw"
    with pytest.raises(AppError, match=words):
        datasets.FashionMNIST(root=tmp_path, download=True)
    write_idx(tmp_path / "FashionMNIST")
    with pytest.raises(AppError, match="lacks train-images-idx3-ubyte"):
        datasets.FashionMNIST(root=tmp_path)
    monkeypatch.setenv("OPSMITH_DATA", str(tmp_path))
    assert len(datasets.FashionMNIST(root="elsewhere", train=False)) == 3


# Transforms


@pytest.mark.parametrize(
    ("transform", "shape", "of_image", "of_tensor"),
    [
        (transforms.Resize(14), (14, 21), 115127, 451.2124),
        (transforms.Resize((7, 9)), (7, 9), 24664, 96.7176),
        (transforms.Resize(40), (40, 60), 942849, 3690.6511),
        (transforms.CenterCrop(10), (10, 10), 37555, 147.2745),
        (transforms.Pad((1, 2, 3, 4), fill=3), (26, 34), 237835, 3478.6628),
        (transforms.RandomHorizontalFlip(1.0), (20, 30), 235279, 922.6628),
        (transforms.RandomRotation((30, 30)), (20, 30), 190069, 745.3686),
        (transforms.RandomRotation((90, 90), expand=True), (30, 20), 235279, 922.6628),
        (transforms.Grayscale(3), (20, 30), 236400, 926.8836),
    ],
)
def test_a_transform_gives_the_sums_of_torchvision_for_images_and_tensors(
    transform: Any, shape: tuple[int, int], of_image: Any, of_tensor: Any
):
    image = Image.fromarray(PICTURE)
    for given, found in ((image, transform(image)), (F.to_tensor(image), transform(F.to_tensor(image)))):
        assert type(found) is (Image.Image if given is image else torch.Tensor)
        assert (found.size[::-1] if given is image else tuple(found.shape)[1:]) == shape
        wanted = of_image if given is image else of_tensor
        assert np.asarray(found).astype("float64").sum() == pytest.approx(wanted, rel=1e-4)


def test_images_become_tensors_and_tensors_images():
    image = Image.fromarray(PICTURE)
    np.testing.assert_array_equal(F.pil_to_tensor(image).numpy(), PICTURE.transpose(2, 0, 1))
    np.testing.assert_array_equal(np.asarray(transforms.ToPILImage()(F.to_tensor(image))), PICTURE)
    assert [F.to_pil_image(torch.zeros(n, 2, 2)).mode for n in (1, 3, 4)] == ["L", "RGB", "RGBA"]
    modern = v2.Compose([v2.ToImage(), v2.ToDtype(torch.float32, scale=True), v2.Normalize([0.5] * 3, [0.25] * 3)])
    np.testing.assert_allclose(modern(image).numpy(), (PICTURE.transpose(2, 0, 1) / 255 - 0.5) * 4, atol=1e-5)
    assert torch.equal(v2.ToDtype(torch.uint8, scale=True)(F.to_tensor(image)), F.pil_to_tensor(image))


def test_transforms_of_pixels():
    picture = np.arange(12, dtype=np.uint8).reshape(2, 2, 3)
    done = transforms.Compose([transforms.ToTensor(), transforms.Normalize((0.0, 0.5, 0.5), (1.0, 0.5, 0.5))])
    assert done(picture).shape == (3, 2, 2)
    assert done(picture)[0, 0, 1].item() == pytest.approx(3 / 255)
    assert done(picture)[1, 0, 0].item() == pytest.approx((1 / 255 - 0.5) / 0.5)
    assert transforms.Lambda(lambda v: v + 1)(1) == 2
    assert repr(transforms.RandomRotation(10)) == (
        "RandomRotation(degrees=[-10.0, 10.0], interpolation=nearest, expand=False, fill=0)"
    )


# Grids, files and networks


def test_doubles_are_normalised_with_all_digits():
    done = transforms.Normalize(0.1307, 0.3081)(torch.ones(1, 2, 2, dtype=torch.float64))
    assert done.dtype == torch.float64
    assert done[0, 0, 0].item() == (1 - 0.1307) / 0.3081


def test_a_grid_of_images_is_written_and_read(tmp_path: Path):
    images = torch.arange(24.0).reshape(2, 1, 3, 4)
    assert utils.make_grid(images).shape == (3, 7, 14)
    below = utils.make_grid(images, nrow=1, padding=1, normalize=True, pad_value=0.5)
    assert (below.shape, below[0, 0, 0].item(), below[0, 7, 4].item()) == ((3, 9, 6), 0.5, 1.0)
    each = utils.make_grid([images[0], images[1]], normalize=True, scale_each=True)
    assert each[0, 2:5, 2:6].tolist() == each[0, 2:5, 8:12].tolist()
    utils.save_image(images / 24, tmp_path / "grid.png")
    assert io.read_image(tmp_path / "grid.png").shape == (3, 7, 14)
    assert torch.equal(io.decode_image(str(tmp_path / "grid.png")), io.read_image(tmp_path / "grid.png"))


T, IMAGE = torch.ones(1, 4, 4), Image.fromarray(PICTURE)
ERRORS = [
    (lambda: transforms.ToTensor()(T), "^ToTensor takes an image or an array, found a Tensor, which is ready"),
    (lambda: transforms.Normalize(0.5, 0.5)(T.int()), "takes a Tensor of floats, found torch.int32"),
    (lambda: F.hflip(IMAGE.convert("P")), r'take img.convert\("RGB"\) first'),
    (lambda: F.convert_image_dtype(T > 0, torch.uint8), "booleans have no range, found torch.bool"),
    (lambda: F.convert_image_dtype(T, torch.int32), "torch.float32 has too few digits for torch.int32"),
    (
        lambda: models.resnet18(weights=models.ResNet18_Weights.DEFAULT),
        r"torchvision.models.resnet18 is not part .* fetches no weights",
    ),
    (lambda: io.decode_image(T), "decode_image takes the path of a file in this façade, found Tensor"),
    (lambda: datasets.EMNIST("anywhere", "small"), "split is one of balanced, .* found 'small'"),
    (lambda: transforms.Lambda(3), "Lambda takes a function"),
    (lambda: transforms.Normalize((0.5,), (0.5,))(IMAGE), r"put ToTensor\(\) before it"),
    (
        lambda: transforms.Normalize([0.5] * 3, [0.5] * 3)(torch.zeros(1, 4, 4)),
        r"are for 3 channels, but the picture of shape \[1, 4, 4\] has 1",
    ),
    (lambda: transforms.Normalize((0.5,), (0.0,))(T), "the standard deviation of a channel is 0"),
    (lambda: transforms.Resize(2, transforms.InterpolationMode.NEAREST)(T), "put Resize before ToTensor"),
    (lambda: transforms.PILToTensor()(np.ones(3)), "an image with 2 or 3 axes, found 1"),
    (lambda: transforms.Grayscale(2), "num_output_channels is 1 or 3, found 2"),
    (lambda: F.hflip(PICTURE), "a Tensor or one of Pillow's images is expected, found ndarray"),
    (lambda: F.hflip(torch.zeros(1, 3, 4, 4)), "transform each alone"),
    (lambda: F.rotate(T, 30, center=(1, 1)), "pictures are rotated about their middle; leave center out"),
    (lambda: F.to_pil_image(np.zeros((2, 2))), r"cannot make an image of float64 of shape \[2, 2\]"),
]


def test_two_colours_are_0_and_1():
    image = Image.fromarray(PICTURE[:2, :2, 0]).convert("1")
    assert transforms.ToTensor()(image).unique().tolist() == [0.0, 1.0]
    assert transforms.PILToTensor()(image).dtype == torch.bool


def test_integers_are_scaled_to_the_range_of_other_integers():
    bytes_ = torch.tensor([0, 1, 255], dtype=torch.uint8)
    assert F.convert_image_dtype(bytes_, torch.int16).tolist() == [0, 128, 32640]
    assert v2.ToDtype(torch.int64, scale=True)(bytes_).tolist() == [0, 2**55, 255 * 2**55]
    assert v2.ToDtype(torch.uint8, scale=True)(torch.tensor([0, 2**55, 2**62])).tolist() == [0, 1, 128]


def test_a_part_outside_of_an_image_is_black():
    picture = transforms.ToTensor()(Image.fromarray(PICTURE))
    part = F.crop(picture, -1, 28, 3, 4)
    assert part.shape == (3, 3, 4)
    assert part[:, 1:, :2].equal(picture[:, :2, 28:])
    assert part[:, 0].count_nonzero().item() == part[:, :, 2:].count_nonzero().item() == 0
    assert F.crop(Image.fromarray(PICTURE), 19, -2, 4, 4).size == (4, 4)


@pytest.mark.parametrize(("call", "message"), ERRORS, ids=[message for _, message in ERRORS])
def test_wrong_arguments_are_errors(call: Any, message: str):
    with pytest.raises((AppError, TypeError), match=message):
        call()
