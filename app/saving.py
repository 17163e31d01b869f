"""Values in one file: Tensors, arrays, numbers and text, in dictionaries and lists. Opening one runs no code.

The file is a safetensors file, which holds the arrays; the structure around them is JSON in its metadata. There
stand a version of the format and a checksum, too.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from app.errors import FileError, MissingFileError
from app.files import read_file, write_whole
from app.tensor import Parameter, Tensor

FORMAT, VERSION = "opsmith.values", 1


def save(obj: Any, path: Any) -> None:
    """Write a value to a path or an open file. An existing file is replaced once the new one is complete."""
    arrays: dict[str, np.ndarray] = {}
    structure = json.dumps(_described(obj, arrays, "the value"))
    header = {"format": FORMAT, "version": str(VERSION), "structure": structure, "sha256": checksum(structure, arrays)}
    content = pack(arrays, header)
    if hasattr(path, "write"):
        path.write(content)
        return
    target = Path(os.fspath(path))
    if not target.name or target.is_dir():
        raise FileError(f"save: {str(path)!r} is not a file name")
    write_whole(target, content)


def pack(arrays: Mapping[str, np.ndarray], metadata: Mapping[str, str]) -> bytes:
    """A safetensors file. Equal values give equal bytes; the library's own writer orders metadata at random."""
    from safetensors.numpy import save  # imported late: few programs save

    content = save(dict(arrays), dict(metadata))
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + size])
    header["__metadata__"] = dict(sorted(metadata.items()))
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)  # aligns the arrays in memory
    return len(text).to_bytes(8, "little") + text + content[8 + size :]


def checksum(structure: str, arrays: Mapping[str, np.ndarray]) -> str:
    """The checksum of arrays and their description."""
    digest = hashlib.sha256(structure.encode())
    for key in sorted(arrays):
        digest.update(f"{key} {arrays[key].dtype.name} {arrays[key].shape}".encode() + arrays[key].tobytes())
    return digest.hexdigest()


def load_own(path: Path, most: int) -> Any:
    """Read a file of a run, with arrays: of at most `most` bytes, and not through a symbolic link."""
    return _loaded(str(path), read_file(path, most, links=False), return_numpy=True)


def load(path: Any, return_numpy: bool = False) -> Any:
    """Read a file that `save` wrote, with Tensors as Tensors or as arrays; or the arrays of any safetensors file."""
    return _loaded(*_read(path), return_numpy)


def _loaded(name: str, content: bytes, return_numpy: bool) -> Any:
    from safetensors import SafetensorError
    from safetensors.numpy import load as unpack

    try:
        size = int.from_bytes(content[:8], "little")
        metadata = json.loads(content[8 : 8 + size]).get("__metadata__") or {}
        arrays = unpack(content)
        if not metadata.keys() & {"structure", "sha256"}:  # another program wrote it
            return {key: array if return_numpy else Tensor(array) for key, array in arrays.items()}
        _check(metadata, arrays, name)
        return _restored(json.loads(metadata["structure"]), arrays, return_numpy)
    except FileError:
        raise
    except (SafetensorError, ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError) as error:
        kind = "a pickle, which is not opened here, as it could run any code" if content[:1] == b"\x80" else ""
        if content[:2] == b"PK":
            kind = "an archive; if torch.save wrote it, write its Tensors in PyTorch with safetensors.torch.save_file"
        description = kind or f"damaged or of another kind ({error})"
        raise FileError(f"load: {name} was not written by opsmith.save: it is {description}") from error


def _check(metadata: Mapping[str, str], arrays: Mapping[str, np.ndarray], name: str) -> None:
    """Refuse a file of a newer release, and a damaged file."""
    version = int(metadata["version"])
    if metadata["format"] != FORMAT or checksum(metadata["structure"], arrays) != metadata["sha256"] or version < 1:
        raise ValueError("its checksum says so")
    if version > VERSION:
        raise FileError(
            f"load: {name} has version {version} of its format, and this release reads up to {VERSION}; "
            "a newer one can read it"
        )


def _read(path: Any) -> tuple[str, bytes]:
    if hasattr(path, "read"):
        return str(getattr(path, "name", "what was given")), path.read()
    source = Path(os.fspath(path))
    try:
        return str(source), read_file(source)
    except FileNotFoundError:
        near = sorted(p.name for p in source.parent.glob("*") if p.is_file())[:8] if source.parent.is_dir() else []
        raise MissingFileError(
            f"load: there is no file {source}; its folder has {', '.join(near) or 'no files'}"
        ) from None


# The structure around the arrays, as JSON lists of a kind and its content


def _described(value: Any, arrays: dict[str, np.ndarray], where: str) -> Any:
    if value is None or isinstance(value, (bool, int, float, str)):
        return ["array", _stored(value, arrays)] if isinstance(value, np.generic) else value
    if isinstance(value, Parameter):
        return ["parameter", _stored(value, arrays), value.name, bool(value.stop_gradient)]
    if isinstance(value, Tensor):
        return ["tensor", _stored(value, arrays), bool(value.stop_gradient)]
    if isinstance(value, (np.ndarray, np.generic)):
        return ["array", _stored(value, arrays)]
    if isinstance(value, Mapping):
        wrong = [key for key in value if not isinstance(key, (str, int))]
        if wrong:
            raise FileError(f"save: a key of {where} is {wrong[0]!r}; keys must be text or integers")
        return ["dict", [[key, _described(item, arrays, f"{where}[{key!r}]")] for key, item in value.items()]]
    if isinstance(value, (list, tuple, set)):
        kind = "tuple" if isinstance(value, tuple) else "list" if isinstance(value, list) else "set"
        return [kind, [_described(item, arrays, f"{where}[{i}]") for i, item in enumerate(value)]]
    advice = "; save its state_dict()" if hasattr(value, "state_dict") else ""
    raise FileError(
        f"save: {where} is of type {type(value).__name__}, which cannot be saved{advice}. "
        "A file can hold Tensors, arrays, numbers and text, in dictionaries, lists and tuples"
    )


def _stored(value: Any, arrays: dict[str, np.ndarray]) -> str:
    if isinstance(value, np.ma.MaskedArray):
        raise FileError("save: a masked array cannot be saved, as a file has no mask: fill it first, x.filled(0)")
    array = np.array(getattr(value, "_array", value), order="C")
    array = array.astype(array.dtype.newbyteorder("="), copy=False)  # the order in the file, of which is the checksum
    if array.dtype.kind not in "biuf" or array.dtype.itemsize > 8:
        raise FileError(f"save: an array of {array.dtype} cannot be saved; only bool and numbers can")
    key = str(len(arrays))
    arrays[key] = array
    return key


def _restored(node: Any, arrays: Mapping[str, np.ndarray], return_numpy: bool) -> Any:
    if not isinstance(node, list):
        return node
    kind, content, *more = node
    if kind == "dict":
        return {key: _restored(item, arrays, return_numpy) for key, item in content}
    if kind in ("list", "tuple", "set"):
        makers: dict[str, Any] = {"list": list, "tuple": tuple, "set": set}
        return makers[kind](_restored(item, arrays, return_numpy) for item in content)
    array = arrays[content]
    if kind == "array" or return_numpy:
        return array
    if kind == "parameter":
        return Parameter(array, more[0], trainable=not more[1])
    if kind == "tensor":
        return Tensor(array, stop_gradient=bool(more[0]))
    raise ValueError(f"an unknown kind of value, {kind!r}")
