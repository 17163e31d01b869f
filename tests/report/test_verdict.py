"""What the report says of runs and comparisons, in sentences and in its table."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from made_runs import compared, made_run, page_of

from app.report.sections import curves, failures
from app.report.verdict import sentences
from app.run.comparison import compare_runs
from app.run.descriptions import Description, write_descriptions
from app.run.record import read_run, read_runs
from app.run.wording import p_value

WRONG = "gradient is wrong: it is half of what it should be where x > 0 (wrong in 14 of 24 elements)"
CHECKED = {"event": "checked", "operator": "custom.relu", "state": "wrong", "words": WRONG}
LOST = {"event": "nonfinite", "operator": "relu", "epoch": 0, "iteration": 3}
LOST |= {"where": "lost", "what": ""}


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        ({"finished": 2}, "The run was stopped early. Finished epochs, out of 3: custom.relu 2, relu 2."),
        ({"finished": 0}, "No epoch finished, so there are no results."),
        (
            {"others": [CHECKED]},
            f"custom.relu: {WRONG}. It was trained anyway; its results say nothing about the operator.",
        ),
        ({"others": [LOST]}, "relu: lost."),
        (
            {"changes": {"relu": {"test_loss": None}}},
            "relu diverged: the loss is NaN or infinite (chance level is 2.303). Try a smaller train.learning_rate.",
        ),
        (
            {"changes": {"relu": {"test_loss": 3e28}}},
            "relu diverged: the loss is up to 3e+28 (chance level is 2.303). Try a smaller train.learning_rate.",
        ),
        ({"changes": {"relu": {"test_accuracy": 0.105}}}, "relu is at chance level (10 %)."),
    ],
)
def test_the_most_important_comes_first_and_only_whole_runs_are_tested(tmp_path: Path, run: Any, expected: str):
    first, *others = sentences([read_run(made_run(tmp_path / "run", **run))])
    assert first == expected
    assert not any("disagree" in sentence for sentence in others)


def test_equal_networks_are_called_equal(tmp_path: Path):
    assert sentences([read_run(made_run(tmp_path / "run", alike=True))]) == [
        "custom.relu and relu both classify 70.00 % of the 200 test digits correctly.",
        "The networks give the same prediction for all 200 images.",
        "An epoch takes 500 ms with custom.relu and 500 ms with relu (median), a ratio of 1.00 (0.92 to 1.09); "
        "the difference is not significant.",
    ]


def test_networks_that_disagree_are_two_networks_and_not_two_operators(tmp_path: Path):
    run = read_run(made_run(tmp_path / "run"))
    result = run.predictions
    assert result is not None
    one, other = result.right("custom.relu"), result.right("relu")
    counts = f"only custom.relu is right on {(one & ~other).sum()}, only relu on {(other & ~one).sum()}"
    accuracy, difference, speed = sentences([run])
    assert accuracy == "Accuracy on the 200 test digits: custom.relu 70.00 %, relu 72.00 %."
    assert difference.startswith(f"The networks disagree on {len(result.disputed())} images: {counts}. ")
    assert difference.endswith("These are two networks, not two operators: more seeds show whether operators differ.")
    assert speed == (
        "An epoch takes 500 ms with custom.relu and 600 ms with relu (median), a ratio of 0.83 (0.76 to 0.91); "
        "the difference is significant."
    )


def test_dead_units_are_named(tmp_path: Path):
    folder = made_run(tmp_path / "run")
    write_descriptions([Description("custom.relu", dead=0.0), Description("relu", dead=0.5)], folder)
    dead = sentences([read_run(folder)])[-1]
    assert dead == "50.0 % of the hidden units of relu are dead (zero for each of 200 test images)."


@pytest.mark.parametrize(("p", "text"), [(0.0, "p < 0.0001"), (1e-300, "p < 0.0001"), (0.034, "p = 0.034")])
def test_a_tiny_p_is_not_shown_as_zero(p: float, text: str):
    assert p_value(p) == text


def test_an_operator_that_made_nan_is_shown_with_line_and_values(tmp_path: Path):
    what = "Replaying the step, operator own (my_ops.py:16) is the first ...\n  in   x  float32[8, 5]  min -1"
    page = page_of(made_run(tmp_path / "run", finished=1, others=[{**LOST, "what": what}]))
    assert "What went wrong" in page
    assert what in page
    assert failures.section([read_run(made_run(tmp_path / "other"))]) is None


def test_a_loss_over_many_magnitudes_has_a_logarithmic_axis(tmp_path: Path):
    for loss, log in ((1.5, False), (4e20, True)):
        section = curves.section([read_run(made_run(tmp_path / "run", changes={"relu": {"test_loss": loss}}))])
        assert section is not None
        assert section.charts[0].log_y is log


# --- Comparisons ---


def test_a_comparison_begins_with_what_it_came_to(tmp_path: Path):
    runs = read_runs(compared(tmp_path / "run", ("relu", "custom.relu", "tanh", "sigmoid", "elu")))
    assert sentences(runs, compare_runs(runs))[0] == (
        "With 3 seeds: sigmoid and elu differ from relu in test accuracy; custom.relu has the same weights as relu, "
        "bit for bit; tanh does not differ significantly from relu in test accuracy."
    )


def test_the_table_is_ranked_and_in_one_unit(tmp_path: Path):
    page = page_of(compared(tmp_path / "run", ("sigmoid", "custom.relu", "tanh", "relu")))
    table = page[page.index('<table class="ranking">') : page.index("</table>")]
    text = re.sub(r"<svg.*?</svg>", "", table)
    rows = [re.sub(r"\s*<[^>]+>\s*", "|", row).strip("|") for row in re.findall(r"<tr class.*?</tr>", text)]
    cells = [re.split(r"\|+", row) for row in rows]
    assert [row[:4] for row in cells] == [
        ["1=", "sigmoid", "90.50 % ± 0.50", "–"],
        ["1=", "custom.relu", "90.50 % ± 0.50", "same"],
        ["3", "tanh", "89.83 % ± 2.36", "cannot tell"],
        ["4", "relu", "84.40 % ± 0.40", "differs"],
    ]
    assert cells[3][4:6] == ["-6.10 (-6.93 to -5.27)", "p = 0.00093"]
    assert table.count('class="forest"') == 5  # an interval of each claim that was tested
    assert "Accuracies are means and standard deviations over 3 seeds." in page


def test_one_seed_has_no_interval(tmp_path: Path):
    page = page_of(compared(tmp_path / "run", seeds=1))
    assert page.count("One seed compares two networks, not two operators: use --seeds 5.") == 1
    assert page.count('class="reach"') == 2  # those of the speeds, over epochs


def test_of_a_killed_comparison_the_finished_seeds_count(tmp_path: Path):
    folder = compared(tmp_path / "run", seeds=4)
    (folder / "seed-1" / "summary.txt").unlink()
    page = page_of(folder)
    assert "Only 3 of 4 seeds are trained." in page
    assert "over 3 seeds" in page
