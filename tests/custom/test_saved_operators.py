"""Files refer to custom operators, check them by the hash of their source, and run only code that was named."""

from __future__ import annotations

import hashlib
import importlib
import io
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from forked import run

import app
from app import static
from app.custom.references import ChangedOperatorError, UnnamedOperatorError
from app.custom.shelf.tap import tap
from app.engine.compiled.fingerprint import full_fingerprint
from app.errors import AppError, OperatorError
from app.static.model_file import SavedModel, read_model, write_model

SOURCE = """
from pathlib import Path

import numpy as np
import app

Path(__file__).with_name("was_run").touch()
FACTOR = 2.0


def helper(x):
    return 1 / (1 + np.exp(-x))


@app.custom_op(elementwise=True)
def swish(x, beta=1.0):
    return x * helper(beta * x)


@swish.backward
def swish_grad(x, dy, beta):
    s = helper(beta * x)
    return dy * (s + beta * x * s * (1 - s))


def double(x):
    return x * np.float32(FACTOR)


def double_grad(x, y, dy):
    return dy * np.float32(FACTOR)


class Cube(app.autograd.PyLayer):
    @staticmethod
    def forward(ctx, x, factors, by=1.0):
        ctx.save_for_backward(x)
        return x * x * x * factors[0] * by

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensor()
        return dy * 3 * x * x


def plus_one(x):
    return x + 1.0


def same(x, y, dy):
    return dy
"""
NEEDED = [f"my_saved_ops.py:{name}" for name in ("swish", "double", "double_grad", "plus_one", "same")]
FEED = np.linspace(-2, 2, 6, dtype="float32").reshape(2, 3)


def forget() -> None:
    for name in [name for name in sys.modules if "my_saved_ops" in name]:
        del sys.modules[name]
    importlib.invalidate_caches()


@pytest.fixture
def ops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """A module of operators that leaves a mark when it is run."""
    (tmp_path / "my_saved_ops.py").write_text(SOURCE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    forget()
    yield importlib.import_module("my_saved_ops")
    forget()


@pytest.fixture
def saved(ops: ModuleType) -> np.ndarray:
    """What a network with an operator of each hook computes; it is saved as `net`, and all of it forgotten."""
    x = static.data("x", [None, 3])
    y = static.py_func(ops.double, ops.swish(x, beta=0.5), static.InputSpec([None, 3]), ops.double_grad)
    y = ops.Cube.apply(y, [2.0], by=0.5)
    y = static.py_func(ops.plus_one, y, static.InputSpec([None, 3]), ops.same)
    (result,) = static.Executor().run(feed={"x": FEED}, fetch_list=[y])
    static.save_inference_model("net", [x], [y])
    forget()
    Path("was_run").unlink()
    return result


def loaded(**named: Any) -> np.ndarray:
    program, feed, fetch = static.load_inference_model("net", **named)
    return static.Executor().run(program, feed={feed[0]: FEED}, fetch_list=fetch)[0]


def edit(old: str, new: str) -> None:
    path = Path("my_saved_ops.py")
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))


# Code runs only where it was named


def test_unnamed_code_is_an_error_and_does_not_run(saved: np.ndarray):
    with pytest.raises(UnnamedOperatorError) as caught:
        loaded()
    assert all(reference in str(caught.value) for reference in NEEDED)
    assert f"load_inference_model('net', custom_ops={NEEDED})" in str(caught.value)
    assert caught.value.needed == tuple(NEEDED)
    some = ["my_saved_ops.py:swish", "other.py:double"]
    with pytest.raises(UnnamedOperatorError, match=r"needs my_saved_ops.py:double, my_saved_ops.py:double_grad, "):
        loaded(custom_ops=some)
    Path("net.json").write_text(Path("net.json").read_text().replace("1", "2", 1))
    with pytest.raises(AppError):  # the file is damaged
        loaded(custom_ops=NEEDED)
    assert not Path("was_run").exists()
    assert "my_saved_ops" not in sys.modules


@pytest.mark.parametrize("engine", ["reference", "compiled"])
def test_operators_that_are_named_one_by_one_run(saved: np.ndarray, engine: str):
    program, feed, fetch = static.load_inference_model("net", custom_ops=NEEDED)
    assert Path("was_run").exists()
    (result,) = static.Executor(engine=engine).run(program, feed={feed[0]: FEED}, fetch_list=fetch)
    np.testing.assert_allclose(result, saved, rtol=1e-6)


@pytest.mark.parametrize("named", ["my_saved_ops.py", "deep/../my_saved_ops.py", "{path}"])
def test_a_file_is_named_as_a_whole(saved: np.ndarray, named: str, tmp_path: Path):
    (tmp_path / "deep").mkdir()
    named = named.format(path=Path("my_saved_ops.py").resolve())
    np.testing.assert_array_equal(loaded(custom_ops=named), saved)


