"""The cache: keyed on everything that matters, shared by processes, bounded, and no loss where it is damaged."""

from __future__ import annotations

import copy
import ctypes
import enum
import errno
import gc
import math
import os
import re
import runpy
import shutil
import sys
import tempfile
import textwrap
import weakref
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import Mock

import forked
import numpy as np
import pytest
from both_engines import compiled
from numba import njit, stencil, types, vectorize
from numba.core.errors import LoweringError, TypingError
from numba.extending import overload

import app
from app import cache_folder, files, static
from app.checking.checks.engines import _why_numba_refuses
from app.engine.compiled import cache, native_code, numba_api, trial
from app.engine.compiled.fingerprint import fingerprint
from app.engine.compiled.program import CompiledProgram

pytestmark = pytest.mark.slow

NETWORK = """
    import sys
    import numpy as np
    from numba import njit
    import app
    from app import static
    from app.custom import custom_op
    from app.engine.compiled.engine import compile_program
    import helpers

    @njit
    def inner(x):
        return x * 2.0

    @custom_op(elementwise=True)
    def bent(x):
        return inner(x) + helpers.shift(x)

    x = static.data("x", [None, 2])
    y = app.square(bent(x))
    feed = {"x": np.ones((3, 2), "float32")}
    (value,) = static.Executor(engine="compiled").run(feed=feed, fetch_list=[y])
    native = compile_program(static.default_main_program(), [y.name])
    print(value[0, 0], int(native.code.came_from_disk), native.code.key, "scipy.linalg" in sys.modules)
"""
HELPERS = """
    from numba import njit

    SHIFT = 1.5

    @njit
    def shift(x):
        return x - SHIFT
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the network of these tests lies, and what it calls."""
    (tmp_path / "network.py").write_text(textwrap.dedent(NETWORK))
    (tmp_path / "helpers.py").write_text(textwrap.dedent(HELPERS))
    return tmp_path


def start(folder: Path) -> forked.Command:
    return forked.start(["network.py"], cwd=folder, env={**os.environ, "OPSMITH_CACHE": str(folder / "kept")})


def read_output(out: str) -> tuple[float, int, str]:
    """What the network computed, whether its code came from disk, and the key of its source."""
    value, hits, key, _ = out.split()
    return float(value), int(hits), key


def finish(process: forked.Command) -> tuple[float, int, str]:
    out, err = process.communicate(timeout=100)
    assert process.returncode == 0, err
    assert out.split()[-1] == "False"  # SciPy takes longer to load than some programs to compile
    return read_output(out)


def test_processes_share_compiled_code_until_the_source_is_edited(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    one, two = start(folder), start(folder)  # at once
    value, _, first = finish(one)
    assert finish(two)[::2] == (value, first)
    assert value == 1.5**2
    monkeypatch.setenv("OPSMITH_CACHE", str(folder / "kept"))
    monkeypatch.syspath_prepend(folder)
    runpy.run_path(str(folder / "network.py"), run_name="__main__")  # in this process, whose hashes have another seed
    monkeypatch.delitem(sys.modules, "helpers")
    assert read_output(capsys.readouterr().out) == (value, 1, first)
    assert not list((folder / "kept").glob("*.tmp"))

    helpers = folder / "helpers.py"
    helpers.write_text(helpers.read_text().replace("1.5", "2.5"))
    value, hits, second = finish(start(folder))
    assert (value, hits) == (0.5**2, 0)
    assert first != second


def flipped(content: bytes) -> bytes:
    """A file with one bit of its middle, which is machine code, changed."""
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]


DAMAGES = (lambda content: b"", lambda content: b"no pickle", lambda content: content[:-60], flipped)


def test_the_number_of_files_is_bounded_and_recently_used_files_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OPSMITH_CACHE", str(tmp_path))
    monkeypatch.setattr(cache, "LIMIT", 3)
    for number in range(6):
        cache.keep(f"program_{number}.bin", b"code")
        os.utime(tmp_path / f"program_{number}.bin", (number, number))
        assert cache.read("program_0.bin") == b"code"
    paths = list(tmp_path.glob("program_*.bin"))
    assert len(paths) == 3
    assert tmp_path / "program_0.bin" in paths


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("numba.__version__", "9"),
        ("numpy.__version__", "9"),
        ("platform.machine", lambda: "abacus"),
        ("app.engine.compiled.cache.hash_of_package", lambda folder: "another"),
    ],
)
def test_another_library_cpu_or_code_generator_is_another_file(name: str, change: Any, monkeypatch: pytest.MonkeyPatch):
    here = cache.environment()
    cache.environment.cache_clear()
    monkeypatch.setattr(name, change)
    assert cache.environment() != here
    cache.environment.cache_clear()


