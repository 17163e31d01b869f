"""Side effects of a traced function: the attributes and gradients that it sets."""

from __future__ import annotations

import copy
import dis
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from operator import is_
from types import CellType, CodeType, ModuleType
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from app.errors import ProgramError, ShapeError
from app.graph.variable import Variable
from app.jit.convert.state import Undefined
from app.jit.tracer import MISSING, Captured, Tracer, holds_variables
from app.jit.variable import TracedVariable
from app.nn.tree import OF_LAYERS
from app.ops.spec import UNKNOWN
from app.reading import LIBRARIES, codes_in
from app.static.structure import Structure
from app.tensor import Tensor

_states: WeakValueDictionary[int, Tensor] = WeakValueDictionary()
"""Tensors that traced functions have set as attributes of layers, by their ids. A trace that reads one of them, or a
buffer, reads the attribute, whatever it is then; of others it is not known where else the function has them from."""


class Outputs:
    """The nested outputs of a function: some are computed by its Program, others are constants."""

    def __init__(self, nest: Any):
        self._structure = Structure.of(nest)
        self.names: list[str | None] = []
        """The variables of its leaves; None for constant leaves."""
        for leaf in self._structure.leaves:
            if isinstance(leaf, TracedVariable):
                leaf.check_current()
            if isinstance(leaf, Undefined):
                leaf.refuse()
            self.names.append(leaf.name if isinstance(leaf, Variable) else None)

    def filled(self, made: dict[str, Any]) -> Any:
        """Return the nest filled with computed values."""
        pairs = zip(self._structure.leaves, self.names, strict=True)
        return self._structure.filled([_new(leaf) if name is None else made[name] for leaf, name in pairs])


def _new(value: Any) -> Any:
    """A copy of what the caller may change."""
    return copy.copy(value) if isinstance(value, (set, bytearray, deque, np.ndarray)) else value


