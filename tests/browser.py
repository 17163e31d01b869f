"""Chromium without a window, for tests of pages by what a person would see and click.

The tests that need it are skipped, and say so, where there is no Chromium; `.ci/run` installs it.
"""

from __future__ import annotations

import functools
import shutil
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
PHONE = {"width": 360, "height": 740}
WIDE = {"width": 1440, "height": 900}


class Visitor:
    """Somebody who opens pages, and remembers what went wrong on them and what they fetched."""

    def __init__(self, browser: Browser):
        self._browser = browser
        self._listened: list[tuple[Page, str, Callable[[Any], None]]] = []
        self.problems: list[str] = []
        self.requested: list[str] = []

    def open(self, address: str, size: dict[str, int] = WIDE, color_scheme: Any = "light", **options: Any) -> Page:
        """The page at an address. Options are those of playwright's `new_context`, such as `has_touch=True`."""
        page = _page(self._browser, **options)
        page.set_viewport_size(size)
        page.emulate_media(color_scheme=color_scheme)
        self._listen(page, "console", lambda message: self._said(message.type, message.text))
        self._listen(page, "pageerror", lambda error: self.problems.append(str(error)))
        self._listen(page, "request", lambda request: self._fetched(request.url))
        page.goto(address)
        return page

    def leave(self) -> None:
        """Leave every page as the next test wants to find it."""
        for page, event, heard in self._listened:
            page.remove_listener(event, heard)
        for page in {page for page, _, _ in self._listened}:
            page.mouse.move(0, 0)
            page.emulate_media(media="null", reduced_motion="null")
            page.goto("about:blank")

    def _listen(self, page: Page, event: Any, heard: Callable[[Any], None]) -> None:
        page.on(event, heard)
        self._listened.append((page, event, heard))

    def _said(self, kind: str, text: str) -> None:
        if kind in ("error", "warning"):
            self.problems.append(text)

    def _fetched(self, address: str) -> None:
        if not address.startswith(("data:", "blob:")):
            self.requested.append(address)


@functools.cache
def _page(browser: Browser, **options: Any) -> Page:
    """One for all tests, but for those of touch and without script: a new one takes Chromium a second."""
    page = browser.new_context(**options).new_page()
    page.set_default_timeout(30_000)
    return page


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """One browser for all tests of a worker; `xdist_group("browser")` brings them to the same one."""
    executable = next(filter(None, map(shutil.which, NAMES)), None)
    if executable is None:
        pytest.skip(f"no Chromium: none of {', '.join(NAMES)} is installed")
    from playwright.sync_api import sync_playwright  # imported late: few tests need it

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=executable, args=["--no-sandbox", "--disable-gpu"]
        )  # which root needs
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
