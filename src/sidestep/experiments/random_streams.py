"""The random numbers of a run: drawn by numpy, many rounds at a time, and passed to the compiled loop.

A round takes from three streams what `play` takes from them, in the same order, so a run is the same
compiled or not. Runs with the same seed get the same fresh arms. If the arms of a whole run are not too
many, they are kept for the next policy, because drawing them takes most of the time of a round. Where
they are many, they are kept once a second run in succession needs them: a single run takes no memory.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.random import Generator, SeedSequence, default_rng

from sidestep.core.arm_forms import Menu
from sidestep.core.arrays import FloatArray, IntArray
from sidestep.core.validation import check_integer
from sidestep.environments.action_sources import FreshArms, Menus, fresh_columns, pick
from sidestep.environments.instance import GAUSSIAN, Instance

BATCH = 1 << 16  # most rounds per batch; Ctrl-C works between batches
BATCH_BYTES = 1 << 20  # of random numbers per batch, so that they stay in the cache
DECK_BYTES = 1 << 25  # of fresh arms that are kept for the next run
LARGE_DECK_BYTES = 1 << 29  # of fresh arms that are kept once a second run needs them


class Chance(NamedTuple):
    """The random numbers of n rounds; the first of them is round `before` + 1."""

    before: int
    menus: IntArray  # (n,): which menu
    noise: FloatArray  # (n,)
    uniforms: FloatArray  # (n, u): for the policy
    normals: FloatArray  # (n, m): for the policy


def streams_of(seed: int) -> list[Generator]:
    """Separate generators for arms, noise and choice."""
    check_integer("seed", seed, low=0)
    return [default_rng(child) for child in SeedSequence(seed).spawn(3)]


class Dealer:
    """Draws the random numbers of one run, batch after batch."""

    def __init__(self, instance: Instance, seed: int, horizon: int, takes: Sequence[int]) -> None:
        self.instance, self.horizon, self.takes = instance, horizon, takes
        self.arms, self.noise, self.choice = streams_of(seed)
        self.dealt = 0  # rounds drawn so far
        source, self.deck = instance.actions, None
        per_round = 1 + sum(takes)
        if isinstance(source, FreshArms):
            per_round += source.count * source.dim
            size = 8 * source.count * source.dim * horizon
            if size <= DECK_BYTES:
                self.deck = deck(source, seed, horizon)
            elif size <= LARGE_DECK_BYTES:
                self.deck = _large.of(source, seed, horizon)
        self.size = max(1, min(BATCH, BATCH_BYTES // (8 * per_round)))

    def deal(self) -> Chance:
        """The random numbers of the next batch of rounds."""
        before, n = self.dealt, min(self.size, self.horizon - self.dealt)
        self.dealt += n
        source, gaussian = self.instance.actions, self.instance.truth.noise == GAUSSIAN
        menus: IntArray = np.zeros(n, np.int64)
        if isinstance(source, Menus):
            menus = pick(source.odds, self.arms.random(n))
        noise = self.noise.standard_normal(n) if gaussian else self.noise.random(n)
        return Chance(before, menus, noise, *self._draws(n))

    def fresh(self, chance: Chance) -> Menu | None:
        """Fresh arms for the rounds of a batch, (n, d, K) and (n, K); None if arms are not fresh."""
        source, n = self.instance.actions, len(chance.noise)
        if not isinstance(source, FreshArms):
            return None
        if self.deck is None:
            return Menu(*fresh_columns(source, self.arms, n))
        rounds = slice(chance.before, chance.before + n)
        return Menu(self.deck.columns[rounds], self.deck.squared[rounds])

    def _draws(self, n: int) -> tuple[FloatArray, FloatArray]:
        """The policy's random numbers for n rounds: in each round uniforms, then normals."""
        uniforms, normals = np.empty((n, self.takes[0])), np.empty((n, self.takes[1]))
        if all(self.takes):
            for t in range(n):
                self.choice.random(out=uniforms[t])
                self.choice.standard_normal(out=normals[t])
        else:
            self.choice.random(out=uniforms)
            self.choice.standard_normal(out=normals)
        return uniforms, normals


def _drawn(source: FreshArms, seed: int, horizon: int) -> Menu:
    """The fresh arms of a whole run, drawn in batches that stay in the processor's cache."""
    arms, size = streams_of(seed)[0], max(1, BATCH_BYTES // (8 * source.count * source.dim))
    whole = Menu(np.empty((horizon, source.dim, source.count)), np.empty((horizon, source.count)))
    for start in range(0, horizon, size):
        stop = min(start + size, horizon)
        columns, squared = fresh_columns(source, arms, stop - start)
        whole.columns[start:stop], whole.squared[start:stop] = columns, squared
    return whole


deck = lru_cache(maxsize=2)(_drawn)  # the same, kept for the next run


class LargeDeck:
    """The fresh arms of the last long run, kept from the second run in succession that needs them."""

    def __init__(self) -> None:
        # which run was last, and its arms: one value, since runs in other threads may replace it
        self.last: tuple[object, Menu | None] = (None, None)

    def of(self, source: FreshArms, seed: int, horizon: int) -> Menu | None:
        """The fresh arms of a whole run; None if the run before had other arms."""
        (run, arms), this = self.last, (source, seed, horizon)
        if run != this:
            self.last = (this, None)
            return None
        if arms is None:
            arms = _drawn(source, seed, horizon)
            self.last = (this, arms)
        return arms


_large = LargeDeck()
