"""Rivals from the literature beside ours, on worlds of the panel and the same seeds.

    python -m benchmarks.rivals --seeds 5 [--only held-out,fresh] [--horizon 1000]

Worlds are the panel's own (specs/panel.toml), with its horizons: arms, fixed or fresh, up to a hundred,
and the paper's aim. Four ways that a reader would try first, with the same posterior as ours and the
rank told. Each is tuned over its one knob on the very runs that are shown, which favours it:

    even plug-in         the best arm of the estimates, or a chance one in one round of t / width; vectors
                         in turn
    top-two sampling     the winner of a draw, or with 1 - beta that of the first draw that disagrees
                         (Russo 2016); the vector that is least known along the arm
    knowledge gradient   what an arm is worth today and what one measurement adds to the best mean in all
                         rounds left (Ryzhov, Powell and Frazier 2012); it is told T
    plain information    (regret)^2 / information about the vectors as such, not about any contest
                         (Russo and Van Roy 2014)
"""

import argparse
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.polynomial.hermite_e import hermegauss

import sidestep as ss
from benchmarks.guardrails import chance_cost, is_linear
from sidestep.core.information_ratio import best_mixture, picked, standing
from sidestep.core.numba_backend import compiled
from sidestep.core.objective import rests
from sidestep.core.posterior import Posterior, posterior_of, row_weights
from sidestep.core.projection import pooled_frame
from sidestep.environments import FreshArms, Instance
from sidestep.environments.catalog import from_config
from sidestep.experiments.spec import parse_spec, shipped_specs
from sidestep.policies.base import State

DRAWS = 16
REDRAWN = 30  # draws until top-two sampling takes the runner-up of the first
NODES, WEIGHTS = hermegauss(7)
WEIGHTS = WEIGHTS / WEIGHTS.sum()


@dataclass(frozen=True)
class Rival:
    """A player over arms with the posterior of ours; `_choose` says which arm and which vector."""

    problem: ss.Problem
    knob: float
    plays = (ss.Arms,)

    @cached_property
    def _book(self) -> ss.ProtectedThompson:
        return ss.ProtectedThompson(self.problem)

    def init(self) -> State:
        return self._book.init()

    def tell(self, state: State, query: ss.Query, feedback: float) -> State:
        return self._book.tell(state, query, feedback)

    def ask(self, state: State, actions: ss.Arms, rng: np.random.Generator) -> ss.Decision:
        posterior = posterior_of(self._book.knobs.prior, state.evidence)
        arm, vector = self._choose(state, posterior, actions.vectors, rng)
        return ss.Decision(ss.Query(actions.vectors[arm], int(vector)), "play", arm=int(arm))

    def _choose(
        self, state: State, posterior: Posterior, arms: np.ndarray, rng: np.random.Generator
    ) -> tuple[int, int]:
        raise NotImplementedError

    def _worths(self, posterior: Posterior, arms: np.ndarray, vectors: np.ndarray) -> np.ndarray:
        """Reward of every arm under vectors (n, L+1, d); (n, K)."""
        rank = self.problem.subspace_dim
        return rests(vectors, rank, row_weights(posterior)) @ arms.T

    def _draws(self, posterior: Posterior, count: int, rng: np.random.Generator) -> np.ndarray:
        factors = np.linalg.cholesky(posterior.inverse) * posterior.noise[:, None, None]
        normals = rng.standard_normal((count, *posterior.mean.shape))
        return posterior.mean + np.einsum("vjk,nvk->nvj", factors, normals)


def along(posterior: Posterior, arms: np.ndarray) -> np.ndarray:
    """|a|^2 of every arm in the metric of every vector; (L+1, K)."""
    return np.einsum("kj,vji,ki->vk", arms, posterior.inverse, arms)


class EvenPlugIn(Rival):
    """The best arm of the estimates, or a chance one; vectors in turn. knob: width."""

    def _choose(self, state, posterior, arms, rng):
        worth = self._worths(posterior, arms, posterior.mean[None])[0]
        chance = rng.random() < self.knob / (state.round + 1)
        arm = rng.integers(len(arms)) if chance else worth.argmax()
        return arm, state.evidence.counts.argmin()


class TopTwo(Rival):
    """The winner of a draw or of the first that disagrees. knob: how often the winner."""

    def _choose(self, state, posterior, arms, rng):
        draws = self._draws(posterior, 1 + REDRAWN, rng)
        winners = self._worths(posterior, arms, draws).argmax(axis=1)
        others = winners[winners != winners[0]]
        second = rng.random() > self.knob and others.size
        arm = others[0] if second else winners[0]
        spread = posterior.noise**2 * along(posterior, arms[[arm]])[:, 0]
        return arm, spread.argmax()


