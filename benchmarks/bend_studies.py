"""Plays studies of worlds that bend, looks at what they say, and judges it by the truth.

A cell is a kind of study: a world, what is told, how is measured, what goes wrong. Every study that was
played is a line of a file, so a run can be stopped and taken up again; tables are printed from the file.
"""

import argparse
import json
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtr

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.bend_rivals import ORDERS, Fit, fitted
from benchmarks.bend_tables import TABLES
from benchmarks.bend_worlds import (
    DRUGS,
    FAMILIES,
    SLOPES,
    World,
    formulas,
    patient,
    random_world,
)
from sidestep.studies.learning.earlier import Lesson, parts_of_pooled, pooled
from sidestep.studies.learning.effects import Effects
from sidestep.studies.learning.expectations import variants_of
from sidestep.studies.learning.features import Features, Points
from sidestep.studies.learning.knowledge import UNKNOWN, Part
from sidestep.studies.learning.learner import Learner, told_of
from sidestep.studies.learning.next_question import Asked, Inquiry, next_question
from sidestep.studies.learning.observations import Observation
from sidestep.studies.learning.prior import Grid, Prior, prior_of
from sidestep.studies.learning.recommendation import choice_of

SINGLE = (8, 15, 30, 60, 120)
VISITS = (2, 4, 8, 12, 15, 20, 30)
ENDS = (0.025, 0.975)
ROUGHLY = 1.6  # a noise that is told roughly is told within this factor
GROSS = 0.02  # share of results that are grossly wrong
FORMULAS = tuple(formulas())
# without one part of what is believed: the least size of a bend, the free curves, own effects, curves and
# own effects and the joint part, what outcomes share, and the rule for outcomes with few results
GUARD = "guard"
WITHOUT: dict[str, Callable[[Prior], Prior]] = {
    "least bend": lambda p: replace(p, bends=Grid((0.02, 0.1, 0.3, 0.6), (1.0, 1.0, 1.0, 1.0))),
    "curves": lambda p: replace(p, curve=0.0),
    "own effects": lambda p: replace(p, owns=Grid((0.02,), (1.0,))),
    "more than squares": lambda p: replace(p, curve=0.0, joint=0.0, owns=Grid((0.02,), (1.0,))),
    "shared sizes": lambda p: replace(p, away=(1.0,) * 5),
    GUARD: lambda p: p,
}
WRONG = ("se", "half", "change", "gross", "drift", "wide", "narrow")
RANGES = {"wide": 3.0, "narrow": 1 / 3}  # ranges that are told, in the right ones


@dataclass(frozen=True)
class Cell:
    """A kind of study.

    world    a formula, a family or a table
    visits   all outcomes at every visit; else one result at a time
    noise    "told", "untold" or "roughly"
    level    today's level: "told" or "untold"
    shape    of the study; "" is the default
    wrong    "se": results bring their standard errors; "half": these are half of the truth;
             "change": results are changes against the baseline measured beside it;
             "gross": one result in fifty is grossly wrong;
             "drift": every level drifts by one s.d. of the noise from the first result to the last;
             "wide", "narrow": all ranges are told three times too wide, or too narrow
    earlier  so many results of every outcome at the baseline before the first question
    factors  of a random world; 0: two to four
    without  the belief without one of its parts (WITHOUT), to see what the part is for
    design   "aimed": the questions of the product; "random": settings at random, outcomes in turn;
             "straight line" or "second order": no study, but a textbook's design (bend_rivals.py)
    cv       how much patients of a clinic differ: each effect is that of the population times
             normal(1, cv)
    expect   what is told of the changes over the whole range of every factor (EXPECT)
    before   so many earlier patients, each with 60 results at random settings, teach the study
    unlike   the effects of the new patient are the opposite of those of the population
    last     number of results or visits
    """

    world: str
    visits: bool = False
    noise: str = "told"
    level: str = "untold"
    shape: str = ""
    wrong: str = ""
    earlier: int = 0
    factors: int = 0
    without: str = ""
    design: str = "aimed"
    cv: float = 0.0
    expect: str = ""
    before: int = 0
    unlike: bool = False
    last: int = 60

    def key(self) -> str:
        """The fields that are not as usual, which name the cell in files.

        How long a study goes on changes nothing before, but for the speed of a drift.
        """
        usual = {field.name: field.default for field in fields(self)}
        if self.wrong != "drift":
            usual["last"] = self.last
        return json.dumps({k: v for k, v in asdict(self).items() if v != usual[k]})

    @property
    def stops(self) -> tuple[int, ...]:
        """After how many results or visits a study is looked at."""
        return tuple(s for s in (VISITS if self.visits else SINGLE) if s <= self.last)


