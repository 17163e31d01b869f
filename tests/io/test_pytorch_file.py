"""Files that PyTorch wrote are read; nothing in them is called, whatever they hold.

`pytorch_2_13.pth` was written by PyTorch 2.13; the test below says what it holds.
"""

from __future__ import annotations

import io
import os
import pickle
import pickletools
import random
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import app
from app.errors import FileError
from app.io.pytorch_file import _STEPS, read

FILE = Path(__file__).with_name("pytorch_2_13.pth")


def archive(pickled: bytes, storage: bytes = b"", **zipped: Any) -> bytes:
    """A file as torch.save writes it, with a pickle and one storage of one's own."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", **zipped) as made:
        made.writestr("archive/data.pkl", pickled)
        made.writestr("archive/byteorder", "little")
        made.writestr("archive/data/0", storage)
    return file.getvalue()


def test_a_file_of_pytorch_is_read():
    found = app.load(FILE)
    assert {name: tuple(value.shape) for name, value in found["model"].items()} == {"0.weight": (2, 3), "0.bias": (2,)}
    state, (group,) = found["optimizer"]["state"], found["optimizer"]["param_groups"]
    assert (state[1]["step"].item(), group["betas"], group["foreach"]) == (1.0, (0.9, 0.999), None)
    assert (found["epoch"], found["loss"], found["names"], found["best"]) == (3, 0.25, ["a", "é"], None)
    assert (found["done"], found["big"], found["neg"], found["size"], found["set"]) == (True, 2**40, -5, (1, 2), {1, 2})
    assert all(
        value.tolist() == [1, 0, 2 - (name == "bool")] and value.dtype == name for name, value in found["t"].items()
    )
    assert (found["transposed"].tolist(), found["empty"].shape) == ([[0, 3], [1, 4], [2, 5]], [0, 3])
    assert (found["leaf"].stop_gradient, found["p"].stop_gradient, type(found["p"]).__name__) == (False,) * 2 + (
        "Parameter",
    )
    found["view"].set_value(np.array([7.0, 8.0], "float32"))
    assert found["whole"].tolist() == [0, 1, 7, 8, 4, 5]  # they share their memory, as in PyTorch
    assert app.load(str(FILE), return_numpy=True)["model"]["0.bias"].dtype == np.float32


class Hostile:
    def __init__(self, path: Path):
        self.path = path

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("protocol", range(6))
def test_a_call_in_a_pickle_is_refused(protocol: int, tmp_path: Path):
    content = archive(pickle.dumps({"weights": Hostile(tmp_path / "was here")}, protocol))
    with pytest.raises(FileError, match=r"bad.pth (holds|has the instruction)"):
        read(content, "bad.pth")
    assert not (tmp_path / "was here").exists()


SYSTEM = b"cos\nsystem\n"
NAMED = b"\x80\x04\x8c\x02os\x8c\x06system\x93"


@pytest.mark.parametrize(
    "pickled",
    [
        SYSTEM + b"(Vfalse\ntR.",  # GLOBAL and REDUCE
        NAMED + b"\x8c\x05false\x85R.",  # STACK_GLOBAL
        b"(Vfalse\nios\nsystem\n.",  # INST
        b"(" + SYSTEM + b"Vfalse\no.",  # OBJ
        SYSTEM + b")\x81.",  # NEWOBJ
        SYSTEM + b")}\x92.",  # NEWOBJ_EX
        b"\x82\x01.",  # EXT1
        b"\x83\x01\x00.",  # EXT2
        b"\x84\x01\x00\x00\x00.",  # EXT4
        b"Pname\n.",  # PERSID
        b"\x97.",  # NEXT_BUFFER
        b"N\x98.",  # READONLY_BUFFER
        b"]}b.",  # BUILD, of a list
        SYSTEM + b"}b.",  # BUILD, of a name
        SYSTEM + b".",  # the name itself
        b"]" + SYSTEM + b"a.",
        b"}U\x01a" + SYSTEM + b"s.",
        b"cbuiltins\neval\n(X\x01\x00\x00\x001tR.",
        b"ctorch._utils\n_rebuild_tensor\n)R.",
        b"ctorch._utils\n__builtins__.eval\n)R.",
        b"ccollections\nOrderedDict.__init__\n)R.",
    ],
)
def test_instructions_that_could_run_code_are_refused(pickled: bytes):
    with pytest.raises(FileError, match=r"bad.pth (holds|has the instruction|sets attributes)"):
        read(archive(b"\x80\x02" + pickled), "bad.pth")


def test_no_instruction_that_imports_or_calls_is_known():
    known = {opcode.name for opcode in pickletools.opcodes}
    assert set(_STEPS) < known
    calling = {"INST", "OBJ", "NEWOBJ", "NEWOBJ_EX", "EXT1", "EXT2", "EXT4", "PERSID"}
    assert calling < known
    assert not calling & set(_STEPS)


def tensor(
    offset: int, size: tuple[int, ...], stride: tuple[int, ...], count: int, kind: str = "Float", more: bytes = b""
) -> bytes:
    """A pickle of one Tensor, as PyTorch writes it; numbers fit into four bytes."""

    def number(value: int) -> bytes:
        return b"J" + struct.pack("<i", value)

    def numbers(values: tuple[int, ...]) -> bytes:
        return b"(" + b"".join(map(number, values)) + b"t"

    name = f"ctorch\n{kind}Storage\n".encode()
    place = b"(X\x07\x00\x00\x00storage" + name + b"X\x01\x00\x00\x000X\x03\x00\x00\x00cpu" + number(count) + b"tQ"
    rebuilt = b"ctorch._utils\n_rebuild_tensor_v2\n(" + place + number(offset) + numbers(size) + numbers(stride)
    return b"\x80\x02" + rebuilt + b"\x89ccollections\nOrderedDict\n)R" + more + b"tR."


FOUR = np.arange(4, dtype="float32").tobytes()


def test_a_tensor_takes_its_elements_from_its_storage():
    assert read(archive(tensor(1, (2,), (2,), 4), FOUR), "x").tolist() == [1.0, 3.0]


@pytest.mark.parametrize(
    ("pickled", "words"),
    [
        (tensor(1, (4,), (1,), 4), "a Tensor of 4 elements reaches place 4 of 4 numbers"),
        (tensor(-1, (2,), (1,), 4), "a Tensor has a wrong size"),
        (tensor(0, (2,), (-1,), 4), "a Tensor has a wrong size"),
        (tensor(0, (2, 2), (1,), 4), "a Tensor has a wrong size"),
        (tensor(0, (2**30, 2**30), (0, 0), 4), "repeats its numbers"),
        (tensor(0, (4,), (1,), 5), "has 4 numbers of float32, expected 5"),
        (tensor(0, (4,), (1,), 4, "BFloat16"), "has numbers of torch.BFloat16Storage"),
        (tensor(0, (16,), (1,), 16, "Bool"), "a boolean is neither 0 nor 1"),
        (tensor(0, (4,), (1,), 4, more=b"}X\x03\x00\x00\x00neg\x88s"), r"whose numbers are marked neg; .*resolve_neg"),
        (b"\x80\x02))\x86.", "damaged"),
        (b"\x80\x02}))s.", "a key is a tuple"),
        (b"\x80\x02NNs.", "damaged"),
        (b"\x80\x02Na.", "damaged"),
        (b"\x80\x02h\x07.", "damaged"),
        (b"\x80\x02N", "damaged"),
    ],
)
def test_numbers_out_of_bounds_and_damage_are_refused(pickled: bytes, words: str):
    content = archive(pickled, FOUR) if pickled[2:] != b"))\x86." else archive(pickled)[:-30]
    with pytest.raises(FileError, match=words):
        read(content, "bad.pth")


def test_a_flipped_bit_in_a_tensor_is_damage():
    content = bytearray(archive(tensor(0, (4,), (1,), 4), FOUR))
    content[content.index(FOUR) + 6] ^= 1
    with pytest.raises(FileError, match=r"bad.pth is damaged, .* \(the checksum of data/0 is another\)"):
        read(bytes(content), "bad.pth")


def test_archives_of_another_kind_are_refused(tmp_path: Path):
    for content, words in (
        (archive(tensor(0, (4,), (1,), 4), FOUR, compression=zipfile.ZIP_DEFLATED), "packed or encrypted"),
        (archive(b"").replace(b"data.pkl", b"data.bin"), "without data.pkl"),
        (archive(b"").replace(b"byteorder", b"constants"), "damaged"),
        (archive(b"").replace(b"little", b"bigbig"), "damaged|byte order"),
    ):
        path = tmp_path / "bad.pth"
        path.write_bytes(content)
        with pytest.raises(FileError, match=words):
            app.load(path)


def test_a_file_damaged_anywhere_is_read_or_refused():
    content, draw, refusals = FILE.read_bytes(), random.Random(0), []
    for _ in range(300):
        damaged = bytearray(content)
        for _ in range(draw.randint(1, 4)):
            damaged[draw.randrange(len(damaged))] = draw.randrange(256)
        try:
            read(bytes(damaged), "damaged.pth")
        except FileError as error:
            refusals.append(str(error))
    assert 100 < len(refusals) < 300
    assert all(refusal.startswith("load: damaged.pth") for refusal in refusals)
