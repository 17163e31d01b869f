"""What is claimed of operators, and in which words: the same, different, or no more than noise."""

import itertools
import json
import re
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from app.run.comparison import compare_runs
from app.run.config import Config, TrainConfig
from app.run.events import Cost, Data, End, Epoch, Start
from app.run.record import RunRecord
from app.run.summary import comparison, costs_table, plain, printed, results_table, verdicts


class Outcome(NamedTuple):
    """The epochs of an operator and the hash of its weights, with each seed, and the number of images."""

    name: str
    epochs: list
    weights: list
    images: int


def outcome(name, wrong, seconds=None, images=1000, weights=""):
    """An operator that names these images wrongly, and takes so many seconds for each epoch, with each seed."""
    epochs = [
        [Epoch(name, number, s, 1 - len(of_seed) / images, 0.5) for number, s in enumerate(times)]
        for of_seed, times in zip(wrong, seconds or [[1.0, 1.0] for _ in wrong], strict=True)
    ]
    return Outcome(name, epochs, [weights or name] * len(wrong), images)


def compare(outcomes, *costs):
    """The comparison of runs with these outcomes, one for each seed."""
    names, runs = tuple(one.name for one in outcomes), []
    for seed, epochs in enumerate(zip(*(one.epochs for one in outcomes), strict=True)):
        data = Data("", True, False, 0, outcomes[0].images, [28, 28], hash="the same")
        end = End({one.name: one.weights[seed] for one in outcomes})
        config = Config(operators=names, seed=seed, train=TrainConfig(epochs=len(epochs[0])))
        events = [Start("", {}, data, {}), *itertools.chain(*epochs), *costs, end]
        runs.append(RunRecord(Path(str(seed)), config, events))
    return compare_runs(runs)


def differences(outcomes):
    return compare(outcomes).differences


FIVE = [range(s, s + 100) for s in range(5)]
"""A hundred images wrong with each of five seeds."""
SLIGHTLY = [[*of_seed, *range(990, 991 + s)] for s, of_seed in enumerate(FIVE)]
"""One to five more."""
P_SLIGHTLY = 0.01323559956368269
"""`scipy.stats.ttest_1samp([1, 2, 3, 4, 5], 0).pvalue`; its import takes longer than these tests."""


def test_a_comparison_says_which_operators_diverged():
    outcomes = [outcome("a", FIVE), outcome("b", SLIGHTLY)]
    outcomes[1].epochs[2][-1] = Epoch("b", 1, 1.0, 0.1, 3e9)
    assert "b diverged: the loss is up to 3e+09" in comparison(compare(outcomes))


def test_equal_weights_with_every_seed_are_the_same_operator_and_equal_accuracies_are_not():
    first, same = outcome("a", FIVE, weights="w"), outcome("b", FIVE, weights="w")
    results = differences([first, same, outcome("c", SLIGHTLY)])
    assert results[0].identical
    assert results[1].accuracy.p == pytest.approx(3 * P_SLIGHTLY)  # one claim beside two of speed
    same.weights[3] = "other"
    (difference,) = differences([first, same])
    assert not difference.identical
    assert (difference.accuracy.p, difference.accuracy.mean) == (1.0, 0.0)


IN_TURNS = [range(100), range(200), range(100), range(200)], [range(200), range(100), range(200), range(110)]
"""Each pair of networks differs much, once this way and once that way."""


@pytest.mark.parametrize(
    ("first", "other", "least", "most"),
    [
        pytest.param(FIVE, [range(s, s + 180 + s) for s in range(5)], 0, 0.001, id="worse with every seed"),
        pytest.param(*IN_TURNS, 0.5, 1, id="better and worse in turns"),
        pytest.param(FIVE, [[*one, 990] for one in FIVE], 0.002, 0.003, id="one image, with every seed: rounding"),
        pytest.param([range(10)], [range(400)], 1, 1, id="one seed"),
    ],
)
def test_accuracies_differ_if_seeds_do_not_explain_it(first, other, least, most):
    (difference,) = differences([outcome("a", first), outcome("b", other)])
    missed = [len(one) - len(another) for one, another in zip(first, other, strict=True)]
    assert difference.accuracy.mean == pytest.approx(np.mean(missed) / 1000)
    assert least <= difference.accuracy.p <= most
    if len(first) > 1:
        assert difference.accuracy.low < difference.accuracy.mean < difference.accuracy.high
        assert difference.accuracy.p > 0.05 or difference.accuracy.high < 0


