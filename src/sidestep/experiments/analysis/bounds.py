"""Measured regret compared with the theoretical bounds.

The regret bound is proved for Protected LinUCB on the unit ball. Its lambda_min is that of the hidden
vectors; here it is estimated from the traces. Over finitely many arms no upper bound is proved, and
the lower bound is for the larger regret of a pair of instances.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from sidestep.core import theory
from sidestep.core.arrays import FloatArray
from sidestep.core.problem import Problem
from sidestep.errors import InputError
from sidestep.experiments.analysis.run_facts import NAN, Row, log_slope
from sidestep.experiments.analysis.summary import Series, WorldSummary

FORMS = ("main", "appendix", "corrected")
PLAYER = "protected-linucb"
PAIR = "lower-bound"  # beginning of the ids of worlds that come in pairs


class Line(NamedTuple):
    """A bound as a function of rounds or horizon, drawn beside the measured regret."""

    label: str
    x: FloatArray
    y: FloatArray


class Setting(NamedTuple):
    """The quantities on which the bounds depend."""

    problem: Problem
    eigenvalue: float
    delta: float
    rho: float
    coreset: str
    proved: bool  # whether the theorem covers this policy on this world

    def regret(self, horizon: Any, form: str) -> Any:
        """The regret bound; "corrected" includes the CORE-SET phase of the policy, if it has one."""
        word = "all" if form == "corrected" and self.coreset == "all" else form
        rule = "printed" if self.coreset == "printed" else "certified"
        known = (self.problem, horizon, self.eigenvalue, self.delta, self.rho)
        try:
            return theory.regret_bound(*known, form=word, coreset=rule)
        except InputError:  # not proved here
            return np.full(np.shape(horizon), NAN) if np.ndim(horizon) else NAN

    def core_set(self) -> float:
        """Bound on the rounds of CORE-SET; 0 where it is skipped."""
        if self.coreset not in ("printed", "certified"):
            return 0.0
        return theory.coreset_rounds(
            self.problem, self.eigenvalue, self.delta / 2, form=self.coreset
        )


def setting_of(world: WorldSummary, series: Series) -> Setting | None:
    """The quantities of the bounds, from the traces; None if the traces do not have them."""
    problem, value = world.facts.problem, world.facts.eigenvalue
    if problem is None or not problem.subspace_dim or problem.noise_scale is None:
        return None
    if not value > 0 or series.policy != PLAYER:
        return None
    rho, delta, rule = (series.knobs.get(name) for name in ("rho", "delta", "coreset"))
    if rho is None or delta is None:
        return None
    value = min(value, problem.norm_bound**2)  # lambda_min is at most M^2
    proved = world.facts.on_ball and not series.knobs.get("literal") and rule != "adaptive"
    return Setting(problem, value, float(delta), float(rho), str(rule), proved)


def is_paired(world: WorldSummary) -> bool:
    """Whether a world is one of a pair of instances of the lower bound."""
    return world.spec.id.startswith(PAIR)


def upper_rows(world: WorldSummary) -> list[Row]:
    """Every Protected LinUCB of a world beside the regret bound and the rounds of CORE-SET."""
    if is_paired(world):
        return []
    rounds = {row["label"]: row["core_set_rounds"] for row in world.rows["policies"]}
    settings = [(series, setting_of(world, series)) for series in world.series]
    return [
        _upper_row(world, series, know, rounds[series.label]) for series, know in settings if know
    ]


def _upper_row(world: WorldSummary, series: Series, know: Setting, rounds: float) -> Row:
    return {
        "experiment": world.experiment,
        "world": world.spec.id,
        "policy": series.label,
        "proved": know.proved,
        "lambda_min": know.eigenvalue,
        "mean": float(series.final.mean()),
        "largest": float(series.final.max()),
        **{form: know.regret(world.horizon, form) for form in FORMS},
        "core_set_rounds": rounds,
        "core_set_bound": know.core_set(),
    }


def laws(world: WorldSummary) -> tuple[Line, ...]:
    """The bounds as functions of the rounds, drawn beside the measured regret on the ball.

    The form of the main text is only in the table: it is meant for R = 1, and is so large that the other
    curves would look flat.
    """
    known = [know for series in world.series if (know := setting_of(world, series))]
    if not known or not world.facts.on_ball:
        return ()
    problem, x = known[0].problem, np.geomspace(1, world.horizon, 40)
    most = Line("2MT: nobody can lose more", x, 2 * problem.norm_bound * x)
    bounds = [Line(f"upper bound, {form}", x, known[0].regret(x, form)) for form in FORMS[1:]]
    if sampling_is_bounded(problem):
        drawn = theory.thompson_bound(problem, x)
        bounds.append(Line("upper bound, posterior sampling (ours)", x, drawn))
    return (*bounds, most)


def sampling_is_bounded(problem: Problem) -> bool:
    """Whether the bound for posterior sampling covers this problem."""
    try:
        theory.thompson_bound(problem, 1.0)
    except InputError:
        return False
    return True


class Pairs:
    """The worlds of one lower bound: two instances for every horizon."""

    def __init__(self, worlds: Sequence[WorldSummary]) -> None:
        self.worlds = worlds
        self.horizons = sorted({world.horizon for world in worlds})
        first = worlds[0].facts.problem
        self.noise = float(max(first.noise)) if first and first.noise_scale is not None else NAN

    def rows(self) -> list[Row]:
        """The larger mean regret of every policy at every horizon, beside both bounds."""
        return [
            {
                "policy": series.label,
                "horizon": horizon,
                "larger": larger,
                "instance": instance,
                **{form: float(law(horizon)) for form, law in self._bounds().items()},
            }
            for series in self.series()
            for horizon, larger, instance in self._largest(series.entry)
        ]

    def _largest(self, entry: str) -> list[tuple[int, float, str]]:
        found = []
        for horizon in self.horizons:
            means = [
                (float(series.final.mean()), world.title)
                for world in self.worlds
                for series in world.series
                if world.horizon == horizon and series.entry == entry
            ]
            if means:
                found.append((horizon, *max(means)))
        return found

    def series(self) -> list[Series]:
        """Every policy as a function of the horizon, with an exponent fitted over all horizons."""
        policies = {series.entry: series for world in self.worlds for series in world.series}
        return [self._over_horizons(series) for series in policies.values()]

    def _over_horizons(self, series: Series) -> Series:
        points = self._largest(series.entry)
        x, y = (np.array([point[k] for point in points], dtype=float) for k in (0, 1))
        return series._replace(rounds=x, mean=y, sd=np.zeros(len(x)), slope=log_slope(x, y))

    def laws(self) -> tuple[Line, ...]:
        """Both lower bounds over the horizon."""
        x = np.geomspace(self.horizons[0], self.horizons[-1], 40)
        curves = {form: np.asarray(law(x)) for form, law in self._bounds().items()}
        return tuple(
            Line(f"lower bound, {form}", x[y > 0], y[y > 0])
            for form, y in curves.items()
            if (y > 0).any()
        )

    def _bounds(self) -> dict[str, Callable[[Any], Any]]:
        """The bound as printed, and the corrected one if the noise is known."""
        bounds: dict[str, Callable[[Any], Any]] = {"printed": theory.lower_bound}
        if not math.isnan(self.noise):
            bounds["corrected"] = partial(
                theory.lower_bound, noise_scale=self.noise, form="corrected"
            )
        return bounds


def pairs_of(worlds: Sequence[WorldSummary]) -> list[Pairs]:
    """The lower-bound worlds, grouped if they differ only in horizon and instance."""
    groups: dict[str, list[WorldSummary]] = {}
    for world in worlds:
        if is_paired(world):
            knobs = {k: v for k, v in world.spec.knobs.items() if k not in ("horizon", "which")}
            key = str([world.experiment, world.spec.group, sorted(knobs.items())])
            groups.setdefault(key, []).append(world)
    return [Pairs(group) for group in groups.values()]
