"""`opsmith predict`: digits in ordinary picture files, as a network that was just trained sees them."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageOps

import app
from app import static
from app.__main__ import main
from app.custom import lookup
from app.data.sample import load_sample
from app.experiment.train_command import main as train
from app.onnx import export
from app.static.model_file import write_model
from app.use import predict
from app.use.digits import prepare
from app.use.image_files import read_picture
from app.use.models import load_network, read_named_model

pytestmark = pytest.mark.slow

ROOT = Path(app.__file__).parents[1]
COUNT = 12


@pytest.fixture(scope="module")
def digits() -> tuple[np.ndarray, np.ndarray]:
    sample = load_sample()
    return sample.test_images[:COUNT].reshape(-1, 28, 28), sample.test_labels[:COUNT]


@pytest.fixture
def picture(digits: tuple[np.ndarray, np.ndarray], tmp_path: Path) -> Path:
    """A file of the first test digit, which is a 2."""
    assert digits[1][0] == 2
    Image.fromarray(digits[0][0]).resize((200, 200)).save(tmp_path / "two.png")
    return tmp_path / "two.png"


def options(model: Any) -> Any:
    return type("options", (), {"model": str(model), "custom_op": [], "accept_changed": []})


def predicted(capsys: pytest.CaptureFixture[str], *words: Any) -> tuple[int, str, str]:
    capsys.readouterr()
    status = main(["predict", *map(str, words)])
    printed = capsys.readouterr()
    return status, printed.out, printed.err


# How well digits are recognised


def large(digit: np.ndarray, times: int = 8) -> Image.Image:
    return Image.fromarray(digit).resize((28 * times, 28 * times), Image.Resampling.BICUBIC)


def placed(digit: np.ndarray) -> Image.Image:
    image = Image.new("L", (500, 300), 0)
    image.paste(large(digit, 6), (230, 90))
    return image


def transparent(digit: np.ndarray) -> Image.Image:
    image = Image.new("RGBA", (224, 224), (30, 20, 10, 0))
    image.putalpha(large(digit))
    return image


def photographed(digit: np.ndarray) -> Image.Image:
    pixels = 200 - np.asarray(large(digit), float) * 0.55 + np.random.default_rng(0).normal(0, 5, (224, 224))
    return Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8))


RENDERED: dict[str, tuple[Callable[[np.ndarray], Image.Image], str]] = {
    "as it is": (Image.fromarray, "PNG"),
    "enlarged": (large, "PNG"),
    "enlarged without smoothing": (lambda d: Image.fromarray(np.kron(d, np.ones((9, 9), np.uint8))), "PNG"),
    "very large": (lambda d: large(d, 25), "JPEG"),
    "dark on light, compressed": (lambda d: ImageOps.invert(large(d)), "JPEG"),
    "somewhere in a wide picture": (placed, "PNG"),
    "blue on yellow": (lambda d: ImageOps.colorize(large(d), (250, 240, 180), (20, 40, 160)), "JPEG"),
    "on nothing": (transparent, "PNG"),
    "photographed": (photographed, "JPEG"),
    "of few colours": (lambda d: ImageOps.invert(large(d)).quantize(6), "GIF"),
}


ALSO = ("as it is", "enlarged", "somewhere in a wide picture", "blue on yellow")
"""Whose size, place or colours alone are others, of which test_digits.py states that they do not matter."""


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.soak if name in ALSO else ()) for name in RENDERED]
)
def test_digits_are_recognised_in_pictures_of_any_kind(name: str, run_folder: Path, digits: Any, tmp_path: Path):
    network, (images, labels) = load_network(options(run_folder)), digits
    render, kind = RENDERED[name]
    prepared = []
    for image in images:
        render(image).save(tmp_path / "digit", kind, **({"quality": 75} if kind == "JPEG" else {}))
        prepared.append(prepare(read_picture(tmp_path / "digit")))
    plain = (network(images).argmax(1) == labels).mean()
    accuracy = (network(np.stack(prepared)).argmax(1) == labels).mean()
    assert plain > 0.85
    assert accuracy >= plain - 1.01 / COUNT


# What is printed


def test_each_picture_gets_a_line_with_the_digit_and_the_next_best(run_folder: Path, picture: Path, capsys: Any):
    status, out, err = predicted(capsys, run_folder, picture, picture)
    assert (status, err) == (0, "")
    first, second = out.splitlines()
    assert first == second
    match = re.fullmatch(r"(\S+)  2  ([01]\.\d{4})  \(then \d (0\.\d{4}), \d (0\.\d{4})\)", first)
    assert match is not None
    assert match[1] == str(picture)
    assert 1 >= float(match[2]) >= float(match[3]) >= float(match[4])


def test_the_line_of_a_picture_is_one_whatever_its_name(run_folder: Path, picture: Path, capsys: Any):
    two = picture.rename(picture.with_name("two\nlines.png"))
    status, out, _ = predicted(capsys, run_folder, two)
    assert (status, out.count("\n")) == (0, 1)
    assert "two\\nlines.png  " in out


def test_each_unreadable_picture_is_an_error_and_the_others_are_read(run_folder: Path, picture: Path, capsys: Any):
    blank = picture.with_name("blank.png")
    Image.new("RGB", (30, 30), (200, 0, 0)).save(blank)
    page = picture.with_name("page.html")
    page.write_text("<html>")
    gone = picture.with_name("gone.png")
    status, out, err = predicted(capsys, run_folder, blank, picture, page, gone)
    assert status == 1
    assert out.startswith(f"{picture}  2  ")
    assert err.splitlines() == [
        f"error: {blank}: the picture is empty: it has a single colour",
        f"error: {page}: it is not a picture in a supported format: PNG, JPEG, BMP, GIF, WEBP, TIFF, PPM",
        f"error: {gone}: no such file",
    ]


def test_scores_become_probabilities_and_probabilities_stay():
    assert predict.probabilities(np.array([0.25, 0.75])).tolist() == [0.25, 0.75]
    np.testing.assert_allclose(predict.probabilities(np.array([1000.0, 1000.0, -1000.0])), [0.5, 0.5, 0.0])


# Which models


def test_a_run_a_saved_and_an_exported_model_predict_the_same(
    run_folder: Path, picture: Path, tmp_path: Path, capsys: Any
):
    model, _ = read_named_model(str(run_folder))
    write_model(tmp_path / "net", model)
    export(str(tmp_path / "net"), str(tmp_path / "net"))
    models = (run_folder, tmp_path / "net.json", tmp_path / "net.onnx")
    results = [predicted(capsys, model, picture) for model in models]
    assert {status for status, *_ in results} == {0}
    assert len({out.partition("  (then")[0] for _, out, _ in results}) == 1


@pytest.mark.parametrize("shape", [[None, 784], [None, 1, 28, 28], [-1, 28, 28], [None, None], [1, 784]])
def test_inputs_of_other_shapes_and_of_floats_are_fed(shape: list[int | None], tmp_path: Path, picture: Path):
    x = static.data("x", shape)
    out = app.reshape(x, [-1, 784])[:, :10]
    static.save_inference_model(str(tmp_path / "net"), x, out, scope=static.Scope())
    network = load_network(options(tmp_path / "net"))
    picture_of_255 = np.full((1, 28, 28), 255, np.uint8)
    np.testing.assert_array_equal(network(picture_of_255), np.ones((1, 10)))


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_a_network_that_gives_no_scores_of_ten_digits_is_an_error(tmp_path: Path, picture: Path, capsys: Any):
    x = static.data("x", [None, 784])
    for name, output, message in (
        ("one", app.mean(x, axis=1, keepdim=True), r"one gives numbers of shape \[1, 1\] for a .* digits gives 10\n"),
        ("nan", app.log(x[:, :10] - 1.0), r"two.png: the network's scores are NaN or infinite, .* diverged\n"),
        ("inf", app.exp(x[:, :10] + 1000.0), r"two.png: the network's scores are NaN or infinite, .* diverged\n"),
    ):
        static.save_inference_model(str(tmp_path / name), x, output)
        status, out, err = predicted(capsys, tmp_path / name, picture)
        assert (status, out) == (1, "")
        assert re.fullmatch(f"error: .*{message}", err), err
    static.save_inference_model(str(tmp_path / "equal"), x, x[:, :10] * 0.0)
    assert "  0  0.1000  (then 1 0.1000, 2 0.1000)" in predicted(capsys, tmp_path / "equal", picture)[1]


def test_networks_with_other_inputs_are_errors(tmp_path: Path, picture: Path, capsys: Any):
    x, y, z = static.data("x", [None, 12]), static.data("y", [None, 12]), static.data("z", [None, None, 100])
    many, short = static.data("many", [5, 784]), static.data("short", [None, 784], "int8")
    for name, inputs, output, message in (
        ("open", z, z * 2.0, "takes inputs of shape [-1, -1, 100]; pictures of digits have 28 x 28 pixels"),
        ("small", x, x * 2.0, "takes inputs of shape [-1, 12]; pictures of digits have 28 x 28 pixels"),
        ("two", [x, y], x * y, "has 2 inputs; a network that reads digits has 1"),
        ("many", many, many * 2.0, "takes inputs of shape [5, 784]; `predict` gives it one picture at a time"),
        ("short", short, short * 2.0, "takes inputs of int8; pictures have bytes, which can be uint8, int16,"),
    ):
        static.save_inference_model(str(tmp_path / name), inputs, output)
        export(tmp_path / name, tmp_path / name)
        for file in (f"{name}.json", f"{name}.onnx"):
            status, _, err = predicted(capsys, tmp_path / file, picture)
            assert status == 1
            assert err.startswith(f"error: {tmp_path}/{file} {message}")


@pytest.mark.parametrize("dtype", ["float16", "int64"])
def test_exported_networks_may_take_other_types(dtype: str, tmp_path: Path, picture: Path):
    x = static.data("x", [None, 784], dtype)
    static.save_inference_model(str(tmp_path / "net"), x, x[:, :10].astype("float32"))
    file = export(tmp_path / "net", tmp_path / "net")
    ink = np.full((1, 28, 28), 255, np.uint8)
    assert load_network(options(file))(ink).tolist() == [[255.0 if dtype == "int64" else 1.0] * 10]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "nothing",
            "there is no run and no saved model .*nothing: neither a folder .*nothing nor a file .*nothing.json",
        ),
        (
            "text.png",
            "text.png is a file, and expected is the folder of a run or a saved model; name the",
        ),
        ("nothing.onnx", "there is no file .*nothing.onnx"),
        ("", r"is not the folder of a run: it has no config.yaml"),
        ("text.onnx", "text.onnx cannot be opened by ONNX Runtime: "),
        ("without onnxruntime.onnx", "ONNX Runtime, which runs .onnx files, is not installed; pip install onnxruntime"),
    ],
)
def test_a_model_that_cannot_be_opened_is_an_error(
    name: str, message: str, tmp_path: Path, picture: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "text.onnx").write_text("no model")
    (tmp_path / "text.png").write_text("no model")
    monkeypatch.chdir(tmp_path)
    if name.startswith("without"):
        monkeypatch.setitem(sys.modules, "onnxruntime", None)
    status, out, err = predicted(capsys, tmp_path / name, picture)
    assert (status, out, err.count("\n")) == (1, "", 1)
    assert re.search(message, err)


# Runs with an operator of the user's


OWN = "import numpy as np\nimport app\nopen('was_run', 'a').close()\n\n@app.custom_op(elementwise=True)\n"
OWN += "def own(x):\n    return max(x, 0.0)\n\n@own.backward\ndef _(x, dy):\n    return dy if x > 0 else 0.0\n"


def trained(text: str, engine: str) -> None:
    """A run in the working folder whose operator is in a file of the user's."""
    Path("my_own_ops.py").write_text(text)
    words = ["model.activation=my_own_ops.py:own", "model.hidden=[8]", "train.epochs=1", f"engine={engine}"]
    words += ["train.batch_size=1000", "costs=false", "report=false", "check=false"]
    assert train(["--config", str(ROOT / "configs" / "quick.yaml"), "--no-baseline", *words, "output=own"]) == 0


