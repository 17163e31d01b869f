"""Values in files are read as they were saved, and damaged files are errors."""

from __future__ import annotations

import contextlib
import io
import pickle
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import app
from app import nn, optimizer, to_tensor
from app.errors import AppError
from app.ops.dtype import NAMES
from app.saving import FileError
from app.tensor import Parameter, Tensor


def same(a: Any, b: Any) -> bool:
    if isinstance(a, (Tensor, np.ndarray)):
        x, y = np.asarray(a), np.asarray(b)
        return type(a) is type(b) and x.dtype == y.dtype and x.shape == y.shape and bool((x == y).all())
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and (a == b or a != a)


VALUES: list[Any] = [
    *[None, True, 3, -1.5, float("inf"), float("nan"), "text", "", [], {}, (), [1, (2, [3.0])]],
    {"a": {"b": [to_tensor([1.0, 2.0]), np.arange(3)]}, 7: "seven", "list": ["dict", "list"], "flag": False},
    *[to_tensor(np.ones((2, 0, 3), name)) for name in NAMES],
    *[to_tensor(5), np.array(2.5), np.zeros((3, 2), "float32").T, to_tensor([1.0])[::-1]],
]


@pytest.mark.parametrize("value", VALUES, ids=lambda v: repr(v)[:30])
def test_loaded_values_are_those_saved(tmp_path: Path, value: Any):
    path = tmp_path / "deeper" / "value.pdparams"
    app.save(value, path)
    assert same(app.load(str(path)), value)
    assert [p.name for p in path.parent.iterdir()] == ["value.pdparams"]


@pytest.mark.parametrize("dtype", [">i4", ">f8", ">u2", "<f4", "b1"])
def test_arrays_in_the_other_byte_order_come_back_with_their_numbers(tmp_path: Path, dtype: str):
    numbers = np.array([0, 1, 258]).astype(dtype)
    app.save({"w": numbers, "t": Tensor(numbers)}, tmp_path / "w")
    loaded = app.load(tmp_path / "w")
    assert loaded["w"].dtype == numbers.dtype.newbyteorder("=")
    assert loaded["w"].tolist() == loaded["t"].tolist() == numbers.tolist()


def test_open_files_are_read_and_arrays_replace_tensors():
    file = io.BytesIO()
    app.save({"w": to_tensor([1.0])}, file)
    file.seek(0)
    assert same(app.load(file, return_numpy=True), {"w": np.ones(1, "float32")})
    with pytest.raises(TypeError, match="retrun_numpy"):
        app.load(file, retrun_numpy=True)


def test_a_network_and_its_optimiser_resume(tmp_path: Path):
    def new_network() -> tuple[nn.Layer, optimizer.Optimizer]:
        with app.graph.names.guard():
            net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1D(4), nn.ReLU(), nn.Linear(4, 1))
        rate = optimizer.lr.StepDecay(0.1, 1)
        return net, optimizer.Adam(rate, parameters=net.parameters())

    def train(net: nn.Layer, stepper: Any) -> None:
        for row in np.random.default_rng(0).normal(size=(3, 5, 3)).astype("float32"):
            net(to_tensor(row)).sum().backward()
            stepper.step()
            stepper.clear_grad()
            stepper._learning_rate.step()

    net, stepper = new_network()
    train(net, stepper)
    app.save(net.state_dict(), tmp_path / "net.pdparams")
    app.save(stepper.state_dict(), tmp_path / "net.pdopt")
    other, resumed = new_network()
    other.set_state_dict(app.load(tmp_path / "net.pdparams"))
    resumed.set_state_dict(app.load(tmp_path / "net.pdopt"))
    assert resumed.get_lr() == stepper.get_lr()
    for pair in ((net, stepper), (other, resumed)):
        train(*pair)
    assert same(OrderedDict(other.state_dict()), OrderedDict(net.state_dict()))


def test_parameters_are_loaded_with_their_names(tmp_path: Path):
    layer = nn.Linear(2, 1, weight_attr=nn.ParamAttr(name="mine", trainable=False))
    app.save(layer.state_dict(), tmp_path / "w")
    weight = app.load(tmp_path / "w")["weight"]
    assert (type(weight), weight.name, weight.trainable) == (Parameter, "mine", False)


def test_files_of_arrays_alone_are_read(tmp_path: Path):
    from safetensors.numpy import save_file

    save_file({"w": np.ones(2, "float32")}, tmp_path / "w.safetensors")
    assert app.load(tmp_path / "w.safetensors")["w"].tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"net": nn.Linear(1, 1)}, r"the value\['net'\] is of type Linear, which cannot be saved; save its state_dict"),
        ([1, object()], r"the value\[1\] is of type object, which cannot be saved\. A file can hold Tensors"),
        ({1.5: 1}, r"a key of the value is 1\.5; keys must be text or integers"),
        (np.array(["a"]), "an array of <U1 cannot be saved"),
        (np.zeros(2, np.longdouble), r"an array of float\d+ cannot be saved"),
        (np.ma.array([1, 2], mask=[0, 1]), "a masked array cannot be saved, as a file has no mask: fill it first"),
    ],
)
def test_a_value_that_cannot_be_saved_is_an_error_and_the_old_file_stays(tmp_path: Path, value: Any, message: str):
    app.save([1], tmp_path / "file")
    for name in ("file", "new"):
        with pytest.raises(AppError, match=message):
            app.save(value, tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert app.load(tmp_path / "file") == [1]


KEPT, WHOLE = {"w": to_tensor([1.0, 2.0]), "n": 3, "inf": float("inf")}, io.BytesIO()
app.save(KEPT, WHOLE)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        *[(WHOLE.getvalue()[:cut], "it is damaged or of another kind") for cut in (0, 4, 20, -1)],
        (
            WHOLE.getvalue().replace(b'"version":"1"', b'"version":"2"'),
            "has version 2 of its format, and this release reads up to 1",
        ),
        (pickle.dumps({"w": 1}, protocol=4), "it is a pickle, which is not opened here, as it could run any code"),
        (
            b"PK\x03\x04" + bytes(40),
            "it is an archive; if torch.save wrote it, write its Tensors in PyTorch with safetensors",
        ),
    ],
)
def test_a_truncated_file_or_one_of_another_kind_is_an_error(tmp_path: Path, content: bytes, message: str):
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(FileError, match=message):
        app.load(tmp_path / "file")


@settings(max_examples=200, deadline=None)
@given(place=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
def test_a_flipped_bit_is_an_error_or_changes_nothing(place: float, bit: int):
    content = bytearray(WHOLE.getvalue())
    content[int(place * len(content))] ^= 1 << bit
    with contextlib.suppress(FileError):
        assert same(app.load(io.BytesIO(content)), KEPT)


def test_a_missing_file_is_an_error_that_lists_its_neighbours(tmp_path: Path):
    app.save(1, tmp_path / "epoch1.pdparams")
    with pytest.raises(FileNotFoundError, match=r"no file .*epoch2\.pdparams; its folder has epoch1\.pdparams"):
        app.load(tmp_path / "epoch2.pdparams")
    with pytest.raises(AppError, match="is a folder"):
        app.load(tmp_path)
    with pytest.raises(AppError, match="is not a file name"):
        app.save(1, tmp_path)
