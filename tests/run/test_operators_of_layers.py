"""Operators in files of the user's that single layers of a configuration name."""

from pathlib import Path

import pytest

from app.__main__ import main
from app.experiment.train_command import main as train_py
from app.run.config import load_config, operators_typed

pytestmark = pytest.mark.slow

OPERATORS = """
import app

open(__file__ + ".was_run", "a").close()

def swish(x):
    return x / (1.0 + app.exp(-x))
"""
LAYERS = "model: {layers: [{type: dense, units: 4, activation: 'ops.py:swish'}, {type: dense, units: 3}]}"
TYPED = "model.layers=[{type: dense, units: 4, activation: 'own/ops.py:swish'}, {type: dense, units: 3}]"


@pytest.fixture
def marker(tmp_path, monkeypatch):
    """What own/ops.py writes when it is run; own/a.yaml names an operator in it."""
    monkeypatch.chdir(tmp_path)
    Path("own").mkdir()
    Path("own/ops.py").write_text(OPERATORS)
    Path("own/a.yaml").write_text(LAYERS)
    return tmp_path / "own" / "ops.py.was_run"


def test_a_configuration_runs_no_operator_that_the_user_did_not_name(marker, capsys):
    assert load_config("own/a.yaml").model.all_layers[0].activation == "own/ops.py:swish"
    for command in (train_py, lambda words: main(["inspect", *words]), lambda words: main(["compare", *words])):
        assert command(["--config", "own/a.yaml"]) == 1
        told = "error: own/a.yaml names own/ops.py:swish: Python code, which is executed only if you"
        assert capsys.readouterr().err.startswith(told)
    assert not marker.exists()


@pytest.mark.parametrize("words", [("--config", "own/a.yaml", "--custom-op", "own/ops.py"), (TYPED,)])
def test_a_named_operator_trains_and_resumes(train, marker, capsys, words):
    assert operators_typed([TYPED]) == ["own/ops.py:swish"]
    run = train(*words, "train.epochs=1", "report=true", "check=true")
    assert (run.status, run.err) == (0, "")
    assert "own/ops.py:swish: gradient agrees" in run.out
    page = (run.folder / "report.html").read_text(encoding="utf-8")
    assert "return x / (1.0 + app.exp(-x))" in page
    assert "only single layers use this operator" in page
    again = ["--resume", str(run.folder), "train.epochs=2"]
    marker.unlink()
    assert train_py(again) == 1
    assert "is executed only if you name it" in capsys.readouterr().err
    assert train_py([*again, "--custom-op", "own/ops.py"]) == 0
    Path("own/ops.py").write_text(OPERATORS.replace("x / (", "1 / ("))
    assert train_py([*again, "train.epochs=3", "--custom-op", "own/ops.py"]) == 1
    assert "the source of own/ops.py:swish, or of a function that it calls, has changed" in capsys.readouterr().err
