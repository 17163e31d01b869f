"""`opsmith.onnx.export`: a layer, a function, a Program or a saved model as an ONNX file."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from itertools import count
from os import PathLike, fspath
from os.path import basename, join
from pathlib import Path
from typing import Any

import numpy as np

from app.engine import Scope, global_scope
from app.errors import ExportError
from app.files import write_whole
from app.graph import Program, Variable
from app.jit.exporting import in_mode, specs_of, static_function
from app.listed import as_list
from app.nn import Layer
from app.onnx.model import model_of
from app.static.inputs import InputSpec
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
    output_names: Sequence[str] | None = None,
) -> Path:
    """Write a network as an ONNX file, `path` with the ending `.onnx`; returns the file's path.

    A Layer or a function needs `input_spec`, an InputSpec (or an example Tensor) for each argument; a Program needs
    `feed` and `fetch`, its input and output variables; a saved model is given by its path, with `custom_ops` as for
    loading it. An axis of size -1 or None takes any size. `output_names` are the names of outputs in the file.
    """
    network, names = network_of(model, input_spec, feed, fetch, scope, custom_ops, accept_changed)
    if output_names is not None and len(output_names) != len(network.outputs):
        raise ExportError(f"the network has {len(network.outputs)} outputs, but output_names lists {len(output_names)}")
    text = fspath(path)
    if not basename(text):
        raise ExportError(f"{text!r} is not a file name; write {join(text, 'network.onnx')!r}, for example")
    file = Path(text if text.endswith(SUFFIX) else text + SUFFIX)
    proto, _ = model_of(network, list(output_names or names))
    write_whole(file, proto.SerializeToString())
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
    """The network as a Program with its values, and names for its outputs."""
    if isinstance(model, SavedModel):
        return model, []
    if isinstance(model, (str, PathLike)):
        return read_model(model, custom_ops, accept_changed), []
    if isinstance(model, Program):
        if feed is None or fetch is None:
            raise ExportError("a Program is exported with feed= and fetch=: its input and output variables")
        return for_use(model, _names(feed), _names(fetch), scope or global_scope()), []

    if callable(model):
        return _traced(model, input_spec)
    raise ExportError(f"a {type(model).__name__} cannot be exported; give a Layer, a function, a Program or a path")


def _traced(model: Layer | Callable[..., Any], input_spec: Sequence[Any] | None) -> tuple[SavedModel, list[str]]:
    """A layer in evaluation mode, or a function, as a traced Program; and names for its outputs."""
    name = type(model).__name__ if isinstance(model, Layer) else getattr(model, "__name__", type(model).__name__)
    static = static_function(model, "onnx.export")
    if input_spec is None and static._input_spec is None:
        raise ExportError(
            f"{name} is exported with input_spec=: an opsmith.static.InputSpec for each argument, "
            "such as [InputSpec([None, 784], 'float32')]"
        )
    specs = specs_of(input_spec)
    for spec in specs or ():
        if not isinstance(spec, InputSpec):
            raise ExportError(f"input_spec must be a list of InputSpecs or example Tensors, found {spec!r}")
    named = [spec.name for spec in input_spec or () if isinstance(spec, InputSpec) and spec.name is not None]
    if twice := [one for place, one in enumerate(named) if one in named[:place]]:
        raise ExportError(f"two inputs of {name} are called {twice[0]!r}; give each InputSpec a name of its own")
    with in_mode(model if isinstance(model, Layer) else None, training=False):
        traced = static.concrete_program_for(specs)
    outputs = [output for output in traced.outputs.names if output is not None]
    if not outputs:
        raise ExportError(f"{name} computes nothing from its arguments: it returns no Tensor that depends on them")
    values = {c.variable.name: np.array(c.holder._array) for c in traced.captured}
    network = SavedModel(traced.program.clone(for_test=True), [v.name for v in traced.arguments], outputs, values)
    _name_inputs(network, [spec.name for spec in specs or ()])
    return network, ["output"] if len(outputs) == 1 else [f"output_{i}" for i in range(len(outputs))]


def _name_inputs(network: SavedModel, wishes: Sequence[str | None]) -> None:
    """Rename inputs as their InputSpecs say. Another variable of that name gets a new one."""
    block = network.program.global_block()

    def rename(old: str, new: str) -> None:
        block.rename_var(old, new)
        for names in (network.inputs, network.outputs):
            names[:] = [new if name == old else name for name in names]
        if old in network.values:
            network.values[new] = network.values.pop(old)

    for place, wish in enumerate(wishes):
        if wish is not None and wish not in (network.inputs[place], *wishes[:place]):  # a Tensor may stand there twice
            if block.has_var(wish):
                rename(wish, next(name for n in count(2) if not block.has_var(name := f"{wish}_{n}")))
            rename(network.inputs[place], wish)


def _names(variables: Any) -> list[str]:
    return [v.name if isinstance(v, Variable) else v for v in as_list(variables)]
