"""The package that a wheel has: `opsmith`, from the sources of `app/`. And `opsmith` in a checkout, which is `app`."""

from __future__ import annotations

import ast
import importlib.util
import os
import re
import subprocess
import sys
import venv
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import app

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
OPERATORS = """
import numpy as np
import opsmith
import opsmith.nn
from opsmith.custom.references import Allowed, reference_to
from opsmith.custom.shelf.relu import relu
from opsmith.engine.compiled.fingerprint import full_fingerprint

import app

print(f"{app is opsmith}, {app.__name__}, {getattr(app, 'mine', 0)}, {opsmith.relu is not None}")
reference = reference_to(relu, "relu")
print(reference, full_fingerprint(relu), Allowed().get(reference) is relu)

@opsmith.custom_op(elementwise=True, like="silu")
def swish(x):
    return x / (1 + np.exp(-x))

@opsmith.custom_op(elementwise=True)
def wrong(x):
    return x * x

@wrong.backward
def wrong_backward(x, dy):
    return x * dy
"""
"""What a user writes, and what it tells of opsmith when it is read."""
LIBRARIES = ("installed", "checkout")
ONE_WORKER = pytest.mark.xdist_group("beside an app")


def tool() -> ModuleType:
    """tools/wheel.py, which is not in a package."""
    spec = importlib.util.spec_from_file_location("opsmith_wheel", ROOT / "tools" / "wheel.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


wheel = tool()


def with_an_app(folder: Path) -> Path:
    """A folder of a user, with operators and an `app.py` of his own."""
    (folder / "app.py").write_text('print("the user\'s own app")\nmine = 1\n')
    (folder / "my_ops.py").write_text(OPERATORS)
    return folder


@pytest.fixture(scope="module")
def checked(installed: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, subprocess.CompletedProcess[str]]:
    """`opsmith check` in such a folder, with opsmith where Python finds it if it is installed, and in a checkout."""
    folder = with_an_app(tmp_path_factory.mktemp("user"))
    words = ["-m", "opsmith", "check", "my_ops.py", "--only", "gradient"]
    return {name: python(words, folder, place) for name, place in zip(LIBRARIES, (installed, ROOT), strict=True)}


def python(words: list[str], folder: Path, library: Path) -> subprocess.CompletedProcess[str]:
    settings = {**os.environ, "PYTHONPATH": str(library), "NUMBA_DISABLE_JIT": "1"}
    return subprocess.run(
        [sys.executable, *words], cwd=folder, env=settings, capture_output=True, text=True, check=False
    )


def traces_of_app(source: str) -> Iterator[str]:
    """The imports of `app`, and the strings that name a module of it."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.level == 0:
            yield from re.findall(r"^app\b.*", node.module or "")
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if re.match(r"app\b", alias.name))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from re.findall(r"(?<![\w./-])app(?:\.(?!py\b)\w+.*|$)", node.value)


def test_a_wheel_neither_imports_app_nor_names_a_module_of_it(installed: Path):
    sources = {str(file.relative_to(installed)): file.read_text(encoding="utf-8") for file in installed.rglob("*.py")}
    with_the_word = {name: text for name, text in sources.items() if re.search(r"(?<![\w./-])app\b", text)}
    assert {name: traces for name, text in with_the_word.items() if (traces := [*traces_of_app(text)])} == {}


def test_a_wheel_has_every_file_of_the_sources(installed: Path):
    def files(folder: Path) -> set[str]:
        return {str(file.relative_to(folder)) for file in folder.rglob("*") if file.suffix not in ("", ".pyc")}

    ours, theirs = files(ROOT / "app"), files(installed / "opsmith")
    assert ours <= theirs
    assert {name.partition("/")[0] for name in theirs - ours} == {"configs", "data", "exercises"}
    assert {"py.typed", "__main__.py", "data/mnist-sample.npz", "configs/default.yaml"} <= theirs


@pytest.mark.parametrize(
    ("source", "in_a_wheel"),
    [
        ("from app.nn import app as x\n", "from opsmith.nn import app as x\n"),
        (
            "if x:\n    from app import nn; import app as a, sys\n",
            "if x:\n    from opsmith import nn; import opsmith as a, sys\n",
        ),
        ("import app\napp.nn\n", "import opsmith as app\napp.nn\n"),
        ("import apple\nfrom app_ import x\nfrom .app import y\n", None),
        ('"""from app import nn"""\nö = "import app"; from app import x\n', None),
    ],
)
def test_only_imports_of_app_are_renamed(source: str, in_a_wheel: str | None):
    expected = source.replace("; from app", "; from opsmith") if in_a_wheel is None else in_a_wheel
    assert wheel.renamed(source.encode(), "x.py").decode() == expected


@pytest.mark.parametrize("source", ["import app.nn\n", "from  app import nn\n"])
def test_an_import_that_cannot_be_renamed_is_refused_with_its_line(source: str):
    with pytest.raises(ValueError, match=r"^x\.py:1: write "):
        wheel.renamed(source.encode(), "x.py")


@pytest.mark.parametrize("library", LIBRARIES)
@ONE_WORKER
def test_check_works_beside_an_app_of_the_user(library: str, checked: dict[str, subprocess.CompletedProcess[str]]):
    done = checked[library]
    assert (done.returncode, done.stderr) == (1, "")
    for name, end in (("swish", "1 passed"), ("wrong", "1 FAILED: gradient; 0 passed")):
        assert re.search(
            rf"^{name}  custom_op, elementwise, my_ops.py:\d+; .*\n.*\n  {end}$", done.stdout, re.MULTILINE
        )


@ONE_WORKER
def test_an_installed_opsmith_knows_nothing_of_an_app_of_the_user_and_a_checkout_goes_before_it(
    checked: dict[str, subprocess.CompletedProcess[str]],
):
    assert checked["installed"].stdout.startswith("the user's own app\nFalse, app, 1, True\n")
    assert checked["checkout"].stdout.startswith("True, app, 0, True\n")


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("import opsmith, app; app.mine", "module 'app' has no attribute 'mine'"),
        ("import app, opsmith", "app.py was imported as `app` before opsmith"),
    ],
)
def test_a_checkout_never_takes_one_app_for_the_other_silently(program: str, message: str, tmp_path: Path):
    done = python(["-c", program], with_an_app(tmp_path), ROOT)
    assert done.returncode == 1
    assert message in done.stderr


def test_in_a_checkout_the_modules_of_opsmith_are_those_of_app():
    import opsmith.custom.custom_op
    import opsmith.nn.functional as functional
    from opsmith.custom.shelf.relu import relu

    import opsmith

    assert opsmith is app
    assert functional is app.nn.functional
    assert relu is sys.modules["app.custom.shelf.relu"].relu
    assert functional.__spec__.name == "app.nn.functional"
    assert app.custom_op is opsmith.custom.custom_op  # the function, not the module of this name
    assert (ROOT / "opsmith-stubs").resolve() == ROOT / "app"  # where type checkers look
    with pytest.raises(ModuleNotFoundError, match=r"opsmith\.nothing"):
        importlib.import_module("opsmith.nothing")


@ONE_WORKER
def test_a_file_refers_to_an_operator_of_the_shelf_in_the_same_words(
    checked: dict[str, subprocess.CompletedProcess[str]],
):
    """So what was saved with a checkout can be loaded with a wheel, and the other way round."""
    first, second = (re.findall(r"^opsmith\.custom\..*", checked[name].stdout, re.MULTILINE) for name in LIBRARIES)
    assert re.fullmatch(r"opsmith\.custom\.shelf\.relu:relu \w+ True", *first)
    assert first == second


TYPED = """
import opsmith
import opsmith.nn.functional as F
from opsmith.nn import Linear

reveal_type(opsmith.to_tensor([1.0]))
reveal_type(Linear(3, 4))
reveal_type(F.relu)
"""


@pytest.mark.parametrize("library", ["installed", pytest.param("checkout", marks=pytest.mark.soak)])
def test_type_checkers_see_the_types_of_opsmith(library: str, tmp_path: Path, installed: Path):
    (tmp_path / "typed.py").write_text(TYPED)
    venv.create(tmp_path / "env", symlinks=True)
    (site,) = (tmp_path / "env").glob("lib/python*/site-packages")
    (site / "opsmith.pth").write_text(str(installed if library == "installed" else ROOT))  # an editable installation
    interpreter = str(tmp_path / "env" / "bin" / "python")
    checker = [sys.executable, "-m", "mypy", "--strict", "--python-executable", interpreter]
    done = subprocess.run(
        [*checker, "--cache-dir", os.devnull, "typed.py"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    package = "opsmith" if library == "installed" else "app"
    types = re.findall(r'Revealed type is "(.*)"', done.stdout)
    assert types == [
        f"{package}.tensor.tensor.Tensor",
        f"{package}.nn.layers.common.Linear",
        f"{package}.ops.definition.OpDef",
    ]
    assert done.returncode == 0
