"""`opsmith inspect` as a user types it."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
import svg_reading

import app
from app import static
from app.__main__ import main
from app.custom.lookup import find_operator
from app.engine.compiled.passes import PASSES
from app.errors import ConfigError
from app.inspection.stages import NAMES

ROOT = Path(app.__file__).parents[1]
SEED = ("--config", str(ROOT / "configs" / "seed.yaml"))
MPI = ("--config", str(ROOT / "configs" / "mpi.yaml"))
NETWORK = """
import app
from app import static

def network():
    x = static.data("x", [None, 4])
    loss = app.mean(
        static.nn.fc(x, 3))
    app.optimizer.SGD(0.1).minimize(loss)
    return loss

def program():
    app.tanh(static.data("x", [None, 4]))
    return static.default_main_program()

def outputs():
    x = static.data("x", [None, 4])
    return {"a": app.tanh(x), "b": [app.exp(x)]}

def nothing():
    static.data("x", [None, 4])

def broken():
    return 1 / 0

def misshapen():
    return app.matmul(static.data("x", [2, 3]), static.data("y", [2, 3]))

def empty():
    return static.Program()

number = 3
"""

Inspect = Callable[..., str]


@pytest.fixture
def inspect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Inspect:
    """`opsmith inspect ...` in a folder with nets.py; gives what it prints, or the message that it ends with."""
    (tmp_path / "nets.py").write_text(NETWORK)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "nets", raising=False)

    def run(*words: str, status: int = 0) -> str:
        assert main(["inspect", *words]) == status
        out, err = capsys.readouterr()
        if not status:
            assert err == ""
            return out
        assert re.fullmatch(r"error: .*\n", err), err
        return err.removeprefix("error: ").rstrip()

    return run


@pytest.mark.slow
def test_an_operator_is_shown_with_the_gradient_that_was_derived_for_it(inspect: Inspect, tmp_path: Path):
    text = "import app\n\n@app.custom_op\ndef squared(x):\n    return x * x\n"
    (tmp_path / "squares.py").write_text(text)
    printed = inspect("squares.py:squared", "--stage", "source")
    assert headings(printed) == ["The source of squared_grad, which was derived", "The source that is generated"]
    assert "def squared_grad(x, d" in printed
    assert headings(inspect("custom.swish", "--stage", "main")) == ["The main Program, run for every batch"]


def headings(printed: str) -> list[str]:
    return re.findall(r"^== (.*)", printed, re.MULTILINE)


@pytest.mark.slow
def test_the_usual_stages_of_a_configured_network_are_printed(inspect: Inspect):
    assert "float32[784, 7]" in inspect(*SEED, "model.hidden=[7]", "--stage", "main")
    printed = inspect(*SEED)
    assert headings(printed) == [
        "The startup Program, run once",
        "The main Program, run for every batch",
        "What each pass did, in a batch of 256",
        "The main Program after the passes",
        "How the compiled engine runs it",
        "The memory of values, in a batch of 256",
        "The source that is generated",
    ]
    assert "py_func.relu_forward_0 = py_func.relu_forward(add.out_1)  // relu.py:" in printed
    assert "byte_product(image, linear_0.w_0" in printed
    assert "def train(" in printed


def test_all_stages_are_shown_with_the_program_after_each_pass(inspect: Inspect):
    printed = inspect(*SEED, "--stage", "all")
    after = [f"The main Program after {each.name}" for each in PASSES]
    shown = headings(printed)
    assert sorted(after) == sorted(
        h for h in shown if h.startswith("The main Program after ") and "the passes" not in h
    )
    assert shown[0] == "What each statement put into the startup and the main Program"


def test_collectives_of_any_rank_are_shown_without_mpi(inspect: Inspect):
    mpi = (*MPI, "dist.shape=allreduce")
    (heading,) = headings(printed := inspect(*mpi, "--stage", "data_parallel"))
    assert heading == "The main Program after data_parallel"
    assert "// 4 sgd" not in printed
    assert " = average(linear_0.w_0, " in printed
    with_velocity = inspect(*mpi, "train.optimizer=momentum", "--stage", "data_parallel")
    assert " = average(linear_0.w_0@GRAD, " in with_velocity
    trainer = inspect(*mpi, "dist.shape=pserver", "--rank", "3", "--stage", "data_parallel")
    assert "// 4 sgd → multiply, send_gradients, receive_parameters" in trainer
    assert "if call_python(shared, n):" in inspect(*mpi, "--stage", "source")


@pytest.mark.parametrize("stage", NAMES)
def test_a_stage_is_shown_alone(stage: str, inspect: Inspect):
    printed = inspect("nets.py:network", "--stage", stage)
    times = [each.name for each in PASSES].count(stage) or 1
    assert len(set(headings(printed))) == 1
    assert len(headings(printed)) == times


def test_each_pass_has_a_line_with_operators_buffers_and_bytes_before_and_after(inspect: Inspect):
    _, title, *lines = inspect(*SEED, "--stage", "passes").strip().splitlines()[1:]
    assert title.split() == ["pass", "operators", "buffers", "bytes", "what", "it", "did"]
    pair = r"([\d,]+ → +[\d,]+)"
    rows = [re.fullmatch(rf"(\w+) +{pair} +{pair} +{pair}  (.+)", line).groups() for line in lines]
    assert [row[0] for row in rows] == [each.name for each in PASSES]
    numbers = [[tuple(int(n.replace(",", "")) for n in cell.split(" → ")) for cell in row[1:4]] for row in rows]
    assert numbers[0][0][0] == 28
    assert numbers[-1][0][1] == 20
    for before, after in pairwise(numbers):
        assert [pair[1] for pair in before] == [pair[0] for pair in after]
    descriptions = {row[0]: row[4] for row in rows}
    assert descriptions["steps"] == "2 matmul, 2 sgd → 2 matmul_step"
    fused = "add+py_func.relu_forward, subtract+multiply"
    assert descriptions["fusion"] == f"add, py_func.relu_forward, subtract, multiply → {fused}"
    assert descriptions["dead_code"] == "nothing to do"


@pytest.mark.parametrize(
    ("name", "shown"),
    [("network", ["matmul(x, fc_0.w_0)"]), ("program", ["tanh(x)"]), ("outputs", ["tanh(x)", "exp(x)"])],
)
def test_a_function_may_return_a_loss_a_program_or_several_outputs(name: str, shown: list[str], inspect: Inspect):
    printed = inspect(f"nets.py:{name}", "--stage", "main")
    assert all(f" = {call}" in printed for call in shown)


def test_the_operators_that_each_statement_of_a_function_added_are_shown(inspect: Inspect):
    shown = inspect("nets.py:network", "--stage", "build").split("\n\n")[1:]
    assert [block.splitlines()[0] for block in shown] == [
        'nets.py:6  x = static.data("x", [None, 4])',
        "nets.py:7  loss = app.mean(",
        "nets.py:9  app.optimizer.SGD(0.1).minimize(loss)",
    ]
    assert "    main     mean.out_0 = mean(add.out_0)" in shown[1]
    assert "    startup  fc_0.b_0 = fill_constant(shape=(3,), value=0.0)" in shown[1]


def test_the_statements_that_a_configuration_runs_are_shown(inspect: Inspect):
    shown = inspect(*SEED, "--stage", "build")
    lines = re.findall(r"^(\w+\.py):\d+  (.*)", shown, re.MULTILINE)
    assert lines[0] == ("program.py", 'image = data("image", [None, pixels_of(image_shape)], "uint8")')
    assert ("network.py", "x = step(x)") in lines
    assert "minimize" in lines[-1][1]


def test_a_saved_model_is_shown(inspect: Inspect, tmp_path: Path):
    x = static.data("x", [None, 4])
    out = app.tanh(static.nn.fc(x, 3))
    executor = static.Executor()
    executor.run(static.default_startup_program())
    static.save_inference_model(str(tmp_path / "net"), [x], [out])
    printed = inspect("net", "--stage", "main")
    assert "tanh.out_0 = tanh(add.out_0)" in printed
    assert inspect("net.json", "--stage", "main") == printed
    assert "known of configurations and of functions" in inspect("net", "--stage", "build")
    assert "BLAS" in inspect("net")


def test_the_call_shows_what_the_command_does(inspect: Inspect):
    x = static.data("x", [None, 4])
    static.save_inference_model("net", [x], [app.tanh(x)])
    for word in ("net", "nets.py:network", "custom.relu", "relu"):
        assert inspect(word, "--stage", "main").rstrip() == str(app.inspect(word, "main"))
    assert headings(inspect("relu")) == headings(str(app.inspect("relu")))
    of_rank = app.inspect(stage="data_parallel", rank=1, config=MPI[1])
    assert inspect(*MPI, "--stage", "data_parallel", "--rank", "1").rstrip() == str(of_rank)
    with pytest.raises(ConfigError, match="rank is a whole number of at least 0, for the network of a configuration"):
        app.inspect("relu", rank=1)


def test_a_saved_model_with_a_custom_operator_is_shown_if_the_operator_is_named(inspect: Inspect, tmp_path: Path):
    (tmp_path / "my_own.py").write_text(
        "import app\n@app.custom_op(elementwise=True)\ndef double(x):\n    return x + x\n"
    )
    x = static.data("x", [None, 4])
    static.save_inference_model(str(tmp_path / "net"), [x], [find_operator("my_own.py:double")(x)])
    assert "--custom-op" in inspect("net", status=1)
    assert "double(x)  // my_own.py:" in inspect("net", "--stage", "main", "--custom-op", "my_own.py:double")


def test_stages_of_compiling_say_why_a_program_is_not_compiled(inspect: Inspect):
    for stage in ("passes", "fusion", "memory", "source"):
        assert "operator by operator: it takes no data" in inspect("nets.py:empty", "--stage", stage)


def test_a_picture_of_the_chosen_stage_is_drawn(inspect: Inspect):
    printed = inspect(*SEED, "--stage", "fusion", "--svg", "a.svg")
    assert printed == "The main Program after fusion: the picture is in a.svg\n"
    fused = svg_reading.read(Path("a.svg").read_text(encoding="utf-8"))
    (joined,) = (box for box in fused.boxes if box.texts[0][3] == "add+py_func.relu_forward")
    assert joined.kind == "custom"
    assert "relu.py:" in joined.text
    inspect(*SEED, "--stage", "memory", "--svg", "b.svg")
    assert len(svg_reading.read(Path("b.svg").read_text(encoding="utf-8")).boxes) > len(fused.boxes)


def test_a_file_whose_name_is_no_text_can_be_drawn(inspect: Inspect):
    odd = os.fsdecode(b"\xff\x01.py")
    Path(odd).write_text(NETWORK)
    inspect(f"{odd}:network", "--svg", "a.svg")
    assert svg_reading.read(Path("a.svg").read_text(encoding="utf-8")).boxes


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (
            ["--stage", "nope"],
            2,
            "there is no stage 'nope'; there are build, startup, main, data_parallel, passes, .*inline_array_.*all",
        ),
        ([*MPI, "--rank", "-1"], 2, "--rank must be at least 0, found -1"),
        ([*SEED, "--rank", "1"], 2, "rank 1: seed.yaml is for one process; add dist.shape=.*"),
        (["nets.py:network", "--rank", "1"], 2, "--rank is for a configuration; nets.py:network is .*"),
        (["--batch", "0"], 2, "--batch must be at least 1, found 0"),
        (["nets.py:network", "--svg", "/"], 1, "/ is a folder, expected the name of a file"),
        (["nowhere"], 2, "nowhere: there is no saved model nowhere.json; expected one, a run's folder, .* or .*"),
        (["nowhere.py:net"], 2, "there is no file .*nowhere.py"),
        (["nowhere:net"], 2, "the module nowhere cannot be imported: .*"),
        (["nets.py:nope"], 2, "nets.py has no 'nope'.* It has network, .*"),
        (["nets.py:nothing"], 1, "nets.py:nothing returned NoneType, expected the loss or the outputs.*"),
        (["nets.py:broken"], 1, "nets.py:broken raised ZeroDivisionError: division by zero"),
        (["nets.py:misshapen"], 1, r"nets.py:misshapen: operator matmul of .*"),
        (["nets.py:network", "seed=1"], 2, "one network at a time: nets.py:network cannot be combined with seed=1"),
        (["nets.py:network", "nets.py:program"], 2, "one network at a time: .*"),
        (["--config", "no.yaml"], 2, ".*no.yaml.*"),
        ([*SEED, "--accept-changed", "x.py:f"], 2, "--accept-changed x.py:f: this is for the folder of a run or .*"),
        (["custom.relu", "--custom-op", "x.py:f"], 2, "--custom-op x.py:f: this is for the folder of a run or .*"),
    ],
)
def test_wrong_arguments_end_in_one_line(words: list[str], status: int, message: str, inspect: Inspect):
    assert re.fullmatch(message, inspect(*words, status=status))


def test_the_picture_in_the_readme_is_what_the_command_draws(inspect: Inspect):
    committed = (ROOT / "docs" / "program.svg").read_text(encoding="utf-8")
    inspect(*SEED, "--stage", "main", "--svg", "program.svg")
    boxes = [  # wherever Graphviz's version puts it, and whatever line of relu.py an operator is made in
        [(box.kind, re.sub(r"relu.py:\d+", "relu.py", box.text)) for box in svg_reading.read(svg).boxes]
        for svg in (Path("program.svg").read_text(encoding="utf-8"), committed)
    ]
    assert boxes[0] == boxes[1]
