"""Medians of many columns at once."""

import warnings

import numpy as np
import pytest

from tauten._median import STRIPE, by_stripes, medians, observed_medians


@pytest.mark.parametrize("n", [1, 2, 7, 8, 501])
def test_it_is_numpys_median(n):
    rows = np.random.default_rng(n).normal(size=(n, 4, 3))
    np.testing.assert_array_equal(medians(rows), np.median(rows, axis=0))


@pytest.mark.parametrize("n", [7, 8])
def test_nan_comes_last(n):
    rows = np.random.default_rng(n).normal(size=(n, 4))
    rows[2, 1] = rows[:, 2] = np.nan
    last = np.where(np.isnan(rows), np.inf, rows)
    expected = np.where(np.isnan(rows).all(axis=0), np.nan, np.median(last, axis=0))
    np.testing.assert_array_equal(medians(rows), expected)


def test_the_rows_are_left_as_they_were():
    rows = np.random.default_rng(0).normal(size=(6, 5))
    before = rows.copy()
    medians(rows)
    np.testing.assert_array_equal(rows, before)


def test_what_is_found_keeps_no_more_than_itself():
    found = medians(np.random.default_rng(0).normal(size=(7, 3)))
    assert (found if found.base is None else found.base).size == 3


@pytest.mark.parametrize("n", [1, 2, 7, 8])
@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
def test_of_what_is_there_it_is_numpys(n, share):
    rng = np.random.default_rng(n)
    rows = rng.normal(size=(n, 4, 30))
    rows[rng.random(rows.shape) < share] = np.nan
    rows[:, 0, 0] = np.nan
    with warnings.catch_warnings(action="ignore"):  # of a column with nothing in it
        expected = np.nanmedian(rows, axis=0)
    np.testing.assert_array_equal(observed_medians(rows), expected)


@pytest.mark.parametrize("columns", [0, 1, STRIPE, STRIPE + 1, 3 * STRIPE])
def test_stripes_are_put_side_by_side(columns):
    rng = np.random.default_rng(columns)
    rows = rng.normal(size=(9, columns))
    rows[0, rng.random(columns) < 0.3] = np.nan
    found = by_stripes(lambda some: observed_medians(rows[:, some]), columns)
    np.testing.assert_array_equal(found, np.nanmedian(rows, axis=0))
