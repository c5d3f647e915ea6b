"""Where the actions of a round come from: the same arms always, one of several menus, or new ones."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.random import Generator

from sidestep.core.actions import Actions, Arms
from sidestep.core.arrays import FloatArray, IntArray
from sidestep.core.checks import check_integer
from sidestep.core.compiled import compiled
from sidestep.core.kernels import kernel
from sidestep.core.solids import Solid
from sidestep.errors import InputError


@dataclass(frozen=True, slots=True)
class FreshArms:
    """`count` new unit vectors every round, drawn evenly from the sphere.

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
    weights   how often each is on offer; None: all alike

    >>> import numpy as np, sidestep as ss
    >>> ss.environments.Menus([np.eye(2), [[0.6, 0.8]]], weights=[3, 1]).dim
    2
    """

    menus: Sequence[Arms | FloatArray]
    weights: Sequence[float] | None = None
    odds: FloatArray = field(init=False, repr=False)  # cumulative

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

SOLID, FRESH, LISTED, DECK = 0, 1, 2, 3


class Source(NamedTuple):
    """An action source as compiled code reads it: menus padded to the size of the largest."""

    kind: int
    columns: FloatArray  # (menus, d, K): arms innermost; FRESH: a buffer; DECK: one for every round
    squared: FloatArray  # (menus, K)
    sizes: IntArray  # (menus,)
    odds: FloatArray  # (menus,), cumulative


def compiled_source(source: ActionSource) -> Source:
    """The source as compiled code reads it."""
    menus = arm_sets(source)
    if isinstance(source, FreshArms):
        sizes = np.array([source.count])
    else:
        sizes = np.array([len(menu) for menu in menus], dtype=np.int64)
    if isinstance(source, Arms):  # no copy: a table may be large
        columns, squared = source.columns[None], source.squared[None]
    else:
        columns = np.zeros((len(sizes), source.dim, max(sizes, default=0)))
        squared = np.zeros((len(sizes), max(sizes, default=0)))
        for number, menu in enumerate(menus):
            columns[number, :, : len(menu)] = menu.columns
            squared[number, : len(menu)] = menu.squared
    kind = FRESH if isinstance(source, FreshArms) else LISTED if menus else SOLID
    odds = source.odds if isinstance(source, Menus) else np.ones(1)
    return Source(kind, columns, squared, sizes, odds)


def dealt(source: FreshArms, rng: Generator, rounds: int) -> Source:
    """The arms of so many rounds, drawn beforehand: runs that meet the same arms may share them."""
    columns = np.empty((rounds, source.dim, source.count))
    squared = np.empty((rounds, source.count))
    compiled(deal)(rng, columns, squared)
    return Source(DECK, columns, squared, np.array([source.count]), np.ones(1))


@kernel(nogil=True)
def deal(rng: Generator, columns: FloatArray, squared: FloatArray) -> None:
    """New unit vectors for every round, in place."""
    for t in range(columns.shape[0]):
        unit_columns(rng, columns[t], squared[t])


def arm_sets(source: ActionSource) -> tuple[Arms, ...]:
    """The arm sets that are known beforehand; none for solids and for fresh arms."""
    if isinstance(source, Arms):
        return (source,)
    return source.arm_sets if isinstance(source, Menus) else ()


def draw_actions(source: ActionSource, rng: Generator) -> Actions:
    """The actions of one round. Fixed actions take nothing from the generator."""
    if isinstance(source, FreshArms):
        columns, squared = np.empty((source.dim, source.count)), np.empty(source.count)
        unit_columns(rng, columns, squared)
        return Arms(columns.T)
    if isinstance(source, Menus):
        return source.arm_sets[draw_menu(rng, source.odds)]
    return source


@kernel
def draw_menu(rng: Generator, odds: FloatArray) -> int:
    """Which menu this round has."""
    chance = rng.random()
    for menu in range(odds.size):
        if chance < odds[menu]:
            return menu
    return odds.size - 1


@kernel
def unit_columns(rng: Generator, columns: FloatArray, squared: FloatArray) -> None:
    """New unit vectors, arms innermost, and their squared lengths, in place."""
    d, K = columns.shape
    for k in range(K):
        squared[k] = 0.0
    for j in range(d):
        row = columns[j]
        for k in range(K):
            row[k] = rng.standard_normal()
        for k in range(K):
            squared[k] += row[k] * row[k]
    for j in range(d):
        row = columns[j]
        for k in range(K):
            row[k] /= np.sqrt(squared[k])
    for k in range(K):
        squared[k] = 0.0
    for j in range(d):
        row = columns[j]
        for k in range(K):
            squared[k] += row[k] * row[k]
