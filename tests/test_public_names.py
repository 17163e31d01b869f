"""What users can reach: the public names of the package, of its modules and of Tensors, and nothing else."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import app
from app import static, to_tensor
from app.ops import REGISTRY
from app.ops.public import PUBLIC

INTERNAL = sorted(name for name, definition in REGISTRY.items() if definition.public is None)


def modules_in(path: str, module: ModuleType) -> Iterator[tuple[str, ModuleType]]:
    """A module and the public ones inside it, as users reach them."""
    yield path, module
    for name in module.__all__:
        if isinstance(inner := getattr(module, name), ModuleType):
            yield from modules_in(f"{path}.{name}", inner)


MODULES = [pytest.param(module, id=path) for path, module in modules_in("app", app)]  # docs/reference.md lists them


@pytest.mark.parametrize("module", MODULES)
def test_dir_of_a_public_module_lists_its_documented_names(module: ModuleType):
    assert dir(module) == sorted([*module.__all__, *(["__version__"] if module is app else [])])
    assert len(set(module.__all__)) == len(module.__all__)
    for name in module.__all__:
        assert not name.startswith("_")
        value = getattr(module, name)
        assert isinstance(value, str) or value.__doc__, name
        assert getattr(value, "__module__", "app").startswith("app"), name  # nothing of typing, of NumPy …


def test_public_operators_are_functions_of_the_package():
    for name, definition in REGISTRY.items():
        if definition.public is not None:
            assert definition.public.names[0] in app.__all__, name
    for name, entry in PUBLIC.items():
        assert getattr(app, name) is entry.function


@pytest.mark.parametrize("name", INTERNAL)
def test_an_internal_operator_cannot_be_reached(name: str):
    assert name not in dir(app)
    with pytest.raises(AttributeError, match=rf"^module 'app' has no attribute '{name}'$"):
        getattr(app, name)
    for value in (to_tensor([1.0]), static.Program().global_block().create_var("x", [1])):
        if name != "place":  # Paddle's name for the device of a Tensor
            assert not hasattr(value, name)
        assert not hasattr(value, name + "_")


def test_methods_are_those_that_are_declared():
    tensor, variable = to_tensor([1.0]), static.Program().global_block().create_var("x", [1])
    for name, entry in PUBLIC.items():
        if entry.method:
            assert callable(getattr(tensor, name)), name
            assert callable(getattr(variable, name)), name
        elif name not in ("shape", "numel"):
            assert not hasattr(tensor, name) or name == "clone", name
        assert hasattr(tensor, name + "_") == entry.in_place, name


PROTOCOL = {"of_shape", "captured"}
"""Methods that get more than some classes need."""


def functions_of(value: Any) -> Iterator[Callable[..., Any]]:
    """A function, or the methods of a class that users call."""
    if inspect.isclass(value):
        for kind in value.__mro__:
            for name, method in vars(kind).items() if kind.__module__.startswith("app") else ():
                if name in ("__init__", "__call__") or (name[0] != "_" and name not in PROTOCOL):
                    yield getattr(method, "__func__", method)
    else:
        yield value


def unread(function: Callable[..., Any]) -> list[str]:
    """The parameters that the body of a function never reads; one that only raises an error reads none."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    if not isinstance(tree, ast.FunctionDef):
        return []
    body = [node for node in tree.body if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Constant)]
    if not body or isinstance(body[0], ast.Raise):
        return []
    names = {node.id for part in body for node in ast.walk(part) if isinstance(node, ast.Name)}
    return [name for name in inspect.signature(function).parameters if name not in {*names, "self", "cls"}]


@pytest.mark.parametrize("module", MODULES)
def test_every_parameter_has_an_effect(module: ModuleType):
    public = [getattr(module, name) for name in module.__all__]
    functions = {inspect.unwrap(f) for value in public if callable(value) for f in functions_of(value) if callable(f)}
    written = [f for f in functions if inspect.isfunction(f) and not f.__code__.co_filename.startswith("<")]
    assert [(f.__qualname__, name) for f in written for name in unread(f)] == []


def test_a_parameter_that_is_never_read_is_seen():
    def forgetful(x: float, name: str = "", *rest: float, scale: float = 1.0) -> float:
        """Its name is ignored."""
        return x + sum(rest)

    assert unread(forgetful) == ["name", "scale"]


def test_operators_take_no_name_that_has_no_effect():
    with pytest.raises(app.errors.OperatorError, match="operator tanh has no parameter 'name'; it takes"):
        app.tanh(to_tensor([1.0]), name="y")


def test_type_checkers_see_the_names_that_are_imported_late():
    tree = ast.parse(Path(app.__file__).read_text(encoding="utf-8"))
    (block,) = [node for node in tree.body if isinstance(node, ast.If)]
    seen = {
        (node.module, alias.name)
        for node in ast.walk(block)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert seen == {(f"app{home}", name) for name, home in app._HOME.items()}


@pytest.mark.parametrize(
    ("words", "loaded"),
    [(["-c", "import app"], 12), (["train.py", "--help"], 20)],
    ids=["import app", "train.py --help"],
)
def test_unused_modules_are_not_imported(words: list[str], loaded: int):
    command = [sys.executable, "-X", "importtime", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=Path(__file__).parents[1])
    modules = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert not modules & {"numpy", "numba", "llvmlite", "msgspec", "scipy", "requests", "tqdm"}
    assert len([name for name in modules if name.partition(".")[0] == "app"]) < loaded