def test_a_file_of_the_same_name_elsewhere_is_another_one(saved: np.ndarray, tmp_path: Path):
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "my_saved_ops.py").write_text(SOURCE)
    for named in ("deep/my_saved_ops.py", "my_saved_ops", [f"deep/{reference}" for reference in NEEDED]):
        with pytest.raises(UnnamedOperatorError, match=r"needs my_saved_ops.py:swish"):
            loaded(custom_ops=named)
    assert not Path("was_run").exists()
    assert not Path("deep/was_run").exists()


def test_the_operators_of_a_file_that_moved_are_passed(
    saved: np.ndarray, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "deep").mkdir()
    (tmp_path / "my_saved_ops.py").rename(tmp_path / "deep" / "my_saved_ops.py")
    monkeypatch.syspath_prepend(tmp_path / "deep")
    forget()
    module = importlib.import_module("my_saved_ops")
    operators = [getattr(module, reference.partition(":")[2]) for reference in NEEDED]
    for named in (module, operators):
        np.testing.assert_array_equal(loaded(custom_ops=named), saved)
    with pytest.raises(UnnamedOperatorError, match=r"needs my_saved_ops.py:swish: "):
        loaded(custom_ops=operators[1:])


def test_an_imported_module_is_not_run_again_whether_it_is_named_or_given(saved: np.ndarray):
    module = importlib.import_module("my_saved_ops")
    Path("was_run").unlink()
    operators = [getattr(module, reference.partition(":")[2]) for reference in NEEDED]
    for named in (NEEDED, module, operators):
        np.testing.assert_array_equal(loaded(custom_ops=named), saved)
    assert not Path("was_run").exists()


def test_names_that_lead_to_no_operator_of_the_file_are_errors(saved: np.ndarray):
    edit("def plus_one", "def plus_two")
    with pytest.raises(OperatorError, match=r"my_saved_ops.py: it defines no 'plus_one' itself"):
        loaded(custom_ops="my_saved_ops.py")
    with pytest.raises(OperatorError, match=r"custom_ops: 3 names no operator; give 'file.py:name'"):
        loaded(custom_ops=[3])
    text = Path("net.json").read_text().rpartition(',\n "sha256"')[0]
    text = text.replace('my_saved_ops.py:double"', 'my_saved_ops.py:Path"')  # which the file has imported
    checksum = hashlib.sha256(text.encode()).hexdigest()
    Path("net.json").write_text(f'{text},\n "sha256": "{checksum}"\n}}\n')
    with pytest.raises(OperatorError, match="it defines no 'Path' itself"):
        loaded(custom_ops="my_saved_ops.py")


# A class is saved as the operators that its functions appended


def test_a_pylayer_is_read_without_its_class_which_alone_knows_the_gradient(ops: ModuleType):
    x = static.data("x", [None, 3])
    x.stop_gradient = False
    y = ops.Cube.apply(x, [2.0], by=0.5)
    slope = static.gradients([y], [x])
    expected = static.Executor().run(feed={"x": FEED}, fetch_list=[y, *slope])
    write_model("training", SavedModel(x.program, ["x"], [y.name, slope[0].name], {}))
    forget()
    Path("was_run").unlink()
    program = read_model("training").program
    for engine in ("reference", "compiled"):
        results = static.Executor(engine=engine).run(program, {"x": FEED}, [y.name, slope[0].name])
        np.testing.assert_allclose(results, expected, rtol=1e-6)
    y = program.global_block().var(y.name)
    with pytest.raises(OperatorError, match=r"gradient of operator Cube \(my_saved_ops.py:\d+\) is the backward of"):
        static.gradients([y], [program.global_block().var("x")])
    assert not Path("was_run").exists()


# The source must be unchanged


@pytest.mark.parametrize(
    ("old", "new", "changed"),
    [
        ("return x * helper(beta * x)", "return x * helper(beta + x)", "swish"),
        ("return 1 / (1 + np.exp(-x))", "return 2 / (1 + np.exp(-x))", "swish"),
        ("FACTOR = 2.0", "FACTOR = 3.0", "double"),
        ("s + beta * x", "s - beta * x", "swish"),
        ("elementwise=True", "elementwise=True, row_by_row=True", "swish"),
        ("    return x + 1.0", "    return x + 2.0", "plus_one"),
    ],
)
def test_another_source_is_an_error(saved: np.ndarray, old: str, new: str, changed: str):
    edit(old, new)
    with pytest.raises(ChangedOperatorError) as caught:
        loaded(custom_ops="my_saved_ops.py")
    assert f"net.json was written with another my_saved_ops.py:{changed}" in str(caught.value)
    assert f"load_inference_model('net', accept_changed=['my_saved_ops.py:{changed}'])" in str(caught.value)


def test_another_source_can_be_accepted(saved: np.ndarray):
    edit("x + 1.0", "x + 2.0")
    result = loaded(custom_ops="my_saved_ops.py", accept_changed=["my_saved_ops.py:plus_one"])
    np.testing.assert_allclose(result, saved + 1, rtol=1e-6)


