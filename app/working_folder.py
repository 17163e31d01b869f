"""The working folder is not searched for modules, unless the user names one that lies there.

`python -m app` puts it before everything that is installed, so that a `numpy.py` in the folder of a run, which may be a
stranger's, would be run. Importing this module, before any other, takes it out again.
"""

from __future__ import annotations

import os
import re
import sys


def leave() -> None:
    """Take the working folder out of Python's search path, if `python -m app` is what put it there."""
    # Python's documentation: while it looks for the module of -m, the first word is "-m".
    if sys.argv[:1] != ["-m"] or getattr(sys.flags, "safe_path", False):
        return
    module = sys.orig_argv[-len(sys.argv)]  # the word before those of the module, be it `app` or `-mapp`
    here = _here()
    if re.fullmatch(r"(-\w*m)?app(\.[\w.]+)?", module) and sys.path[:1] == [here] and here != _of_this_package():
        del sys.path[0]


def search() -> None:
    """Search the working folder, because the user has named a module that may lie there."""
    here = _here()
    if here and "" not in sys.path and here not in sys.path:
        sys.path.insert(0, here)


def _here() -> str:
    try:
        return os.getcwd()
    except OSError:  # it has been removed
        return ""


def _of_this_package() -> str:
    return os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


leave()
