"""Take the working folder out of the module search path, unless the user names a module in it.

`python -m opsmith` puts it before everything that is installed, so that a `numpy.py` in the folder of a run, which may
be a stranger's, would be run. Importing this module, before any other, takes it out again.
"""

from __future__ import annotations

import os
import re
import sys


def leave() -> None:
    """Remove the working folder from the search path if `python -m opsmith` added it."""
    # Python's documentation: while it looks for the module of -m, the first word is "-m".
    if sys.argv[:1] != ["-m"] or getattr(sys.flags, "safe_path", False):
        return
    module = sys.orig_argv[-len(sys.argv)]  # the word before the module's own arguments, `opsmith` or `-mopsmith`
    here = _here()
    ours = re.fullmatch(rf"(-\w*m)?(opsmith|{__package__})(\.[\w.]+)?", module)
    if ours and sys.path[:1] == [here] and here != _of_this_package():
        del sys.path[0]


def search() -> None:
    """Add the working folder to the search path, because the user named a module that may be in it."""
    here = _here()
    if here and "" not in sys.path and here not in sys.path:
        sys.path.insert(0, here)


def _here() -> str:
    try:
        return os.getcwd()
    except OSError:  # the folder was removed
        return ""


def _of_this_package() -> str:
    return os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


leave()
