"""What a study with bends recommends and believes, judged by the truth.

python benchmarks/bends.py --worlds emax tire --studies 20
python benchmarks/bends.py --worlds emax --visits --shape smooth
"""

import argparse
import json
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

from bend_tables import TABLES
from bend_worlds import FAMILIES, TUNING, World, formulas, random_world

from sidestep.studies.learning import recommendation
from sidestep.studies.learning.features import Features
from sidestep.studies.learning.learner import Learner, Observation, told_of
from sidestep.studies.learning.next_question import Asked, Inquiry, next_question
from sidestep.studies.learning.prior import Grid, Prior, prior_of
from sidestep.studies.learning.recommendation import choice_of

SINGLE = (8, 15, 30, 60, 120)
VISITS = (4, 8, 12, 15, 20, 30)
ENDS = (0.025, 0.975)


def told_for(world: World, told: str) -> list:
    known = {"noise": float, "level": float, "rough": lambda n: (n / 1.6, n * 1.6)}
    noise = known.get(told, lambda n: None)
    return [told_of(noise(n), level_told=told == "level") for n in world.noise / world.half]


class Judged(dict):
    """One look at a study: what it says, and whether that is so."""


def look(world: World, effects, certainty: float = 0.95) -> Judged:
    choice = choice_of(effects, world.scaled_limits, certainty)
    number = world.base if choice.number is None else choice.number
    moved = effects.moved
    inside = []
    for outcome, true in enumerate(world.effects):
        chance = effects.below(outcome, true)
        inside.append((chance > ENDS[0]) & (chance < ENDS[1]))
    inside = np.array(inside)
    return Judged(
        given_up=world.given_up(number),
        moved=choice.number is not None,
        beyond=not world.within[number],
        covered=float(inside[:, moved].mean()),
        card=float(inside[:, number].mean()) if choice.number is not None else None,
        stated=float(choice.within[number]) if choice.number is not None else None,
    )


def study(
    world: World,
    points,
    features: Features,
    prior: Prior,
    seed: int,
    *,
    visits: bool = False,
    told: str = "noise",
    design: str = "aimed",
    last: int = 60,
    variation: str = "",
    choose: Callable[[Inquiry, int], Asked] = next_question,
) -> Iterator[tuple[int, Judged]]:
    rng = np.random.default_rng([4242, seed])
    noise = world.noise / world.half
    learner = Learner(features, told_for(world, told), prior)
    level = (world.truth[:, world.base] - world.ranges.mean(axis=1)) / world.half
    level[0] *= world.sign
    if told == "level":  # the zero of the scale is then the level that was told, which is true
        level = np.zeros_like(level)
    count = len(world.outcomes)
    counts = np.zeros(count, dtype=int)
    stops = VISITS if visits else SINGLE
    drift = rng.standard_normal(count) * 0
    order = rng.permutation(len(world.settings))
    for number in range(1, last + 1):
        belief = learner.belief()
        effects = belief.at(points)
        values = belief.values(points)
        if design == "random":
            setting = int(order[(number - 1) % len(order)])
            outcome = (number - 1) % count
        else:
            inquiry = Inquiry(effects, values, world.scaled_limits, counts)
            asked = choose(inquiry, count if visits else 1)
            setting, outcome = asked.number, asked.outcomes[0]
        if variation == "drift":
            drift = drift + rng.standard_normal(count) * noise / np.sqrt(last)
        for each in range(count) if visits else [outcome]:
            counts[each] += 1
            place = int(points.place[setting])
            more = noise[each]
            if variation in ("se", "half"):
                more = noise[each] * np.exp(rng.uniform(-0.7, 0.7))
                se = more * (0.5 if variation == "half" else 1.0)
            value = (
                level[each]
                + world.effects[each][setting]
                + drift[each]
                + more * rng.standard_normal()
            )
            if variation == "gross" and rng.random() < 0.02:
                value += rng.choice([-1, 1]) * rng.uniform(0.3, 2.0)
            if variation == "change":
                value = (
                    world.effects[each][setting] + np.sqrt(2) * noise[each] * rng.standard_normal()
                )
                learner.add(
                    each,
                    Observation(
                        place,
                        value,
                        se=np.sqrt(2) * noise[each],
                        against=int(features.usual.place[0]),
                        round=number,
                    ),
                )
            elif variation in ("se", "half"):
                learner.add(each, Observation(place, value, se=se, round=number))
            else:
                learner.add(each, Observation(place, value, round=number))
        if number in stops:
            yield number, look(world, learner.belief().at(points))


def summary(found: list[Judged]) -> str:
    moved = [each for each in found if each["moved"]]
    mean = {
        key: np.mean([each[key] for each in found]) for key in ("given_up", "beyond", "covered")
    }
    text = f"{mean['given_up']:4.0%} given up, {mean['beyond']:6.1%} beyond, {mean['covered']:4.0%} held"
    if moved:
        stated = np.mean([each["stated"] for each in moved])
        true = np.mean([not each["beyond"] for each in moved])
        card = np.mean([each["card"] for each in moved])
        text += f"; {len(moved)} moves: {1 - true:6.1%} beyond, {stated - true:+.3f} stated"
        text += f", card {card:4.0%}"
    return text


