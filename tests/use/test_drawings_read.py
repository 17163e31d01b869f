"""What the networks of a run make of drawings: handwriting is read, and what is result is what the networks say."""

from __future__ import annotations

import statistics
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from handwriting import redrawn, redrawn_pictures

from app.data.sample import load_sample
from app.experiment.results import Result
from app.tensor import to_tensor
from app.use.demo.classifier import SHIPPED, SIDE, Classifier, NothingDrawnError, advice, example

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def digits() -> tuple[np.ndarray, np.ndarray]:
    """The test digits of the sample."""
    sample = load_sample()
    return sample.test_images.reshape(-1, 28, 28), sample.test_labels


@pytest.mark.parametrize("count", [100, pytest.param(2000, marks=pytest.mark.soak)])
def test_handwriting_of_any_size_and_place_is_recognised(count: int, digits: tuple[np.ndarray, np.ndarray]):
    images, labels = digits[0][:count], digits[1][:count]
    pictures = redrawn_pictures(images)
    assert np.mean(Result(SHIPPED).predict(pictures) == labels) >= 0.95


def test_a_drawing_is_brought_to_the_form_of_mnist(classifier: Classifier, digits: tuple[np.ndarray, np.ndarray]):
    between_sizes, from_mnist = [], []
    for image in digits[0][:20]:
        sheets = [redrawn(image, size, 0.9, 0.2).tobytes() for size in (0.4, 0.9)]
        small, large = (np.array(classifier.classify(sheet)["picture"], int) for sheet in sheets)
        between_sizes.append(np.abs(small - large).mean())
        from_mnist.append(np.abs(large - image.ravel()).mean())
    assert np.mean(between_sizes) < 8  # of 255
    assert np.mean(from_mnist) < 20


def test_the_answer_is_that_of_the_networks(classifier: Classifier):
    result = classifier.classify(example())
    picture = np.array([result["picture"]], np.uint8)
    for operator, entry in zip(("custom.relu", "relu"), result["networks"], strict=True):
        answer = classifier.predict(operator, picture)
        np.testing.assert_allclose(entry["probabilities"], answer.probabilities[0], rtol=1e-3)
        assert sum(entry["probabilities"]) == pytest.approx(1, abs=1e-3)
        assert np.argmax(entry["probabilities"]) == 1
        (hidden,) = entry["hidden"]
        np.testing.assert_allclose(hidden, answer.hidden[0][0], rtol=1e-3)
        assert len(hidden) == 128
        assert min(hidden) == 0 < max(hidden)


def test_an_answer_takes_less_than_20_milliseconds(classifier: Classifier):
    took = [classifier.classify(example())["milliseconds"] for _ in range(50)]
    assert 0 < statistics.median(took) < 20


def test_any_sheet_but_an_empty_one_gets_an_answer(classifier: Classifier):
    for ink in (0, 20):
        with pytest.raises(NothingDrawnError, match="nothing is drawn"):
            classifier.classify(bytes([ink]) * SIDE**2)
    for ink in (128, 255):
        for sheet in (bytes(SIDE**2 - 1) + bytes([ink]), bytes([ink]) * SIDE**2):
            for entry in classifier.classify(sheet)["networks"]:
                assert sum(entry["probabilities"]) == pytest.approx(1, abs=1e-3)


def test_values_that_are_not_finite_are_none():
    opened = Result(SHIPPED)
    network: Any = SimpleNamespace(outputs=lambda pictures: [to_tensor([[np.inf] * 3]), to_tensor([[np.nan] * 10])])
    opened["custom.relu"].network = network
    (entry,) = Classifier(opened).classify(example())["networks"]
    assert entry == {"probabilities": [None] * 10, "hidden": [[None] * 3]}


def test_inaccurate_networks_come_with_advice():
    assert advice([0.984, 0.5]) == ""
    assert advice([None]) == ""
    text = advice([0.9059, 0.9])
    assert text.startswith("The best network of this run classifies only 90.6 % of the test digits correctly, and will")
    assert "opsmith train --config best" in text
