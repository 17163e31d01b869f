"""The t-tests: against SciPy, and how often they find a difference where there is none."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import betainc

from app.run.statistics import LEVEL, holm, paired_t, paired_t_of_medians

# --- Differences of seeds or epochs ---


@pytest.mark.parametrize("count", [2, 3, 4, 11, 100, 501])
@pytest.mark.parametrize("level", [0.05, 0.05 / 20, 1e-5])
def test_intervals_and_p_values_are_those_of_students_t(count, level):
    differences = np.random.default_rng(count).normal(0.3, 1.0, count)
    mean, error = differences.mean(), differences.std(ddof=1) / math.sqrt(count)
    result = paired_t(differences, level=level)
    assert result.p == pytest.approx(beyond(mean / error, count - 1), abs=1e-13)
    assert (result.low + result.high) / 2 == pytest.approx(mean)
    assert beyond((result.high - mean) / error, count - 1) == pytest.approx(level, rel=1e-9)


def beyond(t, freedom):
    """The probability of a larger t of either sign, by the incomplete beta function."""
    return float(betainc(freedom / 2, 0.5, freedom / (freedom + t * t)))


def test_one_difference_and_differences_without_a_spread():
    assert paired_t([0.5]) == (0.5, -math.inf, math.inf, 1.0)
    assert paired_t([0.0, 0.0, 0.0]) == (0.0, 0.0, 0.0, 1.0)
    assert paired_t([0.001, 0.001]).p == 0.0
    assert paired_t([0.001, 0.001], least_spread=0.0005).p > 0.1  # they may look equal by rounding
    assert paired_t([0.1, 0.3], least_spread=0.0005) == paired_t([0.1, 0.3])


# --- Groups: epochs of seeds ---


def test_groups_count_as_their_medians_however_large_they_are():
    values = [0.1, 0.3, 0.25, 0.2]
    assert paired_t_of_medians([[value] for value in values], 0.0) == paired_t(values)
    for size in (2, 100):
        assert paired_t_of_medians([[0.7] * size, [0.75] * size], 0.02) == paired_t([0.7, 0.75])
    assert paired_t_of_medians([[0.01, 0.011], [0.01, 0.009]], 0.02).p > 0.4  # less than the least spread


@pytest.mark.parametrize(
    ("count", "size", "offset", "noise"),
    [
        *itertools.product((2, 5), (2, 20), (0.0, 0.1), (0.03,)),
        *itertools.product((1,), (2, 30), (0.0,), (0.3,)),
    ],
)
def test_groups_with_offsets_of_their_own_rarely_differ_by_chance(count, size, offset, noise):
    random, runs = np.random.default_rng(0), 1000
    of_groups = offset * random.standard_normal((runs, count, 1))
    values = of_groups + noise * random.standard_normal((runs, count, size))
    p_values = [paired_t_of_medians(groups, 0.02 if count > 1 else 0.0).p for groups in values]
    assert np.mean(np.array(p_values) <= LEVEL) <= LEVEL + 3 * math.sqrt(LEVEL * (1 - LEVEL) / runs)


# --- Several claims ---


@given(st.lists(st.floats(0, 1), max_size=8))
def test_holm_compares_each_with_the_level_over_the_number_of_those_not_smaller(p_values):
    highest, adjusted = 0.0, {}
    for rank, place in enumerate(sorted(range(len(p_values)), key=lambda i: p_values[i])):
        highest = max(highest, (len(p_values) - rank) * p_values[place])
        adjusted[place] = min(highest, 1.0)
    assert [p for p, _ in holm(p_values)] == [adjusted[place] for place in range(len(p_values))]
    assert [p for p, _ in holm([0.01, 0.04, 0.03, 0.005])] == pytest.approx([0.03, 0.06, 0.06, 0.02])