@dataclass(frozen=True)
class Look:
    """What a study says after some results, judged.

    given_up  1 - effect of the recommendation / largest effect truly within limits; the baseline has 1
    moved     whether something else than the baseline is recommended
    beyond    whether the recommendation is truly beyond a limit
    covered   share of the true effects of all candidates within their 95% intervals
    card      the same of the recommended setting
    stated    chance that the recommendation is within all limits, as stated
    excess    by how much its largest effect is beyond its limit, in the limit
    number    of the recommended candidate
    better    chance that it is better than the baseline, as stated
    gains     whether it truly is
    measured  number of results at the recommended setting
    """

    given_up: float
    moved: bool
    beyond: bool
    covered: float
    card: float | None
    stated: float | None
    excess: float
    number: int
    better: float | None = None
    gains: bool | None = None
    measured: int | None = None


@dataclass(frozen=True, eq=False)
class Ground:
    """A world with its features, which many studies share."""

    world: World
    features: Features
    points: Points


def look_at(
    world: World, effects: Effects, certainty: float = 0.95, *, guarded: bool = True
) -> Look:
    """Judge a belief by the truth.

    guarded   by the rule of the product; else what is likely within all limits is recommended
    """
    choice = choice_of(effects, world.scaled_limits, certainty)
    number = choice.number
    if not guarded:
        number = largest(world, choice.mean, choice.within, choice.better, certainty)
    chances = np.array([effects.below(outcome, true) for outcome, true in enumerate(world.effects)])
    return judged(world, number, chances, choice.within, choice.better)


def look_at_fit(world: World, fit: Fit, certainty: float = 0.95) -> Look:
    """Judge estimates of least squares by the truth."""
    better = ndtr(fit.mean[0] / fit.spread[0])
    number = largest(world, fit.mean[0], fit.within, better, certainty)
    chances = ndtr((world.effects - fit.mean) / fit.spread)
    return judged(world, number, chances, fit.within, better)


def largest(
    world: World, mean: np.ndarray, within: np.ndarray, better: np.ndarray, certainty: float
) -> int | None:
    """The largest mean effect of what is likely within all limits, and better than not; None: stay."""
    likely = (within >= certainty) & (better > 0.5) & world.moved
    return int(np.argmax(np.where(likely, mean, -np.inf))) if likely.any() else None


def judged(
    world: World, chosen: int | None, chances: np.ndarray, within: np.ndarray, better: np.ndarray
) -> Look:
    """What is recommended and believed, beside the truth.

    chances   that effects are below the true ones; (outcomes, K)
    """
    moved, number = chosen is not None, world.base if chosen is None else chosen
    inside = (chances > ENDS[0]) & (chances < ENDS[1])
    return Look(
        given_up=float(world.given_up(number)),
        moved=moved,
        beyond=not world.within[number],
        covered=float(inside[:, world.moved].mean()),
        card=float(inside[:, number].mean()) if moved else None,
        stated=float(within[number]) if moved else None,
        excess=float(world.excess(number)),
        number=int(number),
        better=float(better[number]) if moved else None,
        gains=bool(world.effects[0][number] > 0) if moved else None,
    )


