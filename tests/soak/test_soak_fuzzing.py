"""The coverage-guided run over every reader: `python tests/fuzz`, with Atheris."""

from __future__ import annotations

import re


def test_fuzzed_readers_take_an_input_or_raise_their_error(python, figure, request):
    printed = python("tests/fuzz", "--seconds", str(request.config.getoption("--fuzz-seconds")))
    inputs = [int(count.replace(",", "")) for count in re.findall(r" ([\d,]+) inputs in ", printed)]
    assert len(inputs) == printed.count("no fault") > 10
    figure("fuzzed inputs", sum(inputs))
    figure("fuzzed readers", len(inputs))
