"""The notebook that goes from a cell to a training loop of PyTorch prints what it shows."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
NOTEBOOK = ROOT / "examples" / "pytorch.ipynb"


def printed(notebook: Any) -> list[str]:
    return [output.text for cell in notebook.cells for output in cell.get("outputs", [])]


def test_the_notebook_prints_what_it_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    nbformat = pytest.importorskip("nbformat", reason="nbclient and ipykernel are of the dev extra")
    nbclient = pytest.importorskip("nbclient", reason="nbclient and ipykernel are of the dev extra")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]))
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    shown = printed(notebook)
    nbclient.NotebookClient(notebook, timeout=180, resources={"metadata": {"path": str(tmp_path)}}).execute()
    assert printed(notebook)[:-1] == shown[:-1]
    (accuracy,) = [int(text.split()[-1].rstrip("%\n")) for text in printed(notebook)[-1:]]
    assert accuracy > 80
