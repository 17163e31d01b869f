"""Functions run in threads of their own, which the interpreter switches between as often as it can."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any


def together(functions: Sequence[Callable[[], Any]]) -> list[Any]:
    """What each function returns; all of them begin at the same moment."""
    start, before = Barrier(len(functions)), sys.getswitchinterval()

    def run(function: Callable[[], Any]) -> Any:
        start.wait(30)
        return function()

    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(len(functions)) as pool:
            return [result.result(60) for result in [pool.submit(run, function) for function in functions]]
    finally:
        sys.setswitchinterval(before)


def in_another_thread(function: Callable[[], Any]) -> Any:
    return together([function])[0]
