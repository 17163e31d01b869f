"""`jit.save` and `jit.load`: a layer or a function in files, and as a layer again, without its Python code."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from app.errors import ProgramError
from app.graph.program import Program
from app.graph.serialise import value_to_data
from app.jit.concrete import ConcreteProgram
from app.jit.exporting import in_mode, owner_of, specs_of, static_function
from app.jit.tracer import Captured
from app.jit.translated import TranslatedLayer
from app.static.model_file import SavedModel, read_model, write_model
from app.static.saving import reduced


def save(layer: Any, path: str, input_spec: Sequence[Any] | None = None, **settings: Any) -> None:
    """Write what a layer or a function computes to `path.json`, and its parameters to `path.safetensors`.

    `input_spec` describes its inputs, by InputSpecs or by Tensors like them; what `to_static` was given, or was last
    called with, is used where it is not given. Of a layer both is written, what it does in use and in training.
    """
    function = static_function(layer, "jit.save")
    owner, specs = owner_of(function), specs_of(input_spec)
    paths = {} if owner is None else {id(tensor): path for path, tensor in owner.state_dict(use_hook=False).items()}
    with in_mode(owner, training=False):
        use = _Traced(function.concrete_program_for(specs), paths, for_test=True)
    model = SavedModel(use.program, use.inputs, use.outputs, use.values, notes={"use": use.notes})
    if owner is not None:
        with in_mode(owner, training=True):
            training = _Traced(function.concrete_program_for(specs), paths, for_test=False)
        if not training.program.equals(use.program) or training.notes != use.notes:
            model.training, model.notes["training"] = training.program, training.notes
            _add_values(model, training)
    write_model(path, model)


def load(path: str, custom_ops: Any = (), accept_changed: Collection[str] = (), **settings: Any) -> TranslatedLayer:
    """The layer that `save` wrote, in use, not in training; what `save_inference_model` wrote can be read, too.

    `custom_ops` and `accept_changed` name operators of the user's, as `app.static.load_inference_model` has it.
    """
    return TranslatedLayer(read_model(path, custom_ops, accept_changed, "jit.load"))


class _Traced:
    """A traced function as what a file holds of it."""

    def __init__(self, concrete: ConcreteProgram, paths: dict[int, str], for_test: bool):
        if concrete.effects.went_back or any(captured.of_gradient for captured in concrete.captured):
            raise ProgramError(f"{concrete.label} runs a backward pass, which cannot be saved; save what it trains")
        self.inputs = [variable.name for variable in concrete.arguments]
        self.outputs = list(dict.fromkeys(name for name in concrete.outputs.names if name is not None))
        self.program: Program = reduced(concrete.program.clone(for_test), self.inputs, self.outputs)
        used = self.program.global_block().vars
        kept = [c for c in concrete.captured if c.variable.name in used]
        self.values = {c.variable.name: np.array(c.tensor._array) for c in kept}
        self.notes = {
            "inputs": self.inputs,
            "parameters": self._parameters(kept, paths),
            "result": _written(concrete.outputs.filled({name: _Made(name) for name in self.outputs}), concrete.label),
        }

    def _parameters(self, kept: Sequence[Captured], paths: dict[int, str]) -> dict[str, str]:
        """The name of each by its path in the layer, in the layer's order; what is not the layer's comes last."""
        places = {key: place for place, key in enumerate(paths)}
        ordered = sorted(kept, key=lambda c: places.get(id(c.tensor), len(places)))
        return {paths.get(id(c.tensor), c.variable.name): c.variable.name for c in ordered}


class _Made:
    """Stands for a value that the Program computes."""

    def __init__(self, name: str):
        self.name = name


def _written(nest: Any, label: str) -> Any:
    """What a function gives, a value or a nest of them, as JSON can hold it."""
    if isinstance(nest, _Made):
        return {"value": nest.name}
    if isinstance(nest, dict):
        return {"dict": [[value_to_data(key), _written(item, label)] for key, item in nest.items()]}
    if isinstance(nest, (list, tuple)):
        return {"list" if isinstance(nest, list) else "tuple": [_written(item, label) for item in nest]}
    try:
        return {"plain": value_to_data(nest)}
    except ProgramError as error:
        raise ProgramError(f"{label} gives what cannot be written to a file: {error}") from None


def _add_values(model: SavedModel, other: _Traced) -> None:
    for name, value in other.values.items():
        if model.values.setdefault(name, value) is not value and not np.array_equal(
            model.values[name], value, equal_nan=value.dtype.kind == "f"
        ):
            raise ProgramError(f"two parameters are called {name}; give them names of their own (ParamAttr(name=...))")
