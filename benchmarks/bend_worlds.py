"""Worlds whose responses bend, with the truth at every candidate: for benchmarks/bends.py.

clinic     straight in every factor; effects of three drugs on blood pressure and four laboratory values
emax       the same effects at full dose, every outcome saturating
convex     the goal saturates, harms grow with the square of the dose
tire       the second-order models of a tyre tread, Derringer and Suich (1980), J. Quality Technology 12
chem       those of a chemical process, Myers and Montgomery, Response Surface Methodology

Families of random worlds, a new one for every study: a number of factors from 2 to 4 (or told), effects
of random size, limits at a random share of the largest harm.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np

from sidestep import Factor


@dataclass(frozen=True)
class World:
    """Candidates, their true means, and what a study is told of them.

    truth    mean of every outcome at every candidate, in units; the first outcome is the target
    limits   (low, high) of the effect of every protected outcome, in units
    """

    name: str
    factors: tuple[Factor, ...]
    settings: tuple[dict, ...]
    outcomes: tuple[str, ...]
    truth: np.ndarray  # (outcomes, K)
    ranges: np.ndarray  # (outcomes, 2)
    noise: np.ndarray  # (outcomes,)
    limits: tuple[tuple[float | None, float | None], ...]
    sign: int  # +1: raise the target

    @cached_property
    def base(self) -> int:
        """The candidate that is the baseline."""
        baseline = {factor.name: factor.baseline for factor in self.factors}
        return self.settings.index(baseline)

    @cached_property
    def moved(self) -> np.ndarray:
        """Whether a candidate is not the baseline; (K,)."""
        return np.arange(len(self.settings)) != self.base

    @cached_property
    def half(self) -> np.ndarray:
        """Half-ranges."""
        return (self.ranges[:, 1] - self.ranges[:, 0]) / 2

    @cached_property
    def effects(self) -> np.ndarray:
        """True effects in half-ranges, the target's counted so that more is better; (outcomes, K)."""
        change = (self.truth - self.truth[:, [self.base]]) / self.half[:, None]
        change[0] *= self.sign
        return change

    @cached_property
    def scaled_limits(self) -> list[tuple[float | None, float | None] | None]:
        """Limits in half-ranges; None for the target."""
        return [None] + [
            tuple(None if end is None else end / half for end in pair)
            for pair, half in zip(self.limits, self.half[1:], strict=True)
        ]

    @cached_property
    def within(self) -> np.ndarray:
        """Whether a candidate is truly within all limits; (K,)."""
        good = np.ones(len(self.settings), bool)
        for effect, pair in zip(self.effects[1:], self.scaled_limits[1:], strict=True):
            low, high = pair
            good &= (effect >= (-np.inf if low is None else low) - 1e-9) & (
                effect <= (np.inf if high is None else high) + 1e-9
            )
        return good

    def excess(self, number: int) -> float:
        """By how much the worst effect of a candidate is beyond its limit, in the limit; 0 within."""
        worst = 0.0
        for effect, (low, high) in zip(
            self.effects[1:, number], self.scaled_limits[1:], strict=True
        ):
            worst = max(worst, 0.0 if not high else effect / high - 1)
            worst = max(worst, 0.0 if not low else effect / low - 1)
        return worst

    @cached_property
    def best(self) -> float:
        """The best effect truly within the limits."""
        return float(self.effects[0][self.within].max())

    def given_up(self, number: int) -> float:
        """1 - effect / best effect within limits; 1 at the baseline, 0 at or beyond the best."""
        return max(0.0, 1 - self.effects[0][number] / self.best)


def grid(factors: Sequence[Factor]) -> tuple[dict, ...]:
    names = [factor.name for factor in factors]
    return tuple(dict(zip(names, row, strict=True)) for row in product(*(f.grid for f in factors)))


def made(
    name: str,
    factors: Iterable[tuple],
    mean: Callable[[str, dict], float],
    outcomes: dict,
    goal: str,
) -> World:
    """A world by formula; outcomes: name -> (range, noise, limits), the target first."""
    axes = tuple(Factor(n, levels=[float(x) for x in lv], baseline=b) for n, lv, b in factors)
    settings = grid(axes)
    return World(
        name,
        axes,
        settings,
        tuple(outcomes),
        np.array([[mean(o, s) for s in settings] for o in outcomes]),
        np.array([each[0] for each in outcomes.values()], float),
        np.array([each[1] for each in outcomes.values()], float),
        tuple(each[2] for each in list(outcomes.values())[1:]),
        1 if goal == "raise" else -1,
    )


