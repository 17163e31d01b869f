"""One contender in a process of its own: prints a line of JSON for each epoch, and one for its memory at the end."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.work import Data, Epoch, Work


def main(name: str, folder: str, work: str) -> None:
    task = Work(**json.loads(work))
    try:
        train = _contender(name, task)
        for seconds, accuracy in train(Data.read(Path(folder), task.rows), task):
            say(seconds=seconds, accuracy=accuracy)
    except ModuleNotFoundError as error:
        say(missing=error.name)
        return
    say(peak=peak_memory())


def _contender(name: str, task: Work) -> Callable[[Data, Work], Iterator[Epoch]]:
    if task.lenet:
        from benchmarks import lenet

        return lenet.CONTENDERS[name][1]
    train: Callable[[Data, Work], Iterator[Epoch]] = importlib.import_module(f"benchmarks.contenders.{name}").train
    return train


def say(**line: object) -> None:
    print(json.dumps(line), flush=True)


def peak_memory() -> float:
    """The most memory that this process held at once, in MiB."""
    status = Path("/proc/self/status")
    if status.exists():  # getrusage would count the parent's too, from before this program was loaded
        kilobytes = next(line.split()[1] for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(kilobytes) / 1024
    import resource

    size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return size / 2**20 if sys.platform == "darwin" else size / 1024


if __name__ == "__main__":
    main(*sys.argv[1:])