# --- A cache that cannot be used ---


@pytest.fixture
def cache_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cache of a test, with nothing said yet."""
    monkeypatch.setenv("OPSMITH_CACHE", str(tmp_path / "kept"))
    monkeypatch.setattr(cache_folder, "_noted", set())
    monkeypatch.setattr(native_code, "_loaded", type(native_code._loaded)())
    monkeypatch.setattr(cache, "_notes", type(cache._notes)())
    cache._temporary.cache_clear()
    return tmp_path / "kept"


def network_of(width: int) -> CompiledProgram:
    """A small network, compiled when it runs; its variables have new names each time."""
    with static.program_guard(static.Program(), static.Program()):
        x = static.data("x", [None, 3])
        return compiled(app.concat([x] * width, axis=1) * 2.0)


def run_network() -> None:
    (value,) = network_of(2).run_once({"x": np.ones((2, 3), "float32")}, static.Scope())
    np.testing.assert_array_equal(value, np.full((2, 6), 2))


def note_of(cache_path: Path) -> Path:
    cache._notes.clear()  # as in another process
    assert cache.remembered("a key", lambda: ["", [1]]) == ["", [1]]
    (path,) = cache_path.glob("note_*.txt")
    return path


def test_a_note_is_read_once_in_a_process(cache_path: Path):
    note_of(cache_path).unlink()
    assert cache.remembered("a key", Mock(side_effect=AssertionError)) == ["", [1]]


def raising(error: Exception, cause: Exception | None) -> Any:
    def refuse(*arguments: Any) -> Any:
        raise error from cause

    return refuse


@pytest.mark.parametrize("kind", ["numbers", "njit"])
@pytest.mark.parametrize(
    ("error", "cause", "is_kept"),
    [
        (TypingError("no such type"), None, True),
        (MemoryError(), None, False),
        (OSError("too many open files"), None, False),
        (RuntimeError("LLVM"), None, False),
        (LoweringError("at line 3"), MemoryError(), False),
    ],
)
def test_only_a_refusal_by_numba_itself_is_kept(
    kind: str, error: Exception, cause: Any, is_kept: bool, cache_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def plus_one(x):
        return x + 1

    def why_not() -> str:
        cache._notes.clear()  # as in another process
        if kind == "numbers":
            return trial.why_not_numbers(plus_one, [np.dtype("float32")], [], ["float32"])
        return _why_numba_refuses(plus_one, [types.float32], Mock(attributes={}))

    with monkeypatch.context() as patch:
        patch.setattr(trial, "linkable", raising(error, cause))
        patch.setattr(numba_api, "lower", raising(error, cause))
        refused = why_not()
        assert refused
    assert why_not() == (refused if is_kept else "")


@pytest.mark.parametrize("damage", [lambda c: b'["x"]', lambda c: c.replace(b"1", b"2"), *DAMAGES, lambda c: b"\xff"])
def test_a_damaged_note_is_made_anew(damage: Any, cache_path: Path, capsys: pytest.CaptureFixture[str]):
    note = note_of(cache_path)
    content = note.read_bytes()
    note.write_bytes(damage(content))
    assert note_of(cache_path).read_bytes() == content
    assert capsys.readouterr().err == ""


def test_damaged_files_of_a_program_are_compiled_anew(cache_path: Path):
    damaged = {}
    run_network()
    for path in cache_path.rglob("*"):
        if path.suffix in (".bin", ".txt"):
            damaged[path] = flipped(path.read_bytes())
            path.write_bytes(damaged[path])
    assert any(path.name.startswith("program_") for path in damaged)
    native_code._loaded.clear()
    run_network()
    for path, content in damaged.items():
        assert not path.name.startswith("program_") or path.read_bytes() != content


def test_code_is_not_kept_where_a_folder_has_the_name_of_a_file(cache_path: Path, capsys: pytest.CaptureFixture[str]):
    note = note_of(cache_path)
    note.unlink()
    note.mkdir()
    note_of(cache_path)
    run_network()
    (program,) = cache_path.glob("program_*.bin")
    program.unlink()
    program.mkdir()
    native_code._loaded.clear()
    run_network()
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"note: compiled code cannot be kept, so each run compiles anew: {note}: Is a directory")


@pytest.mark.parametrize(
    ("problem", "reason"),
    [
        ("a file in its place", r"OPSMITH_CACHE={cache_path} is not a writable folder.*"),
        ("a full disk", r"{cache_path}/note_\w+\.txt: No space left on device"),
        ("removed meanwhile", r"{cache_path}/note_\w+\.txt: No such file or directory"),
    ],
)
def test_a_folder_that_cannot_be_written_is_noted_once(
    problem: str, reason: str, cache_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    if problem == "a file in its place":
        cache_path.write_text("a file")
    else:
        monkeypatch.setattr(cache_folder, "_usable", lambda path: True)  # it was a moment ago
    if problem == "a full disk":
        cache_path.mkdir()
        monkeypatch.setattr(tempfile, "mkstemp", Mock(side_effect=OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))))
    assert cache.remembered("key", lambda: 5) == 5
    run_network()
    (line,) = capsys.readouterr().err.splitlines()
    assert re.fullmatch(rf"note: compiled code cannot be kept, .*: {reason.format(cache_path=cache_path)}", line)


def test_the_folder_of_another_user_is_not_used(cache_path: Path, monkeypatch: pytest.MonkeyPatch):
    assert cache_folder.folder() == cache_path
    assert cache_path.stat().st_mode & 0o777 == 0o700
    cache_path.chmod(0o777)
    assert cache_folder.folder() == cache_path
    assert cache_path.stat().st_mode & 0o777 == 0o755
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    assert cache_folder.folder() is None


def of_another_user(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the file: the folder stays the user's own."""
    fstat = os.fstat

    def about(handle: int) -> os.stat_result:
        status = list(fstat(handle))
        status[4] += 1
        return os.stat_result(status)

    monkeypatch.setattr(os, "fstat", about)


