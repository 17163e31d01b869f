"""Functions of C that were written here, compiled and called."""

from __future__ import annotations

import ctypes
import inspect
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from app.bridge.out.c_code import CFunction
from app.bridge.out.writing import filled
from app.functions import python_function

COMPILER = shutil.which("cc") or shutil.which("gcc")
_TYPES = {"double": "float64", "float": "float32", "int64_t": "int64", "bool": "bool"}
_STRICT = ["-std=c99", "-Og", "-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter", "-Wno-unused-function"]


class Library:
    """Functions compiled together, with arrays of float64 or float32."""

    def __init__(self, functions: Sequence[CFunction], folder: Path, real: str = "double"):
        helpers = {name: text for f in functions for name, text in f.helpers.items()}
        text = "\n\n".join(f.text for f in functions)
        source = folder / "all.c"
        source.write_text(filled("c_module.txt", header="", helpers="\n\n".join(helpers.values()), functions=text))
        assert COMPILER is not None
        done = subprocess.run(
            [COMPILER, *_STRICT, "-shared", "-fPIC", f"-Dreal={real}", "-o", folder / f"{real}.so", source, "-lm"],
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        self._library = ctypes.CDLL(str(folder / f"{real}.so"))
        self._types = {**_TYPES, "real": _TYPES[real]}

    def call(
        self, c: CFunction, function: Any, values: Sequence[Any]
    ) -> tuple[int, list[np.ndarray], list[np.ndarray]]:
        """The status, the results of the C function, and those of the Python function."""
        bound = inspect.signature(function).bind(*values)
        bound.apply_defaults()
        results = python_function(function)(*values)  # which takes less time than to compile it for one call
        expected = [np.asarray(r) for r in (results if isinstance(results, tuple) else (results,))]
        arrays = iter([v for v in bound.args if isinstance(v, np.ndarray)])
        numbers = iter([v for v in bound.args if not isinstance(v, np.ndarray)])
        arguments: list[Any] = []
        held: list[np.ndarray] = []
        rooms: list[np.ndarray] = []
        sizes: list[int] = []
        for what, kind, _ in c.arguments:
            element = self._types[kind.replace("const ", "").split()[0]]
            if what == "array":
                held.append(np.ascontiguousarray(next(arrays), element))
                sizes = list(held[-1].shape)
            elif what == "size":
                arguments.append(ctypes.c_int64(sizes.pop(0)))
                continue
            elif what == "number":
                value = next(numbers)
                arguments.append(
                    ctypes.c_double(value)
                    if element == "float64"
                    else ctypes.c_bool(value)
                    if element == "bool"
                    else ctypes.c_int64(value)
                )
                continue
            else:
                rooms.append(np.full(expected[len(rooms)].shape, 7, element))
                held.append(rooms[-1])
            arguments.append(ctypes.c_void_p(held[-1].ctypes.data))
        return getattr(self._library, c.name)(*arguments), rooms, expected
