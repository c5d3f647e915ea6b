"""A setting as numbers: rows of features, the prior variance of each, and the variance they leave out.

An effect is a difference of two rows: the setting's and the baseline's, in the same context. Features are
few (products of small bases), so a belief is about weights and never needs a table of all pairs of
candidates. The own effect of a setting, which no smooth curve explains, is no feature: it belongs to a
place (a setting in its context), and places are numbered as they are met.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from sidestep.core.arrays import FloatArray, IntArray
from sidestep.studies.factors import Factor, Value
from sidestep.studies.learning.bases import (
    CURVES,
    bend,
    curve,
    largest_products,
    mean_variances,
    smooth,
    smooth_words,
)
from sidestep.studies.learning.places import Place, Places

PASSING = -10  # numbers of places without results that are forgotten again, from here down
JOINT = 60  # products of the joint smooth part; what they leave out is the setting's own
PAIRS = 3  # so many other factors interact with a factor at full size; with more, the sum stays the same


class Kind(IntEnum):
    """What a feature is: its prior variance depends on it."""

    STRAIGHT = 0
    WORDS = 1
    BEND = 2
    INTERACTION = 3
    JOINT = 4
    FORMULA = 5
    CURVE = 6
    WORD_PAIR = 7


@dataclass(frozen=True, eq=False)
class Points:
    """Settings as rows.

    features   of the setting minus those of the baseline at the usual context; (n, P)
    baseline   the same of the baseline in the setting's context; (n, P), or (1, P) if all are the same
    place      number of the setting's place; (n,)
    home       number of the place of the baseline in the setting's context; (n,)
    missing    variance of the joint smooth part that the features leave out, at the place; (n,)
    missing_home   and at the baseline's place; (n,)
    """

    features: FloatArray
    baseline: FloatArray
    place: IntArray
    home: IntArray
    missing: FloatArray
    missing_home: FloatArray

    def __len__(self) -> int:
        return len(self.features)

    def only(self, rows: Any) -> "Points":
        """Some of the rows."""
        shared = len(self.baseline) == 1
        return Points(
            self.features[rows],
            self.baseline if shared else self.baseline[rows],
            self.place[rows],
            self.home[rows],
            self.missing[rows],
            self.missing_home[rows],
        )

    def plus(self, more: "Points") -> "Points":
        """These rows and others."""
        baseline = self.baseline
        if len(baseline) != 1 or not np.array_equal(baseline, more.baseline):
            whole = [np.broadcast_to(p.baseline, p.features.shape) for p in (self, more)]
            baseline = np.concatenate(whole)
        return Points(
            np.concatenate([self.features, more.features]),
            baseline,
            np.concatenate([self.place, more.place]),
            np.concatenate([self.home, more.home]),
            np.concatenate([self.missing, more.missing]),
            np.concatenate([self.missing_home, more.missing_home]),
        )


class Features:
    """The features of settings of some factors, in a context that nobody sets."""

    def __init__(
        self,
        factors: Sequence[Factor],
        context: Sequence[Factor] = (),
        formula: Any = None,
        places: Places | None = None,
    ) -> None:
        self.factors = tuple(factors)
        self.context = tuple(context)
        self._axes = (*self.factors, *self.context)
        self.places = Places(factors, context) if places is None else places
        self._formula = formula  # rows(settings, context) -> (n, d), from `model=`
        self._middle = [
            0.0
            if axis.is_category
            else (axis.coordinates(axis.low)[0] + axis.coordinates(axis.high)[0]) / 2  # type: ignore[arg-type]
            for axis in self._axes
        ]
        self._known: list[dict[Value, Any]] = [{} for _ in self._axes]
        self._products = largest_products(
            [mean_variances(len(a.grid) if a.is_category else None) for a in self._axes], JOINT
        )
        self.kinds, self.sizes = self._described()
        self._home_rows: dict[Place, tuple[FloatArray, float, int]] = {}
        self._met: dict[int, int] = {}  # rows of the places that results were measured at
        self._rows: Points | None = None
        self._origin = self._home(tuple(self.places.usual_context.values()))[0]
        # what beliefs work out of settings alone, by the settings
        self.reaches: WeakKeyDictionary[Points, dict[Any, Any]] = WeakKeyDictionary()
        self.usual = self.at(np.array([0]))  # the baseline in the usual context

    def _described(self) -> tuple[IntArray, FloatArray]:
        """Kind of every feature, and its prior variance but for the sizes that are averaged."""
        kinds: list[int] = []
        sizes: list[float] = []

        def add(kind: Kind, count: int, size: float) -> None:
            kinds.extend([kind] * count)
            sizes.extend([size] * count)

        widths = [len(axis.grid) if axis.is_category else 1 for axis in self._axes]
        for axis, width in zip(self._axes, widths, strict=True):
            add(
                Kind.WORDS if axis.is_category else Kind.STRAIGHT,
                width,
                1 / 3 if axis.is_category else 1,
            )
        for axis in self._axes:
            if not axis.is_category:
                add(Kind.BEND, 1, 1.0)
        for axis in self._axes:
            if not axis.is_category:
                add(Kind.CURVE, CURVES, 1.0)
        shrink = min(1.0, PAIRS / max(len(self._axes) - 1, 1))
        for i, j in self._pairs:
            share = 3.0 * shrink
            for axis in (self._axes[i], self._axes[j]):
                share *= 1 / 3 if axis.is_category else 1.0
            words = self._axes[i].is_category or self._axes[j].is_category
            kind = Kind.WORD_PAIR if words else Kind.INTERACTION
            add(kind, widths[i] * widths[j], share)
        add(Kind.JOINT, len(self._products), 1.0)
        if self._formula is not None:
            add(Kind.FORMULA, self._formula.count, 1.0)
        return np.array(kinds), np.array(sizes)

    @property
    def _pairs(self) -> list[tuple[int, int]]:
        """Pairs of axes that interact: every pair with a factor that is set."""
        return [(i, j) for i in range(len(self.factors)) for j in range(i + 1, len(self._axes))]

    @property
    def count(self) -> int:
        """Number of features."""
        return len(self.kinds)

    def straight(self, factor: str) -> IntArray:
        """The columns of the straight part of a factor, or of its words."""
        start = 0
        for axis in self._axes:
            width = len(axis.grid) if axis.is_category else 1
            if axis.name == factor:
                return np.arange(start, start + width)
            start += width
        raise KeyError(factor)

    def bend(self, factor: str) -> int:
        """The column of the bend of a factor of numbers."""
        numbers = [axis.name for axis in self._axes if not axis.is_category]
        return int(np.flatnonzero(self.kinds == Kind.BEND)[numbers.index(factor)])

    def place(
        self, setting: Mapping[str, Value], context: Mapping[str, Value] | None = None
    ) -> int:
        """The number of a setting in its context."""
        return self.places.of(setting, context)

    def points(
        self,
        settings: Sequence[Mapping[str, Value]],
        context: Mapping[str, Value] | None = None,
        *,
        lasting: bool = True,
    ) -> Points:
        """Rows of settings in one context; lasting: settings that are new get a number for good."""
        values = [self.places.values(each, context) for each in settings]
        return self._points(values, each=False, lasting=lasting)

    def rows(self, settings: Sequence[Mapping[str, Value]]) -> FloatArray:
        """Features of settings in the usual context, which are no places; (n, P)."""
        values = [self.places.values(each, None) for each in settings]
        return np.asarray(self._raw(values)[0] - self._origin)

    def _points(self, values: Sequence[Place], *, each: bool, lasting: bool = True) -> Points:
        raw, missing = self._raw(values)
        numbers = [
            self.places.number(place)
            if lasting
            else self.places.known_number(place, PASSING - count)
            for count, place in enumerate(values)
        ]
        homes = [self._home(place[len(self.factors) :]) for place in values]
        shown = homes if each and self.context else homes[:1]
        baseline = np.array([home[0] for home in shown]).reshape(-1, self.count) - self._origin
        return Points(
            raw - self._origin,
            baseline,
            np.array(numbers, dtype=int),
            np.array([home[2] for home in homes], dtype=int),
            missing,
            np.array([home[1] for home in homes]),
        )

    def at(self, numbers: IntArray) -> Points:
        """Rows of places that were met before; they are kept."""
        numbers = np.asarray(numbers)
        new = [number for number in dict.fromkeys(numbers.tolist()) if number not in self._met]
        if new or self._rows is None:
            known = self.places.known
            more = self._points([known[number] for number in new], each=True)
            for number in new:
                self._met[number] = len(self._met)
            self._rows = more if self._rows is None else self._rows.plus(more)
        return self._rows.only(np.array([self._met[n] for n in numbers.tolist()], dtype=int))

    def _home(self, context: Place) -> tuple[FloatArray, float, int]:
        """Features of the baseline in a context, what they leave out, and its place."""
        if context not in self._home_rows:
            values = (*self.places.usual.values(), *context)
            raw, missing = self._raw([values])
            self._home_rows[context] = raw[0], float(missing[0]), self.places.number(values)
        return self._home_rows[context]

    def coordinate(self, axis: int, value: Value) -> float:
        """A value on [-1, 1], or the number of a word."""
        known = self._known[axis]
        if value not in known:
            factor = self._axes[axis]
            known[value] = (
                factor.grid.index(value)
                if factor.is_category
                else factor.coordinates(value)[0] - self._middle[axis]
            )
        return known[value]  # type: ignore[no-any-return]

    def _raw(self, values: Sequence[Place]) -> tuple[FloatArray, FloatArray]:
        """Features that are no differences yet, and the variance that they leave out."""
        simple: list[FloatArray] = []
        curved: list[FloatArray] = []
        free: list[FloatArray] = []
        parts: list[FloatArray] = []
        for number, axis in enumerate(self._axes):
            at = np.array([self.coordinate(number, each[number]) for each in values])
            if axis.is_category:
                words = at.astype(int)
                simple.append(np.eye(len(axis.grid))[words])
                parts.append(smooth_words(len(axis.grid))[words])
            else:
                simple.append(at[:, None])
                curved.append(bend(at)[:, None])
                free.append(curve(at))
                parts.append(smooth(at))
        pairs = [
            simple[i][:, [a]] * simple[j] for i, j in self._pairs for a in range(simple[i].shape[1])
        ]
        joint = np.ones((len(values), len(self._products)))
        for number, part in enumerate(parts):
            joint *= part[:, self._products[:, number]]
        missing = np.maximum(1.0 - (joint**2).sum(axis=1), 0.0)
        blocks = [*simple, *curved, *free, *pairs, joint]
        if self._formula is not None:
            blocks.append(self._formula.values(values))
        return np.concatenate(blocks, axis=1), missing
