"""The generated tests of the suite, with thousands of programs instead of a few."""

from __future__ import annotations

import importlib
import sys
from collections import Counter
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
PROGRAMS = {
    "compat/test_paddle_programs.py": 1084,
    "custom/test_functions_at_random.py": 3000,
    "custom/test_in_place_at_random.py": 200,
    "derivative/test_derived_at_random.py": 1000,
    "derivative/test_types_at_random.py": 1000,
    "engine/test_open_sizes_at_random.py": 3000,
    "graph/test_overwrites_at_random.py": 3000,
    "jit/test_captured_operators.py": 2000,
    "jit/test_structured_at_random.py": 5000,
    "tensor/test_inplace_at_random.py": 3000,
    "tensor/test_threads_at_random.py": 1000,
}
"""Files with a function `check` of a seed, and for how many seeds it is called: fewer where programs are compiled."""
COUNTING = ("engine/compiled/test_engines_agree.py", "onnx/test_operators_in_onnx.py", "ops/test_inference.py")
"""Files that generate as many examples as they are told to."""
REFUSED_AT_MOST = {"jit/test_structured_at_random.py": 0.5, "derivative/test_types_at_random.py": 0.15}
"""Which part of the programs may be refused, if it is not a tenth: programs that are about what is refused."""
_held: dict[str, int] = {}


@pytest.mark.parametrize("file", COUNTING)
def test_other_examples_hold_each_time(file, python):
    """A hundred compiled networks, a thousand run as plain Python, and a hundred calls of each operator."""
    python("-m", "pytest", str(TESTS / file), OPSMITH_EXAMPLES="100")


@pytest.mark.parametrize("file", PROGRAMS)
def test_random_programs_hold(file, figure, monkeypatch):
    monkeypatch.syspath_prepend(str((TESTS / file).parent))
    module = importlib.import_module(Path(file).stem)
    try:
        refused = sum(module.check(seed) is False for seed in range(PROGRAMS[file]))
        reasons = getattr(module, "REFUSED", {})
        print(f"{refused} refused", *(f"{count} {reason}" for reason, count in reasons.items()), sep="\n")
        most = REFUSED_AT_MOST.get(file, 0.1) * PROGRAMS[file]
        assert refused <= most, f"{refused} of {PROGRAMS[file]} programs were refused: {reasons}"
    finally:
        sys.modules.pop(Path(file).stem, None)
    _held[file] = PROGRAMS[file]
    figure("programs", sum(_held.values()))


ON_ARRAYS = 3000


@pytest.mark.parametrize("verdict", ["verdict", "verdict_on_stretched"])
def test_derived_gradients_of_random_functions_on_arrays_are_right_or_refused(verdict, figure, monkeypatch):
    """Those that are refused are counted by the reason."""
    monkeypatch.syspath_prepend(str(TESTS))
    random = importlib.import_module("derivative.test_array_gradients_at_random")
    verdict_on = getattr(random, verdict)
    verdicts = Counter(random.reason_of(verdict_on(seed)) for seed in range(ON_ARRAYS))
    print(*(f"{count:6} {reason}" for reason, count in verdicts.most_common()), sep="\n")
    assert verdicts[random.AGREES] >= ON_ARRAYS // 2, verdicts
    _held[verdict] = ON_ARRAYS
    figure("programs", sum(_held.values()))
