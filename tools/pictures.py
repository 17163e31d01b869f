"""Photograph the report of a run for the README, in light and dark: docs/report.png and docs/report-dark.png.

`make pictures` trains by configs/default.yaml first; `make pictures ARGS=runs/NAME` takes a run that is there. It needs
Chromium.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parents[1]
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
SIZE = {"width": 1240, "height": 1290}
PICTURES = {"light": ROOT / "docs" / "report.png", "dark": ROOT / "docs" / "report-dark.png"}


def main() -> None:
    browser = next(filter(None, map(shutil.which, NAMES)), None)
    if browser is None:
        sys.exit(f"there is no Chromium: none of {', '.join(NAMES)} is installed")
    if sys.argv[1:]:
        photograph(Path(sys.argv[1]).resolve(), browser)
        return
    with tempfile.TemporaryDirectory(prefix="opsmith-pictures-") as folder:
        output = Path(folder) / "run"
        subprocess.run([sys.executable, "train.py", f"output={output}"], cwd=ROOT, check=True)
        photograph(output, browser)


def photograph(run: Path, browser: str) -> None:
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        for scheme, file in PICTURES.items():
            page = chromium.new_page(viewport=SIZE, color_scheme=scheme)
            page.goto((run / "report.html").as_uri())
            page.screenshot(path=file)
            print(f"{file.relative_to(ROOT)} is written")
        chromium.close()


if __name__ == "__main__":
    main()