def worlds_of(
    name: str, studies: int, first: int, factors: int | None
) -> Iterator[tuple[int, World]]:
    if name in FAMILIES:
        for seed in range(first, first + studies):
            yield seed, random_world(name, seed, factors)
    else:
        world = formulas()[name] if name in formulas() else TABLES[name]()
        for seed in range(first, first + studies):
            yield seed, world


def run(name: str, prior: Prior, options: argparse.Namespace, **more) -> dict[int, list[Judged]]:
    found: dict[int, list[Judged]] = defaultdict(list)
    known: dict[int, tuple] = {}
    for seed, world in worlds_of(name, options.studies, options.first, options.factors):
        if id(world) not in known:
            known.clear()
            features = Features(world.factors)
            known[id(world)] = world, features, features.points(world.settings)
        _, features, points = known[id(world)]
        for stop, judged in study(world, points, features, prior, seed, **more):
            found[stop].append(judged)
    return found


def cells() -> list[dict]:
    """Every cell of the table: a world, how it is measured, what is told, what goes wrong."""
    shown = [*formulas(), "saturating", "powers", "optima", "interactions", *TABLES]
    plain = [{"world": world, "visits": visits} for world in shown for visits in (False, True)]
    wrong = [
        {"world": world, "visits": True, "variation": each}
        for each in ("se", "half", "change", "gross", "drift")
        for world in ("saturating", "interactions")
    ]
    more = [{"world": world, "told": "nothing"} for world in ("emax", "chem", "optima", "powers")]
    more += [{"world": "clinic", "shape": "straight"}]
    more += [{"world": "saturating", "visits": True, "factors": count} for count in (6, 9)]
    return plain + more + wrong


def whole(options: argparse.Namespace) -> None:
    """Run every cell over blocks of studies, and append a line per cell and block to a file."""
    for block in range(options.blocks):
        for cell in cells():
            some = argparse.Namespace(**vars(options))
            some.first = block * options.studies
            some.factors, some.shape = cell.get("factors"), cell.get("shape")
            some.still = cell.get("variation") != "drift"  # the grid without drift, for speed
            visits = cell.get("visits", False)
            found = run(
                cell["world"],
                chosen_prior(some),
                some,
                visits=visits,
                told=cell.get("told", "noise"),
                last=20 if "variation" in cell or "factors" in cell else 30 if visits else 60,
                variation=cell.get("variation", ""),
            )
            line = {"cell": cell, "block": block, "found": found}
            with open(options.whole, "a") as file:
                file.write(json.dumps(line, default=float) + "\n")


def show(path: str) -> None:
    """Print the lines of a file as one table."""
    together: dict[str, dict[str, list]] = defaultdict(lambda: defaultdict(list))
    for line in Path(path).read_text().splitlines():
        row = json.loads(line)
        for stop, judged in row["found"].items():
            together[json.dumps(row["cell"])][stop] += judged
    everything = []
    for cell, stops in together.items():
        print(" ".join(f"{key}={value}" for key, value in json.loads(cell).items()))
        for stop, judged in stops.items():
            print(f"   {stop:>4}  n {len(judged):3d}  {summary(judged)}")
            everything += judged
    print(f"all  {summary(everything)}")


def chosen_prior(options: argparse.Namespace) -> Prior:
    """The prior of the shape, with fields that are tried."""
    more = {
        name: Grid(tuple(value[0]), tuple(value[1])) if isinstance(value, list) else value
        for name, value in json.loads(options.prior).items()
    }
    if options.still:
        more["drift"] = Grid((0.0,), (1.0,))
    return replace(prior_of(options.shape), **more)


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    words.add_argument("--worlds", nargs="+", default=[*formulas(), *sorted(FAMILIES)])
    words.add_argument("--studies", type=int, default=100)
    words.add_argument(
        "--first", type=int, default=0, help=f"seed of the first study; from {TUNING} on to choose"
    )
    words.add_argument("--factors", type=int)
    words.add_argument("--shape", choices=["smooth", "straight"])
    words.add_argument("--visits", action="store_true")
    words.add_argument("--told", default="noise", choices=["noise", "level", "rough", "nothing"])
    words.add_argument("--design", default="aimed", choices=["aimed", "random"])
    words.add_argument("--variation", default="")
    words.add_argument("--last", type=int, default=60)
    words.add_argument("--json")
    words.add_argument("--prior", default="{}", help="fields of the prior as JSON")
    words.add_argument("--key", type=float)
    words.add_argument("--whole", help="run every cell of the table, append to this file")
    words.add_argument("--blocks", type=int, default=12)
    words.add_argument("--show", help="print the table of such a file")
    words.add_argument("--still", action="store_true", help="no drift in the prior, for speed")
    options = words.parse_args()
    if options.key is not None:
        recommendation.KEY = options.key
    if options.show:
        show(options.show)
        return
    if options.whole:
        whole(options)
        return
    for name in options.worlds:
        start = time.time()
        found = run(
            name,
            chosen_prior(options),
            options,
            visits=options.visits,
            told=options.told,
            design=options.design,
            last=options.last,
            variation=options.variation,
        )
        print(f"{name} ({time.time() - start:.0f} s)", flush=True)
        for stop, judged in found.items():
            print(f"   {stop:4d}  {summary(judged)}", flush=True)
        if options.json:
            with open(options.json, "a") as file:
                line = {
                    "world": name,
                    **{k: v for k, v in vars(options).items() if k != "worlds"},
                    "found": found,
                }
                file.write(json.dumps(line, default=float) + "\n")


if __name__ == "__main__":
    main()
