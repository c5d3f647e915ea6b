"""The state of a policy, as a value and as text.

The numbers of a state are valid only for the policy that wrote them: with another rho the inverse belongs
to another matrix, with another problem the intervals belong to another noise. So the text contains a
`Fingerprint` of policy and problem. Reading a text compares the fingerprint and checks the numbers,
before anything is decided with them. Texts of versions 2 and 3 are read too. In both `core_set` has two
more meanings: 2 in its first entry says that the core set is not proved to be the best, and where the
rank is reviewed its other entries are directions, 1 for one of the assumed rank and 2 for one that is
still possible. Texts of version 2 have no fingerprint; they are read with a warning.
"""

import dataclasses
import json
import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from sidestep.core.arrays import FloatArray, IntArray
from sidestep.core.display import notebook_table
from sidestep.core.estimator import Evidence
from sidestep.core.problem import Problem
from sidestep.core.rank import Ranks, is_reviewed
from sidestep.core.validation import check_integer, shown
from sidestep.errors import InputError, UnsignedStateWarning

STATE_VERSION = 4
UNSIGNED = 2  # the last version without a fingerprint
CODED = 3  # the last version in which `core_set` also says what `ranks` and `exact` say now
KEYS = {UNSIGNED: {"version", "evidence", "core_set"}}
KEYS[CODED] = KEYS[UNSIGNED] | {"fingerprint"}
KEYS[STATE_VERSION] = KEYS[CODED] | {"ranks", "exact"}
WHOLE = ("counts", "streak", "core_set")  # integer fields
NOT_NEGATIVE = ("counts", "streak", "core_set", "weight", "misfit")
BELOW_ZERO = 1e-6  # how far below zero an eigenvalue may be by rounding, as a share of the largest


class Learned(NamedTuple):
    """What a policy has learned, as its kernels read it."""

    evidence: Evidence
    core_set: IntArray  # as in State
    ranks: Ranks  # as in State


class Fingerprint(NamedTuple):
    """Which policy wrote a state: its class, its problem, and the knobs its numbers depend on."""

    policy: str
    problem: dict[str, Any]
    learning: dict[str, Any]


@dataclass(frozen=True, slots=True, eq=False)
class State:
    """What a policy has learned.

    evidence      sums and estimates of every vector
    core_set      1 for the target and the vectors whose span is projected out, all 0 while CORE-SET
                  still looks for them; (L+1,)
    ranks         rank of the protected vectors: assumed, and still possible
    exact         False if the node limit stopped the search for the best core set
    fingerprint   whose state it is; None: nothing has been measured yet
    """

    evidence: Evidence
    core_set: IntArray
    ranks: Ranks
    exact: bool = True
    fingerprint: Fingerprint | None = None

    @property
    def learned(self) -> Learned:
        """The state as kernels read it."""
        return Learned(self.evidence, self.core_set, self.ranks)

    @property
    def round(self) -> int:
        """Number of measurements so far."""
        return int(self.evidence.counts.sum())

    def __repr__(self) -> str:
        owner = "" if self.fingerprint is None else f"{self.fingerprint.policy}, "
        return f"State({owner}round {self.round}, counts {self.evidence.counts.tolist()})"

    def _repr_html_(self) -> str:
        counts = self.evidence.counts
        rows = {f"measurements of outcome {i}": int(count) for i, count in enumerate(counts)}
        owner = {} if self.fingerprint is None else {"policy": self.fingerprint.policy}
        rounds = f"{self.round} round{'s' * (self.round != 1)}"
        return notebook_table(f"State after {rounds}", owner | rows)

    def to_json(self) -> str:
        """The state as text; `state_from_json` gives it back to the last bit."""
        evidence = {name: value.tolist() for name, value in self.evidence._asdict().items()}
        content = {
            "evidence": evidence,
            "core_set": self.core_set.tolist(),
            "ranks": self.ranks._asdict(),
            "exact": self.exact,
        }
        written = None if self.fingerprint is None else self.fingerprint._asdict()
        return json.dumps(
            {"version": STATE_VERSION, "fingerprint": written, **content}, allow_nan=False
        )


def facts_of(problem: Problem) -> dict[str, Any]:
    """The fields of a problem as JSON values."""
    return {name: as_json(getattr(problem, name)) for name in _defaults(problem)}


def as_json(value: object) -> Any:
    """A knob as JSON would return it."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, (tuple, list, np.ndarray)):
        return [as_json(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def read_state(
    own: Fingerprint, problem: Problem, first: State, text: str, *, reviews_rank: bool
) -> State:
    """State from the text that `to_json` wrote, checked against the policy that reads it.

    own: the fingerprint of that policy; first: its state before the first round; reviews_rank: whether
    it reviews a rank that is not known.
    """
    content, arrays = _parsed(text)
    expected = {**first.evidence._asdict(), "core_set": first.core_set}
    for name, like in expected.items():
        if arrays[name].shape != like.shape:
            raise InputError(
                f"state must have {name} of shape {like.shape} for this problem, "
                f"got {arrays[name].shape}"
            )
        _check_numbers(name, arrays[name])
    for name in ("gram", "inverse"):
        _check_definite(name, arrays[name])
    core_set = arrays.pop("core_set")
    written = _fingerprint(content.get("fingerprint"))
    if content["version"] <= CODED:
        found = _decoded(core_set, first, reviewed=reviews_rank and is_reviewed(problem))
    else:
        _check_members(core_set, 1)
        found = core_set, _ranks(content["ranks"], problem), _truth("exact", content["exact"])
    state = State(Evidence(**arrays), *found, written)
    if content["version"] == UNSIGNED:
        warnings.warn(
            "this state is of version 2, which does not say whose it is: make sure that problem and "
            "policy are those that wrote it",
            UnsignedStateWarning,
            stacklevel=4,
        )
        return dataclasses.replace(state, fingerprint=own)
    if written is not None:
        _check_same(own, written, problem)
    elif state.to_json() != dataclasses.replace(first, fingerprint=None).to_json():
        raise InputError("state must say which policy wrote it, got measurements without a policy")
    return state


def _parsed(text: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The content of a text, and its arrays by name; keys and version are checked."""
    try:
        content = json.loads(text)
        version = content["version"]
        is_known = isinstance(version, int) and version in KEYS
        arrays = {}
        if is_known:
            arrays = {name: _array(name, content["evidence"][name]) for name in Evidence._fields}
            arrays["core_set"] = _array("core_set", content["core_set"])
            content |= {key: content[key] for key in KEYS[version]}  # each must be there
    except (ValueError, TypeError, KeyError, OverflowError) as error:
        if isinstance(error, InputError):
            raise
        came = repr(text)[:60]
        raise InputError(f"state must be the text that to_json wrote, got {came}") from error
    if not is_known:
        raise InputError(f"state must have version {STATE_VERSION}, got {version!r}")
    unknown = [*(set(content) - KEYS[version]), *(set(content["evidence"]) - set(Evidence._fields))]
    if unknown:
        raise InputError(f"state must have no keys but its own, got {min(unknown)!r}")
    return content, arrays


