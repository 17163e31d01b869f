"""The SHA-256 of each file of a run that has ended, by which a file that was damaged or edited since is noticed.

The file is one that `sha256sum -c` checks, too. A run that is under way, or was killed, has none; nor have runs of
earlier releases.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from app.errors import FileError
from app.files import read_file, write_whole
from app.static.model_file import MODEL as MODEL_ENDING
from app.static.model_file import WEIGHTS as VALUES_ENDING
from app.training.run_folder import ANSWERS, COMPARISON, CONFIG, METRICS, MODEL, SUMMARY
from app.training.weights import WEIGHTS

SUMS = "SHA256SUMS"
UNCHECKED = (
    f"it has no {SUMS}, as the run has not ended or is of an earlier release, so its files cannot be checked for damage"
)
"""What there is to say of the folder of a run that `check` gives False for."""
_KEPT = (CONFIG, METRICS, SUMMARY, COMPARISON, ANSWERS, MODEL + MODEL_ENDING, MODEL + VALUES_ENDING)
_LARGEST = 1_000_000


def seal(folder: Path) -> None:
    """Write down the hashes of what a run keeps; its report, which is made from that, is not among it."""
    files = [*(file for name in _KEPT if (file := folder / name).is_file()), *folder.glob(WEIGHTS)]
    lines = [f"{_hash(file)}  {file.name}\n" for file in sorted(files)]
    write_whole(folder / SUMS, "".join(lines).encode())


def unseal(folder: Path) -> None:
    """Forget the hashes of a run that goes on."""
    try:
        (folder / SUMS).unlink(missing_ok=True)
    except OSError as error:
        raise FileError(f"{folder / SUMS} cannot be removed: {error.strerror or error}") from error


def check(folder: Path) -> bool:
    """Whether all that a run kept is as it wrote it: an error if not, and False where nothing tells."""
    sums = folder / SUMS
    try:
        lines = read_file(sums, _LARGEST).decode(errors="replace").splitlines()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise FileError(f"{sums} cannot be read: {error.strerror or error}") from error
    expected: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        match = re.fullmatch(r"([0-9a-f]{64})  ([\w.-]+)", line)
        if match is None:
            raise FileError(f"{sums}, line {number}: expected a SHA-256 and the name of a file, found {line[:80]!r}")
        expected[match[2]] = match[1]
    if not {CONFIG, METRICS} <= expected.keys():
        raise FileError(f"{sums} is damaged: it has no line for {CONFIG} or none for {METRICS}")
    for name, digest in expected.items():
        found = _hash(folder / name)
        if found != digest:
            raise FileError(
                f"{folder / name} is not as the run wrote it: its SHA-256 is {found}, and {SUMS} has {digest}. It was "
                f"damaged or edited since. If you know why and want to use it, remove {sums}"
            )
    return True


def _hash(file: Path) -> str:
    try:
        return hashlib.sha256(read_file(file)).hexdigest()
    except FileNotFoundError:
        raise FileError(
            f"{file} is missing, and the run kept it. If you removed it, remove {file.with_name(SUMS)} as well"
        ) from None
    except OSError as error:
        raise FileError(f"{file} cannot be read: {error.strerror or error}") from error
