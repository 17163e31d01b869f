"""Threads that stay: each does its share of a job, and they are used again."""

from __future__ import annotations

import threading

from app.engine.compiled import runtime
from app.engine.compiled.threads import helping


def test_every_number_is_done_and_the_same_threads_do_it_again():
    seen: list[tuple[int, int]] = []

    def job(number: int) -> None:
        seen.append((number, threading.get_ident()))

    for _ in range(2):
        with helping(job, 3):
            job(0)
    assert sorted(number for number, _ in seen) == [0, 0, 1, 1, 2, 2, 3, 3]
    assert len({thread for number, thread in seen if number}) == 3


def test_a_job_inside_a_job_gets_threads_of_its_own():
    done = []

    def inner(number: int) -> None:
        done.append(number)

    def outer(number: int) -> None:
        with helping(inner, 1):
            inner(0)

    with helping(outer, 1):
        outer(0)
    assert sorted(done) == [0, 0, 1, 1]


def test_each_thread_records_the_step_that_it_runs():
    shared = runtime.sharing(2)
    runtime.begin.py_func(shared, 1, 4)
    runtime.note.py_func(shared, 1, 3)
    assert [runtime.running(shared, thread) for thread in (0, 1)] == [-1, 7]