def test_comments_layout_annotations_and_docstrings_are_not_part_of_the_source(saved: np.ndarray):
    edit("def helper(x):\n", 'def helper(x: float) -> float:\n    """The logistic function."""\n    # as in a book\n\n')
    edit("return x * np.float32(FACTOR)", "return (x\n            * np.float32(FACTOR))")
    np.testing.assert_array_equal(loaded(custom_ops="my_saved_ops.py"), saved)


def test_the_stream_that_an_operator_prints_to_is_not_part_of_the_source(monkeypatch: pytest.MonkeyPatch):
    fingerprint = full_fingerprint(tap)  # which prints to standard error
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert full_fingerprint(tap) == fingerprint
    monkeypatch.setattr(sys, "stderr", sys.stdout)
    assert full_fingerprint(tap) == fingerprint


SCRIPT = """
import sys
import numpy as np
import app
from app import static

@app.custom_op(elementwise=True)
def triple(x):
    return 3 * x

x = static.data("x", [2])
if sys.argv[1:] == ["save"]:
    static.save_inference_model("script", [x], [triple(x)])
elif __name__ == "__main__":
    for named in (triple, "own_script.py:triple"):
        program, feed, fetch = static.load_inference_model("script", custom_ops=named)
        print(static.Executor().run(program, feed={"x": np.ones(2, "float32")}, fetch_list=fetch)[0].tolist())
"""


@pytest.mark.slow
def test_operators_of_a_script_are_referred_to_by_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "own_script.py").write_text(SCRIPT)
    assert run(["own_script.py", "save"], cwd=tmp_path).returncode == 0
    done = run(["own_script.py"], cwd=tmp_path)
    assert done.stdout == "[3.0, 3.0]\n" * 2, done.stderr
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UnnamedOperatorError, match=r"needs own_script.py:triple: code of yours"):
        static.load_inference_model("script")


# What a file cannot refer to


def saving(function: Any, backward: Any = None) -> None:
    with static.program_guard(static.Program()):
        x = static.data("x", [None, 3])
        y = static.py_func(function, x, static.InputSpec([None, 3]), backward)
        static.save_inference_model("own", [x], [y])


def test_what_a_file_cannot_refer_to_is_an_error(ops: ModuleType):
    def inner(x: Any) -> Any:
        return x

    with pytest.raises(OperatorError, match=r"is made of a lambda, and a file can only refer to .* define it with"):
        saving(lambda x: x)
    with pytest.raises(OperatorError, match=r"py_func.inner .* is made of .*inner, which is made inside a function"):
        saving(inner)
    with pytest.raises(OperatorError, match=r"is made of a lambda"):
        saving(ops.double, lambda *a: a[-1])
    assert not Path("own.json").exists()


def test_a_file_refers_to_the_function_as_it_was_imported(ops: ModuleType):
    edit("return x * np.float32(FACTOR)", "return x * np.float32(FACTOR) + 1")
    saving(ops.double)
    assert static.load_inference_model("own", custom_ops=ops)
    forget()
    with pytest.raises(ChangedOperatorError, match=r"own.json was written with another my_saved_ops.py:double"):
        static.load_inference_model("own", custom_ops="my_saved_ops.py")


def test_a_file_of_another_version_of_python_says_so(saved: np.ndarray):
    text = Path("net.json").read_text().rpartition(',\n "sha256"')[0]
    text = re.sub(r'"fingerprint": "\w+", "python": "[0-9.]+"', '"fingerprint": "0", "python": "3.9"', text)
    checksum = hashlib.sha256(text.encode()).hexdigest()
    Path("net.json").write_text(f'{text},\n "sha256": "{checksum}"\n}}\n')
    with pytest.raises(ChangedOperatorError, match=r"net.json was written with Python 3.9, so whether"):
        loaded(custom_ops=NEEDED)
    np.testing.assert_array_equal(loaded(custom_ops=NEEDED, accept_changed=NEEDED), saved)


# Programs with gradients


def test_a_training_program_is_read_back_unchanged(ops: ModuleType):
    x = static.data("x", [None, 3])
    y = static.py_func(ops.double, ops.swish(static.nn.fc(x, 3)), static.InputSpec([None, 3]), ops.double_grad)
    loss = app.mean(static.nn.fc(y, 2, activation="custom.relu") + 1.0)
    app.optimizer.SGD(0.1).minimize(loss)
    static.Executor().run(static.default_startup_program())
    main = static.default_main_program()
    write_model("training", SavedModel(main, ["x"], [loss.name], main.state_dict()))
    back = read_model("training", ops)
    assert back.program.equals(main)
    with static.scope_guard(static.Scope()):
        static.global_scope().values.update(back.values)
        (result,) = static.Executor().run(back.program, feed={"x": FEED}, fetch_list=back.outputs)
    (expected,) = static.Executor().run(main, feed={"x": FEED}, fetch_list=[loss])
    np.testing.assert_array_equal(result, expected)