SLOPES = {
    "pressure": (-0.22, -1.1, -0.36),
    "potassium": (0.012, 0.0, -0.016),
    "creatinine": (0.15, -0.1, 0.18),
    "sodium": (0.0, 0.0, -0.11),
    "rate": (0.02, 0.65, 0.04),
}
LEVELS = {"pressure": 152, "potassium": 4.2, "creatinine": 84, "sodium": 140, "rate": 71}
DRUGS = (
    ("lisinopril", 40.0, 12.0, 20.0),
    ("amlodipine", 10.0, 3.0, 0.0),
    ("chlortalidone", 25.0, 8.0, 0.0),
)
CLINIC = {
    "pressure": ((100, 190), 5.0, None),
    "potassium": ((3.0, 6.0), 0.12, (-0.3, 0.3)),
    "creatinine": ((40, 160), 3.0, (-9, 9)),
    "sodium": ((125, 150), 1.0, (-2.5, 2.5)),
    "rate": ((40, 120), 2.5, (-6, 6)),
}
DOSES = (
    ("lisinopril", (0, 5, 10, 20, 25, 30, 40), 20.0),
    ("amlodipine", (0, 2.5, 5, 7.5, 10), 0.0),
    ("chlortalidone", (0, 6.25, 12.5, 18.75, 25), 0.0),
)
RESPONSES: dict[str, Callable[[float, float, float], float]] = {
    "straight": lambda dose, most, half: dose,
    "emax": lambda dose, most, half: most * (1 + half / most) * dose / (dose + half),
    "square": lambda dose, most, half: dose * dose / most,
}


def clinic_like(
    name: str, goal: str, harm: str, slopes: Mapping[str, Sequence[float]] = SLOPES
) -> World:
    def mean(outcome: str, setting: dict) -> float:
        curve = RESPONSES[goal if outcome == "pressure" else harm]
        return LEVELS[outcome] + sum(
            slope * (curve(setting[drug], most, half) - curve(base, most, half))
            for slope, (drug, most, half, base) in zip(slopes[outcome], DRUGS, strict=True)
        )

    return made(name, DOSES, mean, CLINIC, "lower")


CLINICS = {
    "clinic": ("straight", "straight"),
    "emax": ("emax", "emax"),
    "convex": ("emax", "square"),
}


def patient(world: str, rng: np.random.Generator, cv: float, *, opposite: bool = False) -> World:
    """A clinic in a patient whose every effect is that of the population times normal(1, cv)."""
    slopes = {
        outcome: (-1 if opposite else 1)
        * np.array(some)
        * (1 + cv * rng.standard_normal(len(some)))
        for outcome, some in SLOPES.items()
    }
    return clinic_like(world, *CLINICS[world], slopes)


TIRE = {
    "abrasion": (139.12, 16.49, 17.88, 10.91, -4.01, -3.45, -1.57, 5.13, 7.13, 7.88),
    "modulus": (1261.11, 268.15, 246.50, 139.48, -83.55, -124.79, 199.17, 69.38, 94.13, 104.38),
    "elongation": (400.38, -99.67, -31.40, -73.92, 7.93, 17.31, 0.43, 8.75, 6.25, 1.25),
    "hardness": (68.91, -1.41, 4.32, 1.63, 1.56, 0.06, -0.32, -1.63, 0.13, -0.25),
}
CHEM = {
    "yield": (79.94, 0.995, 0.515, -1.376, -1.001, 0.25),
    "viscosity": (70.0, -0.155, -0.948, -0.687, -6.689, -1.25),
    "weight": (3386.2, 205.1, 177.4, -41.7, 58.3, -80.0),
}


def second_order(coefficients: Sequence[float], x: Sequence[float]) -> float:
    """Constant, straight parts, squares, products."""
    pairs = [x[i] * x[j] for i in range(len(x)) for j in range(i + 1, len(x))]
    return float(np.dot(coefficients, [1.0, *x, *(each * each for each in x), *pairs]))


def tire() -> World:
    steps = tuple(np.round(np.arange(-1, 1.001, 0.25), 2))
    names = ("silica", "silane", "sulfur")
    return made(
        "tire",
        [(name, steps, 0.0) for name in names],
        lambda o, s: second_order(TIRE[o], [s[name] for name in names]),
        {
            "abrasion": ((80, 200), 5.0, None),
            "modulus": ((600, 2000), 80.0, (-260, 400)),
            "elongation": ((250, 550), 15.0, (-60, 100)),
            "hardness": ((58, 80), 1.0, (-5, 5)),
        },
        "raise",
    )


def chem() -> World:
    steps = tuple(np.round(np.arange(-1.4, 1.401, 0.2), 2))
    return made(
        "chem",
        [(name, steps, -1.0) for name in ("time", "temperature")],
        lambda o, s: second_order(CHEM[o], [s["time"], s["temperature"]]),
        {
            "yield": ((74, 84), 0.3, None),
            "viscosity": ((50, 76), 0.8, (-1.0, 5.5)),
            "weight": ((2500, 3900), 60.0, (None, 459)),
        },
        "raise",
    )


def formulas() -> dict[str, World]:
    """The five worlds by formula."""
    return {
        **{name: clinic_like(name, *curves) for name, curves in CLINICS.items()},
        "tire": tire(),
        "chem": chem(),
    }


