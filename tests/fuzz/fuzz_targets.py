"""Every reader of what a user may be handed: data, pictures, configurations, and what runs leave behind.

Each takes bytes, and returns or raises its error. Whatever else happens (another exception, a crash, a hang, memory
out of all proportion) is a fault: `test_fuzz_targets.py` looks for it in seconds, `python tests/fuzz` for as long as
it is let.
"""

from __future__ import annotations

from fuzz_data import DATA, PICTURES
from fuzz_files import FILES
from fuzz_runs import RUNS

TARGETS = DATA | PICTURES | FILES | RUNS