# what is told of a change of the population: from nothing to twice its size, which holds 19 in 20
# patients at cv 0.5; the sign and three times its size, half of its size, the opposite sign; where there
# is none, that it is at most a third of the tolerance
EXPECT: dict[str, Callable[[float], float]] = {
    "as patients differ": lambda change: 2 * change,
    "signs and sizes": lambda change: 3 * change,
    "half the size": lambda change: change / 2,
    "opposite signs": lambda change: -3 * change,
}


def expected(cell: Cell, ground: Ground, prior: Prior) -> Part:
    """What is told of the changes over the whole range of every factor."""
    world, outcomes = ground.world, []
    for name, half, pair in zip(world.outcomes, world.half, (None, *world.limits), strict=True):
        told: dict[str, tuple[float | None, float | None]] = {}
        sign = world.sign if pair is None else 1
        for slope, (drug, most, _, _) in zip(SLOPES[name], DRUGS, strict=True):
            change = sign * slope * most / half
            if cell.expect == "signs":
                told |= {drug: (0.0, None) if change > 0 else (None, 0.0)} if change else {}
                continue
            end = EXPECT[cell.expect](change)
            most_harmless = 0.0 if pair is None else pair[1] / 3 / half
            told[drug] = (
                (min(end, 0.0), max(end, 0.0)) if change else (-most_harmless, most_harmless)
            )
        outcomes.append(variants_of(ground.features, prior, told))
    return Part("expected", 1.0, outcomes)


def told_before(cell: Cell, ground: Ground, seed: int, prior: Prior) -> tuple[Part, ...] | None:
    """What is known before the first result; None: nothing."""
    if cell.before:
        return taught(cell, ground, seed, prior)
    return (expected(cell, ground, prior),) if cell.expect else None


BEFORE = 60  # results of an earlier patient


def taught(cell: Cell, ground: Ground, seed: int, prior: Prior) -> tuple[Part, Part]:
    """What earlier patients teach; each was measured at random settings, the outcomes in turn."""
    count, earlier = len(ground.world.outcomes), []
    for number in range(cell.before):
        rng = np.random.default_rng([32, seed, number])
        here = replace(ground, world=patient(cell.world, rng, cell.cv))
        plain = replace(cell, level="untold")
        nature = Nature(plain, here, 1_000_000 + 100 * seed + number)
        learner = Learner(ground.features, nature.told(), prior)
        for result in range(BEFORE):
            setting = int(nature.rng.integers(len(here.world.settings)))
            learner.add(result % count, nature.result(result % count, setting, 0))
        noises = [learner.belief().noise(outcome) for outcome in range(count)]
        earlier.append(Lesson(ground.features, learner.sums, noises, [()] * count))
    found = [pooled(ground.features, prior, outcome, earlier) for outcome in range(count)]
    return parts_of_pooled(ground.features, prior, found)


