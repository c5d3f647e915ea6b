"""The Warfarin experiment: therapy records as arms, stability as the target, INR protected.

This is a benchmark geometry, not medicine: the fits explain about 0.6% of the variance
(docs/warfarin.md). The table is neither included nor downloaded; `SOURCE` says where to get it and under
which terms.
"""

import re
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from sidestep.core.actions import Arms, name_directions, unreached
from sidestep.core.arrays import FloatArray
from sidestep.core.linalg import orthonormal, project_off
from sidestep.core.problem import Tolerance
from sidestep.core.validation import check_integer, look_up
from sidestep.environments.instance import Instance
from sidestep.environments.warfarin_table import STATINS, Tally, read_records
from sidestep.errors import UnreachedDirectionsWarning

NORMAL_INR = 2.5
OUTCOMES = ("stability", "inr")
SCALES = ("raw", "max")
SOURCE = (
    "IWPC table, PharmGKB/ClinPGx submission PS206767 (N Engl J Med 2009;360:753-64), "
    "CC BY-SA 4.0, not to be sold; a research resource, not for treatment decisions"
)
LOOKALIKE = (
    "SYNTHETIC look-alike: records drawn from aggregates, vectors planted, nothing measured on "
    f"anybody. For the real table give the path of your copy: {SOURCE}"
)

# Aggregates of the public table (1832 complete cases) that the look-alike is drawn from.
RECORDS = 1832
STATIN_COUNTS = (291, 109, 6, 20, 22, 5, 0)  # exclusive; the other 1379 take none
AMIODARONE_COUNT = 113
LOG_DOSE = (3.41, 0.49)  # mean and standard deviation of the natural logarithm
DOSE_STEP, DOSE_RANGE = 1.25, (4.5, 120.0)
PLANTED = {  # effect on stability and on INR of a unit along each column
    "dose": (0.40, 0.55),
    "simvastatin": (0.35, -0.10),
    "atorvastatin": (0.50, 0.45),
    "fluvastatin": (0.20, 0.10),
    "lovastatin": (0.25, -0.20),
    "pravastatin": (0.30, 0.05),
    "rosuvastatin": (0.15, 0.15),
    "cerivastatin": (0.0, 0.0),  # nobody takes it
    "amiodarone": (0.45, 0.30),
}


class Preset(NamedTuple):
    """Which columns make an action, and whether the VKORC1 genotype must be known."""

    drugs: tuple[str, ...]
    genotype: bool


PRESETS = {
    "paper": Preset(STATINS, genotype=True),
    "full-rank": Preset((*STATINS[:6], "amiodarone"), genotype=True),
    "statins": Preset(STATINS, genotype=False),
    "statins6": Preset(STATINS[:6], genotype=False),
}


class Effects(NamedTuple):
    """The reward of an arm, and its effect on both outcomes."""

    reward: float
    target: float
    protected: float


@dataclass(frozen=True, slots=True)
class WarfarinReport:
    """What a reader should know about a Warfarin world before looking at its regret."""

    source: str  # print it beside every figure
    synthetic: bool
    preset: str
    scale: str
    target: str
    tally: Tally | None  # where the rows went; None for the look-alike
    records: int
    distinct_arms: int
    dim: int
    rank: int
    unreached: str  # columns that no arm moves; empty where the arms span
    condition: float  # of the arms, within the space that they reach
    r_squared: tuple[float, float] | None  # of the fits of target and protected outcome
    best: Effects  # of the arm with the largest reward
    greedy: Effects  # of the arm with the largest target effect, protection ignored
    greedy_loss: float  # per round

    def summary(self) -> str:
        """Aligned lines for a terminal."""
        names = (self.target, OUTCOMES[1 - OUTCOMES.index(self.target)])
        missing = f" (no arm reaches {self.unreached})" if self.unreached else ""
        fits = "none: the vectors are planted"
        if self.r_squared is not None:
            fits = ", ".join(
                f"{name} {x:.4f}" for name, x in zip(names, self.r_squared, strict=True)
            )
        lines = {
            "source": self.source,
            "world": f"{self.preset}, {self.scale}, target {self.target}",
            "records": f"{self.records}",
            "distinct arms": f"{self.distinct_arms}",
            "rank": f"{self.rank} of {self.dim}{missing}",
            "condition": f"{self.condition:.0f}",
            "R^2 of the fits": fits,
            "best reward": f"{self.best.reward:.4f}",
            "unprotected greedy": f"loses {self.greedy_loss:.4f} a round",
        }
        for name, arm in (("best arm", self.best), ("greedy arm", self.greedy)):
            lines[name] = f"{names[0]} {arm.target:+.2f}, {names[1]} {arm.protected:+.2f}"
        shown = [f"{label:<19} {text}" for label, text in lines.items()]
        return "\n".join([self.tally.summary(), *shown] if self.tally else shown)


