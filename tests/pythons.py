"""The Pythons of this machine that the project is meant for: on the path, and among those of pyenv."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache
from pathlib import Path

VERSIONS = ((3, 10), (3, 11), (3, 12), (3, 13), (3, 14))
"""From the oldest that the project runs on to the newest that Numba has a release for."""


@cache
def pythons() -> dict[str, str]:
    """An interpreter for each of the versions that this machine has, the one that runs this among them."""
    names = [f"python{major}.{minor}" for major, minor in VERSIONS]
    places = [Path(folder, name) for folder in os.get_exec_path() for name in names]
    places += sorted(Path(os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser().glob("versions/*/bin/python"))
    interpreters = {_version(sys.version_info): sys.executable}
    for place in places:
        version = _asked(place)
        if version:
            interpreters.setdefault(version, str(place))
    return dict(sorted(interpreters.items(), key=lambda item: int(item[0].partition(".")[2])))


def _asked(place: Path) -> str:
    """The version of an interpreter; '' for one that is not there, or not among those."""
    if not os.access(place, os.X_OK):
        return ""
    ask = [str(place), "-c", "import sys; sys.stdout.write('%d %d' % sys.version_info[:2])"]
    answer = subprocess.run(ask, capture_output=True, encoding="utf-8", check=False).stdout.split()
    version = tuple(map(int, answer))
    return _version(version) if version in VERSIONS else ""


def _version(version: tuple[int, ...]) -> str:
    return f"{version[0]}.{version[1]}"
