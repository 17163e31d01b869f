"""A run resumes only with its own settings, operators, images and checkpoint."""

import os

import numpy as np
import pytest
from runs_of_train import assert_same_results

from app.data import load
from app.run.checkpoints import CHECKPOINT, read_checkpoint, write_checkpoint

pytestmark = pytest.mark.slow

REFUSED = {
    "seed=4": "seed was 0 and is 4",
    "model.hidden=[7]": "model.hidden was [5] and is [7]",
    "train.epochs=2": "train.epochs was 3 and is 2",
    "--no-baseline": 'baseline was "relu" and is null',
    "output=elsewhere": 'output was "{here}/run" and is "{here}/elsewhere"',
}


def test_settings_that_change_results_are_refused_and_others_are_not(interrupted, resume, whole):
    run = interrupted()
    before = sorted((file, file.read_bytes()) for file in run.folder.rglob("*") if file.is_file())
    for word, message in REFUSED.items():
        assert resume(word) == (
            2,
            "",
            "error: a run is resumed with its own settings, but "
            f"{message.format(here=run.folder.parent)}. Only check, data.folder, data.sources may change, "
            "and train.epochs may grow; for others, start a new run\n",
        )
        assert before == sorted((file, file.read_bytes()) for file in run.folder.rglob("*") if file.is_file())
    assert resume("check=false")[0] == 0
    assert_same_results(run.folder, whole())


def test_more_epochs_are_refused_if_the_schedule_depends_on_their_number(interrupted, resume):
    interrupted(11, "train.schedule=linear")
    status, _, err = resume("train.epochs=9")
    assert status == 2
    assert "train.epochs was 3 and is 9" in err
    assert "train.epochs may not, because train.schedule=linear depends on it" in err


def test_an_edited_configuration_is_refused(interrupted, resume):
    config = interrupted().folder / "config.yaml"
    config.write_text(config.read_text().replace("seed: 0", "seed: 9"))
    status, _, err = resume()
    assert status == 2
    assert "seed was 0 and is 9" in err


MINE = """
import app

SCALE = 1.0

class Swish(app.autograd.PyLayer):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * app.sigmoid(x)

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensor()
        s = app.sigmoid(x)
        return dy * (s + x * s * (1 - s))

def swish(x):
    return x * app.sigmoid(x) * SCALE
"""


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [("Swish", "(1 - s)", "(2 - s)"), ("swish", "sigmoid(x) *", "tanh(x) *"), ("swish", "= 1.0", "= 2.0")],
)
def test_a_changed_operator_is_refused_by_name(interrupted, resume, tmp_path, whole, name, old, new):
    file = tmp_path / "my_ops.py"
    file.write_text(MINE)
    setting = f"model.activation=my_ops.py:{name}"
    expected = whole(setting)
    interrupted(11, setting)
    file.write_text(MINE.replace(old, new))
    os.utime(file, ns=(1, 1))
    assert resume("--custom-op", "my_ops.py") == (
        1,
        "",
        f"error: the source of my_ops.py:{name}, or of a function that it calls, has changed since the run was "
        "interrupted. Restore it, or start a new run\n",
    )
    file.write_text(f"# what changes nothing\n{MINE}")
    os.utime(file, ns=(2, 2))
    assert resume("--custom-op", "my_ops.py")[0] == 0
    assert_same_results(tmp_path / "run", expected)


@pytest.mark.parametrize(("part", "words"), [("train", ()), ("t10k", ()), ("t10k", ("data.validation=10",))])
def test_other_images_are_refused(interrupted, resume, images, part, words):
    interrupted(11, *words)
    file = images / f"{part}-labels-idx1-ubyte"
    before = file.read_bytes()
    file.write_bytes(before[:-1] + bytes([(before[-1] + 1) % 10]))
    try:
        status, _, err = resume()
    finally:
        file.write_bytes(before)
    assert (status, err[:60]) == (1, "error: the images differ from those at the start of the run;")


def test_every_image_and_label_counts():
    dataset = load("sample").hold_back(1000, 0)
    hashes = {dataset.digest()}
    for part in ("train", "test", "final"):
        for array in (getattr(dataset, f"{part}_images")[-2], getattr(dataset, f"{part}_labels")[-2:-1]):
            array ^= 1
            hashes.add(dataset.digest())
            array ^= 1
    assert len(hashes) == 7


WRONG = {
    "epoch": [0, -1],
    "learners": [{}, {"custom.relu": {}, "relu": {}}],
    "metrics": [
        np.frombuffer(text, np.uint8) for text in (b"\xff", b"[", b"[1]", b'{"event": "epoch", "operator": "relu"}')
    ],
    "random_state": [{}],
    "config": [{}, {"more": 1}],
}


def test_an_undamaged_checkpoint_that_does_not_fit_its_run_is_refused(interrupted, resume):
    last = interrupted().folder / CHECKPOINT
    whole = last.read_bytes()
    for field, wrong in [(field, wrong) for field, values in WRONG.items() for wrong in values]:
        checkpoint = read_checkpoint(last)
        setattr(checkpoint, field, wrong)
        write_checkpoint(last, checkpoint)
        status, _, err = resume()
        assert status in (1, 2), field
        assert err.startswith("error: ")
        assert err.count("\n") == 1
        last.write_bytes(whole)
