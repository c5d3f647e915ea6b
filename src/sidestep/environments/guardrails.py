"""Worlds with a tolerance for every side effect, and a penalty of a unit beyond it.

Regret and genie follow this aim (core/objective.py). `warfarin` and `diabetes` take a tolerance as well.
Everything here is drawn from the seed; there are no real data.
"""

from itertools import product

import numpy as np
from numpy.random import Generator

from sidestep.core.actions import Arms, Box
from sidestep.core.arrays import FloatArray
from sidestep.core.problem import Tolerance
from sidestep.core.validation import check_integer, check_positive
from sidestep.environments.instance import Instance
from sidestep.environments.synthetic import synthetic, unit_rows

SHORTEST = 0.1  # length of an arm, at least; 1 at most
DRUGS, DOSES = 4, (0.0, 0.5, 1.0)
OUTCOMES = 3  # protected ones of doses
FIT = 0.5  # strength of an interaction of two drugs, relative to the effect of one

# An ACTG-like trial: columns, and the planted effects on (CD4 gain; CD8 change, off treatment, event).
PATIENTS = 500
TREATMENTS = ("zidovudine + didanosine", "zidovudine + zalcitabine", "didanosine")
COVARIATES = ("age", "weight", "karnofsky", "cd4", "cd8", "sex", "drug use", "symptoms")
BINARY = {"sex": 0.83, "drug use": 0.13, "symptoms": 0.17}  # share of patients
PLANTED = np.array([[0.6, 0.4, 0.5], [0.5, -0.1, 0.1], [0.3, 0.1, 0.0], [-0.2, -0.1, -0.2]])
SCATTER = 0.3  # spread of the effects of the other columns, relative to that of a treatment


def guarded_arms(
    arms: int = 100,
    dim: int = 6,
    n_protected: int = 4,
    subspace_dim: int = 2,
    *,
    tolerance: Tolerance = 0.15,
    penalty: float | None = 5.0,
    noise_scale: float = 0.1,
    seed: int = 0,
) -> Instance:
    """Fixed arms of different lengths, 0.1 to 1, with a tolerance for every side effect.

    The vectors are those of `synthetic` with the same seed. A long arm has large effects, a short one
    almost none. The task is to learn which long arms are within all tolerances.

    arms           how many
    dim            d, the length of an action
    n_protected    L, number of protected outcomes
    subspace_dim   s, the dimension of what they span
    tolerance      of every protected effect, as in Instance
    penalty        of a unit beyond it, as in Instance
    noise_scale    R
    seed           of everything that is drawn

    >>> import sidestep as ss
    >>> ss.environments.guarded_arms(arms=30).problem.n_protected
    4
    """
    check_integer("arms", arms, low=1)
    rng = np.random.default_rng(seed)
    vectors = rng.standard_normal((arms, dim))
    vectors *= rng.uniform(SHORTEST, 1.0, (arms, 1)) / np.linalg.norm(
        vectors, axis=1, keepdims=True
    )
    flat = synthetic(dim, n_protected, subspace_dim, Arms(vectors), seed=seed)
    return Instance(
        flat.theta, flat.actions, noise_scale=noise_scale, tolerance=tolerance, penalty=penalty
    )


def dose_grid(
    tolerance: Tolerance = 0.1,
    penalty: float | None = 5.0,
    *,
    noise_scale: float = 0.1,
    levels: bool = True,
    seed: int = 0,
) -> Instance:
    """Four drugs at three doses, every combination an arm; every outcome has a level to be learned.

    81 arms, "nothing" among them, in R^10: four doses and their six products, divided by the length of
    the longest. Three protected outcomes; an interaction is half as strong as a drug.

    tolerance      of every protected effect, as in Instance
    penalty        of a unit beyond it, as in Instance
    noise_scale    R
    levels         False: every outcome is zero without a dose, and the policy knows it
    seed           of everything that is drawn

    >>> import sidestep as ss
    >>> ss.environments.dose_grid().actions.vectors.shape
    (81, 10)
    """
    check_integer("seed", seed, low=0)
    rng = np.random.default_rng(seed)
    arms = dose_rows()
    strength = np.where(np.arange(arms.shape[1]) < DRUGS, 1.0, FIT)
    theta = rng.standard_normal((1 + OUTCOMES, arms.shape[1])) * strength
    theta[0, :DRUGS] = np.abs(theta[0, :DRUGS])  # a drug is given because it helps
    level = rng.standard_normal(1 + OUTCOMES)
    return Instance(
        unit_rows(theta),
        Arms(arms),
        noise_scale=noise_scale,
        tolerance=tolerance,
        penalty=penalty,
        intercept=level if levels else None,
    )


