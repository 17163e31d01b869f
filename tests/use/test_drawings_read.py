"""What the networks of a run make of drawings: handwriting is read, and what is said is what the networks say."""

from __future__ import annotations

import statistics
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from handwriting import PEN, drawn, drawn_anew, lines_of, placed

from app.data.sample import load_sample
from app.tensor import to_tensor
from app.use.demo import reading
from app.use.demo.reading import SHIPPED, SIDE, NothingDrawnError, Reader, advice
from app.use.trained import Answer, TrainedNetwork, open_run
from app.vision.digits import prepare_ink

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def digits() -> tuple[np.ndarray, np.ndarray]:
    """The test digits of the sample."""
    sample = load_sample()
    return sample.test_images.reshape(-1, 28, 28), sample.test_labels


@pytest.mark.parametrize("count", [200, pytest.param(2000, marks=pytest.mark.soak)])
def test_handwriting_of_any_size_is_read_wherever_it_stands(count: int, digits: tuple[np.ndarray, np.ndarray]):
    images, labels = digits[0][:count], digits[1][:count]
    pictures = np.stack([prepare_ink(sheet.astype(np.float32) / 255) for sheet in drawn_anew(images)])
    for network in open_run(SHIPPED, (28, 28)).networks:
        read = network(pictures.reshape(len(pictures), -1)).probabilities.argmax(1) == labels
        assert read.mean() >= 0.95


def test_a_digit_is_shown_to_the_networks_as_mnist_has_it(reader: Reader, digits: tuple[np.ndarray, np.ndarray]):
    between_sizes, from_mnist = [], []
    for image in digits[0][:20]:
        lines = lines_of(image)
        small, large = (
            np.array(reader.read(drawn(placed(lines, size, 0.9, 0.2), PEN * size).tobytes())["picture"], int)
            for size in (0.4, 0.9)
        )
        between_sizes.append(np.abs(small - large).mean())
        from_mnist.append(np.abs(large - image.ravel()).mean())
    assert np.mean(between_sizes) < 8  # of 255
    assert np.mean(from_mnist) < 20


def test_what_is_said_is_what_the_networks_say_of_the_picture(run_folder: Path, reader: Reader):
    said = reader.read(reading._example())
    picture = np.array([said["picture"]], np.uint8)
    opened = open_run(run_folder, 784)
    assert [network.operator for network in opened.networks] == ["custom.relu", "relu"]
    for network, told in zip(opened.networks, said["networks"], strict=True):
        answer = network(picture)
        np.testing.assert_allclose(told["probabilities"], answer.probabilities[0], rtol=1e-3)
        assert sum(told["probabilities"]) == pytest.approx(1, abs=1e-3)
        assert np.argmax(told["probabilities"]) == 1
        (hidden,) = told["hidden"]
        np.testing.assert_allclose(hidden, answer.hidden[0][0], rtol=1e-3)
        assert len(hidden) == 128
        assert min(hidden) == 0 < max(hidden)


def test_an_answer_takes_less_than_20_milliseconds(reader: Reader):
    took = [reader.read(reading._example())["milliseconds"] for _ in range(50)]
    assert 0 < statistics.median(took) < 20


def test_a_sheet_full_of_ink_and_a_single_dot_get_an_answer_and_one_with_nothing_on_it_does_not(reader: Reader):
    for ink in (0, 20):
        with pytest.raises(NothingDrawnError, match="nothing is drawn"):
            reader.read(bytes([ink]) * SIDE**2)
    for ink in (128, 255):
        for sheet in (bytes(SIDE**2 - 1) + bytes([ink]), bytes([ink]) * SIDE**2):
            for told in reader.read(sheet)["networks"]:
                assert sum(told["probabilities"]) == pytest.approx(1, abs=1e-3)


def test_what_is_no_number_is_told_as_none(run_folder: Path):
    opened = open_run(run_folder, 784)
    network: Any = SimpleNamespace(outputs=lambda pictures: [to_tensor([[np.inf] * 3]), to_tensor([[np.nan] * 10])])
    lost = TrainedNetwork("lost", None, network)
    opened.networks[:] = [lost]
    (told,) = Reader(opened).read(reading._example())["networks"]
    assert told == {"probabilities": [None] * 10, "hidden": [[None] * 3]}


def test_networks_that_read_badly_are_told_of_with_what_to_do():
    def network(accuracy: float | None) -> TrainedNetwork:
        return TrainedNetwork("any", accuracy, lambda pictures: Answer)  # type: ignore[arg-type,return-value]

    assert advice([network(0.984), network(0.5)]) == ""
    assert advice([network(None)]) == ""
    told = advice([network(0.9059), network(0.9)])
    assert told.startswith("The best network of this run classifies only 90.6 % of the test digits correctly, and will")
    assert 'make train ARGS="--config configs/best.yaml"' in told