class Effects:
    """The conditions under which a trace can be used again, and its side effects. Made while its tracer is active."""

    def __init__(
        self, tracer: Tracer, arguments: Sequence[Variable], given: Sequence[str], result: Any, instance: Any = None
    ):
        """`arguments` are the traced arguments, `given` their initial names, `result` is what the function returned;
        the function is a method of `instance`."""
        self.went_back = tracer.went_back
        """Whether the function has run a backward pass itself; its results then have no gradient."""
        self._layers = [
            (layer, layer.training, set(layer._forward_pre_hooks), set(layer._forward_post_hooks))
            for layer in tracer.layers.values()
        ]
        """The called layers, each with its mode and the numbers of its hooks, which are not used twice."""
        self._read = list(tracer.gradients_read.values())
        self._numbers = list(tracer.numbers.values())
        self._functions = list(tracer.functions.items())
        self._names, self._cells = _names_read(tracer.functions)
        self._left: list[tuple[Tensor, str | None]] = []
        """Tensors whose `.grad` the function sets or clears."""
        self._attributes: list[tuple[Any, str, Outputs]] = []
        self._changed = [
            (place, v.name) for place, (v, name) in enumerate(zip(arguments, given, strict=True)) if v.name != name
        ]
        """The arguments that the function changes in place, each with the variable that it becomes."""
        for tensor, _ in tracer.gradients.values():
            now: Any = tensor.grad
            if now is None or isinstance(now, Variable):
                self._left.append((tensor, getattr(now, "name", None)))
        data = [v for v in tracer.program.global_block().vars.values() if v.is_data]
        self._of_arguments = [getattr(getattr(v, "grad", None), "name", None) for v in data]
        self.states: list[tuple[str, str]] = []
        """The captured variables of Tensors that are read from attributes and replaced, each with its new value."""
        fixed = Structure.of(result).leaves
        fixed += [*(value for _, _, value in self._names), *(value for _, _, value in self._cells)]
        for layer, name, before in tracer.attributes.values():
            now = layer.__dict__.get(name, MISSING)
            if not holds_variables(now):
                leaves = _leaves(now)
                if any(isinstance(leaf, Tensor) for leaf in leaves):  # one from outside, which is assigned at each call
                    self._attributes.append((layer, name, Outputs(now)))
                fixed += leaves
                continue
            olds, news = Structure.of(before), Structure.of(now)
            fixed += news.leaves
            pairs = [*zip(olds.leaves, news.leaves, strict=False)] if olds.shape == news.shape else []
            read = [(tracer.captured[id(old)].variable, new) for old, new in pairs if id(old) in tracer.captured]
            if any(_agree(old, new) is None for old, new in pairs if id(old) in tracer.captured):
                raise ShapeError(
                    f"{type(layer).__name__}.{name} is read, and set to a value of an open size; "
                    "it can only be used again if its size is fixed by the InputSpecs"
                )
            if read and len(read) == len(pairs) and all(new is variable for variable, new in read):
                continue  # it was changed in place, as by `self.state.add_(x)`
            self._attributes.append((layer, name, Outputs(now)))
            if all(_agree(old, new) for old, new in pairs):
                self.states += [(variable.name, new.name) for variable, new in read]
        self._held = list(_held(tracer, instance, fixed))
        """The attributes of layers whose values are used."""
        if tracer.startup.global_block().ops:
            raise ProgramError(
                "the traced function creates a parameter, which would be a new one at every call; "
                "create layers and parameters outside of it"
            )

    def changed_arguments(self, arguments: Sequence[Variable]) -> set[str]:
        """The names of the arguments that the function changes in place."""
        return {arguments[place].name for place, _ in self._changed}

    @property
    def names(self) -> list[str | None]:
        """The variables that must be fetched in every run for the side effects."""
        of_attributes = [name for _, _, outputs in self._attributes for name in outputs.names]
        changed = [name for _, name in self._changed]
        return [*changed, *(name for _, name in self._left), *self._of_arguments, *of_attributes]

    def what_changed(self) -> str | None:
        """Return what has changed since the function was traced; None if the trace can be used again."""
        for layer, training, before, after in self._layers:
            if layer.training is not training:
                return f"whether {type(layer).__name__} is in training mode"
            if layer._forward_pre_hooks.keys() != before or layer._forward_post_hooks.keys() != after:
                return f"the hooks of {type(layer).__name__}"
        for function, code in self._functions:
            if function.__code__ is not code:
                return f"the code of {function.__name__}"
        for around, name, value in self._names:
            if (now := around.get(name, MISSING)) is not value and not (_is_plain(now) and _is_plain(value)):
                return name
        for cell, name, value in self._cells:
            if (now := _content(cell)) is not value and not (_is_plain(now) and _is_plain(value)):
                return name
        for held in self._held:
            if not held.holds():
                return f"the attribute {held.name}"
        for tensor, there in self._read:
            if (tensor.grad is not None) is not there:
                return "whether a Tensor has a gradient"
        for known, numbers in self._numbers:
            now = known._array
            if now.shape != numbers.shape or now.dtype != numbers.dtype or now.tobytes() != numbers.tobytes():
                return "a Tensor that Python reads as a number"
        return None

    def leave(self, made: dict[str, Any], tensors: Sequence[Any]) -> None:
        """Apply the side effects: changed arguments, attributes and gradients."""
        for place, variable in self._changed:
            made[variable] = tensors[place].become(made[variable])
        stopping = {new for _, new in self.states}  # as a Tensor from outside, a state has no gradient
        for layer, attribute, outputs in self._attributes:
            values = {**made, **{name: made[name].detach() for name in outputs.names if name in stopping}}
            setattr(layer, attribute, outputs.filled(values))
            for leaf in Structure.of(vars(layer).get(attribute)).leaves:
                if isinstance(leaf, Tensor) and not any(leaf is tensor for tensor in tensors):
                    _states[id(leaf)] = leaf
        for tensor, name in self._left:
            tensor.grad = None if name is None else made[name]
            if tensor.grad is not None:
                tensor.grad.stop_gradient = False
        if any(self._of_arguments):
            for tensor, name in zip(tensors, self._of_arguments, strict=True):
                if name is not None:
                    tensor.grad = made[name] if tensor.grad is None else tensor.grad + made[name]


class _Held:
    """An attribute whose Tensors or layers a trace uses, or that was None."""

    def __init__(self, attributes: dict[str, Any], name: str, value: Any, followed: Mapping[int, Captured]):
        self._attributes, self.name, self._known = attributes, name, Structure.of(value)
        self._alone = self._known.leaves[0] if self._known.shape == "x" else MISSING
        self._followed = [followed.get(id(leaf)) for leaf in self._known.leaves]
        """What stands for the Tensors of this attribute, whichever these are."""

    def holds(self) -> bool:
        """Whether the trace can be used with what the attribute is now."""
        now = self._attributes.get(self.name)
        if now is self._alone:
            return True
        found = Structure.of(now)
        if len(found.leaves) != len(self._known.leaves):
            return False
        if all(map(is_, found.leaves, self._known.leaves)):
            return True
        for new, old, captured in zip(found.leaves, self._known.leaves, self._followed, strict=True):
            if new is not old and (captured is None or type(new) is not type(old)):
                return False
        if found.shape != self._known.shape:
            return False
        for new, captured in zip(found.leaves, self._followed, strict=True):
            if captured is not None:
                captured.tensor = new
        self._known, self._alone = found, now if found.shape == "x" else MISSING
        return True