class Nature:
    """What measuring gives in a study of a cell."""

    def __init__(self, cell: Cell, ground: Ground, seed: int) -> None:
        self.cell, self.ground = cell, ground
        self.rng = np.random.default_rng([4242, seed])
        world = ground.world
        self.noise = world.noise / world.half
        level = (world.truth[:, world.base] - world.ranges.mean(axis=1)) / world.half
        level[0] *= world.sign
        # the zero of the scale is the level if that is told, and what is told is true
        self.level = np.zeros_like(level) if cell.level == "told" else level
        self.drift = self.noise * self.rng.choice([-1.0, 1.0], size=len(level)) / cell.last

    def told(self) -> list[Any]:
        """What the study is told of every outcome."""
        kinds = {"told": float, "untold": lambda _: None}
        kinds["roughly"] = lambda noise: (noise / ROUGHLY, noise * ROUGHLY)
        level = self.cell.level == "told"
        return [told_of(kinds[self.cell.noise](n), level_told=level) for n in self.noise]

    def result(self, outcome: int, setting: int, number: int) -> Observation:
        """One result of an outcome at a setting, in some round."""
        wrong, rng, noise = self.cell.wrong, self.rng, float(self.noise[outcome])
        effect = float(self.ground.world.effects[outcome][setting])
        place = int(self.ground.points.place[setting])
        if wrong == "change":
            se = float(np.sqrt(2) * noise)
            value = effect + se * rng.standard_normal()
            home = int(self.ground.features.usual.place[0])
            return Observation(place, value, se=se, against=home, round=number)
        value, se = float(self.level[outcome]) + effect, None
        if wrong in ("se", "half"):
            noise *= float(np.exp(rng.uniform(-0.7, 0.7)))
            se = noise / 2 if wrong == "half" else noise
        if wrong == "drift":
            value += float(self.drift[outcome]) * number
        value += noise * rng.standard_normal()
        if wrong == "gross" and rng.random() < GROSS:
            value += float(rng.choice([-1, 1]) * rng.uniform(0.3, 2.0))
        return Observation(place, value, se=se, round=number)


def play(
    cell: Cell,
    ground: Ground,
    seed: int,
    *,
    prior: Prior | None = None,
    parts: Sequence[Part] = UNKNOWN,
    choose: Callable[[Inquiry, int], Asked] = next_question,
) -> Iterator[tuple[int, Look]]:
    """Play one study; yields what it says at every stop.

    prior, parts   what is believed before the first result; the default is that of the cell's shape
    choose         asks the questions
    """
    if cell.design in ORDERS:
        for stop in cell.stops:
            rng = np.random.default_rng([4242, seed, stop])
            fit = fitted(ground, ORDERS[cell.design], stop, rng)
            if fit is not None:
                yield stop, look_at_fit(ground.world, fit)
        return
    world, points, nature = ground.world, ground.points, Nature(cell, ground, seed)
    prior = prior or prior_of(cell.shape or None)
    parts = told_before(cell, ground, seed, prior) or parts
    if cell.without:
        prior = WITHOUT[cell.without](prior)
    learner = Learner(ground.features, nature.told(), prior, parts)
    count = len(world.outcomes)
    counts = np.zeros(count, dtype=int)
    results = Counter[int]()  # by setting
    order = nature.rng.permutation(len(world.settings))
    for each in np.repeat(np.arange(count), cell.earlier):
        learner.add(int(each), nature.result(int(each), world.base, 0))
        counts[each] += 1
    for number in range(1, cell.last + 1):
        if cell.design == "random":
            setting, outcome = int(order[(number - 1) % len(order)]), (number - 1) % count
        else:
            belief = learner.belief()
            inquiry = Inquiry(belief.at(points), belief.values(points), world.scaled_limits, counts)
            asked = choose(inquiry, count if cell.visits else 1)
            setting, outcome = asked.number, asked.outcomes[0]
        for each in range(count) if cell.visits else [outcome]:
            counts[each] += 1
            results[setting] += 1
            learner.add(each, nature.result(each, setting, number))
        if number in cell.stops:
            guarded = cell.without != GUARD
            look = look_at(world, learner.belief().at(points), guarded=guarded)
            yield number, replace(look, measured=results[look.number])


