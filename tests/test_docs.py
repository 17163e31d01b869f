"""Snippets and commands of the pages in docs/ run, in order, and print what is shown; links have targets."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import forked
import pytest
from test_public_names import modules_in

import app

ROOT = Path(__file__).parents[1]
PAGES = sorted((ROOT / "docs").glob("*.md"))
LINKING = [*(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "data/README.md")), *PAGES]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LEFT_OUT = "…"
SPARED = {
    "check: false": "gradient agrees",
    "costs: false": "Time of one call alone",
    "report: false": "report.html",
    "engine: reference": "engine compiled",
    "model: {hidden: [10]}": "784-100-10",
}
"""Settings that spare trainings what takes long to compile or compute, and what a page shows where they do not."""
NEEDS = {"bridge.md": ("torch", "jax")}
"""Packages of the extra `bridge` that the snippets of a page import."""


@pytest.fixture
def checkout(tmp_path: Path, page: Path) -> Path:
    """A folder like the checkout, whose quick.yaml takes fewer steps and leaves out what the page does not show."""
    for name in ("train.py", "app", "opsmith", "examples"):
        (tmp_path / name).symlink_to(ROOT / name)
    (tmp_path / "configs").mkdir()
    shown = "".join(text for language, text in BLOCK.findall(page.read_text(encoding="utf-8")) if language == "text")
    spared = "".join(f"\n{setting}\n" for setting, sign in SPARED.items() if sign not in shown)
    for file in (ROOT / "configs").iterdir():
        text = file.read_text(encoding="utf-8")
        if file.stem == "quick":
            text = text.replace("batch_size: 64", "batch_size: 1000") + spared
        (tmp_path / "configs" / file.name).write_text(text, encoding="utf-8")
    return tmp_path


def commands(text: str) -> Iterator[tuple[list[str], int]]:
    """The words of each command of a block, after `python`, and its exit status."""
    for line in text.splitlines():
        if words := shlex.split(line, comments=True):
            yield after_python(words), int("exit status 1" in line)


def after_python(words: list[str]) -> list[str]:
    """The words of a command after `python`."""
    assert words[0] in (".venv/bin/python", ".venv/bin/opsmith"), f"nobody runs {shlex.join(words)}"
    return words[1:] if words[0] == ".venv/bin/python" else ["-m", "opsmith", *words[1:]]


def run(words: list[str], folder: Path, status: int = 0) -> str:
    done = forked.run(words, cwd=folder)
    shown = "" if "--json" in words else done.stderr  # with --json the progress goes there
    assert (done.returncode, shown) == (status, ""), words
    return done.stdout


@pytest.mark.parametrize("page", PAGES, ids=[page.name for page in PAGES])
@pytest.mark.slow
def test_a_page_shows_what_its_snippets_print(page: Path, checkout: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PYTHONPATH", str(checkout))
    for package in NEEDS.get(page.name, ()):
        pytest.importorskip(package)
    printed = ""
    for number, (language, text) in enumerate(BLOCK.findall(page.read_text(encoding="utf-8"))):
        if language == "python":
            name = re.match(r"# (\w+\.py)\n", text)
            file = checkout / (name[1] if name else f"snippet_{number}.py")
            file.write_text(text, encoding="utf-8")
            printed = run([str(file)], checkout)
        elif language == "sh":
            printed = "".join(run(words, checkout, status) for words, status in commands(text))
        elif language == "text":
            assert left_out_without_a_sign(text, printed) == "", f"{page.name} shows what is not printed:\n{printed}"


def left_out_without_a_sign(shown: str, printed: str) -> str:
    """The first part of a listing, up to a line of …, whose lines do not follow each other in what is printed."""
    lines = [line for line in printed.splitlines() if line.strip()]
    for part in re.split(rf"^{LEFT_OUT}$", shown, flags=re.MULTILINE):
        block = [line for line in part.splitlines() if line.strip()]
        place = next((n for n in range(len(lines)) if lines[n : n + len(block)] == block), None)
        if block and place is None:
            return part
        lines = lines[(place or 0) + len(block) :]
    return ""


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub and mkdocs make them."""
    text = BLOCK.sub("", page.read_text(encoding="utf-8"))
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {
        re.sub(r"[^\w\- ]", "", re.sub(r"\]\(.*?\)", "", title)).strip().lower().replace(" ", "-") for title in headings
    }


@pytest.mark.parametrize("page", LINKING, ids=[str(page.relative_to(ROOT)) for page in LINKING])
def test_links_have_a_target(page: Path):
    text = page.read_text(encoding="utf-8")
    missing = []
    for target in map("".join, re.findall(r'\]\(([^)\s]+)\)|(?:href|src|srcset)="([^"]+)"', text)):
        path, _, anchor = target.partition("#")
        file = page.parent / path if path else page
        if "://" in path or path.startswith("mailto:"):
            continue
        if not file.exists() or (anchor and anchor not in anchors(file)):
            missing.append(target)
    assert missing == []


INDEX = re.findall(r"^\d+\. \[.+?\]\((.+?)\)", (ROOT / "docs" / "index.md").read_text(encoding="utf-8"), re.MULTILINE)
NEXT = [*zip(["index.md", *INDEX], [*INDEX, "../CONTRIBUTING.md"], strict=True)]


@pytest.mark.parametrize("name", ["benchmarks.svg", "program.svg"])
def test_a_chart_has_colours_for_dark_pages(name: str):
    assert "prefers-color-scheme: dark" in (ROOT / "docs" / name).read_text(encoding="utf-8")


def test_the_index_lists_every_page_once():
    assert sorted(INDEX) == sorted(page.name for page in PAGES if page.name != "index.md")


@pytest.mark.parametrize(("page", "following"), NEXT, ids=[page for page, _ in NEXT])
def test_a_page_ends_with_a_link_to_the_next(page: str, following: str):
    last = (ROOT / "docs" / page).read_text(encoding="utf-8").rstrip().splitlines()[-1]
    assert re.fullmatch(rf"Next: \[[^]]+\]\({re.escape(following)}\)", last)


def test_the_reference_lists_every_public_module():
    page = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| `(opsmith[\w.]*)` \|", page, re.MULTILINE)
    assert sorted(listed) == sorted(path for path, _ in modules_in("opsmith", app))
