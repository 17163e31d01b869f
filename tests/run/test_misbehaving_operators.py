"""The errors of operators that misbehave in training: the same with every engine, and no traceback."""

import re
import shutil
from pathlib import Path

import pytest

from app.custom.read_only import ADVICE

OPERATORS = Path(__file__).with_name("misbehaving_operators.py")
LINES = OPERATORS.read_text().splitlines()

pytestmark = pytest.mark.slow


def at(text):
    """The place of the first line with these words."""
    return f"my_ops.py:{next(number for number, line in enumerate(LINES, 1) if text in line)}"


OWN = f"operator own ({at('app.custom_op(forward')})"
GRADIENT = OWN.replace(" (", "_grad (")
LAYER_OF_NAN, NAN_IN_BACKWARD = at("class LayerOfNan"), at('return dy * float("nan")')


@pytest.fixture
def misbehave(train, tmp_path, engine):
    """`train.py` with one of the operators, from a file of its own: operators that count begin anew."""
    shutil.copy(OPERATORS, tmp_path / "my_ops.py")
    common = (f"engine={engine}", "baseline=null", "check=false")
    return lambda operator, *words, folder="run": train(
        f"model.activation=my_ops.py:{operator}", *common, *words, folder=folder
    )


@pytest.mark.parametrize(
    ("operator", "message"),
    [
        (
            "gradient_of_wrong_shape",
            f"error: the gradient of {OWN}: the gradient of x has shape [8, 1], expected that of x, [8, 5]",
        ),
        (
            "writes_into_its_input",
            f"{OWN}: its function writes_into_its_input raised ValueError: assignment destination is read-only "
            f"({at('x[x < 0] = 0')}); {ADVICE}",
        ),
        (
            "writes_natively",
            f"{OWN}: in its function writes_natively: it writes into an array that it is given "
            f"({at('x[row, column] =')}: `x[row, column] = max(x[row, column], 0)`); {ADVICE}",
        ),
        (
            "gradient_that_writes",
            f"error: the gradient of {OWN}: its function <lambda> raised ValueError: output array is read-only "
            f"({at('gradient_that_writes =')}); {ADVICE}",
        ),
        ("transposed", "made shape [5, BATCH] of shape [BATCH, 5]; between two layers an operator keeps the number"),
        ("LayerThatRaises", f"LayerThatRaises ({at('class LayerThatRaises')}"),
        ("LayerThatRaises", "ZeroDivisionError: integer division or modulo by zero"),
    ],
)
def test_an_error_in_the_first_step_ends_the_run_before_training(misbehave, operator, message, engine):
    run = misbehave(operator)
    assert run.status == 1
    assert message.replace("BATCH", "8" if engine == "eager" else "-1") in run.err
    assert not run.folder.exists()


@pytest.mark.parametrize(
    ("operator", "error", "advice"),
    [
        ("raises_later", "RuntimeError: enough of it", ""),
        ("raises_once", "RuntimeError: enough of it", ""),
        ("exits_later", "SystemExit: 0", "; only the program around an operator may end it"),
    ],
)
def test_an_operator_that_raises_in_training_is_named_with_its_line_and_the_iteration(
    misbehave, operator, error, advice
):
    run = misbehave(operator, "train.epochs=30")
    assert run.status == 1
    raised = rf"error: {re.escape(OWN)}: its function {operator} raised {error} \(my_ops\.py:\d+\){advice}\n"
    assert re.match(rf"{raised}This happened (in|between) iteration ", run.err)
    assert run.column(f"my_ops.py:{operator}", "iteration", "iteration")[:3] == [0, 3, 6]


def test_a_shape_that_changes_with_the_batch_is_an_error_with_the_operator(misbehave, engine):
    run = misbehave("other_at_the_end")  # the last batch of each epoch has 4 images
    assert run.status == 1
    when_eager = "my_ops.py:other_at_the_end made shape [4, 3] of shape [4, 5]"
    foretold = f"{OWN} returned shape [4, 3] for a batch of 4, expected [-1, 5]"
    assert (when_eager if engine == "eager" else foretold) in run.err
    assert "This happened in iteration 7 of epoch 1." in run.err


# --- NaN ---


def test_an_operator_that_makes_nan_of_finite_numbers_is_named_with_its_inputs(misbehave):
    run = misbehave("nan_from_finite")
    first, blame, inputs, outputs, *_ = run.err.splitlines()
    assert run.status == 1
    assert first == "error: my_ops.py:nan_from_finite: the loss became NaN in iteration 2 of epoch 2."
    assert blame == f"Replaying the step, {OWN} is the first operator that turns finite inputs into NaN or inf:"
    assert re.fullmatch(r"  in .*all finite", inputs)
    assert re.fullmatch(r"  out .*not finite: 1 of 40 \(1 NaN\)", outputs)
    assert "learning_rate" not in run.err
    (event,) = [m for m in run.metrics if m["event"] == "nonfinite"]
    assert (event["epoch"], event["iteration"]) == (1, 2)
    assert OWN in event["what"]


@pytest.mark.parametrize(
    ("engine", "operator", "blamed"),
    [
        pytest.param("compiled", "gradient_of_nan", GRADIENT, marks=pytest.mark.soak),
        ("reference", "gradient_of_nan", GRADIENT),
        ("reference", "LayerOfNan", f"operator fill_constant ({NAN_IN_BACKWARD})"),
        ("eager", "gradient_of_nan", f"the gradient of {OWN}"),
        ("eager", "LayerOfNan", f"the gradient of operator LayerOfNan ({LAYER_OF_NAN})"),
    ],
)
def test_a_backward_pass_that_makes_nan_is_named(misbehave, operator, blamed):
    run = misbehave(operator)
    assert f"error: my_ops.py:{operator}: the weights became NaN or infinite in iteration 0 of epoch 1." in run.err
    assert f"{blamed} is the first operator that turns finite inputs" in run.err


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("engine", [pytest.param("compiled", marks=pytest.mark.soak), "reference", "eager"])
def test_inputs_that_were_already_very_large_are_named(misbehave, train, engine):
    words = (
        *("train.learning_rate=1e30", "train.optimizer=momentum", "train.weight_decay=0.01"),
        *("model.activation=relu", "baseline=null"),
    )
    for run in (misbehave("gradient_too_large"), train(*words, f"engine={engine}", folder="other")):
        assert run.status == 1
        inputs = [line for line in run.err.splitlines() if line.startswith("  in ")]
        assert inputs
        assert all(line.endswith("all finite") for line in inputs)
        assert "The inputs were already very large: train.learning_rate may be too high." in run.err
