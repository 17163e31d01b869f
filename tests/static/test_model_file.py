"""The files of a saved model: read by people, whole or refused, with one error for each way to be wrong."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.numpy import load_file, save

import app
from app import static
from app.errors import AppError, FileError, MissingFileError, OperatorError
from app.static.model_file import SavedModel, read_model, write_model

FEED = {"x": np.linspace(-1, 1, 6, dtype="float32").reshape(2, 3)}


@pytest.fixture
def prefix(tmp_path: Path) -> str:
    """A saved network with a shipped custom operator and a number that JSON does not know."""
    x = static.data("x", [None, 3])
    out = app.clip(static.nn.fc(static.nn.fc(x, 4, activation="custom.relu"), 2), min=-1.0, max=float("inf"))
    static.Executor().run(static.default_startup_program())
    static.save_inference_model(str(tmp_path / "net"), [x], [out])
    return str(tmp_path / "net")


def files(prefix: str) -> list[Path]:
    return [Path(prefix + ".json"), Path(prefix + ".safetensors")]


def result(prefix: str) -> np.ndarray:
    with static.scope_guard(static.Scope()):
        program, feed, fetch = static.load_inference_model(prefix)
        return static.Executor().run(program, feed={feed[0]: FEED["x"]}, fetch_list=fetch)[0]


def rewritten(prefix: str, change: Callable[[dict], None]) -> None:
    """The JSON with another content, and a checksum that fits."""
    path = files(prefix)[0]
    data = json.loads(path.read_text())
    del data["sha256"]
    change(data)
    text = json.dumps(data, indent=1).removesuffix("\n}")
    path.write_text(f'{text},\n "sha256": "{hashlib.sha256(text.encode()).hexdigest()}"\n}}\n')


# What stands in them


def test_the_program_is_json_with_an_operator_a_line(prefix: str):
    lines = files(prefix)[0].read_text().splitlines()
    (line,) = [line for line in lines if '"type": "clip"' in line]
    operator = json.loads(line.rstrip(","))
    assert operator["attributes"] == {"min": -1.0, "max": {"float": "inf"}}
    data = json.loads("\n".join(lines), parse_constant=pytest.fail)
    assert (data["format"], data["version"], data["inputs"]) == ("opsmith.model", 1, ["x"])
    operators = data["program"]["blocks"][0]["operators"]
    assert sum('"type":' in line for line in lines) == len(operators)
    assert max(map(len, lines)) < 250


def test_the_weights_are_a_safetensors_file_with_the_names_of_the_variables(prefix: str):
    weights = load_file(files(prefix)[1])
    assert sorted(weights) == ["fc_0.b_0", "fc_0.w_0", "fc_1.b_0", "fc_1.w_0"]
    np.testing.assert_array_equal(weights["fc_0.w_0"], static.global_scope().value("fc_0.w_0"))


def test_the_same_network_gives_the_same_bytes(prefix: str, tmp_path: Path):
    before = [path.read_bytes() for path in files(prefix)]
    write_model(prefix, read_model(prefix))
    assert [path.read_bytes() for path in files(prefix)] == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["net.json", "net.safetensors"]


def test_the_files_are_found_by_either_name_and_under_another(prefix: str, tmp_path: Path):
    expected = result(prefix)
    for path in files(prefix):
        path.rename(tmp_path / f"other{path.suffix}")
    np.testing.assert_array_equal(result(str(tmp_path / "other.json")), expected)


# Damage


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 1), st.floats(0, 1, exclude_max=True), st.none() | st.integers(0, 7))
def test_a_file_with_a_flipped_bit_or_a_missing_end_is_an_error(prefix: str, which: int, place: float, bit: int | None):
    path = files(prefix)[which]
    whole = path.read_bytes()
    byte = int(place * len(whole))
    end = b"" if bit is None else bytes([whole[byte] ^ 1 << bit]) + whole[byte + 1 :]
    path.write_bytes(whole[:byte] + end)
    with pytest.raises((FileError, MissingFileError), match=path.name):
        result(prefix)
    path.write_bytes(whole)


@pytest.mark.parametrize("which", [0, 1])
def test_a_missing_file_is_an_error_that_names_the_other_one(prefix: str, which: int):
    files(prefix)[which].unlink()
    other = files(prefix)[1 - which].name
    with pytest.raises(MissingFileError, match=rf"there is no file .*; .*{other} is useless without it"):
        result(prefix)


def test_weights_of_another_save_are_an_error(prefix: str):
    other = save({name: value * 2 for name, value in load_file(files(prefix)[1]).items()})
    files(prefix)[1].write_bytes(other)
    with pytest.raises(FileError, match=r"net.safetensors is damaged, or was not saved together with .*net.json"):
        result(prefix)


@pytest.mark.parametrize("content", [b"{}", b"[]", b"null", b"\0\1", b"[" * 100_000, b'{"format": "x", "version": 1}'])
def test_files_of_other_kinds_are_errors(prefix: str, content: bytes):
    files(prefix)[0].write_bytes(content)
    with pytest.raises(FileError, match=r"net.json is not a saved model, or is damaged"):
        result(prefix)


# Files that are whole, but do not suit


def widened(data: dict) -> None:
    variables = data["program"]["blocks"][0]["variables"]
    next(v for v in variables if v["name"] == "fc_0.w_0")["shape"] = [3, 5]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: data.update(version=2), "net.json has version 2 of its format, and this release reads up to 1"),
        (widened, r"fc_0.w_0 is float32\[3, 5\], and in .*net.safetensors it is float32\[3, 4\]"),
        (lambda data: data.pop("program"), "net.json"),
        (lambda data: data.update(program=[1]), "net.json"),
        (lambda data: data.update(inputs=["nobody"]), "net.json"),
        (lambda data: data.update(outputs=3), "net.json"),
        (lambda data: data.update(custom_operators=None), "net.json"),
        (lambda data: data.update(custom_operators=[{"hook": "py_func"}]), "net.json"),
        (lambda data: data["custom_operators"][0].update(hook="eval"), "net.json"),
        (lambda data: data["custom_operators"][0].update(settings={}), "net.json"),
        (lambda data: data["custom_operators"][0]["functions"].update(func={"operator": 5}), "net.json"),
        (lambda data: data["program"]["blocks"][0]["operators"][2].update(custom=7), "net.json"),
    ],
)
def test_other_contents_with_a_right_checksum_are_errors(prefix: str, change: Callable[[dict], None], message: str):
    rewritten(prefix, change)
    with pytest.raises(AppError, match=message):
        result(prefix)


def test_a_network_that_cannot_be_saved_leaves_the_files_as_they_are(prefix: str):
    before = [path.read_bytes() for path in files(prefix)]
    z = static.data("z", [2])
    y = static.py_func(lambda a: a, z, static.InputSpec([2]))
    with pytest.raises(OperatorError, match=r"py_func.<lambda> .* is made of a lambda, .* define it with `def`"):
        static.save_inference_model(prefix, [z], [y])
    assert [path.read_bytes() for path in files(prefix)] == before


def test_an_error_names_the_file_that_cannot_be_written(prefix: str, tmp_path: Path):
    model: SavedModel = read_model(prefix)
    with pytest.raises(FileError, match=r"net.json/inside.* cannot be written: "):
        write_model(tmp_path / "net.json" / "inside", model)
