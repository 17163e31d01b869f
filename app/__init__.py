"""A small deep-learning framework for custom operators. Public names follow Paddle 2 wherever it has one.

A public name is imported when it is first used, so that `import opsmith` takes no time.
"""

from importlib import import_module as _import_module
from importlib.util import find_spec as _find_spec
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from app.display import Displayed as _Displayed
from app.version import __version__ as __version__

if _TYPE_CHECKING:  # for type checkers and editors: the names of the table below
    from app import autograd as autograd
    from app import bridge as bridge
    from app import data as data
    from app import device as device
    from app import errors as errors
    from app import jit as jit
    from app import nn as nn
    from app import onnx as onnx
    from app import optimizer as optimizer
    from app import static as static
    from app import testing as testing
    from app.checking.exhaustive import certify as certify
    from app.checking.findings import check as check
    from app.creation import arange as arange
    from app.creation import clone as clone
    from app.creation import empty as empty
    from app.creation import eye as eye
    from app.creation import full as full
    from app.creation import is_tensor as is_tensor
    from app.creation import linspace as linspace
    from app.creation import normal as normal
    from app.creation import ones as ones
    from app.creation import rand as rand
    from app.creation import randint as randint
    from app.creation import randn as randn
    from app.creation import standard_normal as standard_normal
    from app.creation import uniform as uniform
    from app.creation import zeros as zeros
    from app.custom import custom_op as custom_op
    from app.device import CPUPlace as CPUPlace
    from app.device import set_device as set_device
    from app.experiment.calls import compare as compare
    from app.experiment.calls import open_run as open_run
    from app.experiment.calls import resume as resume
    from app.experiment.calls import train as train
    from app.graph import disable_static as disable_static
    from app.graph import enable_static as enable_static
    from app.graph import in_dynamic_mode as in_dynamic_mode
    from app.inspection.calls import inspect as inspect
    from app.nn import ParamAttr as ParamAttr
    from app.nn import create_parameter as create_parameter
    from app.ops.dtype import get_default_dtype as get_default_dtype
    from app.ops.dtype import set_default_dtype as set_default_dtype
    from app.ops.random import get_rng_state as get_rng_state
    from app.ops.random import seed as seed
    from app.ops.random import set_rng_state as set_rng_state
    from app.saving import load as load
    from app.saving import save as save
    from app.tensor import Tensor as Tensor
    from app.tensor import enable_grad as enable_grad
    from app.tensor import grad as grad
    from app.tensor import is_grad_enabled as is_grad_enabled
    from app.tensor import no_grad as no_grad
    from app.tensor import set_grad_enabled as set_grad_enabled
    from app.tensor import to_tensor as to_tensor

_NAMES = {
    "": "autograd bridge data device errors jit nn onnx optimizer static testing",
    ".creation": (
        "arange clone empty eye full is_tensor linspace normal ones rand randint randn standard_normal uniform zeros"
    ),
    ".custom": "custom_op",
    ".device": "CPUPlace set_device",
    ".checking.exhaustive": "certify",
    ".checking.findings": "check",
    ".experiment.calls": "compare open_run resume train",
    ".inspection.calls": "inspect",
    ".graph": "disable_static enable_static in_dynamic_mode",
    ".nn": "ParamAttr create_parameter",
    ".ops.dtype": "get_default_dtype set_default_dtype",
    ".ops.random": "get_rng_state seed set_rng_state",
    ".saving": "load save",
    ".tensor": "Tensor enable_grad grad is_grad_enabled no_grad set_grad_enabled to_tensor",
}
"""The public names, by the module that each is imported from. The public operators declare themselves."""

_HOME = {name: home for home, names in _NAMES.items() for name in names.split()}


def __getattr__(name: str) -> _Any:
    if name == "__all__":
        value: _Any = [*_HOME, *_operators()]
    elif name in _HOME:
        home = _HOME[name]
        value = _import_module(f".{name}", __name__) if not home else getattr(_import_module(home, __name__), name)
    elif (
        name.startswith("__") or _find_spec(f".{name}", __name__) is not None
    ):  # `from opsmith import x` imports it next
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    elif name in (operators := _operators()):
        value = operators[name]
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def _operators() -> dict[str, _Any]:
    """The public operators by their names, and the element types: `opsmith.float32` is "float32"."""
    _import_module(".creation", __name__)  # the last module that declares some
    from app.ops.dtype import NAMES
    from app.ops.public import PUBLIC

    return {name: entry.function for name, entry in PUBLIC.items()} | {name: name for name in NAMES}


def _html_of(value: _Any) -> str | None:
    """The HTML of an object in a notebook. The drawing code is imported on first use."""
    from app.inspection.displays import html_of

    return html_of(value)


_Displayed._html_of = staticmethod(_html_of)


def __dir__() -> list[str]:
    return sorted([*__getattr__("__all__"), "__version__"])
