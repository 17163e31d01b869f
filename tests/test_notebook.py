"""The example notebook runs from its first cell to its last, and keeps an output that is small and its own."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("notebook")]  # executed once

ROOT = Path(__file__).parents[1]
NOTEBOOK = ROOT / "examples" / "custom_operator.ipynb"


def read() -> Any:
    """The notebook; imports its library late, as few tests need it."""
    nbformat = pytest.importorskip("nbformat", reason="nbclient and ipykernel are of the dev extra")
    return nbformat.read(NOTEBOOK, as_version=4)


@pytest.fixture(scope="module")
def executed(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The notebook, executed in an empty folder."""
    nbclient = pytest.importorskip("nbclient", reason="nbclient and ipykernel are of the dev extra")
    notebook = read()
    for cell in notebook.cells:  # other tests train for longer, and with the engine that compiles
        cell.source = cell.source.replace("epochs=2", "epochs=1, hidden=[32]")
        cell.source = cell.source.replace("report=False)", 'report=False, engine="reference")')
    folder = tmp_path_factory.mktemp("notebook")
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", path)
        client = nbclient.NotebookClient(notebook, timeout=180, resources={"metadata": {"path": str(folder)}})
        client.execute()
    for cell in notebook.cells:
        cell.outputs = joined(cell.get("outputs", []))
    return notebook


def joined(outputs: list[Any]) -> list[Any]:
    """Outputs with the pieces of each stream together, as a notebook shows and keeps them."""
    together: list[Any] = []
    for output in outputs:
        last = together[-1] if together else None
        if last is not None and output.output_type == last.output_type == "stream" and output.name == last.name:
            last.text += output.text
        else:
            together.append(output)
    return together


def outputs(notebook: Any, beginning: str) -> list[Any]:
    """What the cell shows that begins with these words."""
    (cell,) = [c for c in notebook.cells if c.cell_type == "code" and c.source.startswith(beginning)]
    return cell.outputs


def test_the_notebook_shows_a_comparison(executed: Any):
    progress, shown = outputs(executed, "settings = dict")
    assert "Seed 0 (1 of 3)\n  relu   validation accuracy 0." in progress.text
    assert progress.text.splitlines()[-1].startswith("The comparison is in runs/compare-")
    assert shown.data["text/html"].count('class="forest"') == 2
    assert "Tested over seeds" in shown.data["text/plain"]


def test_loss_and_accuracy_are_printed_while_a_network_trains(executed: Any):
    (printed,) = [output for output in outputs(executed, "run = ") if output.output_type == "stream"]
    assert re.search(r"epoch 1/\d+  iteration +0/\d+  loss \d\.\d{4}  accuracy \d\.\d{4}\n", printed.text)


def test_every_cell_has_its_display(executed: Any):
    marks = {
        "@opsmith.custom_op(elementwise=True)\ndef swish": "def swish_grad(x",
        "x = opsmith.to_tensor": "Tensor 3 × 4",
        "opsmith.check(swish": "all checks passed",
        "@opsmith.custom_op(elementwise=True)\ndef hasty": "1 of 1 FAILED",
        "run = opsmith.train": "chart-accuracy",
        "program = opsmith.static": "data:image/svg+xml",
        "opsmith.inspect": "swish_grad(x[row, i1]",
    }
    for beginning, mark in marks.items():
        assert mark in outputs(executed, beginning)[-1].data["text/html"], beginning
    accuracies = eval(outputs(executed, 'result["swish"]')[0].data["text/plain"])
    assert min(accuracies) > 0.7


def test_there_are_no_warnings(executed: Any):
    all_outputs = [output for cell in executed.cells for output in cell.get("outputs", [])]
    assert [output.text for output in all_outputs if output.output_type == "stream" and output.name == "stderr"] == []
    assert "object at 0x" not in str(all_outputs)


def test_the_file_has_small_outputs_of_the_same_cells(executed: Any):
    notebook = read()
    assert NOTEBOOK.stat().st_size < 200_000
    for cell, again in zip(notebook.cells, executed.cells, strict=True):
        assert len(cell.get("outputs", [])) == len(again.get("outputs", [])), cell.source
        assert str(ROOT) not in str(cell.get("outputs"))
