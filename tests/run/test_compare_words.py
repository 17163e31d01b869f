"""The end of a comparison, as a person reads it."""

import numpy as np
from made_outcomes import compare, differences, outcome

from app.run.events import Cost
from app.run.summary import costs_table, plain, printed, results_table, verdicts

SLOW = [[2.0, 2.0], [2.0, 2.1], [2.1, 2.0]]
EVEN = [[1.0, 1.0]] * 3
RIGHT = [range(s, s + 20) for s in range(3)]
WRONG = [range(s, s + 80 + s) for s in range(3)]


def lines(*outcomes):
    return printed(verdicts(compare(outcomes)))


def test_the_table_of_results():
    assert results_table(compare([outcome("relu", RIGHT, EVEN), outcome("my_ops.py:swish", WRONG, SLOW)])) == [
        "operator           test accuracy  seconds per epoch        ratio to relu",
        "relu             0.9800 ± 0.0000              1.000                 1.00",
        "my_ops.py:swish  0.9190 ± 0.0010              2.000  2.03 (1.93 to 2.14)",
    ]
    one_seed = [outcome("a", [range(10)], [[1.0]]), outcome("b", [range(10)], [[1.5]])]
    assert results_table(compare(one_seed))[1:] == [  # no spread, and no interval of one epoch
        "a                0.9900              1.000        1.00",
        "b                0.9900              1.500        1.50",
    ]


def test_verdicts_of_several_seeds():
    assert lines(outcome("relu", RIGHT, EVEN), outcome("bad", WRONG, SLOW)) == [
        "differs      bad is less accurate than relu: -0.0610 (-0.0646 to -0.0574), p = 0.00018",
        "differs      bad is slower than relu: time ratio 2.03 (1.93 to 2.14), p = 0.00028",
        "Tested over seeds and test images. p-values and intervals are adjusted for a family-wise error rate of 5% "
        "(Holm).",
    ]
    assert lines(outcome("bad", WRONG, SLOW), outcome("good", RIGHT, EVEN))[:2] == [
        "differs      good is more accurate than bad: +0.0610 (+0.0574 to +0.0646), p = 0.00018",
        "differs      good is faster than bad: time ratio 0.49 (0.47 to 0.52), p = 0.00028",
    ]
    assert lines(outcome("a", RIGHT, EVEN), outcome("b", RIGHT, EVEN))[:2] == [
        "cannot tell  whether b and a differ in accuracy (3 seeds): +0.0000 (-0.0010 to +0.0010), p = 1",
        "cannot tell  whether b and a differ in speed (3 seeds): time ratio 1.00 (0.93 to 1.07), p = 1",
    ]


def test_verdicts_of_few_seeds():
    """With two seeds 0.02 apart, a difference of 60 points is not significant, but it is over the test images."""
    *_, how, more = lines(outcome("a", [[]]), outcome("b", [[]]))
    assert how.startswith("Tested over the test images and the epochs of one seed.")
    assert more == "One seed does not show how results vary between seeds: use --seeds 5."
    other = outcome("b", [range(600), range(400)], [[0.1] * 3, [3.0] * 3])
    accuracy, speed, *_ = lines(outcome("a", [[], []], [[1.0] * 3] * 2), other)
    assert accuracy.startswith("cannot tell  whether b and a differ in accuracy (2 seeds): -0.5000 (")
    assert accuracy.endswith("; over the test images alone, p < 0.0001")
    assert "(0.00 to over 1000)" in speed


def test_verdicts_are_sentences_as_well():
    slow = [outcome("relu", RIGHT, EVEN, weights="w"), outcome("mine", RIGHT, SLOW, weights="w")]
    assert lines(*slow)[0] == "same         mine has the same weights as relu, bit for bit"
    assert plain(verdicts(compare(slow)))[:2] == [
        "Same: mine has the same weights as relu, bit for bit.",
        "Differs: mine is slower than relu: time ratio 2.03 (1.93 to 2.14), p = 0.00028.",
    ]


def test_an_interval_excludes_no_difference_exactly_where_something_differs():
    random = np.random.default_rng(0)
    for _ in range(50):
        shifts = random.normal(0, 0.05, 4)
        times = [[list(np.exp(shift + random.normal(0, 0.04, 3))) for _ in range(3)] for shift in shifts]
        outcomes = [outcome(name, [[], [], []], of) for name, of in zip("abcd", times, strict=True)]
        for found in differences(outcomes):
            assert (found.speed.p <= 0.05) == (not found.speed.low <= 1 <= found.speed.high)


def test_costs_by_size_have_a_dash_where_a_call_took_too_long():
    costs = [Cost("relu", 1000, 1.2e-6, 0.8e-6), Cost("slow", 1000, 0.5, 0.25), Cost("relu", 4000, 4e-6, 99.96e-6)]
    assert costs_table(costs) == [
        "Time of one call on one thread, forward + backward, in µs",
        "elements         relu               slow",
        "1,000       1.2 + 0.8  500,000 + 250,000",
        "4,000     4.0 + 100.0                  -",
    ]
    assert costs_table([]) == []
