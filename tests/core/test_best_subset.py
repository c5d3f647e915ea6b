"""The best subset: equal to enumeration where that is possible; a capped search says so."""

from collections.abc import Callable
from itertools import combinations

import numpy as np
import pytest

from sidestep.core.arrays import FloatArray, IntArray
from sidestep.core.best_subset import best_subset, search_subset
from sidestep.core.jit import kernel
from sidestep.errors import InputError

Generator = np.random.Generator
ROUNDING = 1e-12  # of an eigenvalue, as a share of the trace of the Gram matrix


def plain(rng: Generator, rows: int) -> FloatArray:
    return rng.normal(size=(rows, 6))


def scaled(rng: Generator, rows: int) -> FloatArray:
    return rng.normal(size=(rows, 12)) * np.exp(2 * rng.normal(size=(rows, 1)))


def near_duplicates(rng: Generator, rows: int) -> FloatArray:
    table = rng.normal(size=(rows, 8))
    noise = 10.0 ** rng.uniform(-6, -1, size=(rows, 1)) * rng.normal(size=table.shape)
    return table[rng.integers(max(rows // 2, 1), size=rows)] + noise


def dependent(rng: Generator, rows: int) -> FloatArray:
    table = rng.normal(size=(rows, 3)) @ rng.normal(size=(3, 7))
    table[rng.random(rows) < 0.2] = 0.0
    return table[rng.integers(rows, size=rows)]


KINDS = [plain, scaled, near_duplicates, dependent]


def eigenvalues(table: FloatArray, sets: IntArray) -> FloatArray:
    """lambda_min of every set by numpy; (len(sets),)."""
    gram = table @ table.T
    return np.linalg.eigvalsh(gram[sets[:, :, None], sets[:, None, :]])[:, 0]


def enumerated(table: FloatArray, size: int) -> tuple[IntArray, FloatArray]:
    """Every set of this size, lowest rows first, and its lambda_min."""
    sets = np.array(list(combinations(range(len(table)), size)))
    return sets, eigenvalues(table, sets)


def greedy_and_swaps(table: FloatArray, size: int) -> float:
    """lambda_min of a greedy set that no exchange of one row improves."""
    rows: list[int] = []
    everyone = range(len(table))

    def value(trial: list[int]) -> float:
        return float(eigenvalues(table, np.array([trial]))[0])

    for _ in range(size):
        rows = max(([*rows, m] for m in everyone if m not in rows), key=value)
    while True:
        swaps = [[*rows[:p], *rows[p + 1 :], m] for p in range(size) for m in everyone]
        better = max((trial for trial in swaps if len(set(trial)) == size), key=value)
        if value(better) <= value(rows):
            return value(rows)
        rows = better


@pytest.mark.full
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("length", range(1, 13))
def test_no_set_of_that_size_has_a_larger_eigenvalue(
    kind: Callable[[Generator, int], FloatArray], length: int
) -> None:
    rng = np.random.default_rng(length)
    for size in range(1, length + 1):
        table = kind(rng, length)
        sets, values = enumerated(table, size)
        slack = ROUNDING * np.trace(table @ table.T)
        result = best_subset(table, size)
        assert result.exact
        assert result.eigenvalue == pytest.approx(values.max(), rel=1e-9, abs=slack)
        assert values[(sets == result.rows).all(axis=1)] >= values.max() - slack


@pytest.mark.full
@pytest.mark.parametrize("seed", range(20))
def test_well_separated_optimum_is_found_row_by_row(seed: int) -> None:
    table = scaled(np.random.default_rng(seed), 10)
    for size in range(1, 11):
        sets, values = enumerated(table, size)
        second, first = np.sort(np.append(values, 0.0))[-2:]
        assert first > second * (1 + 1e-6), "the instance should have one clear best set"
        assert best_subset(table, size).rows.tolist() == sets[values.argmax()].tolist()


@pytest.mark.full
@pytest.mark.parametrize("seed", range(3))
def test_forty_rows_are_solved_exactly_and_beat_greedy_with_swaps(seed: int) -> None:
    table = np.random.default_rng(seed).normal(size=(40, 20))
    result = best_subset(table, 8)
    assert result.exact
    assert result.eigenvalue >= greedy_and_swaps(table, 8) * (1 - 1e-9)
    assert result.eigenvalue == pytest.approx(eigenvalues(table, result.rows[None])[0])


@pytest.mark.full
def test_order_of_the_rows_does_not_change_the_optimum() -> None:
    rng = np.random.default_rng(5)
    table = rng.normal(size=(40, 10))
    order = rng.permutation(40)
    there, back = best_subset(table, 8), best_subset(table[order], 8)
    assert sorted(order[back.rows]) == there.rows.tolist()


@pytest.mark.parametrize("factor", [1e-6, 1e6])
def test_eigenvalue_scales_with_the_square_of_the_vectors(factor: float) -> None:
    table = near_duplicates(np.random.default_rng(6), 12)
    small, large = best_subset(table, 5), best_subset(factor * table, 5)
    assert large.rows.tolist() == small.rows.tolist()
    assert large.eigenvalue == pytest.approx(factor**2 * small.eigenvalue, rel=1e-9)


def test_one_huge_row_does_not_drown_the_choice_among_the_others() -> None:
    table = np.random.default_rng(7).normal(size=(9, 5))
    table[4] *= 1e7
    cut = table - np.outer(table @ table[4], table[4]) / (table[4] @ table[4])
    sets, values = enumerated(np.delete(cut, 4, axis=0), 3)
    others = sets[values.argmax()]
    result = best_subset(table, 4)
    assert result.rows.tolist() == sorted([4, *(others + (others >= 4))])
    assert result.eigenvalue == pytest.approx(values.max(), rel=1e-6)


def test_node_cap_returns_a_true_incumbent_that_says_it_is_not_proved() -> None:
    table = np.random.default_rng(8).normal(size=(40, 10))
    capped = best_subset(table, 8, max_nodes=10)
    assert not capped.exact
    assert (np.diff(capped.rows) > 0).all()
    assert capped.eigenvalue == pytest.approx(eigenvalues(table, capped.rows[None])[0])
    assert 0 < capped.eigenvalue <= best_subset(table, 8).eigenvalue


@pytest.mark.parametrize("seed", range(5))
def test_exchanging_one_row_does_not_improve_the_incumbent_of_a_capped_search(seed: int) -> None:
    table = np.random.default_rng(seed).normal(size=(30, 10))
    capped = best_subset(table, 7, max_nodes=0)
    rest = np.setdiff1d(np.arange(30), capped.rows)
    swaps = [[*np.delete(capped.rows, p), m] for p in range(7) for m in rest]
    assert eigenvalues(table, np.array(swaps)).max() <= capped.eigenvalue * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(10))
def test_eigenvalue_is_right_to_the_last_digits(seed: int) -> None:
    table = np.random.default_rng(seed).normal(size=(8, 12))
    exact = np.linalg.svd(table, compute_uv=False)[-1] ** 2
    assert best_subset(table, 8).eigenvalue == pytest.approx(exact, rel=0, abs=3e-14)


@pytest.mark.parametrize("seed", range(10))
def test_among_duplicates_and_mirror_images_the_lowest_rows_win(seed: int) -> None:
    rng = np.random.default_rng(seed)
    table = rng.normal(size=(5, 6))[rng.integers(5, size=12)]
    table *= rng.choice([-1.0, 1.0], size=(12, 1))
    for size in range(1, len(np.unique(abs(table), axis=0)) + 1):
        sets, values = enumerated(table, size)
        lowest = sets[values >= values.max() * (1 - 1e-11)][0]
        assert best_subset(table, size).rows.tolist() == lowest.tolist()


def test_symmetric_ties_go_to_the_lowest_rows() -> None:
    angles = np.arange(12) * np.pi / 6
    polygon = np.column_stack([np.cos(angles), np.sin(angles)])
    assert best_subset(polygon, 2).rows.tolist() == [0, 3]
    assert best_subset(np.roll(np.eye(12), 5, axis=1), 5).rows.tolist() == [0, 1, 2, 3, 4]


def test_copies_of_the_table_cost_no_more_than_the_table() -> None:
    table = np.random.default_rng(17).normal(size=(12, 10))
    single = best_subset(table, 8, max_nodes=1000)
    copies = best_subset(np.vstack([table] * 4), 8, max_nodes=1000)
    assert single.exact
    assert copies.exact
    assert copies.rows.tolist() == single.rows.tolist()


def test_millions_of_ties_are_settled_within_a_few_nodes() -> None:
    result = best_subset(np.eye(40), 8, max_nodes=100)
    assert result.exact
    assert result.rows.tolist() == list(range(8))


@pytest.mark.parametrize(("excess", "winner"), [(2e-13, [0, 1]), (1e-10, [0, 3])])
def test_only_eigenvalues_within_the_tie_are_equal(excess: float, winner: list[int]) -> None:
    table = np.diag([2.0, 1.0, 1.0 + excess / 4, np.sqrt(1.0 + excess)])
    assert best_subset(table, 2).rows.tolist() == winner


@pytest.mark.parametrize(
    "table",
    [
        np.zeros((5, 4)),
        np.ones((5, 4)),
        np.random.default_rng(9).normal(size=(5, 2)),
        np.random.default_rng(10).normal(size=(40, 2)) @ np.vander(np.arange(1.0, 3), 30) / 2**29,
        np.repeat(np.random.default_rng(11).normal(size=(2, 9)), 20, axis=0),
    ],
)
def test_size_above_the_rank_gives_zero_and_the_first_rows(table: FloatArray) -> None:
    result = best_subset(table, 3)
    assert result.rows.tolist() == [0, 1, 2]
    assert 0 <= result.eigenvalue <= 1e-12
    assert result.exact


def test_no_rows_have_eigenvalue_zero_and_all_rows_are_all_rows() -> None:
    table = np.random.default_rng(13).normal(size=(7, 9))
    empty, full = best_subset(table, 0), best_subset(table, 7)
    assert (empty.rows.tolist(), empty.eigenvalue, empty.exact) == ([], 0.0, True)
    assert full.rows.tolist() == list(range(7))
    assert full.eigenvalue == pytest.approx(np.linalg.eigvalsh(table @ table.T)[0])
    assert best_subset(np.empty((0, 3)), 0).rows.shape == (0,)


def test_read_only_input_goes_in_and_nothing_is_written() -> None:
    table = np.asfortranarray(np.repeat(np.random.default_rng(14).normal(size=(5, 4)), 2, axis=0))
    before = table.copy()
    table.flags.writeable = False
    best_subset(table, 3)
    assert (table == before).all()


def test_kernel_called_by_a_kernel_answers_as_the_door_does() -> None:
    @kernel
    def third_eigenvalue(tables: FloatArray) -> float:
        return search_subset(tables[2], 2, 1000)[1]

    tables = np.random.default_rng(15).normal(size=(3, 4, 6))
    assert third_eigenvalue(tables) == best_subset(tables[2], 2).eigenvalue
    assert (tables == np.random.default_rng(15).normal(size=(3, 4, 6))).all()


def test_twice_the_same_question_has_the_same_answer() -> None:
    table = np.random.default_rng(16).normal(size=(30, 9))
    one, two = best_subset(table, 6), best_subset(table, 6)
    assert one.rows.tolist() == two.rows.tolist()
    assert one.eigenvalue == two.eigenvalue


@pytest.mark.parametrize("size", [-1, 4])
def test_size_outside_the_table_is_refused(size: int) -> None:
    with pytest.raises(InputError, match=r"size must lie in 0\.\.3"):
        best_subset(np.eye(3), size)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_numbers_that_are_not_finite_are_refused(bad: float) -> None:
    with pytest.raises(InputError, match="finite"):
        best_subset(np.array([[1.0, bad], [0.0, 1.0]]), 1)
