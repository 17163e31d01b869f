"""A layer loaded from a file: its parameters and its Programs."""

from __future__ import annotations

from typing import Any

from app.errors import GradientError, ProgramError
from app.graph.program import Operator, Program
from app.graph.serialise import DAMAGE_ERRORS, value_from_data
from app.graph.variable import Parameter as ProgramParameter
from app.jit.api import not_to_static, to_static
from app.nn.layer import Layer
from app.ops.creation import assign
from app.ops.definition import apply
from app.static.model_file import SavedModel
from app.tensor import Parameter, Tensor
from app.tensor.modes import modes


class TranslatedLayer(Layer):
    """The layer that `load` returns. It can be trained, in training mode, and saved again."""

    def __init__(self, model: SavedModel):
        super().__init__()
        self._programs = {False: (model.program, model.notes.get("use") or _notes_of(model))}
        if model.training is not None:
            self._programs[True] = (model.training, model.notes["training"])
        try:
            for program, notes in self._programs.values():
                self._add(program, notes, model)
        except DAMAGE_ERRORS as error:
            raise ProgramError(f"the file's table of parameters cannot be read: {error!r}") from error
        to_static(self.eval())

    def _add(self, program: Program, notes: dict[str, Any], model: SavedModel) -> None:
        """Register the persistable variables of a Program as parameters and buffers under their original paths."""
        existing = dict(self.state_dict())
        for path, name in notes["parameters"].items():
            variable, value = program.global_block().var(name), model.values[name]
            if path in existing:
                continue
            if isinstance(variable, ProgramParameter):
                self.add_parameter(path, Parameter(value, name, variable.trainable))
            else:
                self.register_buffer(path, Tensor(value, stop_gradient=variable.stop_gradient))

    def program(self, training: bool = False) -> Program:
        """Return the Program for evaluation or training."""
        return self._programs.get(training, self._programs[False])[0]

    @not_to_static
    def forward(self, *inputs: Any) -> Any:
        program, notes = self._programs.get(self.training, self._programs[False])
        names = notes["inputs"]
        if len(inputs) != len(names):
            raise ProgramError(f"the layer takes {len(names)} inputs ({', '.join(names)}), but got {len(inputs)}")
        if modes().on and not notes.get("with_gradients", True) and any(not value.stop_gradient for value in inputs):
            raise GradientError(
                "the layer was saved without gradients of its inputs, because it changes an input in place or sets its "
                "stop_gradient; give it inputs with stop_gradient=True (x.detach()), or save one that changes copies"
            )
        state = self.state_dict()
        values = {name: state[path] for path, name in notes["parameters"].items()}
        state_names = set(values)
        values.update(zip(names, inputs, strict=True))
        for operator in program.global_block().ops:
            _apply(program, operator, values, state_names)
        return _filled(notes["result"], values)


def _notes_of(model: SavedModel) -> dict[str, Any]:
    """Return the metadata of a Program that was saved without a layer."""
    block = model.program.global_block()
    results = [{"value": name} for name in model.outputs]
    return {
        "inputs": model.inputs,
        "parameters": {v.name: v.name for v in block.vars.values() if v.persistable},
        "result": results[0] if len(results) == 1 else {"list": results},
    }


def _apply(program: Program, operator: Operator, values: dict[str, Any], state_names: set[str]) -> None:
    """Apply an operator of a Program to values: run it, or append it to the current trace.

    A result without gradient of inputs with one was detached when the Program was saved, and is detached here.
    """
    variables = program.global_block().vars
    stopped = [name for name in operator.inputs if name is not None and variables[name].stop_gradient]
    needing = [name for name in stopped if modes().on and not values[name].stop_gradient]
    if operator.bodies and needing:
        raise GradientError(
            f"{', '.join(needing)} needs a gradient, and had none in the Program that was saved, whose branch or loop "
            "would give it none: save the layer with jit.save, or give it a value with stop_gradient=True"
        )
    inputs = [None if name is None else values[name] for name in operator.inputs]
    attributes, tracer = operator.attributes, modes().tracer
    if tracer is not None and operator.bodies:
        attributes = operator.copied_into(tracer.program.current_block()).attributes
    run = apply if tracer is None else tracer.apply
    states = [name for name in operator.outputs if name in state_names]
    into = [values[name] for name in states] if len(states) == len(operator.outputs) else None
    returned = run(operator.definition, inputs, attributes, into)
    results = returned if isinstance(returned, (tuple, list)) else (returned,)
    if into is None:
        outputs = dict(zip(operator.outputs, results, strict=False))
        for name in states:  # a branch writes some states, and gives other values
            run(assign, [outputs.pop(name)], {}, [values[name]])
        values.update(outputs)
        if any(name is not None and name not in stopped for name in operator.inputs):
            for name in outputs:
                values[name].stop_gradient = values[name].stop_gradient or variables[name].stop_gradient


def _filled(written: Any, values: dict[str, Any]) -> Any:
    """Return the layer's outputs filled with values."""
    ((kind, content),) = written.items()
    if kind == "value":
        return values[content]
    if kind == "plain":
        return value_from_data(content)
    if kind == "dict":
        return {value_from_data(key): _filled(item, values) for key, item in content}
    return (list if kind == "list" else tuple)(_filled(item, values) for item in content)
