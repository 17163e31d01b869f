"""Modules that hold others: in a row, in a list, by name."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any

from app.compat.torch.nn._module import Module, _indented


class _Listed(Module):
    """Modules in an order, by their numbers."""

    def append(self, module: Any) -> Any:
        self.add_module(str(len(self)), module)
        return self

    def extend(self, modules: Iterable[Any]) -> Any:
        for module in modules:
            self.append(module)
        return self

    def insert(self, index: int, module: Any) -> Any:
        """Put a module before another; those after it get the next numbers."""
        listed = list(self)
        listed.insert(index, module)
        return self._renumbered(listed)

    def _renumbered(self, modules: Iterable[Any]) -> Any:
        self._modules.clear()
        return self.extend(modules)

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._modules.values())

    def __setitem__(self, index: int, module: Any) -> None:
        self.add_module(list(self._modules)[index], module)

    def __delitem__(self, index: int | slice) -> None:
        listed = list(self)
        del listed[index]
        self._renumbered(listed)


class Sequential(_Listed):
    """Modules, each working on the result of the one before."""

    def __init__(self, *modules: Any):
        super().__init__()
        named = modules[0].items() if len(modules) == 1 and isinstance(modules[0], Mapping) else enumerate(modules)
        for name, module in named:
            self.add_module(str(name), module)

    def forward(self, input: Any) -> Any:
        for module in self._modules.values():
            input = module(input)
        return input

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)(OrderedDict(list(self._modules.items())[index]))
        return list(self._modules.values())[index]


class ModuleList(_Listed):
    """A list of modules."""

    def __init__(self, modules: Iterable[Any] = ()):
        super().__init__()
        self.extend(modules)

    def __getitem__(self, index: Any) -> Any:
        found = list(self._modules.values())[index]
        return type(self)(found) if isinstance(index, slice) else found

    def __repr__(self) -> str:
        lines = []
        for text, group in groupby(enumerate(map(repr, self)), key=lambda pair: pair[1]):
            places = [place for place, _ in group]
            first, last = places[0], places[-1]
            lines.append(f"({first}): {text}" if first == last else f"({first}-{last}): {len(places)} x {text}")
        return f"{self._get_name()}(\n  " + "\n  ".join(map(_indented, lines)) + "\n)" if lines else "ModuleList()"


class ModuleDict(Module):
    """Modules by name."""

    def __init__(self, modules: Mapping[str, Any] | None = None):
        super().__init__()
        self.update(modules or {})

    def update(self, modules: Mapping[str, Any]) -> None:
        for name, module in modules.items():
            self[name] = module

    def __getitem__(self, name: str) -> Any:
        return self._modules[name]

    def __setitem__(self, name: str, module: Any) -> None:
        self.add_module(name, module)

    def __contains__(self, name: str) -> bool:
        return name in self._modules

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def keys(self) -> Any:
        return self._modules.keys()

    def values(self) -> Any:
        return self._modules.values()

    def items(self) -> Any:
        return self._modules.items()


class ParameterList(Module):
    """A list of parameters."""

    def __init__(self, values: Iterable[Any] = ()):
        super().__init__()
        for value in values:
            self.append(value)

    def append(self, value: Any) -> Any:
        self.register_parameter(str(len(self)), value)
        return self

    def __len__(self) -> int:
        return len(self._held("_parameters"))

    def __iter__(self) -> Iterator[Any]:
        return iter(self._held("_parameters").values())

    def __getitem__(self, index: int) -> Any:
        return list(self._held("_parameters").values())[index]