class _World(NamedTuple):
    """A Warfarin world before it becomes an instance or a report."""

    columns: tuple[str, ...]
    arms: Arms  # (K, d), unit rows
    theta: FloatArray  # (2, d)
    r_squared: tuple[float, float] | None
    tally: Tally | None


def warfarin(
    path: Path | str | None = None,
    preset: str = "paper",
    scale: str = "raw",
    target: str = "stability",
    *,
    noise_scale: float = 0.001,
    tolerance: Tolerance = None,
    penalty: float | None = None,
) -> Instance:
    """Therapy records as arms; stability the target, INR protected (without a path: a look-alike).

    path     the IWPC table, any of the copies that `environments.warfarin_table` reads. None plays the
             SYNTHETIC `warfarin_lookalike`, which resembles the table and measures nobody
    preset   paper: dose and seven statins, complete cases with a known VKORC1 genotype, 1832 rows;
             full-rank: cerivastatin, which nobody takes, replaced by amiodarone, 1832 rows; statins:
             paper without the genotype filter, 2132; statins6: the first six statins, 2419
    scale    raw: mg/week; max: every column divided by its maximum
    target   stability, or inr, which swaps the two
    noise_scale   R
    tolerance, penalty   of the protected effect, as in Instance; None: the paper's reward

    Rows become unit vectors (none is zero, a dose is above 0). theta_0 and theta_1 are least squares
    without intercept on them, of stability and INR - 2.5, of minimum norm where the arms do not span:
    a warning names the column then, and no policy can know the best arm for certain. The paper
    swaps the two outcomes between model and text; this follows its text (E3).

    The real file is PharmGKB/ClinPGx submission PS206767 (CC BY-SA 4.0, not to be sold, a research
    resource, not for treatment decisions). Nothing is downloaded.
    """
    world = _world(path, preset, scale, target)
    return _instance(world, noise_scale, tolerance, penalty)


def warfarin_lookalike(
    seed: int = 0,
    scale: str = "max",
    preset: str = "paper",
    target: str = "stability",
    *,
    noise_scale: float = 0.001,
    tolerance: Tolerance = None,
    penalty: float | None = None,
) -> Instance:
    """SYNTHETIC stand-in for the Warfarin table: records drawn from its aggregates, vectors planted.

    1832 records: statins exclusive, in exactly the numbers of the public table; ln dose normal, on a
    grid of 1.25 mg/week in 4.5..120; amiodarone (full-rank) given to 113 at random. The vectors are
    planted, in the coordinates of the scale, so that protection matters: with scale max an
    unprotected greedy policy loses more than 0.2 per round. Presets differ only in their columns.

    seed     of the records
    scale    raw: mg/week; max: every column divided by its maximum
    preset   as in `warfarin`
    target   stability, or inr, which swaps the two
    noise_scale   R
    tolerance     of the protected effect, as in Instance; None: the paper's reward
    penalty       of a unit beyond it, as in Instance

    >>> import sidestep as ss
    >>> len(ss.environments.warfarin_lookalike(preset="full-rank").actions)
    1832
    """
    return _instance(_drawn(seed, preset, scale, target), noise_scale, tolerance, penalty)


