"""The compiled whole-run loop: the same kernels as `ask` and `tell`, without Python in between.

Over listed arms the forms of every menu are kept from round to round; a measurement changes one row of
them. Random numbers are drawn before (random_streams.py). The loop plays rounds `start` to `stop` and
can be entered again where it stopped; it stops earlier if the lock-in monitor is due or if the end of a
sweep is worth a test of CORE-SET.

Code that is common to all policies is in kernels without the knobs as an argument, so that numba compiles
it once.
"""

import math
from mmap import mmap
from typing import Any, NamedTuple

import numpy as np

from sidestep.core.actions import Body, write_basis_vector
from sidestep.core.arm_forms import Forms, Menu, Workspace, empty_workspace, follow
from sidestep.core.arrays import FloatArray, IntArray
from sidestep.core.confidence import Confidence, width
from sidestep.core.core_set import Sweeps, may_end
from sidestep.core.estimator import Evidence, absorb_with, fade
from sidestep.core.jit import kernel
from sidestep.core.linalg import copy_into, dot, total
from sidestep.core.lock_in import is_due
from sidestep.environments.action_sources import FRESH, LISTED, Source
from sidestep.environments.instance import Truth, feedback_of, worth
from sidestep.experiments.random_streams import Chance
from sidestep.experiments.record import Record, record_round, write_numbers
from sidestep.policies.builtin import Choice, Draws, Offer, after_monitor, choose
from sidestep.policies.state import Learned


class Game(NamedTuple):
    """The world of a run: the hidden vectors, and the source of the actions."""

    truth: Truth
    source: Source
    best: FloatArray  # the genie's reward: one per menu, or one per round where arms are fresh


class Span(NamedTuple):
    """Which rounds to play, and which to record."""

    start: int  # rounds played before
    stop: int
    horizon: int
    every: int
    learns_for: int
    patience: int  # of the lock-in monitor; 0: no monitor
    sweeps: Sweeps
    so_far: float  # regret of all earlier rounds


class Now(NamedTuple):
    """A round after its action was chosen."""

    round: int
    noise: float
    regret: float
    so_far: float  # regret of all rounds, this one included


class Kept(NamedTuple):
    """What is kept between rounds: forms of every menu, (menus, L+1, K), filled rows, and buffers."""

    metric: int
    linear: FloatArray
    square: FloatArray
    unit_width: FloatArray
    filled: IntArray
    workspace: Workspace
    verdict: IntArray  # (menus, 3): verdict of the lock-in monitor for the next round
    action: FloatArray  # (d,): played in this round
    gain: FloatArray  # (d,): a buffer


def empty_kept(metric: int, n_vectors: int, source: Source) -> Kept:
    """Forms of every menu, without any filled row."""
    # a solid has no menu, but its policy reads the workspace of one
    menus, d, n_arms = max(len(source.sizes), 1), *source.columns.shape[1:]
    shape = (menus, n_vectors, n_arms)
    return Kept(
        metric,
        linear=_untouched(shape),
        square=_untouched(shape),
        unit_width=_untouched(shape),
        filled=np.zeros((menus, n_vectors), np.int64),
        workspace=empty_workspace(n_vectors, n_arms),
        verdict=np.zeros((menus, 3), np.int64),
        action=np.empty(d),
        gain=np.empty(d),
    )


def _untouched(shape: tuple[int, ...]) -> FloatArray:
    """A buffer for a form of every arm. Pages of rows that are never written are never committed.

    `np.empty` asks for huge pages, so writing one row would commit its neighbours.
    """
    size = math.prod(shape)
    return np.frombuffer(mmap(-1, 8 * max(size, 1)), count=size).reshape(shape)


@kernel(refcounts=False)
def forms_of(kept: Kept, m: int) -> Forms:
    """The forms of one menu."""
    rows = kept.linear[m], kept.square[m], kept.unit_width[m]
    return Forms(kept.metric, rows[0], rows[1], rows[2], kept.filled[m], kept.workspace)


