"""Modules that hold others: the framework's containers under PyTorch's names."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import Any

from app import nn as below
from app.compat.torch.nn._module import Module, indented


class Sequential(Module, below.Sequential):
    """Modules, each of which is called with the result of the one before."""

    def __init__(self, *modules: Any):
        below.Sequential.__init__(self, *modules)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)(OrderedDict(list(self._modules.items())[index]))
        return below.Sequential.__getitem__(self, index)


class ModuleList(Module, below.LayerList):
    """A list of modules."""

    def __init__(self, modules: Iterable[Any] | None = None):
        below.LayerList.__init__(self, modules)

    def __repr__(self) -> str:
        lines = []
        for text, group in groupby(enumerate(map(repr, self)), key=lambda pair: pair[1]):
            places = [place for place, _ in group]
            first, last = places[0], places[-1]
            lines.append(f"({first}): {text}" if first == last else f"({first}-{last}): {len(places)} x {text}")
        return f"{self._get_name()}(\n  " + "\n  ".join(map(indented, lines)) + "\n)" if lines else "ModuleList()"


class ModuleDict(Module, below.LayerDict):
    """Modules by name."""

    def __init__(self, modules: Mapping[str, Any] | None = None):
        below.LayerDict.__init__(self, modules)


class ParameterList(Module, below.ParameterList):
    """A list of parameters."""

    def __init__(self, values: Iterable[Any] | None = None):
        below.ParameterList.__init__(self, values)
