"""`opsmith export`: what was trained, as an ONNX file that gives the same scores."""

from __future__ import annotations

import hashlib
import importlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest

import app
from app import static
from app.__main__ import main
from app.data import load
from app.engine import Executor, Scope
from app.experiment.train_command import main as train
from app.use.models import read_named_model

pytestmark = pytest.mark.slow


@pytest.fixture
def best(run_folder: Path, tmp_path: Path) -> Path:
    """A run of best.yaml, shorter and on the sample."""
    return Path(shutil.copytree(run_folder, tmp_path / "best"))


def test_the_exported_network_gives_the_same_predictions_and_scores(best: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["export", str(best), "--to", "onnx"]) == 0
    file = best / "model.onnx"
    assert capsys.readouterr().out.startswith(f"{file}: from image uint8[-1, 784] to ")
    images = load("sample").test_images
    scores = onnxruntime.InferenceSession(str(file)).run(None, {"image": images})[0]
    (model, _), scope = read_named_model(str(best)), Scope()
    scope.values = model.values
    expected = Executor(engine="reference").run(model.program, {"image": images}, model.outputs, scope=scope)[0]
    np.testing.assert_array_equal(scores.argmax(1), expected.argmax(1))
    np.testing.assert_allclose(scores, expected, rtol=0, atol=1e-5)


def test_a_file_of_another_program_is_replaced_only_if_it_is_named(
    best: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    file = tmp_path / "digits.onnx"
    file.write_bytes(b"\x08\x08\x12\x07pytorch")
    words = ["export", str(best), "--to", "onnx", "--output"]
    assert main([*words, str(tmp_path / "digits")]) == 1
    assert f"error: {file} exists and was not written by this program" in capsys.readouterr().err
    assert file.read_bytes() == b"\x08\x08\x12\x07pytorch"
    assert main([*words, str(file)]) == 0
    assert main([*words, str(tmp_path / "digits")]) == 0  # now it is this program's
    assert main([*words, str(tmp_path / "some" / "digits")]) == 0
    assert (tmp_path / "some" / "digits.onnx").is_file()


def test_a_missing_run_an_unwritable_output_and_a_missing_format_are_errors(
    best: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    assert main(["export", str(tmp_path), "--to", "onnx"]) == 1
    assert capsys.readouterr().err == f"error: {tmp_path} is not the folder of a run: it has no config.yaml\n"
    inside_a_file = best / "config.yaml" / "x.onnx"
    assert main(["export", str(best), "--to", "onnx", "--output", str(inside_a_file)]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"error: {inside_a_file} cannot be written: ")
    for folder in (".", "/"):
        assert main(["export", str(best), "--to", "onnx", "--output", folder]) == 1
        message = f"error: --output {folder} is a folder; name a file in it, such as {Path(folder, 'model.onnx')}\n"
        assert capsys.readouterr().err == message
    with pytest.raises(SystemExit, match="2"):
        main(["export", str(best)])


def test_operators_outside_onnx_are_named_and_refused_unless_allowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.chdir(tmp_path)
    Path("exported_parts.py").write_text(
        "import app, numpy\n\n@app.custom_op\ndef ordered(x):\n    return numpy.sort(x)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    x = app.static.data("x", [None, 3])
    app.static.save_inference_model("net", [x], [importlib.import_module("exported_parts").ordered(x)])
    command = ["export", "net", "--to", "onnx", "--custom-op", "exported_parts.py"]
    assert main(command) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(
        "error: ordered is a node of the domain opsmith, which other programs cannot run until they get"
    )
    assert line.endswith("; add --allow-opaque to write net.onnx all the same")
    assert not Path("net.onnx").exists()
    assert main([*command, "--allow-opaque"]) == 0
    first, note = capsys.readouterr().out.splitlines()
    assert first.startswith("net.onnx: from x float32[-1, 3]")
    assert note.startswith("note: ordered is a node of the domain opsmith, which other programs cannot run")


QUANT = """
import app

@app.custom_op(elementwise=True)
def quantised(x):
    return round(x * 4) / 4

quantised.backward(lambda x, dy: dy, surrogate=True)

class Quant(app.nn.Layer):
    def forward(self, x):
        return quantised(x)
"""


def test_the_path_of_an_operator_as_trained_is_printed_and_accepted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.chdir(tmp_path)
    Path("ops").mkdir()
    Path("ops/quant.py").write_text(QUANT)
    words = ["data.source=sample", "model.hidden=[4]", "train.epochs=1", "engine=reference", "report=false"]
    words += ["model.activation=ops/quant.py:Quant", "baseline=null", "costs=false", "output=run"]
    assert train(words) == 0
    capsys.readouterr()
    for command in (["export", "run", "--to", "onnx"], ["predict", "run", "zero.png"], ["demo", "run"]):
        assert main(command) == 1
        assert "add --custom-op ops/quant.py, or" in capsys.readouterr().err
    for named in ("ops/quant.py", "ops/quant.py:Quant"):
        assert main(["export", "run", "--to", "onnx", "--custom-op", named]) == 0


def edited(model: Path, change: Callable[[list[Any]], None]) -> None:
    """Change the operators of a saved model, with a checksum that fits."""
    data = json.loads(model.read_text())
    del data["sha256"]
    change(data["program"]["blocks"][0]["operators"])
    text = json.dumps(data, indent=1).removesuffix("\n}")
    model.write_text(f'{text},\n "sha256": "{hashlib.sha256(text.encode()).hexdigest()}"\n}}\n')


@pytest.mark.parametrize(
    "change",
    [
        lambda operators: operators[-1]["inputs"].append(operators[-1]["inputs"][0]),
        lambda operators: operators[-1]["inputs"].pop(),
        lambda operators: operators[-1]["inputs"].clear(),
        lambda operators: operators[0]["inputs"].append(operators[0]["inputs"][0]),
        lambda operators: operators[0]["attributes"].update(dtype="float33"),
        lambda operators: operators.pop(),
    ],
    ids=["an input too many", "an input too few", "no input", "two inputs of one", "no element type", "no output"],
)
def test_an_operator_that_no_program_has_is_an_error(
    change: Callable[[list[Any]], None], tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    x = static.data("x", [None, 784], "uint8")
    y = static.nn.fc(x.astype("float32"), 10)
    static.Executor().run(static.default_startup_program())
    static.save_inference_model(str(tmp_path / "net"), x, y)
    edited(tmp_path / "net.json", change)
    for command in (["export", str(tmp_path / "net"), "--to", "onnx"], ["predict", str(tmp_path / "net"), "x.png"]):
        assert main(command) == 1
        assert capsys.readouterr().err.startswith("error: ")
    assert not (tmp_path / "net.onnx").exists()
