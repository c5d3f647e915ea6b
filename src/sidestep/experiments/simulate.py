"""One run and many: `play` is the loop in plain Python; `simulate` uses the compiled one if possible."""

import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, Protocol, TypeGuard

import numpy as np
from numpy.random import SeedSequence, default_rng

from sidestep.core import numba_backend as compiler
from sidestep.core.actions import ON_A_SOLID, SOLIDS, Actions, Arms, off_menu
from sidestep.core.arm_forms import Menu
from sidestep.core.arrays import FloatArray
from sidestep.core.confidence import width
from sidestep.core.jit import ieee_arithmetic
from sidestep.core.problem import Query
from sidestep.core.validation import check_integer, check_probability, shown
from sidestep.environments.action_sources import (
    LISTED,
    FreshArms,
    Menus,
    Source,
    arm_sets,
    compiled_source,
    draw_actions,
)
from sidestep.environments.instance import Instance, not_a_coin, rewards_of
from sidestep.errors import InputError, UnreachedDirectionsWarning
from sidestep.experiments import compiled_run
from sidestep.experiments.random_streams import Dealer, streams_of
from sidestep.experiments.record import (
    ARM,
    Record,
    Trace,
    empty_record,
    record_round,
    write_numbers,
)
from sidestep.experiments.when_to_compile import (
    are_many,
    is_worth_compiling,
    mark_compiled,
    note_interpreted,
)
from sidestep.policies.base import (
    PHASES,
    Decision,
    Policy,
    check_can_play,
    check_decision,
    check_plays,
    takes_pending,
)
from sidestep.policies.builtin import BuiltinPolicy, Choice, Watch


class Round(NamedTuple):
    """One round as it happened."""

    number: int
    decision: Decision
    feedback: float
    regret: float
    state: Any


def play(
    policy: Policy[Any],
    instance: Instance,
    horizon: int,
    seed: int = 0,
    *,
    delay: int = 0,
    lost: float = 0.0,
    explains: bool = True,
) -> Iterator[Round]:
    """Play round by round; the caller decides what to record.

    explains: whether the decisions of our policies have their reasons, which take up to half of the time.
    Feedback comes `delay` rounds late, and with probability `lost` not at all. Its query is pending for
    `delay` rounds; after that a lost query is no longer pending.
    """
    check_players(policy, instance)
    check_integer("delay", delay, low=0)
    if lost:
        check_probability("lost", lost)
    arms, noise, choice = streams_of(seed)
    fate = default_rng(SeedSequence(seed, spawn_key=(3,)))
    state, waiting = policy.init(), deque[tuple[Query, float, bool]]()
    ask = _asking(policy, explains=explains)
    best = _fixed_best(instance)
    for number in range(1, horizon + 1):
        actions = draw_actions(instance.actions, arms)
        pending = tuple(query for query, _, _ in waiting)
        decision = check_decision(ask(state, actions, choice, pending))
        feedback = instance.observe(decision.query, noise)
        waiting.append((decision.query, feedback, lost > 0 and fate.random() < lost))
        if len(waiting) > delay:
            query, answer, never = waiting.popleft()
            state = state if never else policy.tell(state, query, answer)
        here = instance.best_reward(actions) if best is None else best
        regret = here - instance.reward(decision.query.action)
        yield Round(number, decision, feedback, regret, state)


def _fixed_best(instance: Instance) -> float | None:
    """The genie's reward if it is the same in every round; None if the actions change."""
    if isinstance(instance.actions, (FreshArms, Menus)):
        return None
    return instance.best_reward(instance.actions)


def _asking(policy: Policy[Any], *, explains: bool) -> Callable[..., Decision]:
    """`ask` with pending queries, which are left out if the policy does not accept them."""
    if isinstance(policy, BuiltinPolicy) and not explains:
        return policy.ask_briefly
    if takes_pending(policy):
        return policy.ask
    return lambda state, actions, rng, _: policy.ask(state, actions, rng)


def check_players(policy: Policy[Any], instance: Instance) -> None:
    """Raise unless the policy can play on this instance."""
    if isinstance(policy, Instance):
        raise InputError(
            "policy must come first and instance second, got an Instance for the policy"
        )
    check_can_play(policy)
    if not isinstance(instance, Instance):
        raise InputError(f"instance must be an Instance, got {shown(instance)}")
    solid = isinstance(instance.actions, SOLIDS)
    check_plays(policy, type(instance.actions) if solid else Arms)
    assumed, true = policy.problem, instance.problem
    if (assumed.dim, assumed.n_protected) != (true.dim, true.n_protected):
        raise InputError(
            f"policy and instance must have the same dim and n_protected, got {assumed.dim} and "
            f"{assumed.n_protected} against {true.dim} and {true.n_protected}"
        )


