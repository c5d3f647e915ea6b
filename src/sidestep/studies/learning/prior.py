"""Every number of the prior: what is averaged, over which values, with which weights.

Outcomes are counted in half-ranges and factors run over [-1, 1]. Given c, r, E the effects of settings
have the covariance

    c^2 S0^2 [ straight + words + r^2 bends + r^2 interactions + JOINT^2 joint + E^2 own ]

relative to the baseline. One (r, E) holds for all outcomes, every outcome has its own c, and the c of a
study lie around a centre that its outcomes share.
"""

from dataclasses import dataclass, replace

import numpy as np

from sidestep.core.arrays import FloatArray
from sidestep.studies.learning.features import Features, Kind

S0 = (
    27**-0.5
)  # half-ranges: a straight effect of three factors then has the spread of a uniform half-range
JOINT = 0.3  # size of the joint smooth part, in c S0
CURVE = 0.6  # size of the free curve of a factor, in r c S0
LEVEL = 2.0  # s.d. of a level that was not told: far beyond every range
GROSS = 0.02  # share of results that are grossly wrong
WORDS = 2.0  # variance of words, in that of a straight part: over words as much as u over its range
BLOCK = 0.5  # s.d. of the difference that a block makes


@dataclass(frozen=True)
class Grid:
    """Values that are averaged, with their prior weights."""

    values: tuple[float, ...]
    weights: tuple[float, ...]

    @property
    def array(self) -> FloatArray:
        """The values."""
        return np.array(self.values)

    @property
    def log(self) -> FloatArray:
        """Logarithms of the weights, which sum to 1."""
        weights = np.array(self.weights)
        return np.asarray(np.log(weights / weights.sum()))


def log_normal(middle: float, spread: float, count: int) -> Grid:
    """So many values from two and a half spreads (of the logarithm) below a middle to as many above."""
    steps = np.linspace(-2.5, 2.5, count)
    return Grid(
        tuple(float(middle * np.exp(spread * step)) for step in steps),
        tuple(float(np.exp(-step * step / 2)) for step in steps),
    )


NOISE = log_normal(0.1, 1.0, 9)  # of a result whose noise nobody told, in half-ranges
# scatter beyond told errors, in their median; s.d. of the level's step per round, in the noise
EXCESS = Grid((0.0, 1.0, 1.75, 3.0), (0.35, 0.25, 0.25, 0.15))
DRIFT = Grid((0.0, 0.05, 0.2), (0.8, 0.15, 0.05))


@dataclass(frozen=True)
class Prior:
    """What is averaged.

    bends       r: size of a bend or an interaction, in that of a straight part; one for all outcomes
    owns        E: size of the own effect of a setting, in that of a straight part; one for all outcomes
    centres     c0: where the sizes of the outcomes lie
    away        weights of an outcome's size by its distance from the centre, in places of the grid
    drift       s.d. of a round's step of the level, in the noise
    joint       size of the joint smooth part
    words       variances of words, in that of a straight part; one for all outcomes
    curve       size of the free curve of a factor, in r c S0
    gross       share of results that say nothing
    """

    bends: Grid = Grid((0.3, 0.6), (0.6, 0.4))
    owns: Grid = Grid((0.02, 0.1, 0.3, 0.8), (0.5, 0.3, 0.15, 0.05))
    centres: Grid = Grid((0.4, 0.8, 1.6, 3.2, 6.4), (0.08, 0.17, 0.25, 0.25, 0.25))
    away: tuple[float, ...] = (1.0, 0.2, 0.04, 0.01, 0.0025)
    drift: Grid = DRIFT
    joint: float = JOINT
    words: Grid = Grid((WORDS, 3 * WORDS, 9 * WORDS), (0.5, 0.3, 0.2))
    curve: float = CURVE
    gross: float = GROSS

    @property
    def sizes_given_centre(self) -> FloatArray:
        """Weight of every size c, given every centre c0; (centres, sizes), rows sum to 1."""
        place = np.arange(len(self.centres.values))
        table = np.array(self.away)[np.abs(place[:, None] - place)]
        return np.asarray(table / table.sum(axis=1, keepdims=True))

    def terms(self, features: Features) -> FloatArray:
        """Prior variances of the weights of features, by what they grow with; (T, P).

        In c^2 S0^2: what stays as it is, what grows with r^2, with words, with r^2 words.
        """
        group, scale = np.zeros(len(Kind), dtype=int), np.ones(len(Kind))
        group[[Kind.BEND, Kind.INTERACTION, Kind.CURVE]] = 1
        group[Kind.WORDS], group[Kind.WORD_PAIR] = 2, 3
        scale[Kind.CURVE] = self.curve**2
        scale[Kind.JOINT] = self.joint**2
        scale[Kind.WORD_PAIR] = 1 / WORDS
        sizes = features.sizes * scale[features.kinds]
        kinds = range(4 if (group[features.kinds] > 1).any() else 2)
        return np.array([np.where(group[features.kinds] == kind, sizes, 0.0) for kind in kinds])

    def growth(self, bend: float, words: float) -> FloatArray:
        """How the terms grow with r and the variance of words; (4,)."""
        return np.array([1.0, bend**2, words, bend**2 * words])

    def variances(self, features: Features, bend: float, words: float) -> FloatArray:
        """Prior variance of every feature's weight, in c^2 S0^2; (P,)."""
        terms = self.terms(features)
        return np.asarray(self.growth(bend, words)[: len(terms)] @ terms)


def prior_of(shape: str | None) -> Prior:
    """The prior of a shape: None (the default), "smooth" (no own effect) or "straight"."""
    prior = Prior()
    if shape == "smooth":
        return replace(prior, owns=Grid((0.02,), (1.0,)))
    if shape == "straight":
        return replace(prior, bends=Grid((0.0,), (1.0,)), owns=Grid((0.0,), (1.0,)), joint=0.0)
    return prior