def describe(
    path: Path | str | None = None,
    preset: str = "paper",
    scale: str = "raw",
    target: str = "stability",
) -> WarfarinReport:
    """A report about the world that `warfarin` builds: rows read, directions reached, rewards."""
    world = _world(path, preset, scale, target)
    vectors, theta = world.arms.vectors, world.theta
    missing = unreached(world.arms)
    rank = world.arms.dim - len(missing)
    values = np.linalg.svd(vectors, compute_uv=False)
    rewards = vectors @ project_off(orthonormal(theta[1:].copy()), theta[0].copy())
    best, greedy = (
        Effects(float(rewards[arm]), *(float(x) for x in theta @ vectors[arm]))
        for arm in (int(rewards.argmax()), int((vectors @ theta[0]).argmax()))
    )
    return WarfarinReport(
        source=LOOKALIKE if path is None else SOURCE,
        synthetic=path is None,
        preset=preset,
        scale=scale,
        target=target,
        tally=world.tally,
        records=len(world.arms),
        distinct_arms=len(np.unique(vectors.round(12), axis=0)),
        dim=world.arms.dim,
        rank=rank,
        unreached=_named(missing, world.columns),
        condition=float(values[0] / values[rank - 1]),
        r_squared=world.r_squared,
        best=best,
        greedy=greedy,
        greedy_loss=best.reward - greedy.reward,
    )


def _world(path: Path | str | None, preset: str, scale: str, target: str) -> _World:
    """Arms and fits of a table; without a path, the look-alike of seed 0."""
    if path is None:
        return _drawn(0, preset, scale, target)
    chosen = look_up("preset", preset, PRESETS)
    order = _outcome_order(target)
    records = read_records(path, chosen.drugs, genotype=chosen.genotype)
    arms = _arms(records.taken, scale)
    outcomes = np.column_stack([records.stability, records.inr - NORMAL_INR])[:, order]
    theta = np.linalg.lstsq(arms.vectors, outcomes, rcond=None)[0].T
    left = ((outcomes - arms.vectors @ theta.T) ** 2).sum(axis=0)
    spread = ((outcomes - outcomes.mean(axis=0)) ** 2).sum(axis=0)
    explained = (1 - left / np.where(spread > 0, spread, np.nan)).tolist()
    return _World(records.columns, arms, theta, (explained[0], explained[1]), records.tally)


def _drawn(seed: int, preset: str, scale: str, target: str) -> _World:
    """Arms and planted vectors of the look-alike."""
    drugs = look_up("preset", preset, PRESETS).drugs
    order = _outcome_order(target)
    check_integer("seed", seed, low=0)
    rng = np.random.default_rng(seed)
    dose = np.exp(rng.normal(*LOG_DOSE, RECORDS))
    taken = np.zeros((RECORDS, 1 + len(drugs)))
    taken[:, 0] = np.clip(np.round(dose / DOSE_STEP) * DOSE_STEP, *DOSE_RANGE)
    ends = np.cumsum((0, *STATIN_COUNTS))
    for column, drug in enumerate(drugs, 1):
        if drug == "amiodarone":
            taken[rng.permutation(RECORDS)[:AMIODARONE_COUNT], column] = 1
        else:
            number = STATINS.index(drug)
            taken[ends[number] : ends[number + 1], column] = 1
    columns = ("dose", *drugs)
    theta = np.array([PLANTED[column] for column in columns]).T[order]
    return _World(columns, _arms(taken, scale), theta, None, None)


def _arms(taken: FloatArray, scale: str) -> Arms:
    """One unit vector per record."""
    if look_up("scale", scale, {word: word for word in SCALES}) == "max":
        largest = taken.max(axis=0)
        taken = taken / np.where(largest > 0, largest, 1.0)
    return Arms(taken / np.linalg.norm(taken, axis=1, keepdims=True))


def _outcome_order(target: str) -> list[int]:
    """Rows of stability and INR with the target first."""
    first: int = look_up("target", target, {word: row for row, word in enumerate(OUTCOMES)})
    return [first, 1 - first]


def _instance(
    world: _World, noise_scale: float, tolerance: Tolerance, penalty: float | None
) -> Instance:
    """The world; warns if its arms do not span the space."""
    missing = unreached(world.arms)
    if len(missing):
        warnings.warn(
            f"the arms do not reach {_named(missing, world.columns)}: nothing can be learned along "
            "there, and the vectors are those of minimum norm",
            UnreachedDirectionsWarning,
            stacklevel=3,
        )
    longest = float(np.linalg.norm(world.theta, axis=1).max())
    return Instance(
        world.theta,
        world.arms,
        noise_scale=noise_scale,
        norm_bound=longest,
        subspace_dim=1,
        tolerance=tolerance,
        penalty=penalty,
    )


def _named(directions: FloatArray, columns: tuple[str, ...]) -> str:
    """Directions in the words of the table: e_8 is cerivastatin."""
    return re.sub(r"e_(\d+)", lambda hit: columns[int(hit[1]) - 1], name_directions(directions))
