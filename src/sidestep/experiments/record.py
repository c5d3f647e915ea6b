"""The recorded rounds of a run."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sidestep.core.arrays import FloatArray, IntArray
from sidestep.core.display import notebook_table, sparkline
from sidestep.core.jit import kernel
from sidestep.core.linalg import copy_into
from sidestep.core.validation import check_lab
from sidestep.policies.base import LOCKED, PHASES
from sidestep.policies.builtin import Choice

if TYPE_CHECKING:
    import polars


NUMBER, VECTOR, PHASE, ARM = range(4)  # rows of Record.chosen
VALUE, WIDTH, FEEDBACK, REGRET, CUMULATIVE = range(5)  # rows of Record.numbers
SHOWN = 120  # points of the curve in a notebook, at most


class Record(NamedTuple):
    """The recorded rounds as compiled code writes them, in few arrays, since that compiles faster."""

    chosen: IntArray  # (4, n): number of the round, from 1; vector, phase and arm as in Choice
    numbers: FloatArray  # (5, n): as in Trace
    action: FloatArray  # (n, d)
    counts: IntArray  # (L+1,): how often every vector was measured, kept rounds or not
    locked: IntArray  # (2,): number of lock-in warnings, and the round of the first


def empty_record(horizon: int, every: int, dim: int, n_vectors: int) -> Record:
    """An empty record with space for every `every`-th round and the last one."""
    n = horizon // every + (horizon % every > 0)
    chosen, numbers, action = np.zeros((4, n), np.int64), np.zeros((5, n)), np.zeros((n, dim))
    return Record(chosen, numbers, action, np.zeros(n_vectors, np.int64), np.zeros(2, np.int64))


@kernel(refcounts=False)
def record_round(
    record: Record, every: int, horizon: int, t: int, choice: Choice, action: FloatArray
) -> int:
    """Count a round, and record the choice if the round is due; returns its slot, or -1."""
    record.counts[choice.vector] += 1
    if choice.phase == LOCKED:
        record.locked[0] += 1
        record.locked[1] = record.locked[1] if record.locked[1] else t
    if t % every != 0 and t != horizon:
        return -1
    slot = (t - 1) // every
    record.chosen[NUMBER, slot], record.chosen[ARM, slot] = t, choice.arm
    record.chosen[VECTOR, slot], record.chosen[PHASE, slot] = choice.vector, choice.phase
    record.numbers[VALUE, slot] = choice.value
    copy_into(action, record.action[slot])
    return slot


@kernel(refcounts=False)
def write_numbers(
    record: Record, slot: int, feedback: float, regret: float, so_far: float, width: float
) -> None:
    """Record feedback, regret and width of a round."""
    record.numbers[FEEDBACK, slot], record.numbers[REGRET, slot] = feedback, regret
    record.numbers[CUMULATIVE, slot], record.numbers[WIDTH, slot] = so_far, width


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """One run, round by round (or every n-th round and the last), as `simulate` returns it.

    Columns with one entry per recorded round: `round`, `index`, `action`, `arm`,
    `phase`, `value`, `width`, `feedback`, `regret`, `cumulative_regret`. `counts` is of all rounds,
    `warnings` what a person should know, and `to_frame()` the columns as a table.

    policy    the policy with its knobs, as it prints itself
    horizon   rounds of the run
    seed      of the run
    record    the kept rounds as arrays, behind the columns
    state     of the policy after the last round

    >>> import sidestep as ss
    >>> world = ss.environments.failure()
    >>> trace = ss.simulate(ss.Uniform(world.problem), world, horizon=20)
    >>> bool(trace.cumulative_regret[-1] == trace.regret.cumsum()[-1]), int(trace.counts.sum())
    (True, 20)
    """

    policy: str
    horizon: int
    seed: int
    record: Record = field(repr=False)
    state: Any = field(default=None, repr=False)

    def __repr__(self) -> str:
        name = self.policy.partition("(")[0]
        regret = f"{self.cumulative_regret[-1]:.4g}"
        return f"Trace({name}, {self.horizon} rounds, seed {self.seed}, regret {regret})"

    def _repr_html_(self) -> str:
        rows: dict[str, Any] = {"policy": self.policy, "rounds": self.horizon, "seed": self.seed}
        rows |= {"regret": float(self.cumulative_regret[-1])}
        rows |= {f"measurements of outcome {i}": int(n) for i, n in enumerate(self.counts)}
        rows |= {"note": " ".join(self.warnings)} if self.warnings else {}
        few = np.unique(np.linspace(0, len(self.round) - 1, SHOWN).astype(int))
        return notebook_table("Trace", rows, sparkline(self.cumulative_regret[few].tolist()))

    @property
    def round(self) -> IntArray:
        """Number of the round, from 1; (n,)."""
        return self.record.chosen[NUMBER]

    @property
    def regret(self) -> FloatArray:
        """Pseudo-regret of the round; (n,)."""
        return self.record.numbers[REGRET]

    @property
    def cumulative_regret(self) -> FloatArray:
        """Pseudo-regret of all rounds so far, kept or not; (n,)."""
        return self.record.numbers[CUMULATIVE]

    @property
    def index(self) -> IntArray:
        """Which vector was measured; (n,)."""
        return self.record.chosen[VECTOR]

    @property
    def counts(self) -> IntArray:
        """How often every vector was measured in all rounds, kept or not; (L+1,)."""
        return self.record.counts

    @property
    def action(self) -> FloatArray:
        """What was played; (n, d)."""
        return self.record.action

    @property
    def arm(self) -> IntArray:
        """Row of the action among the arms; -1 on a solid, -2-j for e_{j+1} off the menu; (n,)."""
        return self.record.chosen[ARM]

    @property
    def feedback(self) -> FloatArray:
        """What was measured; (n,)."""
        return self.record.numbers[FEEDBACK]

    @property
    def value(self) -> FloatArray:
        """What the policy hoped the action was worth; NaN where it did not say; (n,)."""
        return self.record.numbers[VALUE]

    @property
    def width(self) -> FloatArray:
        """How uncertain <a, theta_i> was when it was measured; NaN for a policy without sets; (n,)."""
        return self.record.numbers[WIDTH]

    @property
    def phase(self) -> "np.ndarray[Any, np.dtype[np.str_]]":
        """Why it was played: one of PHASES (policies/base.py); (n,)."""
        return np.array(PHASES)[self.record.chosen[PHASE]]

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a person should know of this run, a sentence each."""
        times, first = (int(number) for number in self.record.locked)
        if not times:
            return ()
        return (
            f"locked in: {times} times, first in round {first}, one arm had been played again and "
            "again although it cannot show whether another is better",
        )

    def to_frame(self) -> "polars.DataFrame":
        """A data frame with one row per recorded round."""
        check_lab("a frame", "polars")
        import polars  # noqa: PLC0415  (an extra, and only needed here)

        columns: dict[str, Any] = {
            "round": self.round,
            "index": self.index,
            "phase": self.phase,
            "arm": self.arm,
            "value": self.value,
            "width": self.width,
            "feedback": self.feedback,
            "regret": self.regret,
            "cumulative_regret": self.cumulative_regret,
        }
        columns |= {f"action_{j + 1}": self.action[:, j] for j in range(self.action.shape[1])}
        return polars.DataFrame(columns)
