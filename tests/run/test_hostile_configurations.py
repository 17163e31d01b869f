"""What a configuration from a stranger cannot do: run anything, take much memory or time, or write elsewhere."""

import os
import re
import resource
import shutil
import sys
import time
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from app.experiment.train_command import main
from app.run.folder import folder_name

HOSTILE = {
    "!!python/object/apply:os.mkdir [made]": "is not allowed here",
    "!!python/module:antigravity": "is not allowed here",
    "!<tag:yaml.org,2002:python/object/apply:os.mkdir> [made]": "is not allowed here",
    "&a {seed: 1}\nb:\n  <<: *a": "the alias *a is not allowed here",
    "[" * 500 + "]" * 500: "nested more than 16 deep",
    "[" * 40_000 + "]" * 40_000: "exceeded maximum nesting depth",
    "[" + "1,\n" * 30_000 + "1]": "expected a whole number of at least 0",
    "1\n# nothing follows": "larger than 100,000 bytes",  # a gigabyte of it
}


@pytest.mark.parametrize(("value", "message"), HOSTILE.items(), ids=lambda text: text[:30])
def test_a_hostile_value_is_refused_soon_in_a_line_and_makes_nothing(value, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("strange.yaml").write_text(f"seed: {value}\n")
    if "# nothing" in value:
        os.truncate("strange.yaml", 1 << 30)
    modules = set(sys.modules)
    start, before = time.monotonic(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    status = main(["--config", "strange.yaml"])
    seconds = time.monotonic() - start
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    printed = capsys.readouterr()
    assert (status, printed.out, printed.err.count("\n")) == (2, "", 1)
    assert message in printed.err
    assert len(printed.err) < 500
    assert seconds < 10
    assert grown < (200 << 20 if sys.platform == "darwin" else 200 << 10)
    assert os.listdir(tmp_path) == ["strange.yaml"]
    assert "antigravity" not in set(sys.modules) - modules


@given(st.text().filter(lambda path: "\0" not in path))
@example("../../x")
@example("..")
@example("a/..")
@example("a b\n$(touch made)")
@example("c:\\windows.py")
def test_the_name_of_a_run_leads_nowhere_else(path):
    for operators in (["relu", f"{path}.py:swish"], ["relu", f"my_ops.py:{path}"]):
        assert re.fullmatch(r"relu[\w.-]*", folder_name(operators))


def test_an_operator_with_a_name_that_climbs_writes_into_the_run_alone(train, images, tmp_path):
    file = tmp_path / "outside" / "deep" / "..; touch made .py"
    file.parent.mkdir(parents=True)
    shutil.copy(Path(__file__).with_name("misbehaving_operators.py"), file)
    before = set(tmp_path.rglob("*"))
    train("model.activation=outside/deep/../deep/..; touch made .py:relu_as_it_is", "baseline=null", "costs=false")
    paths = {str(path.relative_to(tmp_path)) for path in set(tmp_path.rglob("*")) - before}
    written = [path for path in paths if "__pycache__" not in path]
    assert written
    assert all(path == "run" or path.startswith("run/") for path in written)


@pytest.mark.parametrize(
    "model",
    [
        "hidden: [200000]",
        "hidden: [1000, 32900]",
        "hidden: [1000000000000]",
        "layers: [{type: conv, channels: 100000000, kernel: 5}]",
        "layers: [{type: conv, channels: 6, kernel: 3}, {type: dense, units: 100000}]",
    ],
)
def test_a_network_that_takes_much_memory_is_refused_before_it_is_built(model, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("strange.yaml").write_text(f"model: {{{model}}}\ndata: {{source: sample}}\n")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for engine in ("compiled", "eager"):
        assert main(["--config", "strange.yaml", "check=false", f"engine={engine}"]) == 2
        assert "weights up to this layer; at most 33,554,432 are possible" in capsys.readouterr().err
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 400 << 10
    assert os.listdir(tmp_path) == ["strange.yaml"]
