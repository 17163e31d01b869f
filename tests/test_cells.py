"""Cells of a notebook, run by IPython itself: what is defined in them is read, traced, saved, checked and trained."""

from __future__ import annotations

import atexit
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from as_python import uncompiled

__all__ = ["uncompiled"]

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("uncompiled")]

Run = Callable[[str], Any]

FIRST = """
import numpy as np
import opsmith
x = opsmith.to_tensor([0.5, -1.0], dtype="float64", stop_gradient=False)
def slope(operator):
    return [round(v, 6) for v in opsmith.grad(operator(x).sum(), x)[0].tolist()]
"""


@pytest.fixture(params=["IPython"])
def run(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    """Runs a cell in a new IPython, in an empty folder. Returns what the cell shows, or raises its error.

    With the parameter "kernel" cells are compiled as the kernel of a notebook does, which names them otherwise.
    """
    interactive = pytest.importorskip("IPython.core.interactiveshell", reason="IPython is of the dev extra")
    config = pytest.importorskip("traitlets.config").Config()
    config.HistoryManager.enabled = False
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])  # IPython puts its own there
    shell = interactive.InteractiveShell.instance(config=config)
    if request.param == "kernel":
        shell.compile = pytest.importorskip("ipykernel.compiler").XCachingCompiler()

    def run_cell(text: str) -> Any:
        result = shell.run_cell(text, store_history=True)
        result.raise_error()
        return result.result

    yield run_cell
    atexit.unregister(shell.atexit_operations)
    shell.restore_sys_module_state()
    type(shell).clear_instance()
    sys.modules.pop("written_ops", None)


@pytest.mark.parametrize("run", ["IPython", "kernel"], indirect=True)
def test_the_first_cell_of_a_notebook_imports_and_defines(run: Run):
    operator = """
@opsmith.custom_op(elementwise=True)
def swish(x):
    return x / (1 + np.exp(-x))
slope(swish)
"""
    assert run(FIRST + operator) == [0.739961, 0.072329]
    assert "return x / (1 + np.exp(-x))" in run("from app.reading import source_text\nsource_text(swish.function)")


def test_several_definitions_of_one_cell_are_each_read(run: Run):
    run(FIRST)
    assert run("""
import numpy as np
def half(v): return np.multiply(v, 0.5)
@opsmith.custom_op
def first(v):
    return np.exp(v)
second = opsmith.custom_op(lambda v: np.square(v)); third = opsmith.custom_op(
    lambda v: np.square(v) * 3)
pair = [opsmith.custom_op(f) for f in (lambda v: np.sin(v), lambda v: np.cos(v))]
def outer(k):
    def inner(v):
        return np.multiply(k, v)
    return inner
[slope(f) for f in (first, second, third, *pair, opsmith.custom_op(outer(4.0)))]
""") == [
        [1.648721, 0.367879],
        [1.0, -2.0],
        [3.0, -6.0],
        [0.877583, 0.540302],
        [-0.479426, 0.841471],
        [4.0, 4.0],
    ]


def test_a_cell_that_is_edited_or_run_again_is_read_as_it_is_now(run: Run):
    run(FIRST)
    cell = """
import numpy as np
@opsmith.custom_op
def f(v):
    return np.multiply(v, 2.0)
old = globals().setdefault("old", f)
slope(f), slope(old)
"""
    assert run(cell) == ([2.0, 2.0], [2.0, 2.0])
    assert run(cell) == ([2.0, 2.0], [2.0, 2.0])
    assert run(cell.replace("2.0", "7.0")) == ([7.0, 7.0], [2.0, 2.0])
    run("import numpy as np\ndef f(v):\n    return np.exp(v)")
    assert run("slope(opsmith.custom_op(f))") == [1.648721, 0.367879]


@pytest.mark.parametrize("magic", ["%%capture", "%%time", "%%timeit -n1 -r1", "%%prun -q"])
def test_a_definition_under_a_magic_is_read_or_the_error_says_where_to_put_it(run: Run, magic: str):
    run(FIRST)
    cell = f"{magic}\n@opsmith.custom_op\ndef f(v):\n    return np.exp(v)\nshown = slope(f)\n"
    if magic == "%%capture":  # which runs the cell as a cell
        run(cell)
        assert run("shown") == [1.648721, 0.367879]
        return
    with pytest.raises(Exception, match=r"source of f cannot be read .* in a cell without a magic such as %%"):
        run(cell)


