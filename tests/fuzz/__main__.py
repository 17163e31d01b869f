"""A long, coverage-guided run over the readers: `python tests/fuzz --seconds 600`, after `pip install -e ".[fuzz]"`.

Each target gets a process of its own and its share of the time. What makes one fail is written beside, as
`crash-...`; `python tests/fuzz --again crash-... TARGET` gives it that once more.
"""

from __future__ import annotations

import argparse
import importlib.util
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

MEMORY, ONE_INPUT = 1024, 10  # megabytes, seconds
READERS = [
    *(
        "app.data",
        "app.use.image_files",
        "app.use.digits",
        "app.saving",
        "app.static.model_file",
        "app.graph.serialise",
        "app.custom.references",
    ),
    *("app.run.config", "app.run.yaml_text", "app.run.checkpoints", "app.report"),
    *("gzip", "tarfile", "_compression", "yaml", "PIL"),
]
"""The modules whose paths are looked for."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help="some of them; all by default")
    parser.add_argument("--seconds", type=int, default=60, help="for all targets together (60)")
    parser.add_argument("--again", type=Path, metavar="FILE", help="give one target this input alone")
    parser.add_argument("--inside", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.inside:
        return fuzz(*arguments.inside)
    targets = all_targets()
    names = arguments.targets or targets
    if unknown := [name for name in names if name not in targets]:
        parser.error(f"no target is called {unknown[0]}; there are {', '.join(targets)}")
    if arguments.again:
        from fuzz_targets import TARGETS

        target = TARGETS[names[0]]
        print("taken" if target(arguments.again.read_bytes()) else f"refused with a {target.error.__name__}")
        return 0
    if importlib.util.find_spec("atheris") is None:
        print('atheris is not installed: .venv/bin/pip install -e ".[fuzz]"', file=sys.stderr)
        return 2
    seconds = max(1, arguments.seconds // len(names))
    return max([run(name, seconds) for name in names])


def all_targets() -> list[str]:
    from fuzz_targets import TARGETS

    return list(TARGETS)


def run(name: str, seconds: int) -> int:
    """Fuzz one target for a while, and print how that went on a line."""
    with tempfile.TemporaryDirectory(prefix="fuzz-") as corpus:
        limits = [f"-max_total_time={seconds}", f"-rss_limit_mb={MEMORY}", f"-timeout={ONE_INPUT}", "-max_len=20000"]
        done = subprocess.run(
            [sys.executable, __file__, "--inside", name, corpus, *limits],
            stderr=subprocess.PIPE,
            encoding="utf-8",
            errors="replace",
            check=False,
        )
    counted = re.search(r"Done (\d+) runs in (\d+) second", done.stderr)
    covered = re.findall(r" cov: (\d+) ft: (\d+) corp: (\d+)", done.stderr)
    if done.returncode or not counted:
        print(f"{name:<20} FAILED\n{done.stderr[-4000:]}", flush=True)
        return 1
    edges, _, inputs = covered[-1] if covered else ("?", "?", "?")
    print(
        f"{name:<20} {int(counted[1]):>10,} inputs in {counted[2]} s, {edges} edges covered by {inputs}: no fault",
        flush=True,
    )
    return 0


def fuzz(name: str, corpus: str, *limits: str) -> int:
    """What runs in the process of one target."""
    import atheris

    with atheris.instrument_imports(include=READERS):
        from fuzz_targets import TARGETS

        target = TARGETS[name]
        for seed in target.seeds:
            target(seed)  # Pillow imports what it needs for each format when it meets it
    for number, seed in enumerate(target.seeds):
        (Path(corpus) / f"seed-{number}").write_bytes(seed)

    def read(content: bytes) -> None:
        target(content)

    atheris.Setup([sys.argv[0], *limits, corpus], read)
    atheris.Fuzz()
    return 0


if __name__ == "__main__":
    sys.exit(main())
