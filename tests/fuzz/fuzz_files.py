"""The readers of what `save` keeps: values, weights and saved models; with their checksums wrong, and put right."""

from __future__ import annotations

import hashlib
import io
import json
import re
import tempfile
from pathlib import Path

import numpy as np
from fuzz_target import BETWEEN, Target, in_a_file
from safetensors import SafetensorError
from safetensors.numpy import load as unpack
from safetensors.numpy import save as pack

import app
from app.errors import AppError, FileError
from app.graph import Program, names, program_guard, static_mode
from app.saving import FORMAT, VERSION, checksum
from app.static.model_file import MODEL, WEIGHTS, read_model

_END = re.compile(rb',\n "sha256": "[0-9a-f]*"\n}\n$')
_OF_WEIGHTS = re.compile(rb'"weights_sha256": "[0-9a-f]*"')


def _value() -> bytes:
    buffer = io.BytesIO()
    tensor = app.to_tensor(np.arange(6.0).reshape(2, 3), stop_gradient=False)
    app.save({"a": [tensor, 1.5, None], "b": (np.arange(3), "text"), 3: {"c": True}}, buffer)
    return buffer.getvalue()


def taken_apart(content: bytes) -> bytes:
    """The structure of a file of values, and its arrays, as two pieces whose checksum is not among them."""
    size = int.from_bytes(content[:8], "little")
    structure = json.loads(content[8 : 8 + size])["__metadata__"]["structure"]
    return structure.encode() + BETWEEN + pack(unpack(content))


def put_together(content: bytes) -> bytes:
    """A file of values of two such pieces, with the checksum that belongs to them."""
    text, _, packed = content.partition(BETWEEN)
    structure = text.decode("utf-8", "replace")
    try:
        arrays = unpack(packed)
    except (SafetensorError, ValueError, KeyError, OverflowError):
        arrays = {}
    header = {"format": FORMAT, "version": str(VERSION), "structure": structure, "sha256": checksum(structure, arrays)}
    return pack(arrays, header)


def _model() -> bytes:
    """The two files of a saved model."""
    main, startup = Program(), Program()
    with names.guard(), program_guard(main, startup), static_mode(), tempfile.TemporaryDirectory() as folder:
        image = app.static.data("image", [None, 3])
        scores = app.nn.functional.relu(app.static.nn.fc(image, 2))
        executor = app.static.Executor()
        executor.run(startup)
        app.static.save_inference_model(f"{folder}/net", [image], [scores], program=main)
        return BETWEEN.join(Path(folder, "net" + end).read_bytes() for end in (MODEL, WEIGHTS))


def _read_model(content: bytes) -> None:
    text, _, weights = content.partition(BETWEEN)
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "net" + MODEL).write_bytes(text)
        Path(folder, "net" + WEIGHTS).write_bytes(weights)
        read_model(f"{folder}/net")


def _read_checked_model(content: bytes) -> None:
    """The same, with the checksums that belong to the files."""
    text, _, weights = content.partition(BETWEEN)
    body = _END.sub(b"", _OF_WEIGHTS.sub(b'"weights_sha256": "%s"' % _hash(weights), text))
    _read_model(body + b',\n "sha256": "%s"\n}\n' % _hash(body) + BETWEEN + weights)


def _hash(content: bytes) -> bytes:
    return hashlib.sha256(content).hexdigest().encode()


VALUE, SAVED = _value(), _model()
FILES = {
    "values": Target(in_a_file(app.load), (VALUE, pack({"x": np.zeros((2, 2), "float32")})), FileError),
    "values checked": Target(
        lambda content: app.load(io.BytesIO(put_together(content))), (taken_apart(VALUE),), FileError
    ),
    "model": Target(_read_model, (SAVED,), AppError),
    "model checked": Target(_read_checked_model, (SAVED,), AppError),
}
