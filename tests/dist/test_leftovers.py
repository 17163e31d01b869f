"""A launch that is killed leaves nothing in memory: no file of MPI's, whose names are the system's to keep."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from ranks import main, program, run

MAPPED = "print(*re.findall(r' (/dev/shm/mpich_shm_.*)', open('/proc/self/maps').read()), sep='\\n', flush=True)"


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc and /dev/shm")
@pytest.mark.parametrize("end", ["return 0", "os.kill(os.getpid(), signal.SIGKILL)"])
def test_the_memory_of_ranks_has_no_name_any_more(end: str, tmp_path: Path):
    lines = ["import re", "world.barrier()", MAPPED, "world.barrier()", end]
    ended = run(2, program(tmp_path, main(lines)), folder=tmp_path)
    assert ended.status == (0 if end == "return 0" else 137)
    (mapped,) = ended.out.splitlines()
    assert mapped.endswith(" (deleted)")
    assert not Path(re.sub(" .*", "", mapped)).exists()