# Curves from 0 at x = 0 to 1 at x = 1 (but the optimum, which may come back), with a random strength.
def saturating(rng: np.random.Generator) -> Callable[[np.ndarray], np.ndarray]:
    half = np.exp(rng.uniform(np.log(0.08), np.log(1.5)))
    return lambda x: (1 + half) * x / (x + half)


def power(rng: np.random.Generator) -> Callable[[np.ndarray], np.ndarray]:
    exponent = np.exp(rng.uniform(np.log(0.4), np.log(3.0)))
    return lambda x: x**exponent


def optimum(rng: np.random.Generator) -> Callable[[np.ndarray], np.ndarray]:
    top, width = rng.uniform(0.2, 1.0), rng.uniform(0.35, 0.9)
    return lambda x: np.exp(-0.5 * ((x - top) / width) ** 2) - np.exp(-0.5 * (top / width) ** 2)


def sigmoid(rng: np.random.Generator) -> Callable[[np.ndarray], np.ndarray]:
    middle, steep = rng.uniform(0.2, 0.8), rng.uniform(3, 9)
    low, high = 1 / (1 + np.exp(steep * middle)), 1 / (1 + np.exp(-steep * (1 - middle)))
    return lambda x: (1 / (1 + np.exp(-steep * (x - middle))) - low) / (high - low)


def line(rng: np.random.Generator) -> Callable[[np.ndarray], np.ndarray]:
    return lambda x: x


FAMILIES: dict[str, tuple[Callable, ...]] = {
    "saturating": (saturating,),
    "powers": (power,),
    "optima": (optimum,),
    "interactions": (line, saturating, power),
    "sigmoids": (sigmoid,),
    "mixtures": (saturating, power, optimum, line),
    "straight": (line,),
}
TUNING = (
    7_000_000  # worlds with seeds from here on choose; worlds that are shown have smaller seeds
)


POINTS = {2: 15, 3: 8, 4: 5}  # levels of a factor, by the number of factors
MOST = 800  # candidates; where the grid has more, so many of them


def some_of_grid(axes: Sequence[Factor], seed: int) -> tuple[dict, ...]:
    """The baseline and settings at random from a grid, without repeats."""
    rng = np.random.default_rng([99, seed])
    found = {tuple(axis.baseline for axis in axes)}
    while len(found) < MOST:
        found.add(tuple(float(rng.choice(axis.grid)) for axis in axes))
    names = [axis.name for axis in axes]
    return tuple(dict(zip(names, row, strict=True)) for row in sorted(found))


def random_world(family: str, seed: int, factors: int | None = None) -> World:
    """A world of a family. Baseline at the low end of every factor, or in the middle of some."""
    rng = np.random.default_rng([sorted(FAMILIES).index(family), seed])
    count = factors or int(rng.integers(2, 5))
    points = 9 if family == "straight" and count == 3 else POINTS.get(count, 3)
    levels = np.linspace(0, 1, points)
    axes = tuple(
        Factor(
            f"x{i}",
            levels=[float(x) for x in levels],
            baseline=float(levels[rng.integers(0, 2) * (points // 2)]),
        )
        for i in range(count)
    )
    settings = grid(axes) if points**count <= MOST else some_of_grid(axes, seed)
    x = np.array([[row[axis.name] for axis in axes] for row in settings])
    base = settings.index({axis.name: axis.baseline for axis in axes})
    outcomes = ("goal", *(f"harm{i}" for i in range(int(rng.integers(2, 5)))))
    truth, ranges, noise, limits = [], [], [], []
    for number, _ in enumerate(outcomes):
        curves = [FAMILIES[family][rng.integers(len(FAMILIES[family]))](rng) for _ in axes]
        parts = np.array([curve(x[:, i]) for i, curve in enumerate(curves)])
        sizes = rng.normal(size=count) * rng.choice([0.3, 1.0], size=count)
        if number == 0:
            sizes = np.abs(sizes) + 0.1
        value = sizes @ parts
        if family == "interactions":
            for i in range(count):
                for j in range(i + 1, count):
                    value = value + rng.normal() * 0.8 * parts[i] * parts[j]
        value = value - value[base]
        reach = np.abs(value).max()
        value = value * np.exp(rng.uniform(np.log(0.25), np.log(1.2))) / max(reach, 1e-9)
        size = np.abs(value).max()
        truth.append(value)
        ranges.append((-1.0, 1.0))
        noise.append(np.exp(rng.uniform(np.log(0.03), np.log(0.15))))
        share = rng.uniform(0.25, 0.7) * size
        limits.append([(-share, share), (-share, None), (None, share)][rng.integers(3)])
    world = World(
        f"{family}",
        axes,
        settings,
        outcomes,
        np.array(truth),
        np.array(ranges),
        np.array(noise),
        tuple(limits[1:]),
        1,
    )
    if world.best <= 0.05 or world.within.all():  # nothing to find, or nothing to fear
        return random_world(family, seed + 1_000_000_000, factors)
    return world
