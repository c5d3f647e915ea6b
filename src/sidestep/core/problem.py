"""What the player is told (section Model): sizes, noise, bounds. Never the vectors themselves."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sidestep.core.arrays import FloatArray
from sidestep.core.checks import SLACK, as_numbers, check_integer, check_scale, is_finite, shown
from sidestep.errors import InputError

TARGET = 0  # index of theta_0; protected vectors are 1..L


@dataclass(frozen=True, slots=True)
class Problem:
    """The protected linear bandit as its player sees it.

    Of the protected subspace one of three things may be known: its dimension s, the eigenvalue
    lambda_min of its best spanning set, or a resolution, the smallest singular value that
    matters. The rank cannot be certified from data alone (Remark "Knowledge of s").
    """

    dim: int  # d
    n_protected: int  # L
    subspace_dim: int | None = None  # s
    noise_scale: float | Sequence[float] | None = 1.0  # R, one for all or one per vector
    norm_bound: float = 1.0  # M: |theta_i| <= M
    action_bound: float = 1.0  # A: |a| <= A; the paper calls this M as well (B7)
    eigenvalue: float | None = None  # lambda_min
    resolution: float | None = None  # sigma_res
    costs: float | Sequence[float] = 1.0  # of one query, relative: one for all or one per index
    feedback_bound: float = field(init=False, repr=False, compare=False)  # what tell accepts

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
            self._spread("noise_scale", self.noise_scale, allow_zero=True)
        self._spread("costs", self.costs, allow_zero=False)
        for name in ("norm_bound", "action_bound"):
            check_scale(name, getattr(self, name))
        for name in ("eigenvalue", "resolution"):
            if getattr(self, name) is not None:
                check_scale(name, getattr(self, name))
        noise = float(max(self.noise)) if self.noise_scale is not None else 0.0
        bound = 1e6 * (self.norm_bound * self.action_bound + noise)
        object.__setattr__(self, "feedback_bound", float(bound))

    def _spread(self, name: str, value: float | Sequence[float], *, allow_zero: bool) -> None:
        """Check a number or one number per vector; sequences are kept as tuples."""
        several = isinstance(value, (Sequence, np.ndarray)) and not isinstance(value, str)
        several = several and getattr(value, "ndim", 1) == 1
        numbers: tuple[Any, ...] = tuple(value) if several else (value,)  # type: ignore[arg-type]
        if several and len(numbers) != self.n_vectors:
            raise InputError(
                f"{name} must be a number or {self.n_vectors} numbers, one per vector, "
                f"got {len(numbers)}"
            )
        for number in numbers:
            if not is_finite(number) or number < 0 or (number == 0 and not allow_zero):
                sign = "zero or positive" if allow_zero else "positive"
                raise InputError(f"{name} must be {sign} and finite, got {shown(value)}")
            if number != 0:
                check_scale(name, number)
        if several:
            object.__setattr__(self, name, tuple(float(number) for number in numbers))

    @property
    def n_vectors(self) -> int:
        """L + 1, the target included."""
        return self.n_protected + 1

    @property
    def noise(self) -> FloatArray:
        """R of every vector; (L+1,)."""
        if self.noise_scale is None:
            raise InputError("noise_scale must be a number for this policy, got None")
        return per_vector(self.noise_scale, self.n_vectors)


@dataclass(frozen=True, slots=True, eq=False)
class Query:
    """One play: an action and the index of the vector to measure it with."""

    action: FloatArray  # (d,)
    index: int  # 0 the target, 1..L the protected


def per_vector(value: float | Sequence[float], count: int) -> FloatArray:
    """A number for every vector, from one number or one each; (count,)."""
    return np.broadcast_to(np.asarray(value, dtype=float), (count,)).copy()


def checked_query(problem: Problem, query: Query) -> Query:
    """The query as float arrays, or one sentence that says what is wrong with it."""
    return Query(*checked_parts(problem, query))


def checked_parts(problem: Problem, query: Query) -> tuple[FloatArray, int]:
    """The same, as action and index."""
    action = as_numbers("action", query.action)  # a copy: kernels know one kind of array
    if action.shape != (problem.dim,):
        raise InputError(f"action must have shape ({problem.dim},), got {action.shape}")
    length = math.hypot(*action.tolist())
    if not math.isfinite(length):
        raise InputError("action must be finite numbers, got NaN or infinity")
    if length > problem.action_bound * (1 + SLACK):
        raise InputError(
            f"action must have length at most {problem.action_bound:g}, got {length:.12g}"
        )
    check_integer("index", query.index, low=0, high=problem.n_protected)
    return action, int(query.index)


def checked_feedback(problem: Problem, value: object) -> float:
    """The feedback as a float, or one sentence that says why it is not one.

    The bound is no statement about the noise: one absurd number (a lost decimal point, a code for
    "missing") would drown every sum it enters for good.
    """
    if not is_finite(value):
        raise InputError(f"feedback must be a finite number, got {shown(value)}")
    number = float(value)  # type: ignore[arg-type]
    if abs(number) > problem.feedback_bound:
        raise InputError(f"feedback must lie within +-{problem.feedback_bound:g}, got {value!r}")
    return number
