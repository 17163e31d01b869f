"""`torch.onnx.export`, with the framework's exporter."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from app import onnx as _below
from app.static import InputSpec


def export(
    model: Any,
    args: Any,
    f: Any,
    *,
    export_params: bool = True,
    verbose: bool = False,
    training: Any = None,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    opset_version: int | None = None,
    dynamic_axes: Mapping[str, Collection[int]] | None = None,
    do_constant_folding: bool = True,
    keep_initializers_as_inputs: bool | None = None,
    operator_export_type: Any = None,
    dynamo: bool = False,
) -> None:
    """Write a module as it is in use as an ONNX file, for arguments like `args`.

    Axes that `dynamic_axes` lists take any size. The operators are those of opset `app.onnx.OPSET`, whichever is asked
    for. `export_params`, `verbose`, `do_constant_folding` and similar settings have no effect.
    """
    examples = args if isinstance(args, (tuple, list)) else (args,)
    names = [*(input_names or ()), *[None] * len(examples)]
    specs = []
    for name, example in zip(names, examples, strict=False):
        open_axes = set((dynamic_axes or {}).get(name, ())) if name else set()
        shape = [None if axis in open_axes else size for axis, size in enumerate(example.shape)]
        specs.append(InputSpec(shape, example.detach().numpy().dtype.name, name))
    _below.export(model, f, specs, output_names=output_names)