def dose_rows() -> FloatArray:
    """Every combination of four drugs at three doses, and the doses' products; longest 1; (81, 10)."""
    doses = np.array(list(product(DOSES, repeat=DRUGS)))
    pairs = [doses[:, i] * doses[:, j] for i in range(DRUGS) for j in range(i)]
    rows = np.column_stack([doses, *pairs])
    return np.asarray(rows / np.linalg.norm(rows, axis=1).max())


def dose_box(
    dim: int = 4,
    n_protected: int = OUTCOMES,
    *,
    tolerance: Tolerance = 0.1,
    penalty: float | None = 5.0,
    noise_scale: float = 0.1,
    seed: int = 0,
) -> Instance:
    """Any dose between two ends of every lever: a box around today's setting, with tolerances.

    Its corners have length 1. The best setting moves the target as far as the tolerances allow.

    dim            d, number of factors
    n_protected    L, number of protected outcomes
    tolerance      of every protected effect, as in Instance
    penalty        of a unit beyond it, as in Instance
    noise_scale    R
    seed           of everything that is drawn

    >>> import sidestep as ss
    >>> ss.environments.dose_box(dim=2).problem.dim
    2
    """
    for name, value in (("dim", dim), ("n_protected", n_protected)):
        check_integer(name, value, low=1)
    check_positive("noise_scale", noise_scale)
    theta = unit_rows(np.random.default_rng(seed).standard_normal((1 + n_protected, dim)))
    end = np.full(dim, dim**-0.5)
    box = Box(-end, end)
    return Instance(theta, box, noise_scale=noise_scale, tolerance=tolerance, penalty=penalty)


def actg_like(
    patients: int = PATIENTS,
    tolerance: Tolerance = (0.1, (None, 0.1), (None, 0.1)),
    penalty: float | None = 5.0,
    *,
    noise_scale: float = 0.1,
    seed: int = 0,
) -> Instance:
    """SYNTHETIC stand-in for a trial of HIV treatments: CD4 gain the target, three outcomes guarded.

    Drawn from a description of ACTG 175 and from nothing else. A patient on one of four treatments is an
    arm in R^15: three treatments against zidovudine alone, eight covariates at mean 0 and variance 1,
    the treatment's product with CD4 at the start (three columns) and that of any of them with symptoms;
    all divided by the length of the longest. Protected: CD8 change, limited in both directions, and
    stopping the treatment and an event, limited only upwards.

    patients       how many, each an arm
    tolerance      of every protected effect, as in Instance
    penalty        of a unit beyond it, as in Instance
    noise_scale    R
    seed           of everything that is drawn

    >>> import sidestep as ss
    >>> ss.environments.actg_like(patients=50).actions.vectors.shape
    (50, 15)
    """
    check_integer("patients", patients, low=1)
    rng = np.random.default_rng(seed)
    given = np.eye(1 + len(TREATMENTS))[rng.integers(0, 1 + len(TREATMENTS), patients)][:, 1:]
    columns = [_covariate(rng, name, patients) for name in COVARIATES]
    cd4, symptoms = (columns[COVARIATES.index(name)] for name in ("cd4", "symptoms"))
    treated = given.sum(axis=1)
    arms = np.column_stack([given, *columns, given * cd4[:, None], treated * symptoms])
    others = SCATTER * rng.standard_normal((len(PLANTED), arms.shape[1] - len(TREATMENTS)))
    theta = np.hstack([PLANTED, others])
    return Instance(
        theta / np.linalg.norm(theta, axis=1).max(),
        Arms(arms / np.linalg.norm(arms, axis=1).max()),
        noise_scale=noise_scale,
        tolerance=tolerance,
        penalty=penalty,
    )


def _covariate(rng: Generator, name: str, patients: int) -> FloatArray:
    """One covariate of the patients; its distribution has mean 0 and variance 1."""
    if name not in BINARY:
        return rng.standard_normal(patients)
    share = BINARY[name]
    has = rng.random(patients) < share
    return np.asarray((has - share) / np.sqrt(share * (1 - share)))
