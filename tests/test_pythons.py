"""Every Python of this machine from 3.10 on can read the sources; `make soak` installs the project for each.

New syntax fails in the oldest, which only parses them, and what compilers came to warn of shows in the newest;
`make soak` tries all.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from pythons import pythons

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
READ = """
import ast, sys
flags = ast.PyCF_ONLY_AST if sys.argv[1] == "parsed" else 0
for file in sys.argv[2:]:
    compile(open(file, encoding="utf-8").read(), file, "exec", flags, dont_inherit=True)
"""


@pytest.mark.parametrize("chosen", ["oldest and newest", pytest.param("all", marks=pytest.mark.soak)])
def test_the_sources_are_python(chosen: str):
    files = [str(file) for file in [*ROOT.glob("app/**/*.py"), ROOT / "train.py", *ROOT.glob("examples/**/*.py")]]
    interpreters = list(pythons().values())
    for python in interpreters if chosen == "all" else {interpreters[0], interpreters[-1]}:
        how = "compiled" if chosen == "all" or python == interpreters[-1] else "parsed"
        done = subprocess.run([python, "-c", READ, how, *files], capture_output=True, encoding="utf-8", check=False)
        assert (done.returncode, done.stderr) == (0, ""), python
