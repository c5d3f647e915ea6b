"""The compiled whole-run loop: the same kernels as `ask` and `tell`, without Python in between.

Over listed arms the forms of every menu are kept from round to round; a measurement changes one row of
them. Fresh arms come from a deck that runs share, or are drawn into the same room every round. The loop
goes from round `start` to `stop` and can be entered again where it left off.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator

from sidestep.core.arrays import FloatArray, IntArray
from sidestep.core.compiled import folded, kernel, whole_run
from sidestep.core.confidence import width
from sidestep.core.estimator import Evidence, absorb, absorb_with, fade
from sidestep.core.forms import Desk, Forms, Menu, empty_desk, follow
from sidestep.core.geometry import copied, dot
from sidestep.core.solids import Body
from sidestep.environments.instance import GAUSSIAN, Truth, best_in, best_of, feedback_of
from sidestep.environments.sources import DECK, FRESH, Source, draw_menu, unit_columns
from sidestep.experiments.record import Record
from sidestep.policies.base import LOCKED
from sidestep.policies.dispatch import choose, choose_on_ball


class Streams(NamedTuple):
    """The chance of a run, apart: two policies with one seed meet the same arms and the same noise."""

    arms: Generator
    noise: Generator
    choice: Generator


class Span(NamedTuple):
    """Which rounds to play, and which to keep."""

    start: int  # rounds played before
    stop: int
    horizon: int
    every: int
    learns_for: int


class Kept(NamedTuple):
    """Forms of every menu; (menus, L+1, K), and which rows are filled; the best reward; some room."""

    metric: int
    linear: FloatArray
    square: FloatArray
    swing: FloatArray
    filled: IntArray
    desk: Desk
    best: FloatArray  # (menus,)
    action: FloatArray  # (d,)
    gain: FloatArray  # (d,)


def empty_kept(metric: int, n_vectors: int, source: Source) -> Kept:
    """Forms of which no row is filled yet."""
    shape = (len(source.sizes), n_vectors, source.columns.shape[2])
    rooms = room(*shape), room(*shape), room(*shape)
    d = source.columns.shape[1]
    return Kept(
        *(metric, *rooms, np.zeros(shape[:2], np.int64)),
        *(empty_desk(n_vectors, shape[2]), np.empty(shape[0]), np.empty(d), np.empty(d)),
    )


@kernel
def room(menus: int, n: int, n_arms: int) -> FloatArray:
    """Room for a form of every arm; of rows never filled the system gives nothing.

    numpy itself would ask for huge pages, and one row filled would bring two more.
    """
    return np.empty((menus, n, n_arms))


@folded
def forms_of(kept: Kept, m: int) -> Forms:
    """The forms of one menu."""
    rows = kept.linear[m], kept.square[m], kept.swing[m]
    return Forms(kept.metric, rows[0], rows[1], rows[2], kept.filled[m], kept.desk)


@folded
def roll(rng: Generator, luck: tuple[FloatArray, FloatArray]) -> None:
    """Draw the chance of one round: uniforms, then normals, as `ask` does."""
    for j in range(luck[0].size):
        luck[0][j] = rng.random()
    for j in range(luck[1].size):
        luck[1][j] = rng.standard_normal()


@folded
def measure(truth: Truth, rng: Generator, action: FloatArray, index: int) -> float:
    """Feedback of one query; takes one draw."""
    draw = rng.standard_normal() if truth.noise == GAUSSIAN else rng.random()
    return feedback_of(truth, action, index, draw)


@folded
def keep(
    record: Record,
    span: Span,
    t: int,
    what: tuple[int, int, int],
    numbers: tuple[float, float, float, float],
    action: FloatArray,
) -> int:
    """Count a round and write it down if it is to be kept; returns its slot, or -1."""
    record.counts[what[1]] += 1
    if what[2] == LOCKED:
        record.locked[0] += 1
        record.locked[1] = record.locked[1] if record.locked[1] else t
    if t % span.every != 0 and t != span.horizon:
        return -1
    slot = (t - 1) // span.every
    record.number[slot] = t
    record.arm[slot], record.vector[slot], record.phase[slot] = what
    record.value[slot], record.feedback[slot] = numbers[0], numbers[1]
    record.regret[slot], record.cumulative[slot] = numbers[2], numbers[3]
    copied(action, record.action[slot])
    return slot


@whole_run
def run_on_arms(
    knobs: Any,
    evidence: Evidence,
    core_set: IntArray,
    truth: Truth,
    source: Source,
    kept: Kept,
    streams: Streams,
    luck: Any,
    span: Span,
    record: Record,
    so_far: float,
) -> float:
    """Play rounds on arms; returns the regret of all rounds so far."""
    rho = knobs.confidence.rho
    n_menus, best, action = source.sizes.size, kept.best, kept.action
    is_new = source.kind in (FRESH, DECK)  # arms that no later round has
    for m in range(n_menus):
        best[m] = best_of(source.columns[m], source.sizes[m], truth.theta_perp)
    learned = 0
    for i in range(evidence.counts.size):
        learned += evidence.counts[i]
    for t in range(span.start + 1, span.stop + 1):
        m = draw_menu(streams.arms, source.odds) if n_menus > 1 else 0
        size, at = source.sizes[m], t - 1 if source.kind == DECK else m
        menu = Menu(source.columns[at], source.squared[at][:size])
        if is_new:
            take_up(source, streams.arms, menu, truth, kept)
        forms = forms_of(kept, m)
        roll(streams.choice, luck)
        arm, index, phase, value = choose(knobs, evidence, core_set, menu, forms, luck)
        if arm >= 0:
            copied(menu.columns[:, arm], action)
        else:
            for j in range(action.size):
                action[j] = 1.0 if j == -1 - arm else 0.0
        feedback = measure(truth, streams.noise, action, index)
        regret = best[m] - dot(action, truth.theta_perp)
        so_far += regret
        numbers = (value, feedback, regret, so_far)
        slot = keep(record, span, t, (arm, index, phase), numbers, action)
        if slot >= 0:
            record.width[slot] = width(knobs.confidence, evidence, index, action)
        if learned < span.learns_for:
            learned += 1
            surprise = feedback - dot(action, evidence.centre[index])
            if knobs.confidence.keep < 1.0:
                fade(evidence, rho, knobs.confidence.keep)
            absorb_with(kept.gain, evidence, rho, action, index, feedback)
            if not is_new:
                catch_up(kept, evidence, source, action, index, surprise)
    return so_far


@folded
def take_up(source: Source, rng: Generator, menu: Menu, truth: Truth, kept: Kept) -> None:
    """Turn to arms that no earlier round had, drawn here unless they lie in a deck."""
    if source.kind == FRESH:
        unit_columns(rng, menu.columns, menu.squared)
    kept.best[0] = best_of(menu.columns, menu.squared.size, truth.theta_perp)
    for i in range(kept.filled.shape[1]):
        kept.filled[0, i] = 0


@folded
def catch_up(
    kept: Kept,
    evidence: Evidence,
    source: Source,
    action: FloatArray,
    index: int,
    surprise: float,
) -> None:
    """Bring the forms of every menu up to date with the last measurement."""
    for m in range(source.sizes.size):
        menu = Menu(source.columns[m], source.squared[m][: source.sizes[m]])
        follow(kept.gain, forms_of(kept, m), evidence, menu, action, index, surprise)


@whole_run
def run_on_ball(
    knobs: Any,
    evidence: Evidence,
    core_set: IntArray,
    truth: Truth,
    body: Body,
    streams: Streams,
    luck: Any,
    span: Span,
    record: Record,
    so_far: float,
) -> float:
    """Play rounds on a solid; returns the regret of all rounds so far."""
    rho = knobs.confidence.rho
    best = best_in(body, truth.theta_perp)
    learned = 0
    for i in range(evidence.counts.size):
        learned += evidence.counts[i]
    for t in range(span.start + 1, span.stop + 1):
        roll(streams.choice, luck)
        action, index, phase, value, _ = choose_on_ball(knobs, evidence, core_set, body, luck)
        feedback = measure(truth, streams.noise, action, index)
        regret = best - dot(action, truth.theta_perp)
        so_far += regret
        numbers = (value, feedback, regret, so_far)
        slot = keep(record, span, t, (-1, index, phase), numbers, action)
        if slot >= 0:
            record.width[slot] = width(knobs.confidence, evidence, index, action)
        if learned < span.learns_for:
            learned += 1
            if knobs.confidence.keep < 1.0:
                fade(evidence, rho, knobs.confidence.keep)
            absorb(evidence, rho, action, index, feedback)
    return so_far