EVEN = [[1.0, 1.0, 1.0]] * 3
DRIFT = [[1.0, 3.0, 2.0], [3.0, 1.5, 1.0], [1.0, 1.0, 2.9]]
SLOWER = [[1.5 * s * (1 + 0.01 * i) for s in of_seed] for i, of_seed in enumerate(DRIFT)]
DISTURBED = [[1.0, 1.0, 9.0], [1.0, 1.01, 1.0], [0.99, 1.0, 5.0]]
VARIED = [[1.1] * 9, [0.92] * 9, [1.02] * 9, [0.97] * 9]


@pytest.mark.parametrize(
    ("first", "other", "ratio", "least", "most"),
    [
        pytest.param(DRIFT, SLOWER, 1.515, 0, 0.002, id="the machine slows down threefold meanwhile"),
        pytest.param(EVEN, DISTURBED, 1.0, 1, 1, id="three epochs are disturbed"),
        pytest.param([[1.0] * 9] * 4, VARIED, 1.0, 0.5, 1, id="seeds vary"),
        pytest.param([[1.0, 1.1, 0.9]], [[2.0, 2.2, 1.82]], 2.0, 0, 0.01, id="one seed: every epoch is a pair"),
    ],
)
def test_speeds_are_compared_by_paired_epochs(first, other, ratio, least, most):
    nothing_wrong = [[]] * len(first)
    (difference,) = differences([outcome("a", nothing_wrong, first), outcome("b", nothing_wrong, other)])
    assert difference.speed.mean == pytest.approx(ratio, abs=0.001)
    assert difference.speed.low < ratio < difference.speed.high
    assert least <= difference.speed.p <= most


def test_p_values_are_adjusted_for_all_claims():
    def against(count):
        return differences([outcome("a", FIVE), *(outcome(f"b{i}", SLIGHTLY) for i in range(count))])[0].accuracy.p

    assert against(1) == pytest.approx(2 * P_SLIGHTLY)
    assert against(1) < 0.05 < against(4)


def test_operators_that_are_alike_rarely_differ():
    """The promise itself: of comparisons with nothing in them but luck, one in twenty claims something."""
    random = np.random.default_rng(1)
    claims = 0
    for _ in range(200):
        places = 0.05 * random.standard_normal((3, 4))  # of each network in memory, for all its epochs
        hard = random.random(500) ** 8  # images differ in how often they are missed
        outcomes = [
            outcome(
                name,
                [np.flatnonzero(random.random(500) < hard) for _ in range(4)],
                [list(np.exp(place + 0.05 * random.standard_normal(3))) for place in places[number]],
                images=500,
            )
            for number, name in enumerate("abc")
        ]
        claims += any(min(d.accuracy.p, d.speed.p) <= 0.05 for d in differences(outcomes))
    assert claims <= 18  # 10 are expected


def test_a_comparison_is_json_also_without_intervals_or_seeds():
    one = [outcome("a", [range(10)], [[1.0]]), outcome("b", [range(20)], [[2.0]])]
    data = json.loads(json.dumps(compare(one, Cost("a", 1e-6, 2e-6)).to_dict(), allow_nan=False))
    assert data["results"]["b"] == {"engine": "", "test_accuracies": [0.98], "seconds_per_epoch": 2.0}
    (difference,) = data["differences"]
    assert (difference["operator"], difference["identical"]) == ("b", False)
    assert difference["speed"] == {"mean": pytest.approx(2.0), "low": None, "high": None, "p_seeds": 1.0, "p": 1.0}
    assert data["costs"] == [{"operator": "a", "forward": 1e-6, "backward": 2e-6}]


# --- Words ---

SLOW = [[2.0, 2.0], [2.0, 2.1], [2.1, 2.0]]
STEADY = [[1.0, 1.0]] * 3
RIGHT = [range(s, s + 20) for s in range(3)]
WRONG = [range(s, s + 80 + s) for s in range(3)]


def lines(*outcomes):
    return printed(verdicts(compare(outcomes)))


