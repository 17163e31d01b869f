"""Every Python of this machine from 3.10 on can read the sources; `make soak` installs the project for each.

New syntax fails in the oldest, and what compilers came to warn of shows in the newest; `make soak` tries all.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from pythons import pythons

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
READ = """
import sys
for file in sys.argv[1:]:
    compile(open(file, encoding="utf-8").read(), file, "exec", dont_inherit=True)
"""


VERSIONS = list(pythons())


@pytest.mark.parametrize(
    "version",
    [pytest.param(v, marks=[pytest.mark.soak] if v in VERSIONS[1:-1] else []) for v in VERSIONS],
)
def test_the_sources_are_python(version):
    files = [str(file) for file in [*ROOT.glob("app/**/*.py"), ROOT / "train.py", *ROOT.glob("examples/**/*.py")]]
    done = subprocess.run([pythons()[version], "-c", READ, *files], capture_output=True, encoding="utf-8", check=False)
    assert (done.returncode, done.stderr) == (0, "")
