"""What ranks send each other over MPI: one program on two ranks, whose every line of output is a fact."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from launches import main, program, run

pytestmark = pytest.mark.slow

LINES = """
facts = {}
rng = numpy.random.default_rng(world.rank)
mine = rng.standard_normal(100_000).astype("float32")

both = world.gather([world.rank, mine[:3].tolist()])
facts["gathered"] = [rank for rank, _ in both]

summed = mine.copy()
world.allreduce(summed)
facts["sum"] = bool((numpy.abs(summed[:3] - numpy.sum([n for _, n in both], axis=0)) < 1e-6).all())
facts["same bits"] = len(set(world.gather(summed.tobytes().hex()[:4000])))

for where, mean in (("plain", mine.copy()), ("in a room", world.shared([mine])[0])):
    mean[:] = mine
    world.allreduce(mean, "avg")
    facts[where] = bool((mean == summed / numpy.float32(2)).all())

rooted = mine.copy()
world.reduce(rooted, root=1)
facts["at the root"] = world.gather([bool((rooted == summed).all()), bool((rooted == mine).all())])

sent = mine.copy()
world.broadcast(sent, root=1)
facts["sent"] = world.gather([bool((sent == mine).all()), sent[:2].tolist() == both[1][1][:2]])

whole = numpy.array([world.rank, 5 - world.rank])
world.allreduce(whole, "max")
facts["greatest"] = whole.tolist()

import re
facts["mapped"] = re.findall(r" (/dev/shm/mpich_shm_.*)", open("/proc/self/maps").read())
facts["said"] = world.said
facts["place"] = place()
if world.rank == 0:
    import json
    print(json.dumps(facts))
else:
    print("only rank 0 is heard")
""".strip().splitlines()


@pytest.fixture(scope="module")
def facts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder: Path = tmp_path_factory.mktemp("world")
    ended = run(2, program(folder, main(LINES)), folder=folder)
    assert (ended.status, ended.err) == (0, "")
    return json.loads(ended.out)


def test_every_rank_learns_what_all_say_in_order(facts: dict[str, Any]):
    assert facts["gathered"] == [0, 1]


def test_a_sum_has_the_same_bits_at_every_rank(facts: dict[str, Any]):
    assert facts["sum"]
    assert facts["same bits"] == 1


def test_a_mean_is_taken_where_numbers_lie_in_memory_that_all_see_too(facts: dict[str, Any]):
    assert facts["plain"]
    assert facts["in a room"]


def test_reducing_changes_the_root_alone(facts: dict[str, Any]):
    assert facts["at the root"] == [[False, True], [True, False]]


def test_a_broadcast_gives_all_ranks_what_the_root_has(facts: dict[str, Any]):
    assert facts["sent"] == [[False, True], [True, True]]


def test_other_reductions(facts: dict[str, Any]):
    assert facts["greatest"] == [1, 5]


def test_each_rank_says_its_threads_and_keeps_to_what_the_user_has_set(facts: dict[str, Any]):
    assert facts["said"].startswith("Ranks: 2 on host ")
    assert facts["said"].endswith("BLAS as OMP_NUM_THREADS=1 says, Numba as NUMBA_NUM_THREADS=1 says")
    assert facts["place"] == [0, 2]


def test_a_launch_that_is_killed_would_leave_no_file_of_mpich_in_memory(facts: dict[str, Any]):
    assert all(mapped.endswith(" (deleted)") for mapped in facts["mapped"])
