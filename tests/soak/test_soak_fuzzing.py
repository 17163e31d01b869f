"""The coverage-guided run over every reader: `python tests/fuzz`, with Atheris."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_no_input_makes_a_reader_do_anything_but_read_or_refuse(figure, request):
    seconds = request.config.getoption("--fuzz-seconds")
    command = [sys.executable, "tests/fuzz", "--seconds", str(seconds)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    inputs = [int(count.replace(",", "")) for count in re.findall(r" ([\d,]+) inputs in ", done.stdout)]
    assert len(inputs) == done.stdout.count("no fault") > 10
    figure("fuzzed inputs", sum(inputs))
    figure("fuzzed readers", len(inputs))
