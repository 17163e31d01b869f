"""The parameters, buffers and sublayers of a layer, and how they are found by path."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any

from app.errors import AppError
from app.graph.variable import Parameter as ProgramParameter
from app.graph.variable import Variable
from app.tensor import Parameter, Tensor
from app.tensor.modes import modes

KINDS = ("_parameters", "_sub_layers", "_buffers")
OF_LAYERS = frozenset({*KINDS, "_forward_pre_hooks", "_forward_post_hooks"})
"""Attributes of layers that the framework keeps."""


class NotParameterError(AppError, TypeError):
    """A value that is assigned to a parameter of a layer, and is none."""


class Tree:
    """The base of Layer: registers parameters, buffers and sublayers that are set as attributes."""

    def __setattr__(self, name: str, value: Any) -> None:
        tracer = modes().tracer
        if tracer is not None:
            tracer.check_attribute(self, name, value)
        held = self.__dict__
        for registry in KINDS:
            held.setdefault(registry, OrderedDict())
        if "_full_name" not in held and self._kind_of(value) is not None:
            raise AppError(f"{type(self).__name__}.__init__ must call super().__init__() before it sets {name!r}")
        kind = self._kind_of(value)
        if kind is None and value is not None and name in held["_parameters"]:
            raise NotParameterError(
                f"{type(self).__name__}.{name} is a parameter, so it cannot be a {type(value).__name__}, which would "
                f"not be trained or saved: change its numbers by {name}.set_value(...), assign a Parameter, or "
                f"delete it first (del layer.{name})"
            )
        if kind is None and name in held["_buffers"] and isinstance(value, (Tensor, Variable, type(None))):
            kind = "_buffers"
        for other in KINDS:
            if other != kind:
                held[other].pop(name, None)
        if kind is not None:
            held[kind][name] = value
        object.__setattr__(self, name, value)

    def _kind_of(self, value: Any) -> str | None:
        if isinstance(value, (Parameter, ProgramParameter)):
            return "_parameters"
        return "_sub_layers" if isinstance(value, Tree) else None

    def __delattr__(self, name: str) -> None:
        object.__delattr__(self, name)
        for kind in KINDS:
            self.__dict__[kind].pop(name, None)

    def _held(self, kind: str) -> dict[str, Any]:
        held: dict[str, Any] = self.__dict__.get(kind, {})
        return held

    # Adding

    def add_sublayer(self, name: str, sublayer: Any) -> Any:
        """Add a sublayer. Its name need not be a Python identifier."""
        if not (isinstance(sublayer, Tree) or sublayer is None):
            raise AppError(f"{type(self).__name__}: sublayer {name!r} must be a Layer, found {sublayer!r}")
        setattr(self, str(name), sublayer)
        return sublayer

    def add_parameter(self, name: str, parameter: Any) -> Any:
        """Add a parameter."""
        if not (self._kind_of(parameter) == "_parameters" or parameter is None):
            raise AppError(f"{type(self).__name__}: parameter {name!r} must be a Parameter, found {parameter!r}")
        setattr(self, str(name), parameter)
        return parameter

    def register_buffer(self, name: str, tensor: Any, persistable: bool = True) -> None:
        """Add a value that is part of the state but not trained. If not `persistable`, it is not saved either."""
        if hasattr(self, name) and name not in self._held("_buffers"):
            raise AppError(f"{type(self).__name__}: the attribute {name!r} exists already and is not a buffer")
        if not isinstance(tensor, (Tensor, Variable, type(None))):
            raise AppError(f"{type(self).__name__}: buffer {name!r} must be a Tensor, found {type(tensor).__name__}")
        self.__dict__.setdefault("_buffers", OrderedDict())[name] = tensor
        passing = self.__dict__.setdefault("_non_persistable_buffer_names_set", set())
        passing.discard(name) if persistable else passing.add(name)
        setattr(self, name, tensor)

    # Finding

    def named_sublayers(
        self,
        prefix: str = "",
        include_self: bool = False,
        layers_set: set[Any] | None = None,
        remove_duplicate: bool = True,
    ) -> Iterator[tuple[str, Any]]:
        """All sublayers with their paths; a shared one is listed once."""
        seen = set() if layers_set is None else layers_set
        if self in seen and remove_duplicate:
            return
        seen.add(self)
        if include_self:
            yield prefix, self
        for name, layer in self._held("_sub_layers").items():
            yield from layer.named_sublayers(f"{prefix}.{name}" if prefix else name, True, seen, remove_duplicate)

    def sublayers(self, include_self: bool = False) -> list[Any]:
        """All sublayers."""
        return [layer for _, layer in self.named_sublayers("", include_self)]

    def named_children(self) -> Iterator[tuple[str, Any]]:
        """The direct sublayers, by name."""
        yield from self._held("_sub_layers").items()

    def children(self) -> Iterator[Any]:
        """The direct sublayers."""
        yield from self._held("_sub_layers").values()

    def _named(self, kind: str, prefix: str, include_sublayers: bool, once: bool = True) -> Iterator[tuple[str, Any]]:
        """Parts of one kind with their paths; shared ones are listed once, unless requested otherwise."""
        seen: set[int] = set()
        layers = self.named_sublayers(prefix, True, None, once) if include_sublayers else [(prefix, self)]
        for path, layer in layers:
            for name, value in layer._held(kind).items():
                if value is not None and not (once and id(value) in seen):
                    seen.add(id(value))
                    yield (f"{path}.{name}" if path else name), value

    def named_parameters(
        self, prefix: str = "", include_sublayers: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Any]]:
        """All parameters with their paths; a shared one is listed once."""
        return self._named("_parameters", prefix, include_sublayers, remove_duplicate)

    def parameters(self, include_sublayers: bool = True) -> list[Any]:
        """All parameters."""
        return [parameter for _, parameter in self.named_parameters("", include_sublayers)]

    def named_buffers(
        self, prefix: str = "", include_sublayers: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Any]]:
        """All buffers with their paths."""
        return self._named("_buffers", prefix, include_sublayers, remove_duplicate)

    def buffers(self, include_sublayers: bool = True) -> list[Any]:
        """All buffers."""
        return [buffer for _, buffer in self.named_buffers("", include_sublayers)]

    def apply(self, fn: Callable[[Any], Any]) -> Any:
        """Call a function on every layer, inner layers first."""
        for layer in self.children():
            layer.apply(fn)
        fn(self)
        return self