def linked(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to(path.with_name("elsewhere"))


@pytest.mark.parametrize(
    "place",
    [
        of_another_user,
        linked,
        lambda path, _: path.chmod(0o620),
        lambda path, _: path.chmod(0o602),
        lambda path, patch: (patch.setattr(cache_folder, "_usable", lambda _: True), path.parent.chmod(0o720)),
    ],
    ids=["another user's", "a link", "the group may write", "all may write", "the group may write to the folder"],
)
def test_a_file_that_another_user_may_have_written_is_never_read(
    place: Any, cache_path: Path, monkeypatch: pytest.MonkeyPatch
):
    cache.keep("program_1.bin", b"code")
    assert cache.read("program_1.bin") == b"code"
    with monkeypatch.context() as patch:
        place(cache_path / "program_1.bin", patch)
        assert cache.read("program_1.bin") is None
    cache.keep("program_1.bin", b"other")  # takes its place
    cache_path.chmod(0o700)
    assert cache.read("program_1.bin") == b"other"


@pytest.mark.parametrize("names", [["XDG_CACHE_HOME"], ["XDG_CACHE_HOME", "HOME"]])
def test_a_relative_path_in_the_environment_puts_no_code_into_the_working_folder(
    names: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPSMITH_CACHE", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in names:
        monkeypatch.setenv(name, "relative")
    path = files.user_cache()
    assert path == (None if "HOME" in names else tmp_path / "home/.cache/opsmith")
    assert not list(tmp_path.iterdir())


# --- Fingerprints ---


def times(factor: Any) -> Any:
    def function(x: Any, y: int = 1) -> Any:
        return x * factor

    return function


def defaults(number: int) -> Any:
    def function(x: Any, *, by: int = number) -> Any:
        return x

    return function


def half(x: Any) -> Any:
    return x / 2


def of_two(x: Any) -> Any:
    return x[0] + x[1]


def of_three(x: Any) -> Any:
    return x[0] + x[1] + x[2]


def with_two(x: Any, y: Any) -> Any:
    return y


def with_others(x: Any, *y: Any) -> Any:
    return y


def overloaded(factor: int) -> Any:
    def function(x: Any) -> Any:
        return x

    overload(function)(lambda x: times(factor))
    return function


def again(x: Any) -> Any:
    """A function that calls itself."""
    return again(x - 1) if x else 0


C_LIBRARY = ctypes.CDLL(None)
LONG = np.arange(5000.0)
CHANGED = np.where(LONG == 2500, -1, LONG)
COLOUR, PAINT = enum.Enum("Colour", {"RED": 1}), enum.Enum("Colour", {"RED": 2})
AROUND: list[Any] = [1]
AROUND += [AROUND, {"a": AROUND}]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (times(times(1)), times(times(2))),
        (times({"a": times(1)}), times({"a": times(2)})),
        (times((1, 23)), times((12, 3))),
        (defaults(1), defaults(2)),
        (njit(times(1)), njit(times(1), fastmath=True)),
        (njit(fastmath={"nnan"})(times(1)), njit(fastmath={"ninf"})(times(1))),
        (njit(locals={"z": types.float32})(times(1)), njit(locals={"z": types.float64})(times(1))),
        (with_two, with_others),
        (C_LIBRARY.sin, C_LIBRARY.cos),
        (overloaded(1), overloaded(2)),
        (LONG, CHANGED),
        (np.zeros((2, 3)), np.zeros((3, 2))),
        (np.zeros((2, 3)), np.zeros((2, 3), order="F")),
        (np.zeros(2), np.zeros(2, "int64")),
        (0.0, -0.0),
        (1, 1.0),
        (1, True),
        (np.float32(1), np.float64(1)),
        (np.dtype("float32"), np.dtype("float64")),
        ((1, (2, 3)), ((1, 2), 3)),
        ({1, 2}, {1, 3}),
        ({(1, 2), (3, 4)}, {(1, 2), (3, 5)}),
        ({frozenset("ab"), frozenset("cd")}, {frozenset("ab"), frozenset("ce")}),
        (math.sin, math.cos),
        (np.exp, np.sin),
        (partial(max, 1), partial(max, 2)),
        (partial(max, 1), partial(min, 1)),
        (times(1).__get__(1), times(2).__get__(1)),
        (types.float32, types.float64),
        (vectorize(times(1)), vectorize(times(2))),
        (stencil(of_two), stencil(of_three)),
        (stencil(of_two), stencil(of_two, cval=1.0)),
        ("ab", b"ab"),
        (["a", "bc"], ["ab", "c"]),
        (COLOUR.RED, PAINT.RED),
        (COLOUR, PAINT),
        (AROUND, again),
    ],
)
def test_fingerprints_depend_on_the_content_of_what_numba_freezes(one: Any, other: Any):
    assert fingerprint(times(one)) != fingerprint(times(other))
    same = copy.deepcopy(one) if isinstance(one, (np.ndarray, tuple, set, list)) else one
    assert fingerprint(times(one)) == fingerprint(times(same))