def test_an_operator_of_the_user_is_run_only_if_it_is_named(
    tmp_path: Path, picture: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
):
    def typed(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(lookup, "_ran", {})  # as in another process
        return predicted(capsys, "own", picture, *words)

    monkeypatch.chdir(tmp_path)
    trained(OWN, "eager")
    Path("was_run").unlink()
    message = (
        f"error: {tmp_path}/own names my_own_ops.py:own: Python code, which is executed only if you name it yourself. "
        "If you trust it, add --custom-op my_own_ops.py, or in Python name the operator in the call. "
        "Paths start from the folder of the training\n"
    )
    assert typed() == (1, "", message)
    assert not Path("was_run").exists()
    assert typed("--custom-op", "my_own_ops.py:own")[0] == 0
    assert Path("was_run").exists()
    Path("my_own_ops.py").write_text(OWN.replace("max(x, 0.0)", "max(x, 0.1)"))
    message = (
        "error: the source of my_own_ops.py:own, or of a function that it calls, has changed since the run in "
        f"{tmp_path}/own trained with it. To use the new source: --accept-changed my_own_ops.py:own\n"
    )
    assert typed("--custom-op", "my_own_ops.py:own") == (1, "", message)
    assert typed("--custom-op", "my_own_ops.py:own", "--accept-changed", "my_own_ops.py:own")[0] == 0


def test_a_run_predicts_with_an_operator_that_no_file_can_refer_to(
    tmp_path: Path, picture: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
):
    monkeypatch.chdir(tmp_path)
    call = "app.static.py_func(lambda a: a * 2, x, x.astype(x.dtype), lambda x, y, dy: dy * 2)"
    trained(f"import app\n\ndef own(x):\n    return {call}\n", "reference")
    assert predicted(capsys, "own", picture, "--custom-op", "my_own_ops.py")[0] == 0


def looping(ending: str = "", name: str = "x") -> Any:
    """An ONNX network with a loop that never ends, whose name for its input is shown in messages."""
    from onnx import TensorProto, helper

    def value(name: str, kind: int = TensorProto.FLOAT, shape: Any = (None, 784)) -> Any:
        return helper.make_tensor_value_info(name, kind, shape)

    number, truth = TensorProto.INT64, TensorProto.BOOL
    steps = [helper.make_node("Identity", ["on"], ["still"]), helper.make_node("Relu", ["v"], ["w"])]
    inputs = [value("i", number, []), value("on", truth, []), value("v")]
    body = helper.make_graph(steps, "body", inputs, [value("still", truth, []), value("w")])
    loop = helper.make_node("Loop", ["", "true", name + ending], ["y"], body=body)
    true = helper.make_tensor("true", truth, [], [True])
    graph = helper.make_graph([loop], "network", [value(name)], [value("y")], [true])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def test_an_endless_loop_in_an_onnx_file_is_ended(
    tmp_path: Path, picture: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("app.use.models.SECONDS", 0.3)
    (tmp_path / "net.onnx").write_bytes(looping().SerializeToString())
    start = time.monotonic()
    status, out, err = predicted(capsys, tmp_path / "net.onnx", picture)
    assert time.monotonic() - start < 5
    message = f"error: {tmp_path}/net.onnx gave no answer within 0.3 seconds; does it have an endless loop?\n"
    assert (status, out, err) == (1, "", message)


def test_a_message_about_an_onnx_file_is_one_short_line_without_control_characters(
    tmp_path: Path, picture: Path, capfd: Any
):
    (tmp_path / "net.onnx").write_bytes(looping("\x1b[2J\n" + "x" * 15_000).SerializeToString())
    assert main(["predict", str(tmp_path / "net.onnx"), str(picture)]) == 1
    printed = capfd.readouterr()
    assert printed.out == ""
    assert re.fullmatch(r"error: .*net\.onnx cannot be opened by ONNX Runtime: .{1,500}\n", printed.err)
    assert printed.err.rstrip("\n").isprintable()


def test_an_onnx_file_that_is_too_large_is_refused(tmp_path: Path, picture: Path, capsys: Any):
    with (tmp_path / "net.onnx").open("wb") as file:
        file.truncate(3_000_000_000)
    status, _, err = predicted(capsys, tmp_path / "net.onnx", picture)
    assert (status, err.count("\n")) == (1, 1)
    assert "net.onnx is larger than 536,870,912 bytes" in err
