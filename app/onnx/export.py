"""`app.onnx.export`: a layer, a function, a Program or a saved model as an ONNX file."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from app.engine import Scope, global_scope
from app.errors import ExportError
from app.files import write_whole
from app.graph import Program, Variable
from app.listed import as_list
from app.nn import Layer
from app.onnx.model import model_of
from app.onnx.network import network_of_function, network_of_layer
from app.static.model_file import SavedModel, read_model
from app.static.saving import for_use

Exportable = Layer | Program | SavedModel | Callable[..., Any] | str | PathLike[str]

SUFFIX = ".onnx"


def export(
    model: Exportable,
    path: str | PathLike[str],
    input_spec: Sequence[Any] | None = None,
    *,
    feed: Any = None,
    fetch: Any = None,
    scope: Scope | None = None,
    custom_ops: Any = (),
    accept_changed: Collection[str] = (),
) -> Path:
    """Write a network as an ONNX file, `path` with the ending `.onnx`; gives the file's path.

    A Layer or a function needs `input_spec`, an InputSpec (or a Tensor like it) for each argument; a Program needs what
    it is fed and asked for, `feed` and `fetch`; a saved model is named by its path, and its custom operators are found
    where `custom_ops` says, as when it is loaded. An axis of size -1 or None takes any size.
    """
    network, names = network_of(model, input_spec, feed, fetch, scope, custom_ops, accept_changed)
    made, _ = model_of(network, names)
    text = fspath(path)
    file = Path(text if text.endswith(SUFFIX) else text + SUFFIX)
    write_whole(file, made.SerializeToString())
    return file


def network_of(
    model: Exportable,
    input_spec: Sequence[Any] | None = None,
    feed: Any = None,
    fetch: Any = None,
    scope: Scope | None = None,
    custom_ops: Any = (),
    accept_changed: Collection[str] = (),
) -> tuple[SavedModel, list[str]]:
    """What is to be exported as a Program with its values, and what its outputs shall be called."""
    if isinstance(model, SavedModel):
        return model, []
    if isinstance(model, (str, PathLike)):
        return read_model(model, custom_ops, accept_changed), []
    if isinstance(model, Program):
        if feed is None or fetch is None:
            raise ExportError("a Program is exported with feed= and fetch=: the variables that it is fed and asked for")
        return for_use(model, _names(feed), _names(fetch), scope or global_scope()), []

    if isinstance(model, Layer):
        return network_of_layer(model, input_spec)
    if callable(model):
        return network_of_function(model, input_spec)
    raise ExportError(f"a {type(model).__name__} cannot be exported; give a Layer, a function, a Program or a path")


def _names(given: Any) -> list[str]:
    return [v.name if isinstance(v, Variable) else v for v in as_list(given)]
