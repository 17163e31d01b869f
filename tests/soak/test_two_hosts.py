"""Two hosts, made of network namespaces: what runs on one reaches the other through a network alone.

The folder is one that they share. In the place of ssh stands a script that enters the other namespace.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from launches import ROOT, main, mpiexec, program, run
from rank_failures import FAILURES, check, fail

NAMES = [f"opsmith-{os.getpid()}-{end}" for end in "ab"]
ADDRESSES = ["10.213.77.1", "10.213.77.2"]
SMALL = [
    "--config", str(ROOT / "configs" / "quick.yaml"), "engine=reference", "baseline=null", "costs=false",
    "dist.shape=allreduce", "output=run",
]  # fmt: skip


def ip(*words: str) -> str:
    return subprocess.run(["ip", *words], check=True, capture_output=True, text=True).stdout


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sequence[str]]:
    """mpiexec on one of them, with what it has to be told to start ranks on both."""
    if shutil.which("ip") is None or os.geteuid() != 0:
        pytest.skip("network namespaces need root and the command `ip`")
    ssh = tmp_path_factory.mktemp("ssh") / "ssh"
    ssh.write_text(
        '#!/bin/sh\nwhile [ "${1#-}" != "$1" ]; do shift; done\nhost=$1; shift\n'
        f"case $host in {ADDRESSES[0]}) there={NAMES[0]};; *) there={NAMES[1]};; esac\n"
        'exec ip netns exec $there sh -c "$*"\n'
    )
    ssh.chmod(0o700)
    try:
        for name in NAMES:
            ip("netns", "add", name)
        ip("-n", NAMES[0], "link", "add", "eth0", "type", "veth", "peer", "name", "eth0", "netns", NAMES[1])
        for name, address in zip(NAMES, ADDRESSES, strict=True):
            ip("-n", name, "addr", "add", f"{address}/24", "dev", "eth0")
            ip("-n", name, "link", "set", "eth0", "up")
            ip("-n", name, "link", "set", "lo", "up")
        while not all("state UP" in ip("-n", name, "link", "show", "eth0") for name in NAMES):
            time.sleep(0.05)  # the kernel takes up to a second to say so
        launcher = ["-launcher", "ssh", "-launcher-exec", str(ssh), "-hosts", ",".join(ADDRESSES)]
        yield ["ip", "netns", "exec", NAMES[0], mpiexec(), *launcher]
    finally:
        for name in NAMES:
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)


@pytest.fixture(autouse=True)
def through_the_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let MPI send by TCP alone: it sees that memory could be shared."""
    monkeypatch.setenv("UCX_TLS", "tcp,self")


def test_ranks_on_two_hosts_reach_each_other(hosts: Sequence[str], tmp_path: Path):
    lines = [
        "sent = lambda: int(open('/sys/class/net/eth0/statistics/tx_bytes').read())",
        "before = sent()",
        "a = numpy.arange(100_000.0)",
        "world.allreduce(a)",
        "print(a[1:3].tolist(), sent() - before > a.nbytes / 2)",
    ]
    ended = run(2, program(tmp_path, main(lines)), folder=tmp_path, launcher=hosts)
    assert ended.err == ""
    assert (ended.status, ended.out) == (0, "[2.0, 4.0] True\n")


def test_training_on_two_hosts_is_training(hosts: Sequence[str], tmp_path: Path):
    ended = run(2, str(ROOT / "train.py"), *SMALL, folder=tmp_path, launcher=hosts)
    assert (ended.status, ended.err) == (0, "")
    assert "\nRank 1: process " in ended.out
    assert (tmp_path / "run" / "summary.txt").exists()


# MPICH 5.0.2 does not notice that a process on another host has ended by os._exit, of a program of mpi4py alone either
@pytest.mark.parametrize("name", [name for name in FAILURES if name != "exits in the middle"])
def test_both_hosts_end_when_a_rank(name: str, hosts: Sequence[str], tmp_path: Path):
    check(fail(tmp_path, 2, FAILURES[name][0], hosts), name)
