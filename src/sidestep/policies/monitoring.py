"""The connection of the lock-in monitor (core/lock_in.py) to a policy.

The monitor runs rarely, so it is not part of a policy's kernels: `ask` calls it after the policy has
chosen, and the compiled loop returns to Python when the monitor is due.
"""

from typing import NamedTuple

import numpy as np

from sidestep.core.arm_forms import Menu
from sidestep.core.arrays import FloatArray, IntArray
from sidestep.core.checks import check_choice, check_integer
from sidestep.core.confidence import Confidence
from sidestep.core.estimator import Evidence
from sidestep.core.kernels import kernel
from sidestep.core.lock_in import LockInMonitor, is_due, locked_in
from sidestep.policies.base import EXPLORE, LOCKED, PLAY
from sidestep.policies.dispatch import Choice

SILENT, WARNS, EXPLORES = 0, 1, 2  # verdicts of the monitor on playing the last action again


def monitor_for(lock_in: str, patience: int) -> LockInMonitor:
    """The lock-in monitor, from knobs that are checked here."""
    check_choice("lock_in", lock_in, ("warn", "explore"))
    check_integer("patience", patience, low=2)
    return LockInMonitor(int(patience), lock_in == "explore")


class Watch(NamedTuple):
    """The monitor of a policy with all its inputs except the menu."""

    monitor: LockInMonitor
    confidence: Confidence
    evidence: Evidence
    rank: int  # of the subspace that the policy projects out

    def is_due(self) -> bool:
        """Whether the monitor must run if the next round repeats the last action."""
        return bool(is_due(self.monitor.patience, self.evidence.streak[0]))

    def verdict(self, menu: Menu) -> IntArray:
        """The verdict for the case that the next round repeats the last action, with this menu; (3,).

        One of SILENT, WARNS and EXPLORES; then the arm and the vector of the most informative query.
        """
        last, columns = self.evidence.last, menu.columns
        same = np.flatnonzero(columns[0] == last[0])  # few candidates, compared in full next
        same = same[(columns[:, same] == last[:, None]).all(axis=0)]
        if not same.size:
            return np.zeros(3, np.int64)
        known = (self.monitor, self.confidence, self.evidence, menu, self.rank)
        locked, arm, vector = locked_in(*known, int(same[0]))
        word = EXPLORES if self.monitor.explores else WARNS
        return np.array([word if locked else SILENT, arm, vector], dtype=np.int64)


@kernel(refcounts=False)
def after_monitor(verdict: IntArray, last: FloatArray, menu: Menu, choice: Choice) -> Choice:
    """The choice after the verdict, which applies if the choice repeats the last action."""
    if choice.phase != PLAY or verdict[0] == SILENT:
        return choice
    for j in range(last.size):
        if menu.columns[j, choice.arm] != last[j]:
            return choice
    if verdict[0] == EXPLORES:
        return Choice(verdict[1], verdict[2], EXPLORE, np.nan)
    return Choice(choice.arm, choice.vector, LOCKED, choice.value)