def test_traced_functions_layers_and_pylayers_of_a_first_cell_are_those_that_ran(run: Run):
    assert run(
        FIRST
        + """
@opsmith.jit.to_static
def f(v):
    if v.sum() > 0:
        return opsmith.exp(v)
    return opsmith.tanh(v)
class Net(opsmith.nn.Layer):
    def forward(self, v):
        if v.sum() > 0:
            return opsmith.exp(v)
        return opsmith.tanh(v)
class Triple(opsmith.autograd.PyLayer):
    @staticmethod
    def forward(ctx, v):
        return v * np.float64(3.0)
    @staticmethod
    def backward(ctx, dy):
        return dy * np.float64(3.0)
from app.reading import source_text
net = opsmith.jit.to_static(Net())
(slope(f), slope(net), slope(Triple.apply), source_text(Triple).count("staticmethod"))
"""
    ) == ([0.786448, 0.419974], [0.786448, 0.419974], [3.0, 3.0], 2)


def test_a_network_of_a_first_cell_is_saved_and_loaded(run: Run):
    assert run(
        FIRST
        + """
@opsmith.custom_op(elementwise=True)
def swish(v):
    return v / (1 + np.exp(-v))
class Net(opsmith.nn.Layer):
    def __init__(self):
        super().__init__()
        self.fc = opsmith.nn.Linear(2, 2)
    def forward(self, v):
        return swish(self.fc(v))
net = Net()
opsmith.jit.save(net, "net", input_spec=[opsmith.static.InputSpec([None, 2], "float32")])
v = opsmith.to_tensor(np.ones((3, 2), "float32"))
bool(np.allclose(opsmith.jit.load("net", custom_ops=["__main__:swish"])(v).numpy(), net(v).numpy()))
"""
    )


def test_a_file_that_runs_in_a_notebook_is_read_as_it_was_when_it_ran(run: Run, tmp_path: Path):
    file = tmp_path / "written_ops.py"
    text = "import numpy as np\nimport opsmith\n@opsmith.custom_op\ndef f(v):\n    return np.exp(v)\n"
    file.write_text(text)
    run(FIRST)
    assert run("%run written_ops.py\nslope(f)") == [1.648721, 0.367879]
    file.write_text(text.replace("exp", "square"))
    assert run("slope(opsmith.custom_op(f.function))") == [1.648721, 0.367879]
    assert run("%run written_ops.py\nslope(f)") == [1.0, -2.0]
    run("%run written_ops.py\nold = f")
    file.write_text("\n" + text)
    assert run("%run written_ops.py\nslope(f)") == [1.648721, 0.367879]
    file.write_text("\n\n\n" + text)
    run("%load_ext autoreload\n%autoreload 2\nimport written_ops\nkept = written_ops.f")
    file.write_text(text.replace("exp", "positive"))
    assert run("slope(written_ops.f)") == [1.0, 1.0]
    with pytest.raises(Exception, match=r"written_ops.py has changed since f was imported from it; restart Python"):
        run("slope(kept)")


def test_a_traceback_shows_the_lines_of_the_cell_and_the_message(run: Run, capsys: pytest.CaptureFixture[str]):
    run(FIRST + "%colors nocolor\n")
    cell = """
@opsmith.custom_op
def split(v):
    return halves(v)
def halves(v):
    return v.reshape(7)
def caller():
    return split(x)
caller()
"""
    with pytest.raises(Exception, match="reshape") as caught:
        run(cell)
    assert isinstance(caught.value.__cause__, ValueError)
    shown = capsys.readouterr().out
    lines = ["caller()", "return split(x)", "return halves(v)", "return v.reshape(7)"]
    assert [line.split(maxsplit=2)[2] for line in shown.splitlines() if line.startswith("--") and ">" in line] == lines
    assert shown.count("operator split (Cell In[2], line 1): its function split raised ValueError: cannot resh") == 1
    assert "site-packages" not in shown
    assert "File " not in shown


@pytest.mark.parametrize("run", ["kernel"], indirect=True)
def test_what_the_first_cell_of_a_kernel_defines_is_trained_and_checked(run: Run):
    run(FIRST + "@opsmith.custom_op(elementwise=True)\ndef swish(v):\n    return v / (1 + np.exp(-v))\n")
    settings = 'epochs=1, batch_size=2000, hidden=[4], source="sample", engine="reference", costs=False, report=False'
    assert run(f"opsmith.train(swish, baseline=None, quiet=True, {settings}).metrics['test_accuracy'] > 0")
    assert run("opsmith.check(swish, only=['gradient']).ok")