def _array(name: str, value: object) -> FloatArray | IntArray:
    """One field as an array of the field's type."""
    array = np.array(value)
    if name in WHOLE and array.size and array.dtype.kind != "i":
        raise InputError(f"state must have whole numbers in {name}, got {shown(value)}")
    if array.dtype.kind not in "if":
        raise TypeError(name)
    return array.astype(np.int64 if name in WHOLE else float)


def _check_numbers(name: str, array: FloatArray | IntArray) -> None:
    """Raise if a field contains numbers that no measurement can produce."""
    if not np.isfinite(array).all():
        raise InputError(f"state must be finite numbers, got NaN or infinity in {name}")
    if name in NOT_NEGATIVE and array.min(initial=0) < 0:
        raise InputError(f"state must have no negative {name}, got {array.min():g}")


def _check_members(core_set: IntArray, largest: int) -> None:
    if core_set.max(initial=0) > largest:
        words = "0 or 1" if largest == 1 else "0, 1 or 2"
        raise InputError(f"state must have {words} in core_set, got {core_set.max()}")


def _decoded(core_set: IntArray, first: State, *, reviewed: bool) -> tuple[IntArray, Ranks, bool]:
    """Core set, ranks and `exact` from the `core_set` of versions 2 and 3."""
    _check_members(core_set, 2)
    if reviewed:
        assumed, possible = int((core_set[1:] == 1).sum()), int((core_set[1:] != 0).sum())
        most = first.ranks.possible
        ranks = Ranks(min(assumed, most), min(possible, most))
        return first.core_set.copy(), ranks, True
    return np.minimum(core_set, 1), first.ranks, bool(core_set[0] != 2)


def _ranks(value: object, problem: Problem) -> Ranks:
    """Ranks from parsed JSON."""
    if not isinstance(value, dict) or set(value) != set(Ranks._fields):
        raise InputError(f"state must have the ranks assumed and possible, got {shown(value)}")
    for rank in value.values():
        check_integer("ranks of a state", rank, low=0, high=problem.n_protected)
    return Ranks(**value)


def _truth(name: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise InputError(f"state must have true or false in {name}, got {shown(value)}")
    return value


def _check_definite(name: str, matrices: FloatArray) -> None:
    """Raise unless every matrix is symmetric and has no eigenvalue below zero, up to rounding."""
    for row, matrix in enumerate(matrices):
        values = np.linalg.eigvalsh((matrix + matrix.T) / 2)
        slack = BELOW_ZERO * np.abs(values).max()
        if values[0] < -slack or np.abs(matrix - matrix.T).max() > slack:
            raise InputError(
                f"state must have a positive definite {name} for every vector, "
                f"got {shown(matrix.tolist())} for vector {row}"
            )


def _fingerprint(value: object) -> Fingerprint | None:
    """A fingerprint from parsed JSON."""
    if value is None:
        return None
    if not isinstance(value, dict) or set(value) != set(Fingerprint._fields):
        raise InputError(f"state must say which policy wrote it, got {shown(value)}")
    return Fingerprint(**value)


def _check_same(own: Fingerprint, written: Fingerprint, problem: Problem) -> None:
    """Raise unless a state was written by a policy like this one, for a problem like this one."""
    if written.policy != own.policy:
        raise InputError(
            f"state must be that of a {own.policy}, got one of {shown(written.policy)}"
        )
    # where an older version did not have a field yet, it behaved as with today's default
    known = {**_defaults(problem), **_mapping("problem", written.problem)}
    _compare("state must be of a problem with", own.problem, known)
    _compare("state must be learned with", own.learning, _mapping("learning", written.learning))


def _compare(sentence: str, own: Mapping[str, Any], written: Mapping[str, Any]) -> None:
    for name in [*own, *(set(written) - set(own))]:
        if name not in own:
            raise InputError(f"{sentence} known fields alone, got {shown(name)} as well")
        if name not in written or written[name] != own[name]:
            came = shown(written[name]) if name in written else "nothing"
            raise InputError(f"{sentence} {name} = {shown(own[name])}, got {came}")


def _mapping(name: str, value: object) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise InputError(f"state must name its {name}, got {shown(value)}")
    return value


def _defaults(problem: Problem) -> dict[str, Any]:
    """The default of every argument of a problem (None where there is none)."""
    return {
        one.name: None if one.default is dataclasses.MISSING else as_json(one.default)
        for one in dataclasses.fields(problem)
        if one.init
    }