class KnowledgeGradient(Rival):
    """What an arm is worth, and what one measurement adds in all rounds left. knob: T."""

    def _choose(self, state, posterior, arms, rng):
        view = pooled_frame(posterior.mean, row_weights(posterior), self.problem.subspace_dim)
        worth = arms @ view.rest
        off = arms - (arms @ view.basis.T) @ view.basis
        share = arms @ view.dual.T  # (K, L)
        slopes = np.empty((len(posterior.mean), *arms.shape))
        slopes[0] = off
        for i in range(len(posterior.mean) - 1):
            slopes[i + 1] = -(view.coefficients[i] * off + share[:, [i]] * view.rest)
        square = along(posterior, arms)
        added = np.empty_like(square)
        for v in range(len(slopes)):
            moved = slopes[v] @ posterior.inverse[v] @ arms.T  # of every arm, by every measurement
            moved *= posterior.noise[v] / np.sqrt(1.0 + square[v])
            after = [(worth[:, None] + node * moved).max(axis=0) for node in NODES]
            added[v] = WEIGHTS @ np.array(after) - worth.max()
        left = max(self.knob - state.round - 1, 0)
        vector, arm = np.unravel_index((worth + left * added).argmax(), added.shape)
        return arm, vector


class PlainInformation(Rival):
    """(regret)^2 / information about the vectors as such. knob: how much information counts."""

    def _choose(self, state, posterior, arms, rng):
        worths = self._worths(posterior, arms, self._draws(posterior, DRAWS, rng))
        stand = compiled(standing)(worths)
        told = self.knob * np.log1p(along(posterior, arms))
        arm = picked(compiled(best_mixture)(stand.regret, told.max(axis=0)), rng.random())
        return arm, told[:, arm].argmax()


GRIDS: Mapping[type[Rival], tuple[float, ...]] = {
    EvenPlugIn: (3.0, 10.0, 30.0, 100.0),
    TopTwo: (0.5, 0.8, 0.95),
    KnowledgeGradient: (1.0,),  # told T: no other is right
    PlainInformation: (1.0,),  # a factor changes no ratio's order: there is nothing to tune
}
MOST = 100  # arms, as a rival is played step by step


class Game(NamedTuple):
    """Worlds of one kind, one for every seed."""

    name: str
    make: Callable[[int], Instance]
    horizon: int


def games(words: list[str]) -> Iterator[Game]:
    """Those judged worlds of the panel that every rival can play, and whose name or group has a word."""
    spec = parse_spec(shipped_specs()["panel"], "panel")
    for world in spec.worlds:
        if world.judged and any(word in f"{world.id} {world.group}" for word in words):
            make = partial(from_config, world.world, world.knobs)
            if _is_for_rivals(make(0)):
                yield Game(world.title, make, world.horizon or spec.horizon)


def _is_for_rivals(world: Instance) -> bool:
    arms = world.actions
    count = arms.count if isinstance(arms, FreshArms) else np.inf
    count = len(arms) if isinstance(arms, ss.Arms) else count
    return count <= MOST and world.problem.tolerance is None


class Cell(NamedTuple):
    """What one player had on one kind of world."""

    mean: float
    error: float  # standard error of the mean
    linear: int  # runs
    knob: float | None = None

    def __str__(self) -> str:
        knob = "" if self.knob is None else f" ({self.knob:g})"
        return f"{self.mean:.1f} +- {self.error:.1f}, {self.linear}{knob}"


def played(
    game: Game, player: Callable[[ss.Problem], Any], seeds: int, knob: float | None = None
) -> Cell:
    """Mean regret, its standard error, and how many runs turned linear."""
    finals, linear = [], 0
    for seed in range(seeds):
        world = game.make(seed)
        trace = ss.simulate(player(world.problem), world, game.horizon, seed, every=10)
        finals.append(float(trace.cumulative_regret[-1]))
        linear += is_linear(trace, chance_cost(world))
    return Cell(float(np.mean(finals)), float(np.std(finals, ddof=1)) / seeds**0.5, linear, knob)


def tuned(rival: type[Rival], game: Game, seeds: int) -> Cell:
    """The best point of the rival's grid, and which that is where there is a choice."""
    grid = GRIDS[rival]
    times = game.horizon if rival is KnowledgeGradient else 1.0
    cells = [
        played(game, lambda p, k=knob: rival(p, k * times), seeds, knob if len(grid) > 1 else None)
        for knob in grid
    ]
    return min(cells)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--only", default="", help="worlds whose ids or groups have one of these")
    parser.add_argument("--horizon", type=int, help="instead of the panel's")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    ours = (ss.DirectedThompson, ss.InformationDirected)
    names = [player.__name__ for player in (*ours, *GRIDS)]
    print(f"| world | {' | '.join(names)} |\n|{'---|' * (1 + len(names))}")
    for game in games(asked.only.split(",")):
        here = game._replace(horizon=asked.horizon or game.horizon)
        cells = [played(here, player, asked.seeds) for player in ours]
        cells += [tuned(rival, here, asked.seeds) for rival in GRIDS]
        print(f"| {here.name} | {' | '.join(map(str, cells))} |", flush=True)


if __name__ == "__main__":
    main()
