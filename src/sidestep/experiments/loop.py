"""The compiled whole-run loop: the same kernels as `ask` and `tell`, without Python in between.

Over listed arms the forms of every menu are kept from round to round; a measurement changes one row of
them. Fresh arms come from a deck that runs share, or are drawn into the same buffer every round. The loop
goes from round `start` to `stop` and can be entered again where it left off.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator

from sidestep.core.actions import ON_A_SOLID, write_basis_vector
from sidestep.core.arrays import FloatArray, IntArray
from sidestep.core.compiled import compiled
from sidestep.core.confidence import width
from sidestep.core.estimator import Evidence, absorb, absorb_with, fade
from sidestep.core.forms import Forms, Menu, Workspace, empty_workspace, follow
from sidestep.core.geometry import copy_into, dot
from sidestep.core.kernels import kernel
from sidestep.core.solids import Body
from sidestep.environments.instance import GAUSSIAN, Truth, best_in, best_of, feedback_of, worth
from sidestep.environments.sources import DECK, FRESH, Source, draw_menu, unit_columns
from sidestep.experiments.record import Record, record_round, write_numbers
from sidestep.policies.dispatch import Choice, Draws, choose, choose_on_ball


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
    """Forms of every menu; (menus, L+1, K), and which rows are filled; the best reward; buffers."""

    metric: int
    linear: FloatArray
    square: FloatArray
    unit_width: FloatArray
    filled: IntArray
    workspace: Workspace
    best: FloatArray  # (menus,)
    action: FloatArray  # (d,)
    gain: FloatArray  # (d,)


def empty_kept(metric: int, n_vectors: int, source: Source) -> Kept:
    """Forms of which no row is filled yet."""
    shape = (len(source.sizes), n_vectors, source.columns.shape[2])
    allocate = compiled(untouched_empty)
    buffers = allocate(*shape), allocate(*shape), allocate(*shape)
    d = source.columns.shape[1]
    return Kept(
        *(metric, *buffers, np.zeros(shape[:2], np.int64)),
        *(empty_workspace(n_vectors, shape[2]), np.empty(shape[0]), np.empty(d), np.empty(d)),
    )


@kernel
def untouched_empty(menus: int, n: int, n_arms: int) -> FloatArray:
    """A buffer for a form of every arm. Pages of rows never written are never committed.

    `np.empty` from Python asks for huge pages, so writing one row would commit its neighbours.
    """
    return np.empty((menus, n, n_arms))


@kernel(inline=True)
def forms_of(kept: Kept, m: int) -> Forms:
    """The forms of one menu."""
    rows = kept.linear[m], kept.square[m], kept.unit_width[m]
    return Forms(kept.metric, rows[0], rows[1], rows[2], kept.filled[m], kept.workspace)


@kernel(inline=True)
def redraw(rng: Generator, draws: Draws) -> None:
    """Draw the chance of one round: uniforms, then normals, as `ask` does."""
    for j in range(draws.uniforms.size):
        draws.uniforms[j] = rng.random()
    for j in range(draws.normals.size):
        draws.normals[j] = rng.standard_normal()


@kernel(inline=True)
def measure(truth: Truth, rng: Generator, action: FloatArray, index: int) -> float:
    """Feedback of one query; takes one draw."""
    draw = rng.standard_normal() if truth.noise == GAUSSIAN else rng.random()
    return feedback_of(truth, action, index, draw)


@kernel(nogil=True)
def run_on_arms(
    knobs: Any,
    evidence: Evidence,
    core_set: IntArray,
    truth: Truth,
    source: Source,
    kept: Kept,
    streams: Streams,
    draws: Draws,
    span: Span,
    record: Record,
    so_far: float,
) -> float:
    """Play rounds on arms; returns the regret of all rounds so far."""
    rho = knobs.confidence.rho
    n_menus, best, action = source.sizes.size, kept.best, kept.action
    is_new = source.kind in (FRESH, DECK)  # arms that no later round has
    for m in range(n_menus):
        best[m] = best_of(source.columns[m], source.sizes[m], truth)
    learned = 0
    for i in range(evidence.counts.size):
        learned += evidence.counts[i]
    for t in range(span.start + 1, span.stop + 1):
        m = draw_menu(streams.arms, source.odds) if n_menus > 1 else 0
        size, at = source.sizes[m], t - 1 if source.kind == DECK else m
        menu = Menu(source.columns[at], source.squared[at][:size])
        if is_new:
            turn_to_new_arms(source, streams.arms, menu, truth, kept)
        forms = forms_of(kept, m)
        redraw(streams.choice, draws)
        choice = choose(knobs, evidence, core_set, menu, forms, draws)
        arm, index = choice.arm, choice.vector
        if arm >= 0:
            copy_into(menu.columns[:, arm], action)
        else:
            write_basis_vector(arm, action)
        feedback = measure(truth, streams.noise, action, index)
        regret = best[m] - worth(truth, action)
        so_far += regret
        slot = record_round(record, span.every, span.horizon, t, choice, action)
        if slot >= 0:
            spread = width(knobs.confidence, evidence, index, action)
            write_numbers(record, slot, feedback, regret, so_far, spread)
        if learned < span.learns_for:
            learned += 1
            surprise = feedback - dot(action, evidence.centre[index])
            if knobs.confidence.discount < 1.0:
                fade(evidence, rho, knobs.confidence.discount)
            absorb_with(kept.gain, evidence, rho, action, index, feedback)
            if not is_new:
                update_forms(kept, evidence, source, action, index, surprise)
    return so_far


@kernel(inline=True)
def turn_to_new_arms(source: Source, rng: Generator, menu: Menu, truth: Truth, kept: Kept) -> None:
    """Turn to arms that no earlier round had, drawn here unless they lie in a deck."""
    if source.kind == FRESH:
        unit_columns(rng, menu.columns, menu.squared)
    kept.best[0] = best_of(menu.columns, menu.squared.size, truth)
    for i in range(kept.filled.shape[1]):
        kept.filled[0, i] = 0


@kernel(inline=True)
def update_forms(
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


@kernel(nogil=True)
def run_on_ball(
    knobs: Any,
    evidence: Evidence,
    core_set: IntArray,
    truth: Truth,
    body: Body,
    streams: Streams,
    draws: Draws,
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
        redraw(streams.choice, draws)
        played = choose_on_ball(knobs, evidence, core_set, body, draws)
        action, index = played.action, played.vector
        choice = Choice(ON_A_SOLID, index, played.phase, played.value)
        feedback = measure(truth, streams.noise, action, index)
        regret = best - dot(action, truth.theta_perp)
        so_far += regret
        slot = record_round(record, span.every, span.horizon, t, choice, action)
        if slot >= 0:
            spread = width(knobs.confidence, evidence, index, action)
            write_numbers(record, slot, feedback, regret, so_far, spread)
        if learned < span.learns_for:
            learned += 1
            if knobs.confidence.discount < 1.0:
                fade(evidence, rho, knobs.confidence.discount)
            absorb(evidence, rho, action, index, feedback)
    return so_far