def test_the_table_of_results():
    comparison = compare([outcome("relu", RIGHT, STEADY), outcome("my_ops.py:swish", WRONG, SLOW)])
    wide = [
        "operator           test accuracy  seconds per epoch        ratio to relu",
        "relu             0.9800 ± 0.0000              1.000                 1.00",
        "my_ops.py:swish  0.9190 ± 0.0010              2.000  2.03 (1.93 to 2.14)",
    ]
    assert results_table(comparison) == results_table(comparison, columns=len(wide[0])) == wide
    assert results_table(comparison, columns=len(wide[0]) - 1)[:2] == ["relu", "  test accuracy  0.9800 ± 0.0000"]
    one_seed = results_table(compare([outcome("a", [range(10)], [[1.0]]), outcome("b", [range(10)], [[1.5]])]))
    assert one_seed[2] == "b                0.9900              1.500        1.50"  # no spread, no interval


def test_verdicts_of_several_seeds():
    assert lines(outcome("relu", RIGHT, STEADY), outcome("bad", WRONG, SLOW)) == [
        "differs      bad is less accurate than relu: -0.0610 (-0.0646 to -0.0574), p = 0.00018",
        "differs      bad is slower than relu: time ratio 2.03 (1.93 to 2.14), p = 0.00028",
        "Tested over seeds (paired t-tests). p-values and intervals are adjusted for a family-wise error rate of 5% "
        "(Holm).",
    ]
    assert lines(outcome("bad", WRONG, SLOW), outcome("good", RIGHT, STEADY))[:2] == [
        "differs      good is more accurate than bad: +0.0610 (+0.0574 to +0.0646), p = 0.00018",
        "differs      good is faster than bad: time ratio 0.49 (0.47 to 0.52), p = 0.00028",
    ]
    assert lines(outcome("a", RIGHT, STEADY), outcome("b", RIGHT, STEADY))[:2] == [
        "cannot tell  whether b and a differ in accuracy (3 seeds): +0.0000 (-0.0010 to +0.0010), p = 1",
        "cannot tell  whether b and a differ in speed (3 seeds): time ratio 1.00 (0.93 to 1.07), p = 1",
    ]
    slow = [outcome("relu", RIGHT, STEADY, weights="w"), outcome("mine", RIGHT, SLOW, weights="w")]
    assert plain(verdicts(compare(slow)))[:2] == [
        "Same: mine has the same weights as relu, bit for bit.",
        "Differs: mine is slower than relu: time ratio 2.03 (1.93 to 2.14), p = 0.00028.",
    ]


def test_verdicts_of_few_seeds():
    """With two seeds, a difference of 50 points is not significant; with one, none is tested."""
    difference, _, how, more = lines(outcome("a", [[]]), outcome("b", [range(500)]))
    assert difference == "cannot tell  whether b and a differ in accuracy (1 seed): -0.5000"
    assert how.startswith("Tested over the epochs of one seed (paired t-tests).")
    assert more == "One seed compares two networks, not two operators: use --seeds 5."
    other = outcome("b", [range(600), range(400)], [[0.1] * 3, [3.0] * 3])
    accuracy, speed, *_ = lines(outcome("a", [[], []], [[1.0] * 3] * 2), other)
    assert accuracy.startswith("cannot tell  whether b and a differ in accuracy (2 seeds): -0.5000 (")
    assert re.search(r"\), p = 0\.\d+$", accuracy)
    assert "(0.00 to over 1000)" in speed


def test_an_interval_excludes_no_difference_exactly_where_something_differs():
    random = np.random.default_rng(0)
    for _ in range(50):
        shifts = random.normal(0, 0.05, 4)
        times = [[list(np.exp(shift + random.normal(0, 0.04, 3))) for _ in range(3)] for shift in shifts]
        outcomes = [outcome(name, [[], [], []], of) for name, of in zip("abcd", times, strict=True)]
        for difference in differences(outcomes):
            assert (difference.speed.p <= 0.05) == (not difference.speed.low <= 1 <= difference.speed.high)


def test_the_costs_of_operators_are_a_table_in_microseconds():
    assert costs_table([Cost("relu", 1.2e-6, 99.96e-6), Cost("slow", 0.5, 0.25)]) == [
        "Time of one call alone, as large as in the network, on one thread, in µs",
        "operator  forward  backward",
        "relu          1.2     100.0",
        "slow      500,000   250,000",
    ]
    assert costs_table([]) == []