def _held(tracer: Tracer, instance: Any, fixed: Sequence[Any]) -> Iterator[_Held]:
    """The attributes whose Tensors or layers the trace uses, and those that it sets and that were None. Tensors among
    the `fixed` values are used as they were.
    """
    before = {(id(layer), name): value for layer, name, value in tracer.attributes.values()}
    used = {*tracer.captured, *tracer.numbers, *tracer.layers, *(id(x) for x in fixed if isinstance(x, Tensor))}
    owners = [inner for layer in tracer.layers.values() for inner in layer.sublayers(include_self=True)]
    found: list[tuple[dict[str, Any], str, Any, list[Any]]] = []
    for owner in {id(owner): owner for owner in [*owners, instance] if hasattr(owner, "__dict__")}.values():
        for name in (*vars(owner), *(name for key, name in before if key == id(owner) and name not in vars(owner))):
            value = before.get((id(owner), name), vars(owner).get(name))
            value = None if value is MISSING else value
            leaves = [] if name in OF_LAYERS else _leaves(value)
            if not used.isdisjoint(map(id, leaves)) or (value is None and (id(owner), name) in before):
                found.append((vars(owner), name, value, leaves))
    times = Counter(id(leaf) for *_, leaves in found for leaf in leaves)
    times.update(map(id, fixed))
    times.update([*tracer.numbers, *tracer.gradients, *tracer.gradients_read])
    alone = {id(value) for attributes, name, value, _ in found if name in attributes.get("_buffers", ())}
    alone.update(_states.keys())
    followed = {key: c for key, c in tracer.captured.items() if times[key] == 1 and key in alone and not c.of_gradient}
    for attributes, name, value, _ in found:
        yield _Held(attributes, name, value, followed)


def _leaves(value: Any) -> list[Any]:
    """The values in a nest, in any order. It may be long, or contain itself, as it may be anything of the user's."""
    found: list[Any] = []
    waiting, seen = [value], set()
    while waiting:
        nest = waiting.pop()
        if not isinstance(nest, (dict, list, tuple)):
            found.append(nest)
        elif id(nest) not in seen:
            seen.add(id(nest))
            items = list(nest.values()) if isinstance(nest, dict) else nest
            nested = any(issubclass(kind, (dict, list, tuple)) for kind in {*map(type, items)})
            (waiting if nested else found).extend(items)
    return found


Names = list[tuple[dict[str, Any], str, Any]]


def _names_read(functions: Mapping[Any, CodeType]) -> tuple[Names, list[tuple[CellType, str, Any]]]:
    """The global names and the variables of outer functions that functions read and do not assign, with their values;
    of a user's module, the names in it.
    """
    names: dict[tuple[int, str], tuple[dict[str, Any], str, Any]] = {}
    assigned, cells = set(), []
    for function, code in functions.items():
        around = function.__globals__
        steps = [step for inner in codes_in(code) for step in dis.get_instructions(inner)]
        assigned |= {(id(around), s.argval) for s in steps if s.opname in ("STORE_GLOBAL", "DELETE_GLOBAL")}
        for step, after in zip(steps, [*steps[1:], steps[0]], strict=True):
            if step.opname != "LOAD_GLOBAL":
                continue
            read = [(around, step.argval)]
            module = around.get(step.argval)
            if isinstance(module, ModuleType) and after.opname in ("LOAD_ATTR", "LOAD_METHOD"):
                file = getattr(module, "__file__", None) or LIBRARIES[0]
                read += [] if file.startswith(LIBRARIES) else [(vars(module), after.argval)]
            for home, name in read:
                names[id(home), name] = home, name, home.get(name, MISSING)
        kept = {s.argval for s in steps if s.opname in ("STORE_DEREF", "DELETE_DEREF")}
        outer = zip(code.co_freevars, function.__closure__ or (), strict=True)
        cells += [(cell, name, _content(cell)) for name, cell in outer if name not in kept]
    return (
        [read for key, read in names.items() if key not in assigned],
        [(cell, name, value) for cell, name, value in cells if not holds_variables(value)],
    )


def _content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # it was not assigned yet
        return MISSING


def _is_plain(value: Any) -> bool:
    """Whether a value is one of Python's numbers and the like, which are constants of a trace."""
    return value is None or isinstance(value, (bool, int, float, complex, str, bytes))


def _agree(old: Any, new: Any) -> bool | None:
    """Whether a Tensor can change in place to a value; None if that depends on an open size."""
    if not (isinstance(old, Tensor) and isinstance(new, Variable) and old.dtype == new.dtype):
        return False
    if tuple(old.shape) == new.shape:
        return True
    return None if len(old.shape) == len(new.shape) and UNKNOWN in new.shape else False
