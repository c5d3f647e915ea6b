"""Sources of the actions of a round: always the same arms, one of several menus, or new arms."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.random import Generator

from sidestep.core.actions import Actions, Arms, Solid
from sidestep.core.arrays import FloatArray, IntArray
from sidestep.core.validation import check_integer
from sidestep.errors import InputError


@dataclass(frozen=True, slots=True)
class FreshArms:
    """`count` new unit vectors every round, uniform on the sphere.

    count   K, how many
    dim     d, the length of an action

    >>> import sidestep as ss
    >>> ss.environments.FreshArms(100, 6).longest
    1.0
    """

    count: int  # K
    dim: int  # d

    def __post_init__(self) -> None:
        check_integer("count", self.count, low=1)
        check_integer("dim", self.dim, low=1)

    @property
    def longest(self) -> float:
        """Length of the longest action."""
        return 1.0


@dataclass(frozen=True, slots=True, eq=False)
class Menus:
    """One of several arm sets every round, drawn with the given weights.

    menus     the arm sets, as `Arms` or arrays
    weights   relative frequencies of the menus; None: all equal

    >>> import numpy as np, sidestep as ss
    >>> ss.environments.Menus([np.eye(2), [[0.6, 0.8]]], weights=[3, 1]).dim
    2
    """

    menus: Sequence[Arms | FloatArray]
    weights: Sequence[float] | None = None
    odds: FloatArray = field(init=False, repr=False)  # cumulative probabilities of the menus

    def __post_init__(self) -> None:
        menus = tuple(menu if isinstance(menu, Arms) else Arms(menu) for menu in self.menus)
        if not menus or len({menu.dim for menu in menus}) > 1:
            raise InputError(
                "menus must be one or more arm sets of the same dimension, got dimensions "
                f"{[menu.dim for menu in menus]}"
            )
        weights = np.array(self.weights if self.weights is not None else np.ones(len(menus)), float)
        if (
            weights.shape != (len(menus),)
            or not (weights >= 0).all()
            or not 0 < weights.sum() < np.inf
        ):
            raise InputError(
                f"weights must be {len(menus)} numbers, none negative and not all zero, "
                f"got {self.weights}"
            )
        object.__setattr__(self, "menus", menus)
        object.__setattr__(self, "odds", np.cumsum(weights) / weights.sum())

    @property
    def dim(self) -> int:
        """d, the length of an action."""
        return self.arm_sets[0].dim

    @property
    def longest(self) -> float:
        """Length of the longest action."""
        return max(menu.longest for menu in self.arm_sets)

    @property
    def arm_sets(self) -> tuple[Arms, ...]:
        """The menus, as arms."""
        return self.menus  # type: ignore[return-value]


ActionSource: TypeAlias = Solid | Arms | FreshArms | Menus

SOLID, FRESH, LISTED = 0, 1, 2


class Source(NamedTuple):
    """An action source as compiled code reads it: menus padded to the size of the largest."""

    kind: int
    columns: FloatArray  # (menus, d, K): arms innermost; FRESH: one menu for every round of a batch
    squared: FloatArray  # (menus, K)
    sizes: IntArray  # (menus,); FRESH: (1,)


def compiled_source(source: ActionSource) -> Source:
    """The source as compiled code reads it; fresh arms are filled in later."""
    menus = arm_sets(source)
    if isinstance(source, FreshArms):
        empty = np.empty((0, source.dim, source.count)), np.empty((0, source.count))
        return Source(FRESH, *empty, np.array([source.count]))
    sizes = np.array([len(menu) for menu in menus], dtype=np.int64)
    if isinstance(source, Arms):  # no copy: there may be many arms
        return Source(LISTED, source.columns[None], source.squared[None], sizes)
    columns = np.zeros((len(sizes), source.dim, max(sizes, default=0)))
    squared = np.zeros((len(sizes), max(sizes, default=0)))
    for number, menu in enumerate(menus):
        columns[number, :, : len(menu)] = menu.columns
        squared[number, : len(menu)] = menu.squared
    return Source(LISTED if menus else SOLID, columns, squared, sizes)


def arm_sets(source: ActionSource) -> tuple[Arms, ...]:
    """The arm sets that are known beforehand; none for solids and for fresh arms."""
    if isinstance(source, Arms):
        return (source,)
    return source.arm_sets if isinstance(source, Menus) else ()


def draw_actions(source: ActionSource, rng: Generator) -> Actions:
    """The actions of one round. Fixed actions take nothing from the generator."""
    if isinstance(source, FreshArms):
        return Arms(fresh_columns(source, rng, 1)[0][0].T)
    if isinstance(source, Menus):
        return source.arm_sets[int(pick(source.odds, rng.random(1))[0])]
    return source


def pick(odds: FloatArray, chance: FloatArray) -> IntArray:
    """The menu of every round, given uniforms in [0, 1) (n,); (n,)."""
    return np.minimum(np.searchsorted(odds, chance, side="right"), len(odds) - 1)


def fresh_columns(source: FreshArms, rng: Generator, rounds: int) -> tuple[FloatArray, FloatArray]:
    """New unit vectors, arms innermost, and their squared lengths; (rounds, d, K), (rounds, K)."""
    columns = rng.standard_normal((rounds, source.dim, source.count))
    columns /= np.sqrt(_squares(columns))[:, None, :]
    return columns, _squares(columns)


def _squares(columns: FloatArray) -> FloatArray:
    """Squared length of every arm, summed in order: the same in a batch of any size."""
    squares = np.zeros((columns.shape[0], columns.shape[2]))
    for j in range(columns.shape[1]):
        squares += columns[:, j] * columns[:, j]
    return squares
