"""The tests of chance: against every case counted out, against SciPy, and against chance itself."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import betainc, erfc

from app.run.statistics import LEVEL, holm, over_groups, over_signs, over_units

RUNS = 1000
AT_MOST = LEVEL + 3 * math.sqrt(LEVEL * (1 - LEVEL) / RUNS)
"""How often a difference may be claimed of so many simulated comparisons without one."""


def claimed(chances):
    return float(np.mean([p <= LEVEL for p in chances]))


# --- Signs ---


@settings(deadline=None, max_examples=50)
@given(st.lists(st.integers(-4, 4), max_size=9))
def test_the_sign_test_agrees_with_counting_all_signs(differences):
    reached = abs(sum(differences))
    sums = [abs(np.dot(signs, differences)) for signs in itertools.product((-1, 1), repeat=len(differences))]
    assert over_signs(np.array(differences, int)) == pytest.approx(np.mean(np.array(sums) >= reached))


@pytest.mark.parametrize(("better", "worse"), [(0, 0), (5, 0), (0, 6), (12, 30), (500, 430), (3000, 2800)])
def test_the_sign_test_of_differences_of_one_is_mcnemars_test(better, worse):
    differences = np.array([1] * better + [-1] * worse + [0] * 100)
    least, most = sorted((better, worse))
    expected = min(1.0, 2 * betainc(most, least + 1, 0.5)) if most else 1.0  # the binomial distribution
    assert over_signs(differences) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("images", [10, 300])
def test_the_sign_test_rarely_claims_a_difference_by_chance(images):
    random = np.random.default_rng(0)
    chances = [over_signs(random.choice([-2, -1, 0, 1, 2], images)) for _ in range(RUNS)]
    assert claimed(chances) <= AT_MOST
    assert np.mean(np.array(chances) <= 0.5) > 0.3


# --- Units: seeds or epochs ---


@pytest.mark.parametrize("count", [2, 3, 4, 11, 100, 501])
@pytest.mark.parametrize("level", [0.05, 0.05 / 20, 1e-5])
def test_intervals_and_p_values_are_those_of_students_t(count, level):
    differences = np.random.default_rng(count).normal(0.3, 1.0, count)
    mean, error = differences.mean(), differences.std(ddof=1) / math.sqrt(count)
    found = over_units(differences, level=level)
    assert found.p == pytest.approx(beyond(mean / error, count - 1), abs=1e-13)
    assert (found.low + found.high) / 2 == pytest.approx(mean)
    assert beyond((found.high - mean) / error, count - 1) == pytest.approx(level, rel=1e-9)


def beyond(t, freedom):
    """The probability of a larger t of either sign, by the incomplete beta function."""
    return float(betainc(freedom / 2, 0.5, freedom / (freedom + t * t)))


def test_one_unit_and_units_without_a_spread():
    assert over_units([0.5]) == (0.5, -math.inf, math.inf, 1.0)
    assert over_units([0.0, 0.0, 0.0]) == (0.0, 0.0, 0.0, 1.0)
    assert over_units([0.001, 0.001]).p == 0.0
    assert over_units([0.001, 0.001], least_spread=0.0005).p > 0.1  # they may look equal by rounding
    assert over_units([0.1, 0.3], least_spread=0.0005) == over_units([0.1, 0.3])


# --- Groups: epochs of seeds ---


def test_groups_count_as_their_medians_however_large_they_are():
    values = [0.1, 0.3, 0.25, 0.2]
    assert over_groups([[value] for value in values], 0.0) == over_units(values)
    for size in (2, 100):
        assert over_groups([[0.7] * size, [0.75] * size], 0.02) == over_units([0.7, 0.75])


@pytest.mark.parametrize(
    ("groups", "least", "most"),
    [
        pytest.param([[0.7, 0.8], [0.75, 0.69], [0.72, 0.76]], 0, 0.002, id="three that agree"),
        pytest.param([[0.1] * 50, [-0.08] * 50, [0.03] * 50], 0.5, 1, id="three that disagree"),
        pytest.param([[0.01, 0.011], [0.01, 0.009]], 0.4, 1, id="less than the least spread"),
    ],
)
def test_only_groups_that_agree_on_a_difference_are_significant(groups, least, most):
    found = over_groups(groups, 0.02)
    assert least < found.p < most
    assert found.mean == pytest.approx(np.mean(groups), abs=1e-3)


@pytest.mark.parametrize(
    ("count", "size", "offset", "noise"),
    [
        *itertools.product((2, 3), (2, 20), (0.0, 0.02, 0.1), (0.03,)),
        *itertools.product((5,), (1, 5), (0.0, 0.02, 0.1), (0.03,)),
        *itertools.product((1,), (2, 3, 5, 30), (0.0,), (0.01, 0.3)),
    ],
)
def test_groups_with_offsets_of_their_own_rarely_differ_by_chance(count, size, offset, noise):
    random = np.random.default_rng(0)
    of_groups = offset * random.standard_normal((RUNS, count, 1))
    values = of_groups + noise * random.standard_normal((RUNS, count, size))
    assert claimed(over_groups(groups, 0.02 if count > 1 else 0.0).p for groups in values) <= AT_MOST


# --- Several claims ---


def adjusted(chances):
    return [p for p, _ in holm(chances)]


@pytest.mark.parametrize(
    ("chances", "expected"),
    [([0.01, 0.04, 0.03, 0.005], [0.03, 0.06, 0.06, 0.02]), ([0.9, 0.8], [1.0, 1.0]), ([0.02], [0.02]), ([], [])],
)
def test_holm_adjusts_a_worked_example(chances, expected):
    assert adjusted(chances) == pytest.approx(expected)


@given(st.lists(st.floats(0, 1), max_size=8))
def test_holm_rejects_what_stepping_down_rejects(chances):
    """Holm's own words: from the smallest on, each is held against the level over how many are left."""
    rejected = set()
    for rank, place in enumerate(sorted(range(len(chances)), key=lambda i: chances[i])):
        if chances[place] * (len(chances) - rank) > LEVEL:
            break
        rejected.add(place)
    assert {place for place, p in enumerate(adjusted(chances)) if p <= LEVEL} == rejected


@pytest.mark.parametrize("claims", [2, 6])
def test_holm_rarely_lets_any_of_several_chances_pass(claims):
    random = np.random.default_rng(0)
    together = random.normal(size=(RUNS, 1)) * 0.7 + random.normal(size=(RUNS, claims)) * 0.7  # not independent
    chances = erfc(np.abs(together) / math.hypot(0.7, 0.7) / math.sqrt(2))
    assert claimed(min(adjusted(list(each))) for each in chances) <= AT_MOST
