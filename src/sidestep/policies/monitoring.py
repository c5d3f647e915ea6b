"""How the lock-in monitor (core/lock_in.py) looks at a policy.

It looks rarely, so it stands beside the kernels of a policy and not in them: `ask` calls it after the
policy has chosen, and the compiled loop hands over to Python when a look is due.
"""

from typing import NamedTuple

import numpy as np

from sidestep.core.arrays import FloatArray, IntArray
from sidestep.core.checks import check_choice, check_integer
from sidestep.core.confidence import Confidence
from sidestep.core.estimator import Evidence
from sidestep.core.forms import Menu
from sidestep.core.kernels import kernel
from sidestep.core.lock_in import LockInMonitor, is_due, locked_in
from sidestep.policies.base import EXPLORE, LOCKED, PLAY
from sidestep.policies.dispatch import Choice

SILENT, WARNS, EXPLORES = 0, 1, 2  # what the monitor says of an action that is played once more


def monitor_for(lock_in: str, patience: int) -> LockInMonitor:
    """The lock-in monitor, from knobs that are checked here."""
    check_choice("lock_in", lock_in, ("warn", "explore"))
    check_integer("patience", patience, low=2)
    return LockInMonitor(int(patience), lock_in == "explore")


class Watch(NamedTuple):
    """The monitor of a policy, and all that it looks at but the menu."""

    monitor: LockInMonitor
    confidence: Confidence
    evidence: Evidence
    rank: int  # of the subspace that the policy projects out

    def is_due(self) -> bool:
        """Whether the monitor looks at the round to come, should it repeat the last action."""
        return bool(is_due(self.monitor.patience, self.evidence.streak[0]))

    def verdict(self, menu: Menu) -> IntArray:
        """What the monitor says should the round to come repeat the last action, from this menu; (3,).

        One of SILENT, WARNS and EXPLORES; then the arm and the vector that would tell most.
        """
        last, columns = self.evidence.last, menu.columns
        same = np.flatnonzero(columns[0] == last[0])  # few, which are then looked at in full
        same = same[(columns[:, same] == last[:, None]).all(axis=0)]
        if not same.size:
            return np.zeros(3, np.int64)
        known = (self.monitor, self.confidence, self.evidence, menu, self.rank)
        locked, arm, vector = locked_in(*known, int(same[0]))
        word = EXPLORES if self.monitor.explores else WARNS
        return np.array([word if locked else SILENT, arm, vector], dtype=np.int64)


@kernel(refcounts=False)
def after_monitor(verdict: IntArray, last: FloatArray, menu: Menu, choice: Choice) -> Choice:
    """The choice once the lock-in monitor has spoken: its verdict is on the last action, played again."""
    if choice.phase != PLAY or verdict[0] == SILENT:
        return choice
    for j in range(last.size):
        if menu.columns[j, choice.arm] != last[j]:
            return choice
    if verdict[0] == EXPLORES:
        return Choice(verdict[1], verdict[2], EXPLORE, np.nan)
    return Choice(choice.arm, choice.vector, LOCKED, choice.value)