def simulate(
    policy: Policy[Any],
    instance: Instance,
    horizon: int,
    seed: int = 0,
    every: int = 1,
    *,
    compiled: bool | None = None,
) -> Trace:
    """One run, as a `Trace`.

    The same seed gives the same trace, and two policies see the same arms and the same noise. Policies
    of this package run compiled if the run is long enough, others step by step. Solids within
    tolerances are played step by step: scipy finds their best action.

    policy     any object with `problem`, `init`, `ask` and `tell`
    instance   the world
    horizon    number of rounds
    seed       seed of arms, noise and choices
    every      record every n-th round and the last; cumulative regret counts all rounds
    compiled   True or False; None: compiled if the run is long enough

    >>> import sidestep as ss
    >>> world = ss.environments.failure()
    >>> trace = ss.simulate(ss.DirectedThompson(world.problem), world, horizon=20, every=5)
    >>> trace.round.tolist()
    [5, 10, 15, 20]
    """
    check_players(policy, instance)
    check_integer("horizon", horizon, low=1)
    check_integer("every", every, low=1)
    fast = compiled
    if compiled is None and (fast := can_compile(policy, instance)):
        note_interpreted(horizon)
        fast = is_worth_compiling(policy, horizon, on_solid=isinstance(instance.actions, SOLIDS))
    problem = instance.problem
    record = empty_record(horizon, every, problem.dim, problem.n_vectors)
    if fast:
        if not isinstance(policy, BuiltinPolicy):
            raise InputError(
                f"compiled=True needs a policy with kernels, got {type(policy).__name__}"
            )
        if _needs_programs(policy, instance):
            raise InputError(
                "compiled=True needs arms where a tolerance is told, and no intercept, got one of them"
            )
        state = _run_compiled(policy, instance, seed, horizon, every, record)
    else:
        state = _run_by_step(policy, instance, seed, horizon, every, record)
    return Trace(repr(policy), horizon, seed, record, state)


def _needs_programs(policy: Policy[Any], instance: Instance) -> bool:
    """Whether there is no compiled loop: on a solid within tolerances, or with learned levels."""
    told = policy.problem.tolerance is not None or instance.problem.tolerance is not None
    return policy.problem.intercept or (told and isinstance(instance.actions, SOLIDS))


def can_compile(policy: Policy[Any], instance: Instance) -> TypeGuard[BuiltinPolicy]:
    """Whether there is a compiled loop for this policy on this world."""
    return isinstance(policy, BuiltinPolicy) and not _needs_programs(policy, instance)


def should_compile(
    policy: Policy[Any], instance: Instance, rounds: int
) -> TypeGuard[BuiltinPolicy]:
    """Whether a compiled loop exists and is worth it for these rounds (of all runs together)."""
    return can_compile(policy, instance) and are_many(
        policy, rounds, on_solid=isinstance(instance.actions, SOLIDS)
    )


def _run_by_step(
    policy: Policy[Any], instance: Instance, seed: int, horizon: int, every: int, record: Record
) -> Any:
    so_far, state = 0.0, policy.init()
    rounds = play(policy, instance, horizon, seed, explains=False)
    if isinstance(policy, BuiltinPolicy):  # check all arms together, not only the first menu
        policy.check(state, policy.admitted(_sample(instance)))
    for t, decision, feedback, regret, after in _quietly(rounds):
        before, state = state, after
        so_far += regret
        choice = _choice(decision, instance)
        slot = record_round(record, every, horizon, t, choice, decision.query.action)
        if slot >= 0:
            spread = _width(policy, before, decision)
            write_numbers(record, slot, feedback, regret, so_far, spread)
    return state


def _choice(decision: Decision, instance: Instance) -> Choice:
    """A decision in the form that is recorded."""
    arm, query = decision.arm, decision.query
    if arm is None:
        on_a_solid = isinstance(instance.actions, SOLIDS)
        arm = ON_A_SOLID if on_a_solid else off_menu(int(np.argmax(query.action)))
    value = float("nan") if decision.value is None else decision.value
    bound = float("nan") if decision.bound is None else decision.bound
    return Choice(arm, query.index, PHASES.index(decision.phase), value, bound)


def _width(policy: Policy[Any], state: Any, decision: Decision) -> float:
    if not isinstance(policy, BuiltinPolicy):
        return float("nan")
    action = policy.problem.lifted(np.array(decision.query.action))
    index = decision.query.index
    return float(width(policy.knobs.confidence, state.evidence, index, action))


def _quietly(rounds: Iterator[Round]) -> Iterator[Round]:
    with warnings.catch_warnings(action="ignore", category=UnreachedDirectionsWarning):
        yield from rounds


