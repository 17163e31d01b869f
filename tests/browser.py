"""Chromium without a window, for tests of pages by what a person would see and click.

The tests that need it are skipped, and say so, where there is no Chromium; `.ci/run` installs it.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
PHONE = {"width": 360, "height": 740}
WIDE = {"width": 1440, "height": 900}


class Visitor:
    """Somebody who opens pages, and remembers what went wrong on them and what they fetched."""

    def __init__(self, browser: Browser):
        self._browser = browser
        self._contexts: list[BrowserContext] = []
        self.problems: list[str] = []
        self.requested: list[str] = []

    def open(self, address: str, size: dict[str, int] = WIDE, **options: Any) -> Page:
        """The page at an address. Options are those of playwright's `new_context`, such as `color_scheme="dark"`."""
        context = self._browser.new_context(viewport=size, **options)
        self._contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(30_000)
        page.on("console", lambda message: self._said(message.type, message.text))
        page.on("pageerror", lambda error: self.problems.append(str(error)))
        page.on("request", lambda request: self._fetched(request.url))
        page.goto(address)
        return page

    def leave(self) -> None:
        """Close every page."""
        for context in self._contexts:
            context.close()

    def _said(self, kind: str, text: str) -> None:
        if kind in ("error", "warning"):
            self.problems.append(text)

    def _fetched(self, address: str) -> None:
        if not address.startswith(("data:", "blob:")):
            self.requested.append(address)


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """One browser for all tests of a worker; `xdist_group("browser")` brings them to the same one."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.skip(f"no Chromium: none of {', '.join(NAMES)} is installed")
    from playwright.sync_api import sync_playwright  # imported late: few tests need it

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])  # which root needs
        yield browser
        browser.close()


@pytest.fixture
def visitor(chromium: Browser) -> Iterator[Visitor]:
    """Opens pages; at the end of the test none of them may have complained in its console."""
    someone = Visitor(chromium)
    yield someone
    someone.leave()
    if someone.problems:
        pytest.fail("a page complained: " + "; ".join(someone.problems))
