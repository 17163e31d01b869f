"""`Print`: showing values of a Program while it runs."""

from __future__ import annotations

import numpy as np

from app.custom.py_func import py_func
from app.graph import Variable


def Print(  # noqa: N802 - Paddle's name
    input: Variable,
    first_n: int = -1,
    message: str | None = None,
    summarize: int = 20,
    print_tensor_name: bool = True,
    print_tensor_type: bool = True,
    print_tensor_shape: bool = True,
    print_tensor_layout: bool = True,
    print_tensor_lod: bool = True,
    print_phase: str = "both",
) -> Variable:
    """Print `summarize` elements of a variable in the first `first_n` runs, or in every run. Returns the variable."""
    runs = 0

    def show(value: np.ndarray) -> None:
        nonlocal runs
        runs += 1
        if 0 <= first_n < runs:
            return
        shown = value.ravel()[: summarize if summarize >= 0 else None]
        facts = [
            (print_tensor_name, "Variable", input.name),
            (message is not None, "  - message", message),
            (print_tensor_shape, "  - shape", list(value.shape)),
            (print_tensor_type, "  - dtype", value.dtype),
            (True, "  - data", "[" + " ".join(map(str, shown)) + "]"),
        ]
        print("\n".join(f"{name}: {fact}" for wanted, name, fact in facts if wanted))

    py_func(show, input, None)
    return input