class Grounds:
    """The worlds of cells; those that all studies of a cell share are made once.

    tables   the folder of the tables
    """

    def __init__(self, tables: Path | None = None) -> None:
        self.tables = tables
        self._known: dict[str, Ground] = {}

    def of(self, cell: Cell, seed: int) -> Ground:
        """The world of a study."""
        if cell.world in FAMILIES:
            return self._ground(cell, random_world(cell.world, seed, cell.factors or None))
        key = cell.world + cell.wrong
        if cell.cv or cell.unlike:
            rng = np.random.default_rng([31, seed])
            known = self.of(replace(cell, cv=0.0, unlike=False), seed)
            return replace(known, world=patient(cell.world, rng, cell.cv, opposite=cell.unlike))
        if key not in self._known:
            world = (
                formulas()[cell.world]
                if cell.world in FORMULAS
                else TABLES[cell.world](self._folder())
            )
            self._known[key] = self._ground(cell, world)
        return self._known[key]

    def _folder(self) -> Path:
        if self.tables is None:
            raise SystemExit("tables are read from the folder that --shared names")
        return self.tables

    @staticmethod
    def _ground(cell: Cell, world: World) -> Ground:
        if cell.wrong in RANGES:
            middle = world.ranges.mean(axis=1, keepdims=True)
            ranges = middle + RANGES[cell.wrong] * (world.ranges - middle)
            world = replace(world, ranges=ranges)
        features = Features(world.factors)
        return Ground(world, features, features.points(world.settings))


Looks = dict[int, list[Look]]  # by stop
Found = Mapping[str, Mapping[int, Mapping[int, Look]]]  # looks by cell, seed and stop


def read(path: Path) -> dict[str, dict[int, dict[int, Look]]]:
    """What a file holds: looks by cell, seed and stop."""
    found: dict[str, dict[int, dict[int, Look]]] = defaultdict(dict)
    if path.exists():
        for line in path.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            looks = {int(stop): Look(**look) for stop, look in row["looks"].items()}
            studies = found[json.dumps(row["cell"])]
            if len(looks) >= len(studies.get(row["seed"], {})):
                studies[row["seed"]] = looks
    return found


def run(
    cells: Sequence[Cell],
    path: Path,
    grounds: Grounds,
    studies: int,
    *,
    first: int = 0,
    block: int = 10,
) -> None:
    """Play what the file does not hold yet: a few studies of every cell, then a few more."""
    known = read(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    for start in range(first, first + studies, block):
        for cell in cells:
            for seed in range(start, min(start + block, first + studies)):
                if set(cell.stops) <= set(known.get(cell.key(), {}).get(seed, {})):
                    continue
                begun = time.perf_counter()
                looks = {s: asdict(look) for s, look in play(cell, grounds.of(cell, seed), seed)}
                line = {
                    "cell": json.loads(cell.key()),
                    "seed": seed,
                    "seconds": round(time.perf_counter() - begun, 3),
                    "looks": looks,
                }
                with path.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(line) + "\n")


def looks_of(found: Found, cell: Cell) -> Looks:
    """The looks of a cell by stop."""
    by_stop: Looks = defaultdict(list)
    for _, looks in sorted(found.get(cell.key(), {}).items()):
        for stop, look in looks.items():
            by_stop[stop].append(look)
    return by_stop


class Promise(NamedTuple):
    """The largest share of moves beyond a limit, and the least coverage of 95% intervals."""

    beyond: float
    covered: float


def promise(cell: Cell, stop: int) -> Promise:
    """What is aimed at; tables hold what no model describes, and say little after few results."""
    if cell.world not in TABLES:
        return Promise(0.05, 0.93)
    few = stop < (15 if cell.visits else 60)
    return Promise(0.08, 0.85 if few else 0.90)


@dataclass(frozen=True)
class Summary:
    """Averages over studies, each with its standard error. Of moves: beyond, card, gap.

    gap   stated minus true chance of being within all limits
    """

    studies: int
    moves: int
    given_up: tuple[float, float]
    beyond: tuple[float, float]
    covered: tuple[float, float]
    card: tuple[float, float]
    gap: tuple[float, float]

    def breaks(self, promised: Promise) -> str:
        """What the figures break of a promise by more than two standard errors."""
        words = []
        most = promised.beyond
        if self.moves and self.beyond[0] > most + 2 * np.sqrt(most * (1 - most) / self.moves):
            words.append("beyond")
        if self.covered[0] + 2 * self.covered[1] < promised.covered:
            words.append("covered")
        if self.moves and self.card[0] + 2 * self.card[1] < promised.covered:
            words.append("card")
        return ", ".join(words)


