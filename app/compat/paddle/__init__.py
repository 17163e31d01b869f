"""paddle: the framework itself, whose names are those of Paddle 2, and a few more of Paddle's."""

from __future__ import annotations

from typing import Any

import app
from app.compat.modules import MissingNameError, add_names, no_name
from app.compat.paddle import _readers as readers
from app.compat.paddle._fluid import FLUID
from app.custom.pylayer.context import PyLayerContext


def __getattr__(name: str) -> Any:
    if name not in app.__all__:
        raise MissingNameError(no_name(__name__, name), name=name)
    return getattr(app, name)


def _names_of(module: Any) -> dict[str, Any]:
    return {name: getattr(module, name) for name in module.__all__}


add_names(
    __name__,
    {
        "autograd": {
            **_names_of(app.autograd),
            "py_layer": {"PyLayer": app.autograd.PyLayer, "PyLayerContext": PyLayerContext},
        },
        "batch": readers.batch,
        "dataset": {"mnist": {"train": lambda: readers.mnist("train"), "test": lambda: readers.mnist("test")}},
        "fluid": FLUID,
        "nn": {**_names_of(app.nn), "loss": app.nn},
        "reader": {"firstn": readers.firstn, "shuffle": readers.shuffle},
    },
)
