"""Images that are held back from training: operators, epochs and settings are chosen by them, not by test images."""

import json

import numpy as np
import pytest
from safetensors.numpy import load_file

from app.data import load
from app.errors import DataError
from app.experiment.train_command import main as train

QUICK = (
    *("data.source=sample", "engine=reference", "model.hidden=[4]", "costs=false", "report=false", "output=run"),
    *("train.epochs=2", "train.batch_size=250", "model.activation=relu", "baseline=null"),
)


@pytest.fixture(scope="module")
def sample():
    return load("sample")


def test_images_are_held_back_by_the_seed_and_the_others_keep_their_order(sample):
    one, again, other = (sample.hold_back(1000, seed) for seed in (0, 0, 1))
    assert np.array_equal(one.test_images, again.test_images)
    assert not np.array_equal(one.test_images, other.test_images)
    assert (sample.tested_on, one.tested_on) == ("test", "validation")
    assert one.final_images is sample.test_images
    images = np.concatenate([one.train_images, one.test_images])
    labels = np.concatenate([one.train_labels, one.test_labels])
    assert sorted(zip(map(bytes, images), labels.tolist(), strict=True)) == sorted(
        zip(map(bytes, sample.train_images), sample.train_labels.tolist(), strict=True)
    )
    everything = {bytes(image): place for place, image in enumerate(sample.train_images)}
    assert (np.diff([everything[bytes(image)] for image in one.train_images]) > 0).all()


@pytest.mark.parametrize("count", [0, 10_000, 20_000])
def test_some_images_must_remain_on_both_sides(sample, count):
    with pytest.raises(DataError, match=rf"data.validation={count}: between 1 and 9,999 of 10,000 images"):
        sample.hold_back(count, 0)


def test_test_images_are_used_once_at_the_end(tmp_path, monkeypatch, capsys, sample):
    monkeypatch.chdir(tmp_path)
    assert train([*QUICK, "data.validation=500", "--json"]) == 0
    *events, summary = map(json.loads, capsys.readouterr().out.splitlines())
    (tested,) = [event for event in events if event["event"] == "tested"]
    epochs = [event for event in events if event["event"] == "epoch"]
    assert events.index(tested) > events.index(epochs[-1])
    (figures,) = summary["operators"]
    assert figures["validation_accuracy"] == epochs[-1]["test_accuracy"]
    assert figures["test_accuracy"] == tested["accuracy"]
    start = events[0]["data"]
    assert (start["training"], start["validation"], start["test"]) == (9500, 500, 2000)
    # the same by hand
    weights = load_file(tmp_path / "run" / "weights-relu.safetensors")
    x = sample.test_images.astype(np.float32) * np.float32(2 / 255) - 1
    hidden = np.maximum(x @ weights["layers.0.weight"] + weights["layers.0.bias"], 0)
    predicted = (hidden @ weights["layers.1.weight"] + weights["layers.1.bias"]).argmax(axis=1)
    assert tested["accuracy"] == (predicted == sample.test_labels).mean()


def test_output_names_the_images_of_an_accuracy(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert train([*QUICK, "data.validation=500"]) == 0
    out = capsys.readouterr().out
    assert "Data: 9,500 training, 500 validation and 2,000 test images, the committed sample (verified)" in out
    assert "relu  epoch 1/2  validation accuracy 0." in out
    assert "\noperator  validation acc.  test accuracy  s per epoch (median)\n" in out
    assert train([*QUICK, "output=other", "data.validation=null"]) == 0
    assert "validation" not in capsys.readouterr().out
