"""Runs the examples of a file of facts, in the form of Python's prompt, and tells which print something else.

Run by Python it asks PyTorch itself; run by `python -m app run` it asks the façade.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import math
import re
import sys
from pathlib import Path
from typing import Any

NUMBER = r"-?\d+\.\d*(?:e[+-]\d+)?"


def printed(source: str, names: dict[str, Any]) -> str:
    """What Python's prompt prints for one example."""
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        try:
            exec(compile(source, "<example>", "single"), names)
        except Exception as error:
            print(f"{type(error).__name__}: {error}")
    return text.getvalue()


def same(actual: str, right: str) -> bool:
    """Whether two texts are equal but for the last digits of numbers, and the names of built-in operators."""
    actual, right = (re.sub(r"grad_fn=<\w*?(Backward\d|CopySlices)>", "grad_fn=<built-in>", t) for t in (actual, right))
    if re.split(NUMBER, actual) != re.split(NUMBER, right):
        return False
    pairs = zip(re.findall(NUMBER, actual), re.findall(NUMBER, right), strict=True)
    return all(math.isclose(float(a), float(b), rel_tol=1e-3, abs_tol=1e-6) for a, b in pairs)


def differences(path: Path) -> list[str]:
    """A text for each example that printed something else."""
    names: dict[str, Any] = {"__name__": "facts"}
    texts = []
    for example in doctest.DocTestParser().get_examples(path.read_text(encoding="utf-8")):
        actual, expected = printed(example.source, names), example.want.replace("<BLANKLINE>\n", "\n")
        if not same(actual, expected):
            texts.append(f"{path.name}:{example.lineno + 1}: {example.source}printed\n{actual}expected\n{expected}")
    return texts


if __name__ == "__main__":
    texts = [text for name in sys.argv[1:] for text in differences(Path(name))]
    print("\n".join(texts), end="")
    sys.exit(bool(texts))
