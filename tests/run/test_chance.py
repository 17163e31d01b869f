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
@given(st.lists(st.integers(-4, 4), min_size=1, max_size=9))
def test_signs_are_as_counted_out_one_by_one(differences):
    reached = abs(sum(differences))
    sums = [abs(np.dot(signs, differences)) for signs in itertools.product((-1, 1), repeat=len(differences))]
    assert over_signs(np.array(differences)) == pytest.approx(np.mean(np.array(sums) >= reached))


@pytest.mark.parametrize(("better", "worse"), [(0, 0), (5, 0), (0, 6), (12, 30), (500, 430), (3000, 2800)])
def test_differences_of_one_are_mcnemars_test(better, worse):
    differences = np.array([1] * better + [-1] * worse + [0] * 100)
    least, most = sorted((better, worse))
    expected = min(1.0, 2 * betainc(most, least + 1, 0.5)) if most else 1.0  # the binomial distribution
    assert over_signs(differences) == pytest.approx(expected, abs=1e-12)


def test_no_differences_are_no_evidence():
    assert over_signs(np.zeros(1000, int)) == 1.0
    assert over_signs(np.zeros(0, int)) == 1.0


def test_ten_thousand_images_and_many_seeds_take_no_time():
    random = np.random.default_rng(0)
    assert 0 <= over_signs(random.integers(-20, 21, 10_000)) <= 1


@pytest.mark.parametrize("images", [10, 300])
def test_signs_of_chance_are_rarely_called_a_difference(images):
    random = np.random.default_rng(0)
    chances = [over_signs(random.choice([-2, -1, 0, 1, 2], images)) for _ in range(RUNS)]
    assert claimed(chances) <= AT_MOST
    assert np.mean(np.array(chances) <= 0.5) > 0.3


# --- Units: seeds or epochs ---


@pytest.mark.parametrize("count", [2, 3, 4, 11, 100, 501])
@pytest.mark.parametrize("level", [0.05, 0.05 / 20, 1e-5])
def test_intervals_and_chances_are_students_for_any_number_of_units(count, level):
    differences = np.random.default_rng(count).normal(0.3, 1.0, count)
    mean, error = differences.mean(), differences.std(ddof=1) / math.sqrt(count)
    found = over_units(differences, level=level)
    assert found.p == pytest.approx(beyond(mean / error, count - 1), abs=1e-13)
    assert (found.low + found.high) / 2 == pytest.approx(mean)
    assert beyond((found.high - mean) / error, count - 1) == pytest.approx(level, rel=1e-9)


def beyond(t, freedom):
    """The probability of a larger t of either sign, by the incomplete beta function."""
    return float(betainc(freedom / 2, 0.5, freedom / (freedom + t * t)))


def test_one_unit_says_nothing():
    found = over_units([0.5])
    assert (found.mean, found.p, found.low, found.high) == (0.5, 1.0, -math.inf, math.inf)


def test_units_that_look_equal_by_rounding_are_not_taken_for_certain():
    assert over_units([0.001, 0.001]).p == 0.0
    assert over_units([0.001, 0.001], least_spread=0.0005).p > 0.1
    assert over_units([0.1, 0.3], least_spread=0.0005) == over_units([0.1, 0.3])


def test_no_difference_at_all_is_certain_to_be_none():
    assert over_units([0.0, 0.0, 0.0])[:3] == (0.0, 0.0, 0.0)
    assert over_units([0.0, 0.0, 0.0]).p == 1.0


# --- Groups: epochs of seeds ---


def test_groups_of_one_are_units():
    values = [0.1, 0.3, 0.25, 0.2]
    assert over_groups([[value] for value in values], 0.0) == over_units(values)


def test_three_groups_that_agree_are_telling():
    found = over_groups([[0.7, 0.8], [0.75, 0.69], [0.72, 0.76]], 0.02)
    assert found.p < 0.002
    assert found.mean == pytest.approx(0.737, abs=1e-3)


def test_many_differences_in_two_groups_count_as_two():
    few, many = over_groups([[0.7] * 2, [0.75] * 2], 0.02), over_groups([[0.7] * 100, [0.75] * 100], 0.02)
    assert few == many == over_units([0.7, 0.75])


def test_groups_that_disagree_are_noise_however_much_is_in_each():
    assert over_groups([[0.1] * 50, [-0.08] * 50, [0.03] * 50], 0.02).p > 0.5


def test_less_than_the_least_spread_is_noise():
    assert over_groups([[0.01, 0.011], [0.01, 0.009]], 0.02).p > 0.4


@pytest.mark.parametrize(("count", "size"), [(2, 2), (2, 20), (3, 2), (3, 20), (5, 1), (5, 5)])
@pytest.mark.parametrize("offset", [0.0, 0.02, 0.1])
def test_groups_with_offsets_of_their_own_are_rarely_called_different(count, size, offset):
    random = np.random.default_rng(0)
    of_groups = offset * random.standard_normal((RUNS, count, 1))
    values = of_groups + 0.03 * random.standard_normal((RUNS, count, size))
    assert claimed(over_groups(groups, 0.02).p for groups in values) <= AT_MOST


@pytest.mark.parametrize("size", [2, 3, 5, 30])
@pytest.mark.parametrize("noise", [0.01, 0.3])
def test_one_group_is_rarely_called_different_by_its_own_noise(size, noise):
    random = np.random.default_rng(0)
    values = noise * random.standard_normal((RUNS, 1, size))
    assert claimed(over_groups(groups, 0.0).p for groups in values) <= AT_MOST


# --- Several claims ---


def adjusted(chances):
    return [p for p, _ in holm(chances)]


def test_holm_of_a_worked_example():
    assert adjusted([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert adjusted([0.9, 0.8]) == [1.0, 1.0]
    assert adjusted([0.02]) == [0.02]
    assert adjusted([]) == []


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
