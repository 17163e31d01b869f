"""`jit.save` and `jit.load`: save a layer or a function to files, and load it as a layer without its Python code."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from app.errors import ProgramError
from app.graph.program import Program
from app.graph.serialise import value_to_data
from app.jit.concrete import ConcreteProgram
from app.jit.exporting import in_mode, owner_of, specs_of, static_function
from app.jit.function import StaticFunction
from app.jit.tracer import Captured
from app.jit.translated import TranslatedLayer
from app.jit.variable import RefusedError
from app.static.model_file import SavedModel, read_model, write_model
from app.static.saving import reduced


def save(layer: Any, path: str, input_spec: Sequence[Any] | None = None) -> None:
    """Write the Program of a layer or a function to `path.json`, and its parameters to `path.safetensors`.

    `input_spec` describes its inputs, by InputSpecs or example Tensors; the default is the `input_spec` or the last
    call of `to_static`. For a layer, the Programs of evaluation and training are both written.
    """
    function = static_function(layer, "jit.save")
    owner, specs = owner_of(function), specs_of(input_spec)
    paths = {} if owner is None else {id(tensor): path for path, tensor in owner.state_dict().items()}
    with in_mode(owner, training=False):
        use = _traced(function, specs, paths, for_test=True)
    model = SavedModel(use.program, use.inputs, use.outputs, use.values, notes={"use": use.notes})
    if owner is not None:
        with in_mode(owner, training=True):
            training = _traced(function, specs, paths, for_test=False)
        if not training.program.equals(use.program) or training.notes != use.notes:
            model.training, model.notes["training"] = training.program, training.notes
            _add_values(model, training)
    write_model(path, model)


def load(path: str, custom_ops: Any = (), accept_changed: Collection[str] = ()) -> TranslatedLayer:
    """Load a layer written by `save`, in evaluation mode. Files of `save_inference_model` can be loaded too.

    `custom_ops` and `accept_changed` name user operators, as in `opsmith.static.load_inference_model`.
    """
    return TranslatedLayer(read_model(path, custom_ops, accept_changed, "jit.load"))


def _traced(function: StaticFunction, specs: Any, paths: dict[int, str], for_test: bool) -> _Traced:
    """Trace a function for inputs that need gradients or, if that is refused, for inputs that must not need any."""
    try:
        return _Traced(function.concrete_program_for(specs, with_gradients=True), paths, for_test, True)
    except RefusedError:
        return _Traced(function.concrete_program_for(specs), paths, for_test, False)


class _Traced:
    """A traced function in the form that is written to a file."""

    def __init__(self, concrete: ConcreteProgram, paths: dict[int, str], for_test: bool, with_gradients: bool):
        if concrete.effects.went_back or any(captured.of_gradient for captured in concrete.captured):
            raise ProgramError(f"{concrete.label} runs a backward pass, which cannot be saved; save its layer")
        self.inputs = [variable.name for variable in concrete.arguments]
        self.outputs = list(dict.fromkeys(name for name in concrete.outputs.names if name is not None))
        self.program: Program = reduced(concrete.program.clone(for_test), self.inputs, self.outputs)
        used = self.program.global_block().vars
        used_captures = [c for c in concrete.captured if c.variable.name in used]
        self.values = {c.variable.name: np.array(c.tensor._array) for c in used_captures}
        self.notes = {
            "inputs": self.inputs,
            "with_gradients": with_gradients,
            "parameters": self._parameters(used_captures, paths),
            "result": _written(concrete.outputs.filled({name: _Made(name) for name in self.outputs}), concrete.label),
        }

    def _parameters(self, used_captures: Sequence[Captured], paths: dict[int, str]) -> dict[str, str]:
        """Return the name of each parameter by its path, in the layer's order; others come last."""
        places = {key: place for place, key in enumerate(paths)}
        ordered = sorted(used_captures, key=lambda c: places.get(id(c.tensor), len(places)))
        return {paths.get(id(c.tensor), c.variable.name): c.variable.name for c in ordered}


class _Made:
    """A placeholder for a value that the Program computes."""

    def __init__(self, name: str):
        self.name = name


def _written(nest: Any, label: str) -> Any:
    """Convert the nested outputs of a function to JSON data."""
    if isinstance(nest, _Made):
        return {"value": nest.name}
    if isinstance(nest, dict):
        return {"dict": [[value_to_data(key), _written(item, label)] for key, item in nest.items()]}
    if isinstance(nest, (list, tuple)):
        return {"list" if isinstance(nest, list) else "tuple": [_written(item, label) for item in nest]}
    try:
        return {"plain": value_to_data(nest)}
    except ProgramError as error:
        raise ProgramError(f"{label} returns a value that cannot be written to a file: {error}") from None


def _add_values(model: SavedModel, other: _Traced) -> None:
    for name, value in other.values.items():
        if model.values.setdefault(name, value) is not value and not np.array_equal(
            model.values[name], value, equal_nan=value.dtype.kind == "f"
        ):
            raise ProgramError(f"two parameters are named {name}; give each its own name (ParamAttr(name=...))")
