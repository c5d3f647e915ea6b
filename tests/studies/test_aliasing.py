"""Which changes nobody can see, in the units of the factors."""

import numpy as np
import pytest

from sidestep.errors import InputError
from sidestep.studies.learning.aliasing import aliases, direction_words, unseen_share

SPANS = np.array([40.0, 10.0, 0.5])


def test_factors_that_always_move_together_are_named_in_their_units():
    dose = np.linspace(0, 1, 6)[:, None]
    plan = np.hstack([40 * dose, 10 * dose, 0.5 * (1 - dose)])
    found = aliases(plan, plan, SPANS)
    assert found.so_far.shape == (0, 3)
    assert found.never.shape == (2, 3)
    for change in found.never:  # no two candidates differ by it, and it is given by two factors
        assert np.abs((plan - plan[0]) / SPANS @ (change / SPANS)).max() < 1e-9
        assert (change != 0).sum() == 2
        assert np.abs(change / SPANS).max() == pytest.approx(1.0)


def test_what_was_measured_so_far_names_what_candidates_could_still_show():
    grid = np.stack(np.meshgrid([0, 40.0], [0, 10.0], [0, 0.5], indexing="ij"), -1).reshape(-1, 3)
    found = aliases(grid[[0, 4]], grid, SPANS)  # the first factor alone was changed
    assert found.never.shape == (0, 3)
    np.testing.assert_allclose(sorted(map(tuple, found.so_far)), [(0, 0, 0.5), (0, 10.0, 0)])
    assert aliases(grid, grid, SPANS).so_far.shape == (0, 3)
    assert aliases(grid[:0], grid, SPANS).so_far.shape == (3, 3)


def test_one_setting_shows_no_change_unless_the_level_is_known():
    one = np.array([[20.0, 0.0, 0.0]])
    grid = np.vstack([np.zeros(3), np.diag(SPANS)])
    assert len(aliases(one, grid, SPANS).so_far) == 3
    assert len(aliases(one, grid, SPANS, level_known=True).so_far) == 2


@pytest.mark.parametrize("seed", range(20))
def test_two_explanations_that_differ_along_an_alias_explain_every_result_alike(seed):
    rng = np.random.default_rng(seed)
    d = int(rng.integers(2, 6))
    spans = 10 ** rng.uniform(-2, 3, d)
    rank = int(rng.integers(1, d + 1))
    candidates = rng.standard_normal((12, rank)) @ rng.standard_normal((rank, d)) * spans
    measured = candidates[: int(rng.integers(1, 5))]
    found = aliases(measured, candidates, spans)
    shown = min(len(measured) - 1, rank)
    assert (len(found.never), len(found.so_far)) == (d - rank, rank - shown)
    for table, changes in ((candidates, found.never), (measured, found.so_far)):
        for change in changes:
            slope = change / spans**2  # effects of the factors that differ along the change alone
            assert np.ptp(table @ slope) < 1e-6 * max(np.linalg.norm(change / spans), 1)
    for change in found.so_far:
        assert np.ptp(candidates @ (change / spans**2)) > 1e-6
        assert unseen_share(change, measured, spans) == pytest.approx(1.0)
    if len(measured) > 1:
        assert unseen_share(measured[1] - measured[0], measured, spans) == 0


def test_the_unit_of_a_factor_does_not_decide_what_is_named():
    rng = np.random.default_rng(0)
    plan = rng.standard_normal((9, 2)) @ rng.standard_normal((2, 3)) * SPANS
    scale = np.array([1000.0, 1.0, 0.01])
    one, other = (aliases(plan * k, plan * k, SPANS * k).never / k for k in (np.ones(3), scale))
    np.testing.assert_allclose(one, other, rtol=1e-9)


def test_a_direction_is_said_in_words():
    said = direction_words(
        np.array([10.0, 0.0, -0.25]), ["lisinopril", "diet", "salt"], ["mg/day", "", ""]
    )
    assert said == "raising lisinopril by 10 mg/day while lowering salt by 0.25"
    assert direction_words(np.array([0, 0, 2.0]), ["a", "b", "c"], [""] * 3) == "raising c by 2"


@pytest.mark.parametrize(
    ("spans", "sentence"), [([1.0, 0.0], "spans must be positive"), ([[1.0]], "one a factor")]
)
def test_a_span_that_is_none_is_refused(spans, sentence):
    with pytest.raises(InputError, match=sentence):
        aliases(np.zeros((1, 2)), np.zeros((1, 2)), np.array(spans))


def test_a_setting_that_is_no_number_is_refused():
    with pytest.raises(InputError, match="settings must be finite"):
        unseen_share(np.ones(2), np.array([[np.nan, 0.0]]), np.ones(2))