def mean(values: Iterable[float], studies: Sequence[Any] | None = None) -> tuple[float, float]:
    """Average and its standard error; values of one study, if they are named, are not independent."""
    array = np.array(list(values), dtype=float)
    if not len(array):
        return float("nan"), float("nan")
    middle = float(array.mean())
    groups: dict[Any, float] = defaultdict(float)
    for study, value in zip(studies or range(len(array)), array, strict=True):
        groups[study] += value - middle
    count = len(groups)
    if count < 2:
        return middle, float("nan")
    square = sum(each * each for each in groups.values()) * count / (count - 1)
    return middle, float(np.sqrt(square)) / len(array)


def summary(looks: Sequence[Look], studies: Sequence[Any] | None = None) -> Summary:
    """The averages of some looks, of independent studies unless their studies are named."""
    names = list(studies or range(len(looks)))
    moved = [look for look in looks if look.moved]
    movers = [name for look, name in zip(looks, names, strict=True) if look.moved]
    return Summary(
        len(looks),
        len(moved),
        mean((look.given_up for look in looks), names),
        mean((look.beyond for look in moved), movers),
        mean((look.covered for look in looks), names),
        mean((look.card or 0.0 for look in moved), movers),
        mean(((look.stated or 0.0) - (not look.beyond) for look in moved), movers),
    )


def percent(pair: tuple[float, float]) -> str:
    """A share with its standard error."""
    value, error = pair
    if np.isnan(value):
        return "-"
    return f"{value:.0%}" + ("" if np.isnan(error) else f" ({100 * error:.1f})")


HEAD = (
    "| n | after | given up | beyond, of moves | moves | card | all | stated - true | breaks |\n"
    "|---|---|---|---|---|---|---|---|---|"
)


def row(stop: int | str, found: Summary, promised: Promise) -> str:
    """A row of a table."""
    gap = "-" if np.isnan(found.gap[0]) else f"{found.gap[0]:+.3f} ({found.gap[1]:.3f})"
    cells = [found.studies, stop, percent(found.given_up), percent(found.beyond), found.moves]
    cells += [percent(found.card), percent(found.covered), gap, found.breaks(promised)]
    return "| " + " | ".join(str(each) for each in cells) + " |"


def all_looks(found: Found, cells: Iterable[Cell]) -> tuple[list[Look], list[tuple[str, int]]]:
    """The looks at all studies of some cells, and the study of each."""
    pairs = [
        (look, (key, seed))
        for key in dict.fromkeys(cell.key() for cell in cells)
        for seed, looks in found.get(key, {}).items()
        for look in looks.values()
    ]
    return [look for look, _ in pairs], [study for _, study in pairs]


def name_of(cell: Cell) -> str:
    """A cell in words."""
    return ", ".join(
        str(value) if name == "world" else name if value is True else f"{name} {value}"
        for name, value in json.loads(cell.key()).items()
        if name != "last"
    )


def arguments(text: str, default: str) -> argparse.ArgumentParser:
    """The words of a command that plays cells."""
    words = argparse.ArgumentParser(description=text.splitlines()[0])
    words.add_argument("--studies", type=int, default=20, help="of every cell")
    words.add_argument("--seed", type=int, default=0, help="of the first study")
    words.add_argument("--file", type=Path, default=Path(default), help="taken up again")
    words.add_argument("--show", action="store_true", help="print the file, play nothing")
    words.add_argument("--shared", type=Path, help="where data/real holds the tables")
    words.add_argument("--worlds", nargs="+", help="only these")
    return words


def grounds_of(options: argparse.Namespace) -> Grounds:
    """The worlds that a command may play."""
    return Grounds(None if options.shared is None else options.shared / "data" / "real")
