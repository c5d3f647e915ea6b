"""What a policy knows about the problem (section Model): sizes, noise, bounds; never the vectors."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from sidestep.core.arrays import FloatArray
from sidestep.core.display import brief, non_defaults, notebook_table, short
from sidestep.core.validation import SLACK, as_numbers, check_integer, check_scale, is_finite, shown
from sidestep.errors import InputError

Side: TypeAlias = float | None
Tolerance: TypeAlias = float | Sequence[float | tuple[Side, Side] | None] | None
Pairs: TypeAlias = tuple[tuple[float, float], ...]


class Limits(NamedTuple):
    """Lowest and highest tolerated effect on every protected outcome, and the penalty; (L,) each."""

    low: FloatArray  # at most 0; -inf where a decrease is harmless
    high: FloatArray  # at least 0; inf where an increase is harmless
    penalty: FloatArray  # of a unit beyond either limit


STEEPEST = 1e12  # penalty; a double has 16 digits


def checked_tolerance(value: Any, count: int) -> Pairs:
    """A (low, high) pair for every protected outcome; raises one sentence if something is wrong."""
    if not _is_several(value):
        return ((-_side(value, value), _side(value, value)),) * count
    if len(value) != count:
        raise InputError(
            f"tolerance must be a number or {count} of them, one per protected vector, each a "
            f"number or a (low, high) pair, got {len(value)}"
        )
    return tuple(_pair(one) for one in value)


def checked_penalty(value: Any, pairs: Pairs, scale: float) -> tuple[float, ...]:
    """The penalty of a unit beyond each tolerance.

    None: exceeding a tolerance by its width (see `width_of`) costs `scale`, as much as the target can
    move.
    """
    if value is None:
        usual = tuple(_usual_penalty(pair, scale) for pair in pairs)
        if max(usual, default=0.0) > STEEPEST:
            raise InputError(
                f"tolerance must be at least {scale / STEEPEST:.3g} wide, {1 / STEEPEST:g} of norm_bound "
                "times action_bound, as the target's part of a value is lost to rounding beyond it "
                f"(choose another unit), got {scale / max(usual):.3g}"
            )
        return usual
    several = tuple(value) if _is_several(value) else (value,) * len(pairs)
    if len(several) != len(pairs):
        raise InputError(
            f"penalty must be a number or {len(pairs)} numbers, one per protected vector, "
            f"got {len(several)}"
        )
    for one in several:
        if not is_finite(one) or one < 0:
            raise InputError(f"penalty must be zero or positive and finite, got {shown(value)}")
        if one > STEEPEST:
            raise InputError(
                f"penalty must be at most {STEEPEST:g}, as the target's part of a value is lost to "
                f"rounding beyond a tolerance (choose another unit), got {shown(value)}"
            )
    return tuple(float(one) for one in several)


def limits_of(pairs: Pairs, penalty: tuple[float, ...]) -> Limits:
    """The limits and penalties as arrays."""
    low, high = np.array(pairs, dtype=float).reshape(-1, 2).T.copy()
    return Limits(low, high, np.array(penalty, dtype=float))


def width_of(sides: Sequence[float]) -> float:
    """Width of a tolerance: its narrower side; if that is zero, half the other side.

    The wider side must not count: a very wide limit on one side would make exceeding the other cheap.
    """
    return min(sides) or max(sides) / 2


def _usual_penalty(pair: tuple[float, float], scale: float) -> float:
    """Scale divided by the width; 0 where there is no limit."""
    sides = [abs(side) for side in pair if math.isfinite(side)]
    if not sides:
        return 0.0
    width = width_of(sides)
    if width == 0.0:
        raise InputError("penalty must be given where a tolerance has no width, got None")
    return scale / width


def _is_several(value: Any) -> bool:
    several = isinstance(value, (Sequence, np.ndarray)) and not isinstance(value, str)
    return several and getattr(value, "ndim", 1) >= 1


def _pair(value: Any) -> tuple[float, float]:
    if not _is_several(value):
        return (-_side(value, value), _side(value, value))
    if len(value) != 2:
        raise InputError(f"tolerance must have pairs (low, high), got {shown(value)}")
    fall, rise = value
    return (-_side(-fall if _is_number(fall) else fall, value), _side(rise, value))


def _side(value: Any, whole: Any) -> float:
    """How far an outcome may move to one side; None and infinity: no limit."""
    if value is None:
        return math.inf
    if not _is_number(value) or not value >= 0:
        raise InputError(
            "tolerance must be zero or positive, or a pair (low, high) with low <= 0 <= high, "
            f"got {shown(whole)}"
        )
    return float(value) + 0.0  # + 0.0 turns -0.0 into 0.0


def _is_number(value: Any) -> bool:
    number = isinstance(value, (int, float, np.integer, np.floating))
    return number and not isinstance(value, bool) and (is_finite(value) or math.isinf(value))


TOO_LONG = "scale the actions, or raise the problem's action_bound"
TARGET = 0  # index of theta_0; protected vectors are 1..L


@dataclass(frozen=True, slots=True)
class Problem:
    """The protected linear bandit, as its policy knows it.

    One of three things may be known about the protected subspace: its dimension s, the eigenvalue
    lambda_min of its best spanning set, or a resolution, the smallest singular value that
    matters. The rank cannot be certified from data alone (Remark "Knowledge of s").

    The aim is the paper's projected reward. With a tolerance it is the effect on the target minus a
    penalty for every protected effect beyond its tolerance (core/objective.py), and nothing need be known
    about the subspace.

    dim            d, the length of an action
    n_protected    L, number of protected outcomes
    subspace_dim   s, dimension of the span of the protected vectors, if known
    noise_scale    R, standard deviation of one measurement; one per outcome, target first; None: learned
    norm_bound     M, largest norm of a hidden vector
    action_bound   A, largest norm of an action
    eigenvalue     lambda_min of the best spanning set, if known instead of s
    resolution     smallest singular value of the protected vectors that matters, instead of either
    costs          relative cost of one measurement: one for all or one per outcome
    tolerance      of every protected effect: a number, one per outcome, or pairs (low, high), None for
                   no limit; None: the paper's projected reward
    penalty        what a unit beyond a tolerance costs; None: exceeding one by the width of its narrower
                   side costs as much as the target can move (see `limits`)
    intercept      whether every outcome has an unknown level, which is learned and not part of the reward

    >>> import sidestep as ss
    >>> ss.Problem(dim=6, n_protected=4, subspace_dim=2, noise_scale=0.1).n_vectors
    5
    """

    dim: int  # d
    n_protected: int  # L
    subspace_dim: int | None = None  # s
    noise_scale: float | Sequence[float | None] | None = 1.0  # R, or one per vector; None: learned
    norm_bound: float = 1.0  # M: |theta_i| <= M
    action_bound: float = 1.0  # A: |a| <= A; the paper calls this M as well (B7)
    eigenvalue: float | None = None  # lambda_min
    resolution: float | None = None  # sigma_res
    costs: float | Sequence[float] = 1.0  # of one query, relative: one for all or one per index
    tolerance: Tolerance = None  # of every protected effect, one for all, one each, or (low, high)
    penalty: float | Sequence[float] | None = None  # of a unit beyond it; None: see `limits`
    intercept: bool = False  # every outcome has an unknown level, not part of the reward
    # largest |feedback| for tell
    feedback_bound: float = field(init=False, repr=False, compare=False)
    _limits: Limits | None = field(init=False, repr=False, compare=False, default=None)

    def __post_init__(self) -> None:
        check_integer("dim", self.dim, low=1)
        check_integer("n_protected", self.n_protected, low=0)
        if self.subspace_dim is not None:
            limit = min(self.n_protected, self.dim)
            low = 0 if self.n_protected == 0 else 1
            check_integer("subspace_dim", self.subspace_dim, low=low, high=limit)
        elif self.n_protected == 0:
            object.__setattr__(self, "subspace_dim", 0)
        if self.noise_scale is not None:
            self._spread("noise_scale", self.noise_scale, allow_zero=True, allow_none=True)
        self._spread("costs", self.costs, allow_zero=False)
        for name in ("norm_bound", "action_bound"):
            check_scale(name, getattr(self, name))
        for name in ("eigenvalue", "resolution"):
            if getattr(self, name) is not None:
                check_scale(name, getattr(self, name))
        self._settle_aim()
        noise = float(np.nan_to_num(self.known_noise).max())
        bound = 1e6 * (self.norm_bound * self.action_bound + noise)
        object.__setattr__(self, "feedback_bound", float(bound))

    def _settle_aim(self) -> None:
        """Check tolerance, penalty and intercept; store the tolerance as (low, high) pairs."""
        if not isinstance(self.intercept, (bool, np.bool_)):
            raise InputError(f"intercept must be True or False, got {shown(self.intercept)}")
        object.__setattr__(self, "intercept", bool(self.intercept))
        if self.tolerance is None:
            if self.penalty is not None:
                raise InputError(f"penalty needs a tolerance, got {shown(self.penalty)} and none")
            return
        pairs = checked_tolerance(self.tolerance, self.n_protected)
        penalty = checked_penalty(self.penalty, pairs, self.norm_bound * self.action_bound)
        object.__setattr__(self, "tolerance", pairs)
        object.__setattr__(self, "_limits", limits_of(pairs, penalty))
        if self.penalty is not None:
            object.__setattr__(self, "penalty", penalty)

    def _spread(self, name: str, value: Any, *, allow_zero: bool, allow_none: bool = False) -> None:
        """Check a number or one number per vector; store a sequence as a tuple."""
        several = isinstance(value, (Sequence, np.ndarray)) and not isinstance(value, str)
        several = several and getattr(value, "ndim", 1) == 1
        numbers: tuple[Any, ...] = tuple(value) if several else (value,)
        if several and len(numbers) != self.n_vectors:
            raise InputError(
                f"{name} must be a number or {self.n_vectors} numbers, one per vector, "
                f"got {len(numbers)}"
            )
        for number in numbers:
            if number is None and allow_none:
                continue
            if not is_finite(number) or number < 0 or (number == 0 and not allow_zero):
                sign = "zero or positive" if allow_zero else "positive"
                raise InputError(f"{name} must be {sign} and finite, got {shown(value)}")
            if number != 0:
                check_scale(name, number)
        if several:
            kept = tuple(None if number is None else float(number) for number in numbers)
            object.__setattr__(self, name, kept)

    def __repr__(self) -> str:
        return short(self)

    def _repr_html_(self) -> str:
        return notebook_table("Problem", non_defaults(self))

    @property
    def width(self) -> int:
        """Number of learned coordinates of every vector: d, or d + 1 where levels are learned."""
        return self.dim + int(self.intercept)

    def lifted(self, actions: FloatArray) -> FloatArray:
        """Actions (..., d) as they are measured: with an intercept, 2 A sqrt(d) is appended to each.

        The level of an outcome is 2 A sqrt(d) times the last coordinate of its vector. So the prior
        N(0, M^2/d) gives the level a standard deviation of 2 M A, twice the largest effect of an action.
        """
        if not self.intercept:
            return actions
        level = 2 * self.action_bound * math.sqrt(self.dim)
        return np.concatenate([actions, np.full((*np.shape(actions)[:-1], 1), level)], axis=-1)

    @property
    def n_vectors(self) -> int:
        """L + 1, the target included."""
        return self.n_protected + 1

    @property
    def noise(self) -> FloatArray:
        """R of every vector; (L+1,)."""
        known = self.known_noise
        if np.isnan(known).any():
            came = shown(self.noise_scale)
            raise InputError(f"noise_scale must be a number for this policy, got {came}")
        return known

    @property
    def known_noise(self) -> FloatArray:
        """R of every vector, NaN where it is learned; (L+1,)."""
        return np.broadcast_to(np.array(self.noise_scale, dtype=float), (self.n_vectors,)).copy()

    @property
    def limits(self) -> Limits | None:
        """The tolerances and the penalty of a unit beyond each; None where the aim is the paper's.

        By default, exceeding a tolerance by the width of its narrower side costs M A, as much as the
        target can move.
        """
        return self._limits


@dataclass(frozen=True, slots=True, eq=False)
class Query:
    """One play: an action, and the index of the outcome to measure.

    action   the action; (d,)
    index    the measured outcome: 0 the target, 1..L the protected ones

    >>> import numpy as np, sidestep as ss
    >>> ss.Query(np.array([0.6, 0.8]), ss.TARGET).index
    0
    """

    action: FloatArray
    index: int

    def __post_init__(self) -> None:
        if isinstance(self.index, (bool, np.bool_)):
            raise InputError(f"index must be an integer >= 0, got {self.index}")

    def __repr__(self) -> str:
        return f"Query({brief(np.asarray(self.action))}, {self.index})"


def per_vector(value: float | Sequence[float], count: int) -> FloatArray:
    """One number per vector, from one number for all or one for each; (count,)."""
    return np.broadcast_to(np.asarray(value, dtype=float), (count,)).copy()


def checked_query(problem: Problem, query: Query) -> Query:
    """The query with a checked action and index; raises one sentence if something is wrong with it."""
    return Query(*checked_parts(problem, query))


def checked_parts(problem: Problem, query: Query) -> tuple[FloatArray, int]:
    """The checked action (d,) and index of a query; raises one sentence if something is wrong."""
    if not isinstance(query, Query):
        hint = "hand over its .query" if hasattr(query, "query") else "write Query(action, index)"
        raise InputError(f"query must be a Query, got a {type(query).__name__}: {hint}")
    action = as_numbers("action", query.action)  # a copy: compiled kernels accept one array layout
    if action.shape != (problem.dim,):
        raise InputError(f"action must have shape ({problem.dim},), got {action.shape}")
    length = math.hypot(*action.tolist())
    if not math.isfinite(length):
        raise InputError("action must be finite numbers, got NaN or infinity")
    if length > problem.action_bound * (1 + SLACK):
        raise InputError(
            f"action must have length at most {problem.action_bound:g}, got {length:.12g}: {TOO_LONG}"
        )
    check_integer("index", query.index, low=0, high=problem.n_protected)
    return action, int(query.index)


def checked_feedback(problem: Problem, value: object) -> float:
    """The feedback as a float; raises one sentence if it is not an acceptable number.

    The bound does not say anything about the noise. It rejects absurd numbers (a lost decimal point, a
    code for "missing"), which would dominate every sum forever.
    """
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if not is_finite(value):
        raise InputError(f"feedback must be a finite number, got {shown(value)}")
    number = float(value)  # type: ignore[arg-type]
    if abs(number) > problem.feedback_bound:
        raise InputError(f"feedback must lie within +-{problem.feedback_bound:g}, got {value!r}")
    return number
