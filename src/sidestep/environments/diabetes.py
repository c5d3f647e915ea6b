"""Real data that come with a dependency: no file to obtain, no terms to accept."""

from itertools import combinations

import numpy as np

from sidestep.core.actions import Arms
from sidestep.core.arrays import FloatArray
from sidestep.core.problem import Tolerance
from sidestep.core.validation import check_probability
from sidestep.environments.instance import Instance
from sidestep.errors import InputError

COVARIATES = 4  # age, sex, body mass index, blood pressure; the six serum measures follow
SEX = 1  # two values, so its square is not a feature


def diabetes(
    noise_scale: float = 0.1,
    threshold: float = 0.1,
    *,
    tolerance: Tolerance = None,
    penalty: float | None = None,
) -> Instance:
    """Diabetes patients as arms: progression the target, six serum measures protected, rank 4.

    The set of Efron, Hastie, Johnstone and Tibshirani (2004), 442 patients, as scikit-learn bundles
    it (extra `data`). The serum measures are blood lipids and sugar that move together, so their six
    vectors nearly lie in a space of three or four dimensions: a test of CORE-SET on real data.

    actions    a patient's age, sex, body mass index and blood pressure, their six products and three
               squares (sex has two values), each to mean 0 and variance 1, then every row to unit
               length: 442 fixed arms in R^13, condition number 3
    theta      least squares, without intercept, of each outcome to mean 0 and variance 1: progression
               after a year (row 0) and s1..s6 (rows 1..6); all divided by the length of the longest,
               so that norm_bound = 1 (R^2 from 0.17 to 0.39)
    rank       singular values of the six protected vectors, relative to the first: 1, 0.45, 0.27,
               0.18, 0.07, 0.008. Those above `threshold` count: 4 at 0.1, 3 at 0.25. The vectors are
               replaced by the nearest vectors of exactly that rank, so the rank that the policy knows is
               true; at rank 4 this changes them by 6% of their size
    tolerance  of every serum measure, and the penalty of a unit beyond it; None: the paper's reward

    Nothing is claimed about patients: age is not a therapy. Only the geometry is used.

    noise_scale   R
    threshold     singular values below this share of the first do not count
    penalty       of a unit beyond the tolerance, as in Instance

    >>> import sidestep as ss
    >>> ss.environments.diabetes().problem.subspace_dim
    4
    """
    check_probability("threshold", threshold)
    table, progression = _load()
    arms = _features(_standard(table[:, :COVARIATES]))
    arms /= np.linalg.norm(arms, axis=1, keepdims=True)
    outcomes = _standard(np.column_stack([progression, table[:, COVARIATES:]]))
    theta = np.linalg.lstsq(arms, outcomes, rcond=None)[0].T  # (7, 13)
    theta /= np.linalg.norm(theta, axis=1).max()
    left, values, right = np.linalg.svd(theta[1:], full_matrices=False)
    rank = int((values > threshold * values[0]).sum())
    theta[1:] = (left[:, :rank] * values[:rank]) @ right[:rank]
    return Instance(
        theta,
        Arms(arms),
        noise_scale=noise_scale,
        subspace_dim=rank,
        tolerance=tolerance,
        penalty=penalty,
    )


def _load() -> tuple[FloatArray, FloatArray]:
    """The table in natural units, and the progression."""
    try:
        from sklearn.datasets import load_diabetes  # noqa: PLC0415  (heavy, and an extra)
    except ImportError:
        raise InputError(
            "the diabetes world needs scikit-learn, which bundles the data: "
            "pip install 'sidestep[data]'"
        ) from None
    bundle = load_diabetes(scaled=False)
    return np.asarray(bundle.data, dtype=float), np.asarray(bundle.target, dtype=float)


def _features(covariates: FloatArray) -> FloatArray:
    """Covariates, products of two, squares; standardised; (n, 13)."""
    count = covariates.shape[1]
    pairs = [covariates[:, i] * covariates[:, j] for i, j in combinations(range(count), 2)]
    squares = [covariates[:, j] ** 2 for j in range(count) if j != SEX]
    return _standard(np.column_stack([covariates, *pairs, *squares]))


def _standard(columns: FloatArray) -> FloatArray:
    """Columns to mean 0 and variance 1."""
    return (columns - columns.mean(axis=0)) / columns.std(axis=0)
