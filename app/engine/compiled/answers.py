"""What Python does when compiled code calls it in the middle of a run: the function of a step, on arrays in place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from app.engine.compiled.steps import Lowered


class Answers:
    """Answers the calls of one run. The arrays of a step are looked up once for each size of a batch."""

    def __init__(self, lowered: Lowered, array: Callable[[str, int], np.ndarray], raised: list[Any]):
        self._lowered, self._array, self._raised = lowered, array, raised
        self._known: dict[tuple[int, int], Callable[[], None]] = {}

    def __call__(self, step: int, n: int) -> bool:
        """Run a step; True, if it raised."""
        try:
            if (step, n) not in self._known:
                self._known[step, n] = self._call(step, n)
            self._known[step, n]()
        except BaseException as error:  # it could not pass through compiled code, and is raised behind that
            self._raised.append((0, error))
            return True
        return False

    def _call(self, step: int, n: int) -> Callable[[], None]:
        op = self._lowered.steps[step].op
        arrays = [self._array(str(name), n) for name in op.inputs]
        call: Callable[[], None] = op.definition.form.calls(arrays, *op.attributes.values())
        return call
