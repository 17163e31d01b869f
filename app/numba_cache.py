"""The folder of compiled code, and a safer cache for Numba: a problem with the cache never ends a run.

Numba raises if no folder can be written, if a disk is full, or if a file cannot be unpickled, and it runs machine code
from disk without verifying it. Here each of its files ends with a checksum, and a function that cannot be stored or
loaded is compiled again.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.machinery
import io
import os
import stat
import sys
import tempfile
from collections.abc import Iterator, Sequence
from importlib.abc import MetaPathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

_noted: set[str] = set()


def note_unkept(reason: object) -> None:
    """Print once that compiled code is not stored."""
    if not _noted:
        _noted.add("")
        print(f"note: compiled code cannot be kept, so each run compiles anew: {reason}", file=sys.stderr)


# Folders


def folder() -> Path | None:
    """The folder of compiled code: `OPSMITH_CACHE`, else the checkout's .cache, else the user's; None if unusable.

    The code there is run, so the folder must be the user's own, and nobody else may write into it.
    """
    wanted = os.environ.get("OPSMITH_CACHE")
    checkout = Path(__file__).resolve().parents[1]
    candidates = [Path(wanted)] if wanted else [_in_checkout(checkout), _of_user()]
    return next((path for path in candidates if path is not None and _usable(path)), None)


def why_no_folder() -> str:
    """Why `folder` found none, in words."""
    wanted = os.environ.get("OPSMITH_CACHE")
    found = f"OPSMITH_CACHE={wanted} is" if wanted else "neither the checkout's .cache nor the user's cache folder is"
    return f"{found} a writable folder that belongs to you alone; set OPSMITH_CACHE to one"


def _in_checkout(checkout: Path) -> Path | None:
    return checkout / ".cache" / "compiled" if (checkout / "pyproject.toml").is_file() else None


def _of_user() -> Path | None:
    base = os.environ.get("XDG_CACHE_HOME")
    try:
        return (Path(base) if base else Path.home() / ".cache") / "opsmith" / "compiled"
    except RuntimeError:  # there is no home folder
        return None


def _usable(path: Path) -> bool:
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not all(_is_private(each) for each in (path, path / "__pycache__") if each.exists()):
            return False
        with tempfile.TemporaryFile(dir=path):
            return True
    except OSError:
        return False


def _is_private(path: Path) -> bool:
    """Whether a folder is the user's own. Others lose the right to write to it; if one of them did, it is not."""
    if not hasattr(os, "geteuid"):
        return True
    me, info = os.geteuid(), path.stat()
    if info.st_uid != me:
        return False
    if info.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        inside = [each.lstat() for each in path.iterdir()]
        if any(each.st_uid != me or each.st_mode & stat.S_IWOTH for each in inside if not stat.S_ISLNK(each.st_mode)):
            return False
        path.chmod(info.st_mode & ~(stat.S_IWGRP | stat.S_IWOTH))
    return True


# Numba's own files

_MARK = b"opsmith sha256 "
_SEALED = len(_MARK) + hashlib.sha256().digest_size
_CACHING = "numba.core.caching"


def _sealed(content: bytes) -> bytes:
    return content + _MARK + hashlib.sha256(content).digest()


def _is_whole(content: bytes) -> bool:
    """Whether a file is as it was written. A file without a checksum, written by plain Numba, is accepted."""
    body, mark = content[:-_SEALED], content[-_SEALED : -_SEALED + len(_MARK)]
    return mark != _MARK or _sealed(body) == content


def adapt(caching: ModuleType) -> None:
    """Make Numba's cache write checksums, and ignore errors."""

    class InOurFolder(caching._SourceFileBackedLocatorMixin, caching._CacheLocator):  # type: ignore[name-defined]
        """The last choice of folder, as in a read-only installation."""

        def __init__(self, function: Any, file: str, where: Path):
            self._py_file, self._lineno = file, function.__code__.co_firstlineno
            self._cache_path = str(where / "numba" / self.get_suitable_cache_subpath(file))

        def get_cache_path(self) -> str:
            return self._cache_path

        @classmethod
        def from_function(cls, function: Any, file: str) -> Any:
            where = folder()
            return cls(function, file, where) if where is not None and os.path.isfile(file) else None

    class Files(caching.IndexDataCacheFile):  # type: ignore[name-defined]
        """The files of a function."""

        @contextlib.contextmanager
        def _open_for_write(self, path: str) -> Iterator[io.BytesIO]:
            content = io.BytesIO()
            yield content
            with super()._open_for_write(path) as file:
                file.write(_sealed(content.getvalue()))

        def _load_index(self) -> Any:
            self._check(self._index_path)
            return super()._load_index()

        def _load_data(self, name: str) -> Any:
            self._check(self._data_path(name))
            return super()._load_data(name)

        def _check(self, path: str) -> None:
            with contextlib.suppress(FileNotFoundError):
                if not _is_whole(Path(path).read_bytes()):
                    raise ValueError(f"{path} is damaged")

        def forget(self) -> None:
            """Remove the index; without it the other files are ignored."""
            with contextlib.suppress(OSError):
                os.unlink(self._index_path)

    class Functions(caching.FunctionCache):  # type: ignore[name-defined]
        """The cache of a function."""

        _cache_file: Any
        _cache_path: Any

        class _impl_class(caching.CompileResultCacheImpl):  # type: ignore[name-defined]  # noqa: N801
            _locator_classes = (*caching.CacheImpl._locator_classes, InOurFolder)

        def __init__(self, function: Any):
            try:
                super().__init__(function)
                file = self._cache_file
                self._cache_file = Files(self._cache_path, self._impl.filename_base, file._source_stamp)
            except (OSError, RuntimeError) as error:  # no folder, or unreadable source
                note_unkept(why_no_folder() if isinstance(error, RuntimeError) else error)
                self._cache_path = None
                self.disable()

        def load_overload(self, signature: Any, context: Any) -> Any:
            try:
                return super().load_overload(signature, context)
            except Exception:  # pickle fails in many ways
                self._cache_file.forget()
                return None

        def save_overload(self, signature: Any, compiled: Any) -> None:
            try:
                super().save_overload(signature, compiled)
            except Exception as error:
                note_unkept(error)

    caching.FunctionCache = Functions  # type: ignore[attr-defined]
    dispatcher = sys.modules.get("numba.core.dispatcher")
    if dispatcher is not None:
        dispatcher.FunctionCache = Functions  # type: ignore[attr-defined]


class _Adapting(MetaPathFinder):
    """Adapts Numba when it is imported. Importing it here would take half a second."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> Any:
        if name != _CACHING:
            return None
        sys.meta_path.remove(self)
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            loader = spec.loader
            run = loader.exec_module

            def exec_module(module: ModuleType) -> None:
                run(module)
                adapt(module)

            loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def install() -> None:
    """Adapt Numba now, or when it is imported."""
    if _CACHING in sys.modules:
        adapt(sys.modules[_CACHING])
    elif not any(isinstance(finder, _Adapting) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Adapting())
