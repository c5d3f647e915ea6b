"""Several queries at once: batches, panels of measurements of one action, and past records.

    decisions = ask_batch(policy, state, actions, rng, size=8)     # eight queries before any answer
    decisions = ask_panel(policy, state, actions, rng, size=3)     # one action, three outcomes measured
    decisions = ask_panel(..., restrictions=Restrictions(...))     # restrictions of every query
    state = tell_all(policy, state, records)                       # a frame of past records, all or none

Each further query takes the unanswered ones into account (`ask(..., pending=...)`): the policy assumes
that their feedback will be as predicted, and so measures something else. Late answers are told late.
"""

import inspect
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.random import Generator

from sidestep.core.actions import Actions, Arms
from sidestep.core.problem import Query, checked_feedback, checked_query
from sidestep.core.validation import check_integer
from sidestep.errors import InputError, UnreachedDirectionsWarning
from sidestep.policies.base import Decision, Policy, StateT, takes_pending, takes_restrictions
from sidestep.policies.restrictions import Restrictions

TRIES = 64  # how often a panel asks again for a vector that is not in it yet


def ask_batch(
    policy: Policy[StateT],
    state: StateT,
    actions: Actions,
    rng: Generator,
    size: int,
    pending: Sequence[Query] = (),
    restrictions: Restrictions | None = None,
) -> list[Decision]:
    """Several queries to play before the first of them is answered.

    policy    the policy
    state     its state
    actions   the set of actions
    rng       random generator
    size      number of queries
    pending   earlier queries that are not answered yet
    restrictions   restrictions of this ask; None: none

    >>> import numpy as np, sidestep as ss
    >>> world = ss.environments.failure()
    >>> policy = ss.DirectedThompson(world.problem)
    >>> rng = np.random.default_rng(0)
    >>> len(ss.ask_batch(policy, policy.init(), world.actions, rng, size=3))
    3
    """
    check_integer("size", size, low=1)
    _check_counts_on_answers(policy)
    ask = asker(policy, restrictions)
    decisions: list[Decision] = []
    for _ in range(size):
        waiting = (*pending, *(decision.query for decision in decisions))
        decisions.append(ask(state, actions, rng, waiting))
    return decisions


def ask_panel(
    policy: Policy[StateT],
    state: StateT,
    actions: Actions,
    rng: Generator,
    size: int,
    pending: Sequence[Query] = (),
    restrictions: Restrictions | None = None,
) -> list[Decision]:
    """One action and several outcomes to measure, the most informative first.

    The policy is asked again with only that action on the menu. If it chooses a vector again, it is
    asked again with that query pending too, until it chooses another.

    policy    the policy
    state     its state
    actions   the set of actions
    rng       random generator
    size      number of outcomes, at most L + 1
    pending   earlier queries that are not answered yet
    restrictions   restrictions of this ask; None: none

    >>> import numpy as np, sidestep as ss
    >>> world = ss.environments.failure()
    >>> policy = ss.DirectedThompson(world.problem)
    >>> rng = np.random.default_rng(0)
    >>> panel = ss.ask_panel(policy, policy.init(), world.actions, rng, size=2)
    >>> sorted(decision.query.index for decision in panel)
    [0, 1]
    """
    can = None if restrictions is None else restrictions.measure_only
    check_integer("size", size, low=1, high=len(can or range(policy.problem.n_vectors)))
    _check_counts_on_answers(policy)
    first = asker(policy, restrictions)(state, actions, rng, pending)
    if restrictions is not None:
        return _restricted_panel(policy, (state, rng), first, size, pending, restrictions)
    if size == 1:
        return [first]
    action = first.query.action
    panel, waiting = [first], [*pending, first.query]
    only = Arms(action[None, :])
    for _ in range(TRIES * size):
        if len(panel) == size:
            return panel
        with warnings.catch_warnings(action="ignore", category=UnreachedDirectionsWarning):
            query = Query(action, policy.ask(state, only, rng, waiting).query.index)
        waiting.append(query)
        if all(query.index != held.query.index for held in panel):
            panel.append(Decision(query, first.phase, first.value, first.arm))
    held = {decision.query.index for decision in panel}
    rest = [index for index in range(policy.problem.n_vectors) if index not in held]
    queries = [Query(action, index) for index in rest[: size - len(panel)]]
    return panel + [Decision(query, first.phase, first.value, first.arm) for query in queries]


