"""The fingerprint by which a saved file recognises an operator: what is part of it, in every process."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import app
from app.engine.compiled.fingerprint import behaviour_fingerprint, full_fingerprint

HEAD = """
import os
import enum, functools
from dataclasses import dataclass, field
from types import SimpleNamespace
import numpy as np
import app
from numba import njit
"""
Write = Callable[..., Any]


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Writes files, and imports the first of them anew."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def write(main: str, others: dict[str, str] | None = None) -> Any:
        for file, text in {**(others or {}), "hashed_ops.py": HEAD + main}.items():
            path = tmp_path / file
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        for name in [n for n in sys.modules if n.partition(".")[0] in ("hashed_ops", "hashed_consts", "hashed_pkg")]:
            monkeypatch.delitem(sys.modules, name)
        importlib.invalidate_caches()
        return importlib.import_module("hashed_ops")

    return write


# What depends on the process, or on how a file is run or laid out

STATES = {
    "a generator of random numbers": ("rng = np.random.default_rng(0)", "    return x * rng.random()", "rng.random()"),
    "the environment": ("", "    return x if os.environ.get('A') else -x", "os.environ.update(A='1')"),
    "the folder": ("HERE = __file__", "    return x if __file__ else -x", "globals().update(__file__='/elsewhere')"),
    "what is kept": ("@functools.lru_cache\ndef h(x): return x", "    return h(x)", "f(1.0)"),
}


@pytest.mark.parametrize("what", STATES)
def test_what_depends_on_the_process_is_not_part_of_the_fingerprint(what: str, module: Write):
    before, body, change = STATES[what]
    ops = module(f"{before}\ndef f(x):\n{body}\n")
    expected = full_fingerprint(ops.f)
    exec(change, vars(ops))
    assert full_fingerprint(ops.f) == expected


def test_comments_layout_annotations_and_docstrings_are_not_part_of_the_fingerprint(module: Write):
    plain = full_fingerprint(module("def f(x):\n    return x * 2\n").f)
    written = 'def f(x: float) -> float:\n    """Twice."""\n    # as in a book\n    return (\n        x * 2)\n'
    assert full_fingerprint(module(written).f) == plain
    assert full_fingerprint(module(written.replace("Twice", "Two times")).f) == plain


def test_a_list_that_a_function_changes_counts_as_it_was_when_it_was_first_seen(module: Write):
    ops = module(
        "SEEN = []\nSEEN.append(SEEN)\nclass Counter: pass\ncount = Counter()\n"
        "def f(x):\n    SEEN.append(x); count.n = x\n"
    )
    before = full_fingerprint(ops.f)
    ops.SEEN.append(1)
    assert full_fingerprint(ops.f) == before
    ops.SEEN = [1]
    other = full_fingerprint(ops.f)
    ops.count.n = 1
    assert len({before, other, full_fingerprint(ops.f)}) == 3


@pytest.mark.parametrize(
    ("text", "complete"),
    [
        ("T = [np.zeros(2), {'a': 1}]\ndef f(x): return x * T[0][0]", True),
        ("class A:\n    def __init__(self): self.k = 2\na = A()\ndef f(x): return x * a.k", True),
        ("rng = np.random.default_rng(0)\ndef f(x): return x * rng.random()", False),
    ],
)
def test_what_an_object_of_a_library_holds_is_not_known(text: str, complete: bool, module: Write):
    assert (behaviour_fingerprint(module(text + "\n").f) is not None) == complete


# What is another operator

EDITS: dict[str, tuple[str, ...]] = {
    "a number": ("FACTOR = {}", "x * FACTOR"),
    "the sign of zero": ("ZERO = {}", "x + ZERO", "0.0", "-0.0"),
    "an array": ("T = np.array([1.0, {}])", "x * T[0]"),
    "an array that is filled": ("T = np.zeros(2)\nT[0] = {}", "x * T[0]"),
    "a list that grows in a loop": ("T = []\nfor i in range({}):\n    T.append(i)", "x * T[0]"),
    "a dictionary": ("T = {{'a': {}}}", "x * T['a']"),
    "what makes an array": ("def table(): return [1, {}]\nT = np.array(table())", "x * T[0]"),
    "a static method": ("class K:\n    @staticmethod\n    def h(x): return x * {}", "K.h(x)"),
    "a class's table": ("class K:\n    T = [1, {}]", "x * K.T[0]"),
    "a partial's number": ("def g(k, x): return k * x\nh = functools.partial(g, {})", "h(x)"),
    "a partial's function": ("def g(k, x): return k {} x\nh = functools.partial(g, 2)", "h(x)", "*", "-"),
    "a function of Numba's": ("@njit\ndef h(x): return x * {}", "h(x)"),
    "a callable object": (
        "class A:\n    def __init__(self, k): self.k = k\n    def __call__(self, x): return self.k * x\nh = A({})",
        "h(x)",
    ),
    "a method of an object": ("class A:\n    def h(self, x): return x * {}\na = A()", "a.h(x)"),
    "a closure's number": ("def make(k):\n    def h(x): return x * k\n    return h\nh = make({})", "h(x)"),
    "a closure's array": (
        "def make(t):\n    def h(x): return x * t[0]\n    return h\nh = make(np.array([{}]))",
        "h(x)",
    ),
    "an operator's array": (
        "def make(t):\n    @app.custom_op(elementwise=True)\n    def h(x): return x * t[0]\n    return h\n"
        "h = make(np.array([{}]))",
        "h(x)",
    ),
    "a default": ("def h(x, k={}): return x * k", "h(x)"),
    "a member of an enumeration": ("class E(enum.Enum):\n    A = {}", "x * E.A.value"),
    "a private attribute of a class": ("class K:\n    _k = {}", "x * K._k"),
    "a mangled attribute of a class": (
        "class K:\n    __k = {}\n    @classmethod\n    def k(c): return c.__k",
        "x * K.k()",
    ),
    "a private property": ("class K:\n    @property\n    def _k(self): return {}\nk = K()", "x * k._k"),
    "a property of a metaclass": (
        "class M(type):\n    @property\n    def k(cls): return {}\nclass K(metaclass=M): pass",
        "x * K.k",
    ),
    "a field of a dataclass": ("@dataclass\nclass K:\n    n: int = {}\nk = K()", "x * k.n"),
    "what makes a field": (
        "@dataclass\nclass K:\n    t: list = field(default_factory=lambda: [{}])\nk = K()",
        "x * k.t[0]",
    ),
    "the order of fields": (
        "@dataclass\nclass K:\n    {}\nk = K(1, 2)",
        "x * k.a",
        "a: int\n    b: int",
        "b: int\n    a: int",
    ),
    "an array that a call fills": ("T = np.zeros(2)\nnp.copyto(T, {})", "x * T[0]"),
    "an array that is an output": ("T = np.zeros(2)\nnp.add(1, {}, out=T[:1])", "x * T[0]"),
    "an attribute that a call sets": ("k = SimpleNamespace()\nsetattr(k, 'n', {})", "x * k.n"),
    "what a cache is of": ("@functools.lru_cache\ndef h(n): return n * {}", "h(x)"),
}
"""What a function uses, with a place for what is edited, and the expression that uses it; from 2 to 3 by default."""


@pytest.mark.parametrize("what", EDITS)
def test_an_edit_of_what_a_function_uses_is_another_fingerprint(what: str, module: Write):
    text, expression, *values = EDITS[what]
    before, after = values or ("2", "3")
    hashes = [
        full_fingerprint(module(f"{text.format(value)}\ndef f(x):\n    return {expression}\n").f)
        for value in (before, after, before)
    ]
    assert hashes[0] == hashes[2] != hashes[1]


IMPORTS = {
    "import hashed_pkg.sub": "hashed_pkg.sub.helper(x)",
    "import hashed_pkg.sub as s": "s.helper(x)",
    "from hashed_pkg import sub": "sub.helper(x)",
    "from hashed_pkg.sub import helper": "helper(x)",
    "from hashed_pkg import deep": "deep.sub.helper(x)",
    "import hashed_pkg.sub  # a table": "x * hashed_pkg.sub.TABLE[0]",
    "from hashed_pkg.sub import TABLE": "x * TABLE[0]",
    "from hashed_pkg.sub import *": "x * TABLE[0]",
}


@pytest.mark.parametrize("how", IMPORTS)
def test_helpers_of_other_modules_are_part_of_the_fingerprint_at_any_depth(how: str, module: Write):
    def written(helper: str, table: str) -> str:
        ops = module(
            f"{how}\ndef f(x):\n    return {IMPORTS[how]}\n",
            {
                "hashed_pkg/__init__.py": "",
                "hashed_pkg/sub.py": f"TABLE = [{table}]\ndef helper(x):\n    return {helper}\n",
                "hashed_pkg/deep.py": "from . import sub\n",
            },
        )
        return full_fingerprint(ops.f)

    first = written("x * 2", "1, 2")
    assert first == written("x * 2", "1, 2")
    assert first != (written("x * 2", "1, 3") if "TABLE" in IMPORTS[how] else written("x * 3", "1, 2"))


def test_an_imported_table_that_is_not_used_is_not_part_of_the_fingerprint(module: Write):
    def written(other: int) -> str:
        ops = module(
            "from hashed_pkg.sub import OTHER, TABLE\ndef f(x):\n    return x * TABLE[0]\n",
            {"hashed_pkg/__init__.py": "", "hashed_pkg/sub.py": f"TABLE = [1]\nOTHER = [{other}]\n"},
        )
        return full_fingerprint(ops.f)

    assert written(1) == written(2)


def test_an_operator_made_with_another_array_has_another_fingerprint(module: Write):
    code = "def make(t):\n    @app.custom_op(elementwise=True)\n    def f(x):\n        return x * t[0]\n    return f\n"
    first, second = (full_fingerprint(module(f"{code}f = make(np.array([{number}.0]))\n").f) for number in (1, 2))
    assert first != second


# From process to process

VALUES = """
import enum, functools, os
import numpy as np
from app.engine.compiled.fingerprint import fingerprint, full_fingerprint

