"""What users can reach: the public names of the package, of its modules and of Tensors, and nothing else."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import app
from app import static, to_tensor
from app.ops import REGISTRY
from app.ops.public import PUBLIC

INTERNAL = sorted(name for name, definition in REGISTRY.items() if definition.public is None)


def modules_in(path: str, found: ModuleType) -> Iterator[tuple[str, ModuleType]]:
    """A module and the public ones inside it, as users reach them."""
    yield path, found
    for name in found.__all__:
        if isinstance(inner := getattr(found, name), ModuleType):
            yield from modules_in(f"{path}.{name}", inner)


MODULES = [pytest.param(found, id=path) for path, found in modules_in("app", app)]  # docs/reference.md lists them


@pytest.mark.parametrize("found", MODULES)
def test_dir_of_a_public_module_lists_its_documented_names(found: ModuleType):
    assert dir(found) == sorted([*found.__all__, *(["__version__"] if found is app else [])])
    assert len(set(found.__all__)) == len(found.__all__)
    for name in found.__all__:
        assert not name.startswith("_")
        value = getattr(found, name)
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