def _run_compiled(
    policy: BuiltinPolicy, instance: Instance, seed: int, horizon: int, every: int, record: Record
) -> Any:

    state = policy.init()
    actions, solid = instance.actions, isinstance(instance.actions, SOLIDS)
    if isinstance(actions, Arms) and not policy.draws_arms:
        actions = actions.distinct()  # duplicate arms are evaluated once
    source = compiled_source(actions)
    kept = compiled_run.empty_kept(policy.knobs.metric, instance.problem.n_vectors, source)
    dealer = Dealer(instance, seed, horizon, policy.draws_per_round(on_ball=solid))
    run = compiler.compiled(compiled_run.run_on_ball if solid else compiled_run.run_on_arms)
    body = (actions.body,) if isinstance(actions, SOLIDS) else ()
    best = _best_rewards(instance)
    so_far, done = 0.0, 0
    sample = policy.admitted(_sample(instance))
    watch, learns_for = policy.watch(state.learned), policy.learns_for()
    patience = watch.monitor.patience if watch and not solid else 0
    while done < horizon:
        if done == dealer.dealt:
            chance = dealer.deal()
            fresh = dealer.fresh(chance)
            if fresh is not None:
                source = source._replace(**fresh._asdict())
                best = rewards_of(instance.truth, fresh.columns).max(axis=-1)
        policy.check(state, sample)
        sweeps = policy.sweeps(state)
        due = sweeps.until if sweeps.rounds else done + policy.rounds_until_review(state)
        stop = min(dealer.dealt, due)
        span = compiled_run.Span(done, stop, horizon, every, learns_for, patience, sweeps, so_far)
        game = compiled_run.Game(instance.truth, source, best)
        done, so_far = run(policy.knobs, state.learned, *body, game, kept, chance, span, record)
        if not np.isfinite(state.evidence.moment).all():
            raise InputError(not_a_coin("an action off the menu that leaves it"))
        if done == due or (sweeps.rounds and done % sweeps.rounds == 0):
            state = policy.review(state)
            kept.filled[:] = 0
        _look_ahead(policy.watch(state.learned), source, kept)
    mark_compiled(policy.knobs, on_solid=solid)
    if isinstance(actions, Arms) and actions.rows is not None:
        arm = record.chosen[ARM]
        arm[arm >= 0] = np.asarray(actions.rows)[arm[arm >= 0]]
    return state


def _best_rewards(instance: Instance) -> FloatArray:
    """The genie's reward on a solid, or on every menu that is known beforehand."""
    actions = instance.actions
    menus = (actions,) if isinstance(actions, SOLIDS) else arm_sets(actions)
    return np.array([instance.best_reward(menu) for menu in menus])


def _look_ahead(watch: Watch | None, source: Source, kept: Any) -> None:
    """Write the verdict of the lock-in monitor for the next round, for every possible menu."""
    if watch is None or source.kind != LISTED or not watch.is_due():
        kept.verdict[:] = 0
        return
    with ieee_arithmetic():
        for m, size in enumerate(source.sizes):
            menu = Menu(source.columns[m, :, :size], source.squared[m, :size])
            kept.verdict[m] = watch.verdict(menu)


def _sample(instance: Instance) -> Actions:
    """Actions that a policy checks before it plays: all that are known beforehand."""
    if isinstance(instance.actions, (Arms, *SOLIDS)):
        return instance.actions
    if isinstance(instance.actions, FreshArms):
        return Arms(np.eye(instance.actions.dim))
    return Arms(np.concatenate([menu.vectors for menu in arm_sets(instance.actions)]))


class Executor(Protocol):
    """Anything with the `map` of concurrent.futures."""

    def map(self, function: Callable[[Any], Any], jobs: Iterable[Any], /) -> Iterable[Any]:
        """Results in the order of the jobs."""


def simulate_many(
    policy: Policy[Any],
    instance_maker: Instance | Callable[[int], Instance],
    horizon: int,
    runs: int = 10,
    seed: int = 0,
    *,
    every: int = 1,
    executor: Executor | None = None,
) -> list[Trace]:
    """Several runs, a list of `Trace`; run r is simulate(policy, world, horizon, seed + r).

    policy           as in `simulate`
    instance_maker   the world of all runs, or a function that makes one of the seed
    horizon          rounds of a run
    runs             how many
    seed             of the first run; run r has seed + r
    every            record every n-th round, and the last
    executor         anything with `map`: threads, processes, a cluster, the traces are the same on each;
                     None: one after another

    >>> import sidestep as ss
    >>> world = ss.environments.failure()
    >>> traces = ss.simulate_many(ss.Uniform(world.problem), world, horizon=20, runs=3)
    >>> [trace.seed for trace in traces]
    [0, 1, 2]
    """
    check_integer("runs", runs, low=1)
    rounds = horizon * runs
    if isinstance(policy, BuiltinPolicy):
        note_interpreted(rounds)
    jobs = [_Job(policy, instance_maker, horizon, seed + run, every, rounds) for run in range(runs)]
    return list((executor.map if executor else map)(_run_job, jobs))


class _Job(NamedTuple):
    policy: Any
    instance_maker: Any
    horizon: int
    seed: int
    every: int
    rounds: int  # of all runs


def _run_job(job: _Job) -> Trace:
    world = job.instance_maker
    instance = world if isinstance(world, Instance) else world(job.seed)
    fast = should_compile(job.policy, instance, job.rounds)
    return simulate(job.policy, instance, job.horizon, job.seed, job.every, compiled=fast)
