"""The hook of mkdocs that makes a site of docs/, whose pages are written to be read on GitHub as well.

- The navigation is that of docs/index.md: its headings are the sections, its links the pages.
- Links that leave docs/ lead to pages made here: Markdown files as they are, sources as listings.
- `reference/NAME.md` documents each public module from its docstrings, with mkdocstrings.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

import app

ROOT = Path(__file__).resolve().parents[1]
LINK = re.compile(r"(\]\()([^)\s#]+)(#[^)\s]*)?(\))")
CODE = re.compile(r"^(`{3,}|~{3,}).*?^\1$", re.MULTILINE | re.DOTALL)
LISTED = (".py", ".yaml", ".txt", ".md", ".ipynb", ".sbatch")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    config.nav = [{"Overview": "index.md"}, *_sections()]
    for section in config.nav:
        for pages in section.values():
            if pages[0] == "reference.md":
                pages[0] = {"API": [pages[0], *(_reference(name) for name in modules())]}
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are made here."""
    made = {_reference(name): _api_page(name, module) for name, module in modules().items()}
    waiting = [target for page in sorted((ROOT / "docs").glob("*.md")) for target in _outside(page)]
    while waiting:
        path = waiting.pop()
        if _address(path) not in made:
            made[_address(path)] = _outside_page(path)
            if (ROOT / path).suffix == ".md":
                waiting += _outside(ROOT / path)
            elif (ROOT / path).is_dir():
                waiting += _entries(path)
    for address, text in made.items():
        files.append(File.generated(config, address, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Point the links of a page that is in docs/ to where their targets are on the site."""
    if page.file.generated_by:
        return markdown
    if page.file.src_uri == "reference.md":
        for name in modules():
            markdown = markdown.replace(f"| `{name}` |", f"| [`{name}`]({_reference(name)}) |")
    return _moved(markdown, "docs", page.file.src_uri)


def modules() -> dict[str, ModuleType]:
    """The public modules by their names, the package first."""

    def walk(name: str, module: ModuleType) -> Iterator[tuple[str, ModuleType]]:
        yield name, module
        for inner in sorted(module.__all__):
            if isinstance(value := getattr(module, inner), ModuleType):
                yield from walk(f"{name}.{inner}", value)

    return dict(walk("opsmith", app))


def _reference(name: str) -> str:
    return f"reference/{name}.md"


def _api_page(path: str, module: ModuleType) -> str:
    """What a module offers: a table of names, and each of them from its docstring."""
    lines = [f"# {path}", "", str(module.__doc__), ""]
    inner = [f"{path}.{name}" for name in sorted(module.__all__) if isinstance(getattr(module, name), ModuleType)]
    if inner:
        lines += ["Modules: " + ", ".join(f"[`{name}`]({posixpath.basename(_reference(name))})" for name in inner), ""]
    constants = []
    for name in sorted(module.__all__, key=str.lower):
        value = getattr(module, name)
        if isinstance(value, ModuleType):
            continue
        defined = getattr(value, "kernel", value)  # an operator is documented by its kernel
        home, where = getattr(defined, "__module__", None), getattr(defined, "__qualname__", "")
        if isinstance(value, (str, int, float)):
            constants.append(f"`{path}.{name}` is `{value!r}`.")
        elif home and where and "<" not in where and _is_written_down(home, where):
            lines += [f"::: {home}.{where}", "    options:", f"      heading: {path}.{name}", ""]
        else:
            lines += [f"## {path}.{name}", "", str(value.__doc__), ""]
    return "\n".join([*lines, *constants, ""])


def _is_written_down(home: str, where: str) -> bool:
    """Whether the source has a definition of that name, rather than a call that makes one."""
    file = ROOT / Path(*home.split("."))
    source = file.with_suffix(".py") if file.with_suffix(".py").exists() else file / "__init__.py"
    return bool(re.search(rf"^\s*(def|class) {where.rpartition('.')[2]}\b", source.read_text("utf-8"), re.MULTILINE))


def _sections() -> list[dict[str, list[Any]]]:
    """The parts of docs/index.md that list pages, each with them."""
    parts = re.split(r"^## (.+)$", (ROOT / "docs" / "index.md").read_text("utf-8"), flags=re.MULTILINE)[1:]
    links = (re.findall(r"^\d+\. \[.+?\]\((.+?)\)", text, re.MULTILINE) for text in parts[1::2])
    return [{title: list(pages)} for title, pages in zip(parts[::2], links, strict=True) if pages]


def _outside(page: Path) -> list[str]:
    """The paths in the checkout of what a page links to outside of docs/."""
    folder = page.parent.relative_to(ROOT).as_posix()
    linked = (posixpath.normpath(posixpath.join(folder, m[2])) for m in LINK.finditer(page.read_text("utf-8")))
    return [path for path in linked if not path.startswith(("docs/", "http")) and (ROOT / path).exists()]


def _entries(folder: str) -> list[str]:
    found = sorted((ROOT / folder).iterdir())
    return [file.relative_to(ROOT).as_posix() for file in found if file.is_file() and file.suffix in LISTED]


def _address(path: str) -> str:
    """Where the site has a file or a folder of the checkout."""
    if path == "README.md":
        return "index.md"
    return path.removeprefix("docs/") if path.startswith("docs/") else f"files/{path.removesuffix('.md')}.md"


def _outside_page(path: str) -> str:
    file = ROOT / path
    if file.suffix == ".md":
        return _moved(file.read_text("utf-8"), posixpath.dirname(path), _address(path))
    start = f"---\nsearch:\n  exclude: true\n---\n\n# {path}\n\n"
    if file.is_dir():
        links = [_between(_address(path), _address(entry)) for entry in _entries(path)]
        return start + "\n".join(f"- [{posixpath.basename(link)[:-3]}]({link})" for link in links) + "\n"
    language = {".py": "python", ".yaml": "yaml", ".ipynb": "json"}.get(file.suffix, "text")
    return f"{start}~~~~~~{language}\n{file.read_text('utf-8')}\n~~~~~~\n"


def _moved(markdown: str, folder: str, address: str) -> str:
    """The text of a file of `folder` with links that are right at `address` of the site."""

    def link(found: re.Match[str]) -> str:
        if "://" in found[2]:
            return found[0]
        path = posixpath.normpath(posixpath.join(folder, found[2]))
        return f"{found[1]}{_between(address, _address(path))}{found[3] or ''}{found[4]}"

    code = [*CODE.finditer(markdown)]
    if not code:
        return LINK.sub(link, markdown)
    ends = [0, *(end for block in code for end in block.span()), len(markdown)]
    pieces = [markdown[a:b] for a, b in pairwise(ends)]
    return "".join(piece if number % 2 else LINK.sub(link, piece) for number, piece in enumerate(pieces))


def _between(start: str, target: str) -> str:
    return posixpath.relpath(target, posixpath.dirname(start) or ".")