class Colour(enum.Enum):
    RED = "r"

KEYS, NAMES = {"a", "b", "c", 1, 2.5}, frozenset({("x", frozenset({"y", "z"})), ("w", frozenset())})
FLOATS = (float("nan"), -0.0, 1e400, np.float32(0.1))
KIND, BIG, RNG = np.dtype("float32"), np.arange(5000.0), np.random.default_rng(0)
TABLE = {"a": print, "b": np.exp, "c": object(), "d": Colour.RED}
PARTS = functools.partial(max, 1)

def f(x):
    return x, KEYS, NAMES, FLOATS, KIND, BIG, RNG, TABLE, PARTS, Colour.RED, os.environ, {"p", "q", "r"}

def made(here=object()):
    lock = [object(), KEYS]
    return lambda x: (x, lock, here, f(x))

TOLD = str([full_fingerprint(f), fingerprint(f), fingerprint(made())])
"""


@pytest.mark.slow
def test_hashes_are_the_same_in_every_process(tmp_path: Path, module: Write):
    """Numba is loaded here, but not in the other one."""
    module("", {"hashed_consts.py": VALUES})
    expected = importlib.import_module("hashed_consts").TOLD
    surroundings = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(tmp_path), str(Path(app.__file__).parents[1])]),
        "PYTHONHASHSEED": "77",
    }
    command = [sys.executable, "-c", "import hashed_consts; print(hashed_consts.TOLD)"]
    other = subprocess.run(command, env=surroundings, check=True, capture_output=True, text=True).stdout
    assert other.strip() == expected


# Names


def test_globals_that_have_the_names_of_parameters_and_local_variables_make_no_difference(module: Write):
    text = "def f(x):\n    y = x * 2\n    return (lambda z: z + y)(x)\n"
    before = full_fingerprint(module(text).f)
    assert full_fingerprint(module("x, y = 1, np.zeros(2)\n" + text).f) == before
    read = "def f(x):\n    def g():\n        global x\n        return x\n    return x * g()\n"
    assert full_fingerprint(module("x = 1\n" + read).f) != full_fingerprint(module("x = 2\n" + read).f)
    default = "def f(v, x=x):\n    return v * x\n"
    assert full_fingerprint(module("x = 1\n" + default).f) != full_fingerprint(module("x = 2\n" + default).f)