@pytest.mark.parametrize("compiled", [njit, lambda signature: vectorize([signature])], ids=["njit", "vectorize"])
def test_fingerprints_depend_on_the_types_that_a_function_was_compiled_for(compiled: Any):
    whole, real, same = (compiled(f"{dtype}(float64)")(half) for dtype in ("int64", "float64", "int64"))
    assert fingerprint(times(whole)) == fingerprint(times(same)) != fingerprint(times(real))


def test_fingerprints_depend_on_the_type_of_what_cannot_be_frozen():
    for one, other in (
        (object(), object()),
        (np.random.default_rng(0), np.random.default_rng(1)),
        (os.environ, os.environ.__class__.__new__(os.environ.__class__)),
    ):
        assert fingerprint(times(one)) == fingerprint(times(other))


@pytest.mark.parametrize("name", ["code", "numbers", "my_ops"])
def test_functions_of_a_file_count_by_their_content_whatever_its_name(name: str):
    def hashed(factor: int) -> str:
        namespace: dict[str, Any] = {"__name__": name}
        exec(compile(f"def function(x): return x * {factor}", f"/home/somebody/{name}.py", "exec"), namespace)
        return fingerprint(namespace["function"])

    assert hashed(2) == hashed(2) != hashed(3)


@pytest.mark.parametrize("call", ["deep_pkg.sub.helper(x)", "sub.helper(x)", "deep_pkg.sub.Kind.helper(x)"])
def test_fingerprints_depend_on_helpers_in_modules_of_any_depth(call: str, monkeypatch: pytest.MonkeyPatch):
    def hashed(factor: int) -> str:
        package, sub = ModuleType("deep_pkg"), ModuleType("deep_pkg.sub")
        package.sub = sub
        exec(f"def helper(x): return x * {factor}\nclass Kind: helper = staticmethod(helper)", vars(sub))
        namespace: dict[str, Any] = {"deep_pkg": package, "sub": sub}
        exec(f"def function(x): return {call}", namespace)
        return fingerprint(namespace["function"])

    assert hashed(2) == hashed(2) != hashed(3)


def test_a_network_that_is_built_again_is_not_compiled_again(cache_path: Path):
    first, again, wider = network_of(2), network_of(2), network_of(3)
    assert first.source.text != again.source.text, "names count up"
    assert again.code is first.code
    assert wider.code is not first.code


