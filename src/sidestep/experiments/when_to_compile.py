"""When a run is worth compiling.

Compiling the loop for one policy takes longer than a few thousand interpreted rounds. So a policy plays
its first rounds interpreted, and is compiled after TIER rounds in this process, or at once
if its compiled loop is in the cache. The decisions are the same either way; the last digits
of values may differ. Runs that belong together are counted together, so that all of them are played in
the same way.
"""

import hashlib
import sys
import warnings
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

from sidestep.core.jit import cache_folder, fingerprint
from sidestep.core.numba_backend import is_installed
from sidestep.errors import SlowRunWarning
from sidestep.policies.builtin import BuiltinPolicy

TIER = 3000  # rounds
# an interpreted round with an optimisation problem takes as long as so many other rounds
SOLVING = 20
WARNED_FROM = 100_000  # interpreted rounds above which there is a warning

_played: Counter[tuple[str, bool]] = Counter()


def are_many(policy: BuiltinPolicy, rounds: int, *, on_solid: bool) -> bool:
    """Whether this number of rounds (of all runs that belong together) is worth compiling."""
    weight = SOLVING if on_solid and policy.solves_on_ball else 1
    return is_installed() and weight * rounds > TIER


def is_worth_compiling(policy: BuiltinPolicy, rounds: int, *, on_solid: bool) -> bool:
    """Whether the next rounds of a policy should be compiled; counts these rounds."""
    if not is_installed():
        return False
    kind = shape_of(policy.knobs), on_solid
    _played[kind] += rounds
    return _played[kind] > TIER or _mark(policy.knobs, on_solid=on_solid).exists()


def note_interpreted(rounds: int) -> None:
    """Without a compiler: print once how to get one, and warn before a long run."""
    if is_installed():
        return
    _say_how_to_compile()
    if rounds > WARNED_FROM:
        warnings.warn(
            f"{rounds:,} rounds without a compiler take milliseconds each: "
            'pip install "sidestep[lab]" brings one',
            SlowRunWarning,
            stacklevel=3,
        )


@cache
def _say_how_to_compile() -> None:
    print(
        'sidestep: playing without a compiler; pip install "sidestep[lab]" brings the compiled loop',
        file=sys.stderr,
        flush=True,
    )


def mark_compiled(knobs: Any, *, on_solid: bool) -> None:
    """Note that the loop of a policy is in the cache."""
    mark = _mark(knobs, on_solid=on_solid)
    if not mark.exists():
        mark.parent.mkdir(parents=True, exist_ok=True)
        mark.touch()


def _mark(knobs: Any, *, on_solid: bool) -> Path:
    where = "solid" if on_solid else "arms"
    shape = hashlib.sha256(shape_of(knobs).encode()).hexdigest()[:8]
    name = f"{type(knobs).__name__}-{shape}-{where}-{fingerprint()}.compiled"
    return Path(cache_folder()) / name


def shape_of(knobs: Any) -> str:
    """The types of the knobs and their fields; numba compiles one loop for each."""
    name = type(knobs).__name__
    inside = ",".join(map(shape_of, knobs)) if isinstance(knobs, tuple) else ""
    return f"{name}({inside})" if inside else name