def _restricted_panel(
    policy: Policy[Any],
    known: tuple[Any, Generator],
    first: Decision,
    size: int,
    pending: Sequence[Query],
    told: Restrictions,
) -> list[Decision]:
    """The rest of a panel; vectors that are already in the panel are excluded from measurement."""
    state, rng = known
    action, panel = first.query.action, [first]
    left = set(told.measure_only or range(policy.problem.n_vectors)) - {first.query.index}
    while len(panel) < size:
        rule = Restrictions(measure_only=sorted(left), purpose=told.purpose)
        waiting = (*pending, *(decision.query for decision in panel))
        with warnings.catch_warnings(action="ignore", category=UnreachedDirectionsWarning):
            index = asker(policy, rule)(state, Arms(action[None, :]), rng, waiting).query.index
        left.remove(index)
        panel.append(Decision(Query(action, index), first.phase, first.value, first.arm))
    return panel


def asker(policy: Policy[Any], restrictions: Restrictions | None) -> Callable[..., Decision]:
    """`ask` of a policy with these restrictions bound to it; raises if it does not accept any."""
    ask: Callable[..., Decision] = policy.ask
    if restrictions is None:
        return ask
    if not takes_restrictions(policy):
        raise InputError(
            "restrictions need a policy whose ask takes restrictions, got "
            f"{type(policy).__name__}.ask{inspect.signature(policy.ask)}"
        )
    return partial(ask, restrictions=restrictions)


def _check_counts_on_answers(policy: Policy[Any]) -> None:
    """Raise if `ask` has no `pending`: the policy would ask for the same query again."""
    if not takes_pending(policy):
        raise InputError(
            "several queries at once need a policy whose ask takes pending, got "
            f"{type(policy).__name__}.ask{inspect.signature(policy.ask)}"
        )


def tell_all(policy: Policy[StateT], state: StateT, records: object) -> StateT:
    """The state after many measurements at once; a wrong row raises an error.

    `records` is a frame or a mapping of columns, with `index`, `value` (or `feedback`) and the action as
    one column `action` of lists or as `action_1` .. `action_d`; or rows (action, index, value).

    policy    the policy
    state     its state before
    records   the measurements

    >>> import sidestep as ss
    >>> policy = ss.DirectedThompson(ss.Problem(2, 1, subspace_dim=1, noise_scale=0.1))
    >>> state = ss.tell_all(policy, policy.init(), [([1.0, 0.0], 0, 0.3), ([0.0, 1.0], 1, -0.2)])
    >>> state.round
    2
    """
    checked = []
    for number, (action, index, value) in enumerate(_rows(records, policy.problem.dim)):
        try:
            query = checked_query(policy.problem, Query(action, _as_index(index)))
            checked.append((query, checked_feedback(policy.problem, value)))
        except InputError as error:
            raise type(error)(f"row {number}: {error}") from error
    for query, value in checked:
        state = policy.tell(state, query, value)
    return state


def _as_index(index: object) -> Any:
    """A whole number as an int, whatever its type in the frame; anything else unchanged."""
    if isinstance(index, (float, np.floating)) and float(index).is_integer():
        return int(index)
    return index


def _rows(records: object, dim: int) -> Iterable[tuple[Any, Any, Any]]:
    """Rows (action, index, value) from a frame, a mapping of columns, or rows."""
    if hasattr(records, "columns") or isinstance(records, Mapping):
        return _from_columns(records, dim)
    if isinstance(records, (str, bytes)) or not isinstance(records, Iterable):
        raise InputError(
            "records must be a frame, a mapping of columns or rows (action, index, value), "
            f"got {type(records).__name__}"
        )
    rows = list(records)
    for number, row in enumerate(rows):
        if not isinstance(row, Sequence) or isinstance(row, str) or len(row) != 3:
            raise InputError(f"row {number}: must be (action, index, value), got {row!r:.60}")
    return [(row[0], row[1], row[2]) for row in rows]


def _from_columns(frame: Any, dim: int) -> list[tuple[Any, Any, Any]]:
    names = list(frame.columns) if hasattr(frame, "columns") else list(frame)
    value = "value" if "value" in names else "feedback"
    parts = [f"action_{j + 1}" for j in range(dim)]
    spread = "action" not in names
    wanted = [*(parts if spread else ["action"]), "index", value]
    missing = [name for name in wanted if name not in names]
    if missing:
        raise InputError(
            "records must have the columns index, value and action (or action_1 .. "
            f"action_{dim}), got no {missing[0]!r}"
        )
    columns = [list(frame[name]) for name in wanted]
    lengths = {len(column) for column in columns}
    if len(lengths) > 1:
        raise InputError(f"records must have columns of one length, got {sorted(lengths)}")
    rows = zip(*columns, strict=True)
    return [(list(row[:-2]) if spread else row[0], row[-2], row[-1]) for row in rows]