def test_code_of_another_environment_is_not_used(cache_path: Path, monkeypatch: pytest.MonkeyPatch):
    before = network_of(2).code
    monkeypatch.setattr(cache, "environment", lambda: "another")
    assert network_of(2).code.key != before.key


def test_an_edit_of_any_file_of_the_engine_changes_the_hash(tmp_path: Path):
    engine = Path(cache.__file__).parent
    package = shutil.copytree(engine, tmp_path / "compiled", ignore=shutil.ignore_patterns("__pycache__"))
    before = cache.hash_of_package(engine)
    assert cache.hash_of_package(package) == before
    for file in package.rglob("*.py"):
        content = file.read_bytes()
        file.write_bytes(content + b"\n")
        assert cache.hash_of_package(package) != before, file
        file.write_bytes(content)
    (package / "new.py").touch()
    assert cache.hash_of_package(package) != before


def test_code_that_an_operator_may_call_stays_in_memory_when_other_code_takes_its_place(
    cache_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(native_code, "LOADED", 1)
    operator = app.custom_op(lambda x: x * 3.0, name="tripled", elementwise=True)
    x = app.to_tensor([1.0, 2.0])
    operator(x)
    (code,) = native_code._loaded.values()
    engine = weakref.ref(code["over_arrays"]._engine)
    del code
    run_network()  # takes the place
    gc.collect()
    assert engine() is not None
    assert operator(x).tolist() == [3.0, 6.0]


def table(number: float) -> np.ndarray:
    """A large array that differs from others in one element, which printing omits or rounds."""
    values = np.zeros(2001)
    values[1000] = number
    return values


@pytest.mark.parametrize(
    "values",
    [(1.5, 2.5, True), (table(3.0), table(3.0 + 1e-12)), ((1, 2), (1, 3))],
    ids=["numbers", "arrays", "tuples"],
)
def test_settings_of_another_type_or_content_are_compiled_apart(cache_path: Path, values: tuple[Any, ...]):
    def function(x, k=1.0):
        return x * k

    def of_a_table(x, k=(1.0,)):
        return x * k[len(k) // 2]

    x = np.array([1.0, -3.0])
    is_number = not isinstance(values[0], (np.ndarray, tuple))
    for value in values:
        operator = app.custom_op(function if is_number else of_a_table, elementwise=True)
        with static.program_guard(static.Program()):
            y = operator(static.data("x", [None], "float64"), k=value)
            (in_a_program,) = static.Executor(engine="compiled").run(feed={"x": x}, fetch_list=[y])
        eager = operator(app.to_tensor(x), k=value).numpy()
        expected = x * (value if is_number else value[len(value) // 2])
        assert eager.tolist() == in_a_program.tolist() == expected.tolist()
        native_code._loaded.clear()  # as in another process


def scaled(x, unit="kilo"):
    return x * len(unit)


def with_a_text(unit: str) -> Any:
    """A Program in which a setting has the name of the variable."""
    return app.custom_op(scaled, elementwise=True)(static.data(unit, [None, 2]), unit=unit)


def of_type(dtype: str) -> Any:
    """A Program whose variable has the name of its type."""
    return static.data(dtype, [None, 2], dtype) * 3.0


def of_two(left: str) -> Any:
    """A Program whose variables can swap places."""
    x, y = static.data("x", [None, 2]), static.data("y", [None, 2])
    one, other = (x, y) if left == "x" else (y, x)
    return one * 3.0 - other * one


@pytest.mark.parametrize(
    ("build", "cases"),
    [
        (with_a_text, {"kilo": 4, "dozen": 5}),
        (of_type, {"float32": 3, "float64": 3}),
        (of_two, {"x": 1, "y": 4}),
    ],
)
def test_programs_that_differ_in_a_name_a_type_or_an_order_share_no_code(
    build: Any, cases: dict[str, Any], cache_path: Path
):
    for name, expected in cases.items():
        with static.program_guard(static.Program()):
            y = build(name)
            data = [variable for variable in y.block.vars.values() if variable.is_data]
            feed = {v.name: np.full((3, 2), 2 if v.name == "y" else 1, v.dtype) for v in data}
            (value,) = static.Executor(engine="compiled").run(feed=feed, fetch_list=[y])
        np.testing.assert_allclose(value, np.full((3, 2), expected), rtol=1e-5)
        assert value.dtype == y.dtype
