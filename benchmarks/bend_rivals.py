"""What a textbook does in place of a study: a D-optimal design, then least squares, the noise known.

Every outcome is measured at every visit. The rule is that of a study: the largest estimated effect among
what is within all limits with probability .95 and likelier than not to be better, else the baseline.
"""

from functools import lru_cache
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtr

from benchmarks.bend_worlds import World

ORDERS = {"straight line": 1, "second order": 2}
RIDGE = 1e-9  # of a design with fewer visits than coefficients, while it grows
PASSES = 20  # of exchanges, at most


def terms(world: World, order: int) -> np.ndarray:
    """Constant, straight parts, and by second order squares and products; (K, p), factors on [-1, 1]."""
    columns = []
    for factor in world.factors:
        low, high = float(factor.low or 0), float(factor.high or 0)
        values = np.array([float(setting[factor.name]) for setting in world.settings])
        columns.append((2 * values - low - high) / (high - low))
    products = [a * b for a, b in combinations(columns, 2)] if order == 2 else []
    squares = [each**2 for each in columns] if order == 2 else []
    return np.column_stack([np.ones(len(world.settings)), *columns, *squares, *products])


def designed(rows: np.ndarray, visits: int) -> np.ndarray:
    """Candidates to visit that make the determinant of the information large; by exchange, (visits,)."""
    count = rows.shape[1]
    information = RIDGE * np.eye(count)
    chosen: list[int] = []
    for _ in range(visits):
        best = int(np.argmax(_forms(rows, information)))
        chosen.append(best)
        information += np.outer(rows[best], rows[best])
    for _ in range(PASSES):
        before = list(chosen)
        for place, old in enumerate(before):
            information -= np.outer(rows[old], rows[old])
            new = int(np.argmax(np.round(_forms(rows, information), 9)))
            chosen[place] = new
            information += np.outer(rows[new], rows[new])
        if chosen == before:
            break
    return np.array(chosen)


def _forms(rows: np.ndarray, information: np.ndarray) -> np.ndarray:
    """x' M^-1 x of every row."""
    floor = RIDGE * np.eye(len(information))
    return np.asarray((rows * np.linalg.solve(information + floor, rows.T).T).sum(axis=1))


@lru_cache(maxsize=64)
def plan(ground: Any, order: int, visits: int) -> tuple[np.ndarray, np.ndarray]:
    """The model's rows of all candidates of a ground, and the candidates to visit."""
    rows = terms(ground.world, order)
    return rows, designed(rows, visits)


class Fit(NamedTuple):
    """Estimated effects of all candidates with their s.d., and the chance to be within all limits."""

    mean: np.ndarray  # (outcomes, K)
    spread: np.ndarray  # (outcomes, K)
    within: np.ndarray  # (K,)


def fitted(ground: Any, order: int, visits: int, rng: np.random.Generator) -> Fit | None:
    """The effects after every visit of a design was measured; None: fewer visits than coefficients."""
    world: World = ground.world
    rows, design = plan(ground, order, visits)
    if visits < rows.shape[1]:
        return None
    noise = world.noise / world.half
    measured = world.effects[:, design]
    measured = measured + noise[:, None] * rng.standard_normal(measured.shape)
    x = rows[design]
    inverse = np.linalg.inv(x.T @ x)
    moved = rows - rows[world.base]
    mean = measured @ x @ inverse @ moved.T
    form = np.sqrt(np.maximum((moved @ inverse * moved).sum(axis=1), 0.0))
    spread = np.maximum(noise[:, None] * form, 1e-12)
    within = np.ones(len(rows))
    for outcome, pair in enumerate(world.scaled_limits):
        if pair is not None:
            low, high = (
                np.inf * s if end is None else end for s, end in zip((-1, 1), pair, strict=True)
            )
            z = [(end - mean[outcome]) / spread[outcome] for end in (low, high)]
            within *= ndtr(z[1]) - ndtr(z[0])
    return Fit(mean, spread, within)
