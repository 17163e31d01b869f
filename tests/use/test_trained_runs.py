"""The networks of a run's folder, opened again; files that do not fit are named."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save

from app.__main__ import main
from app.data.sample import load_sample
from app.errors import AppError
from app.experiment.results import Result
from app.experiment.train_command import main as train
from app.use.demo.classifier import Classifier

pytestmark = pytest.mark.slow

SHORT = [
    "data.source=sample", "train.epochs=1", "train.batch_size=2000", "model.hidden=[8,6]", "engine=reference",
    "costs=false", "report=false", "check=false",
]  # fmt: skip


@pytest.fixture(scope="module")
def trained_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run with tanh against custom.prelu, which has parameters of its own."""
    folder = tmp_path_factory.mktemp("kept") / "run"
    assert train([*SHORT, "model.activation=tanh", "baseline=custom.prelu", f"output={folder}"]) == 0
    return folder


@pytest.fixture
def folder(trained_run: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(trained_run, tmp_path / "run"))


def networks(folder: Path, custom_ops: Sequence[str] = ()) -> Result:
    """The run in a folder, with its networks."""
    result = Result(folder, custom_ops=custom_ops)
    for operator in result:
        _ = result[operator].network
    return result


def test_an_opened_run_has_the_accuracy_that_was_measured(folder: Path):
    sample, opened = load_sample(), networks(folder)
    assert (opened.operators, len(opened)) == (["tanh", "custom.prelu"], 2)
    classifier = Classifier(opened)
    for operator in opened:
        answer = classifier.predict(operator, sample.test_images)
        (accuracy,) = opened[operator].accuracies
        assert (answer.probabilities.argmax(1) == sample.test_labels).mean() == pytest.approx(accuracy)
        np.testing.assert_allclose(answer.probabilities.sum(1), 1, atol=1e-5)
        assert [layer.shape for layer in answer.hidden] == [(2000, 8), (2000, 6)]


def test_a_network_of_a_comparison_has_the_accuracy_of_its_own_seed(tmp_path: Path):
    words = [*SHORT, "data.validation=500", "seed=3", f"output={tmp_path / 'run'}"]
    assert main(["compare", "--with", "relu,tanh", "--seeds", "2", *words]) == 0
    sample, opened = load_sample(), networks(tmp_path / "run")
    for operator in opened:
        right = opened[operator].predict(sample.test_images) == sample.test_labels
        assert np.mean(right) == pytest.approx(opened[operator].accuracies[0])
        assert len(opened[operator].accuracies) == 2


def test_a_run_that_was_interrupted_before_its_test_has_no_test_accuracy(tmp_path: Path):
    folder = tmp_path / "run"
    assert train([*SHORT, "model.activation=tanh", "baseline=null", "data.validation=500", f"output={folder}"]) == 0
    metrics = folder / "metrics.jsonl"
    metrics.write_text("".join(line for line in metrics.open() if '"event": "tested"' not in line))
    assert networks(folder)["tanh"].accuracies == []
    assert networks(folder).metrics["test_accuracy"] is None


def test_weights_for_pictures_of_another_size_are_an_error(folder: Path):
    metrics = folder / "metrics.jsonl"
    metrics.write_text(metrics.read_text().replace("[28, 28]", "[4, 3]"))
    message = r"tanh.safetensors: layers.0.weight is float32\[784, 8\], and for .* float32\[12, 8\]"
    with pytest.raises(AppError, match=message):
        networks(folder)


def test_a_missing_parameter_and_a_missing_file_are_errors(folder: Path):
    config = folder / "config.yaml"
    config.write_text(config.read_text().replace("hidden: [8, 6]", "hidden: [8, 6, 10]"))
    with pytest.raises(AppError, match=r"tanh.safetensors has no layers.3.weight, which .*; it has .*layers.2.bias"):
        networks(folder)
    for path in folder.glob("weights-*"):
        path.unlink()
    with pytest.raises(AppError, match=r"run has no weights-\*\.safetensors of tanh: the run saved no network"):
        networks(folder)


UNSIGNED = save({"a": np.zeros(1, np.float32)})
"""Weights without the name of their operator."""


@pytest.mark.parametrize(
    "content", [b"", b"\0" * 100, b"no weights at all", UNSIGNED], ids=["empty", "zeros", "text", "unsigned"]
)
def test_other_content_of_a_weights_file_is_an_error(folder: Path, content: bytes):
    (folder / "weights-tanh.safetensors").write_bytes(content)
    with pytest.raises(AppError, match=r"weights-tanh\.safetensors is not a weights file of a run"):
        networks(folder)
