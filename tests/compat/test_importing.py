"""The façades are found under the names of the packages that they stand for, one module under both names."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow

Run = Callable[..., Any]


def test_every_way_to_import_gives_the_same_modules(run: Run):
    done = run(
        """
        import paddle
        import paddle.nn as nn
        import paddle.nn.functional as F
        import paddle.fluid as fluid
        from paddle.autograd import PyLayer
        from paddle.autograd.py_layer import PyLayer as same
        from paddle import fluid as fluid_too
        from app.compat import fluid as ours, paddle as facade
        from app.compat.paddle.nn import functional
        import app

        assert facade is paddle and ours is fluid is fluid_too is paddle.fluid
        assert functional is F is nn.functional is paddle.nn.functional
        assert PyLayer is same is app.autograd.PyLayer
        import paddle.fluid.core as core
        import paddle.base.core
        from paddle.fluid.framework import Program
        assert core is paddle.base.core and core.Scope and Program
        print(paddle.__name__, paddle.__spec__.name, F.__spec__.name)
        """
    )
    assert done.stderr == ""
    assert done.stdout == "app.compat.paddle app.compat.paddle app.compat.paddle.nn.functional\n"


LISTED = "`python -m app run --coverage paddle` lists what is there"


MISSING = {
    "import paddle.autogard": "paddle.autogard is not part of this façade; closest: paddle.autograd",
    "import paddle.nn.xyz": f"paddle.nn.xyz is not part of this façade; {LISTED}",
    "from paddle.nn import Liner": "paddle.nn has no 'Liner' in this façade; closest: paddle.nn.Linear",
    "from paddle.static import nnn": "paddle.static has no 'nnn' in this façade; closest: paddle.static.nn",
    "from paddle import PyLayer": "paddle has no 'PyLayer' in this façade; closest: paddle.autograd.PyLayer",
}


def test_what_is_not_there_says_what_is_closest_and_a_script_may_go_on(run: Run):
    attempts = [
        f"try:\n    {statement}\nexcept ImportError as e:\n    print(isinstance(e, ModuleNotFoundError), e)\n"
        for statement in MISSING
    ]
    done = run("".join(attempts))
    assert done.stderr == ""
    for line, (statement, message) in zip(done.stdout.splitlines(), MISSING.items(), strict=True):
        assert line.startswith(f"{statement.startswith('import')} {message}")


@pytest.mark.parametrize(("installed", "said"), [(True, True), (False, False)])
def test_an_installed_package_is_passed_over_and_that_is_said(run: Run, installed: bool, said: bool, tmp_path: Path):
    (tmp_path / "paddle").mkdir()
    if installed:
        (tmp_path / "paddle" / "__init__.py").write_text("print('the real one')")
    done = run("import paddle\nimport paddle.nn\nprint(paddle.__name__)")
    assert done.stdout == "app.compat.paddle\n"
    note = "note: the installed paddle is passed over; paddle is app.compat.paddle here\n"
    assert done.stderr == (note if said else "")


def test_nothing_is_imported_that_is_not_asked_for(run: Run):
    done = run("import sys; print(sorted(m for m in sys.modules if m.startswith('app.compat.paddle')))")
    assert done.stdout == "[]\n"


def test_without_the_command_the_names_are_the_installed_packages():
    import app.compat.importing  # noqa: F401

    assert not [finder for finder in sys.meta_path if "Facade" in type(finder).__name__]