@kernel(refcounts=False, nogil=True)
def run_on_arms(
    knobs: Any,
    learned: Learned,
    game: Game,
    kept: Kept,
    chance: Chance,
    span: Span,
    record: Record,
) -> tuple[int, float]:
    """Play rounds on arms; returns the number of rounds played so far, and their regret."""
    evidence, so_far, is_fresh = learned.evidence, span.so_far, game.source.kind == FRESH
    for t in range(span.start + 1, span.stop + 1):
        at = t - 1 - chance.before
        m = chance.menus[at]
        row = at if is_fresh else m
        menu, draws = menu_of(game.source, row, m), Draws(chance.uniforms[at], chance.normals[at])
        if is_fresh:
            forget_forms(kept)
        choice = choose(knobs, learned, Offer(menu, forms_of(kept, m), draws, kept.action))
        if t == span.start + 1:
            choice = after_monitor(kept.verdict[m], evidence.last, menu, choice)
        write_action(menu, choice.arm, kept.action)
        regret = game.best[row] - worth(game.truth, kept.action)
        so_far += regret
        is_learned = end_round(
            knobs.confidence,
            evidence,
            game,
            kept,
            span,
            record,
            choice,
            Now(t, chance.noise[at], regret, so_far),
        )
        if is_learned and span.patience > 0 and is_due(span.patience, evidence.streak[0]):
            return t, so_far
        if ends_sweep(span.sweeps, evidence, t):
            return t, so_far
    return span.stop, so_far


@kernel(refcounts=False, nogil=True)
def run_on_ball(
    knobs: Any,
    learned: Learned,
    body: Body,
    game: Game,
    kept: Kept,
    chance: Chance,
    span: Span,
    record: Record,
) -> tuple[int, float]:
    """Play rounds on a solid; returns the number of rounds played so far, and their regret."""
    evidence, so_far, theta_perp = learned.evidence, span.so_far, game.truth.theta_perp
    for t in range(span.start + 1, span.stop + 1):
        at = t - 1 - chance.before
        draws = Draws(chance.uniforms[at], chance.normals[at])
        choice = choose(knobs, learned, Offer(body, forms_of(kept, 0), draws, kept.action))
        regret = game.best[0] - dot(kept.action, theta_perp)
        so_far += regret
        end_round(
            knobs.confidence,
            evidence,
            game,
            kept,
            span,
            record,
            choice,
            Now(t, chance.noise[at], regret, so_far),
        )
        if ends_sweep(span.sweeps, evidence, t):
            return t, so_far
    return span.stop, so_far


@kernel(refcounts=False, small=True)
def ends_sweep(sweeps: Sweeps, evidence: Evidence, t: int) -> bool:
    """Whether round t ends a sweep that is worth a test of CORE-SET."""
    if sweeps.rounds == 0 or t % sweeps.rounds != 0:
        return False
    return may_end(sweeps.least, evidence, t // sweeps.rounds)


@kernel(refcounts=False)
def menu_of(source: Source, row: int, m: int) -> Menu:
    """The menu in row `row` of the source; it has as many arms as menu m."""
    return Menu(source.columns[row], source.squared[row][: source.sizes[m]])


@kernel(refcounts=False)
def forget_forms(kept: Kept) -> None:
    """Mark all forms as not filled, because the next round has new arms."""
    for i in range(kept.filled.shape[1]):
        kept.filled[0, i] = 0


@kernel(refcounts=False)
def write_action(menu: Menu, arm: int, out: FloatArray) -> None:
    """Write the action of an arm, on the menu or off it, into `out` (d,)."""
    if arm >= 0:
        copy_into(menu.columns[:, arm], out)
    else:
        write_basis_vector(arm, out)


@kernel(refcounts=False, small=True)
def end_round(
    confidence: Confidence,
    evidence: Evidence,
    game: Game,
    kept: Kept,
    span: Span,
    record: Record,
    choice: Choice,
    now: Now,
) -> bool:
    """Measure, record the round if it is due, and learn; returns whether something was learned."""
    action, index = kept.action, choice.vector
    feedback = feedback_of(game.truth, action, index, now.noise)
    slot = record_round(record, span.every, span.horizon, now.round, choice, action)
    if slot >= 0:
        spread = width(confidence, evidence, index, action)
        write_numbers(record, slot, feedback, now.regret, now.so_far, spread)
    if total(evidence.counts, 0) >= span.learns_for:
        return False
    surprise = feedback - dot(action, evidence.centre[index])
    if confidence.discount < 1.0:
        fade(evidence, confidence.rho, confidence.discount)
    absorb_with(kept.gain, evidence, confidence.rho, action, index, feedback)
    if game.source.kind == LISTED:
        update_forms(kept, evidence, game.source, index, surprise)
    return True


@kernel(refcounts=False)
def update_forms(
    kept: Kept, evidence: Evidence, source: Source, index: int, surprise: float
) -> None:
    """Update the forms of every menu with the last measurement."""
    for m in range(source.sizes.size):
        forms, menu = forms_of(kept, m), menu_of(source, m, m)
        follow(kept.gain, forms, evidence, menu, kept.action, index, surprise)
