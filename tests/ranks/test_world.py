"""What ranks send each other over MPI: one program on two ranks, whose every line of output is a fact."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from launches import main, program, run

pytestmark = pytest.mark.slow

LINES = """
facts = {}
rng = numpy.random.default_rng(world.rank)
mine = rng.standard_normal(100_000).astype("float32")

both = world.allgather([world.rank, mine[:3].tolist()])
facts["gathered"] = [rank for rank, _ in both]

summed = mine.copy()
world.allreduce(summed)
facts["sum"] = bool((numpy.abs(summed[:3] - numpy.sum([n for _, n in both], axis=0)) < 1e-6).all())
facts["same bits"] = len(set(world.allgather(summed.tobytes().hex()[:4000])))

rooted = mine.copy()
world.reduce(rooted)
facts["at the root"] = world.allgather([bool((rooted == summed).all()), bool((rooted == mine).all())])

sent = mine.copy()
world.broadcast(sent)
facts["sent"] = world.allgather([bool((sent == mine).all()), sent[:2].tolist() == both[0][1][:2]])

for name, free in (("in shared memory", 1 << 40), ("in their own", 0)):
    os.statvfs = lambda path: type("", (), {"f_bavail": free, "f_frsize": 1})
    first, second = world.copies_of_rank_0([mine.reshape(10, -1) + world.rank, mine[:7].astype("float64")])
    facts["copies " + name] = len(set(world.allgather(first.tobytes().hex() + second.tobytes().hex())))
    of_rank = (first + world.rank, second + world.rank)
    first += world.rank
    second += world.rank
    for array in (first, second, first[0]):
        world.allreduce(array.reshape(array.size))
    sums = [sum(arrays) for arrays in zip(*world.allgather(of_rank))]
    sums[0][0] *= world.size
    facts["sums " + name] = [bool((array == total).all()) for array, total in zip((first, second), sums)]

import re
facts["mapped"] = re.findall(r" (/dev/shm/mpich_shm_.*)", open("/proc/self/maps").read())
facts["description"] = world.description
if world.rank == 0:
    import json
    print(json.dumps(facts))
else:
    print("only rank 0 is heard")
""".strip().splitlines()


def test_collectives_over_mpi(tmp_path: Path):
    ended = run(2, program(tmp_path, main(LINES)), folder=tmp_path)
    assert (ended.status, ended.err) == (0, "")
    facts = json.loads(ended.out)
    description, mapped = facts.pop("description"), facts.pop("mapped")
    assert facts == {
        "gathered": [0, 1],
        "sum": True,
        "same bits": 1,
        "at the root": [[True, False], [False, True]],
        "sent": [[True, True], [False, True]],
        "copies in shared memory": 1,
        "sums in shared memory": [True, True],
        "copies in their own": 1,
        "sums in their own": [True, True],
    }
    threads = r"threads: BLAS as .*\bOMP_NUM_THREADS=1\b.* says, Numba as NUMBA_NUM_THREADS=1 says"
    assert re.fullmatch(rf"Rank 0: process \d+ on \S+; {threads}\nRank 1: process \d+ on \S+; {threads}", description)
    assert all(file.endswith(" (deleted)") for file in mapped), "a launch that is killed would leave files of MPICH"
