"""The candidates of a study: the rows of a table, the grid of steps and levels, or the box of ranges."""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sidestep.errors import InputError
from sidestep.studies.factors import Factor, Setting, Value
from sidestep.studies.frames import columns_of
from sidestep.studies.values import shown

MOST = 20_000  # candidates; without a compiler one ask over so many takes most of a second


@dataclass(frozen=True)
class Candidates:
    """The candidates of a study. They are numbered from 0, like the rows of their table."""

    factors: tuple[Factor, ...]
    kind: str  # "grid", "table" or "box"
    rows: tuple[tuple[Value, ...], ...] = ()  # none in a box

    @property
    def is_box(self) -> bool:
        """Whether any value of the ranges may be asked."""
        return self.kind == "box"

    def __len__(self) -> int:
        return len(self.rows)

    def setting(self, number: int) -> Setting:
        """The candidate of that number, a value for every factor."""
        return {
            factor.name: value
            for factor, value in zip(self.factors, self.rows[number], strict=True)
        }

    def find(self, setting: Mapping[str, Value]) -> int | None:
        """The number of a setting, or None if it is not a candidate."""
        row = tuple(setting[factor.name] for factor in self.factors)
        return self.rows.index(row) if row in self.rows else None

    def to_rows(self) -> list[list[Value]]:
        """The table as JSON."""
        return [list(row) for row in self.rows]


def candidates_of(factors: Sequence[Factor], given: Any) -> Candidates:
    """Candidates from any data frame or a dict of columns; None: the grid, or the box."""
    factors = tuple(factors)
    for factor in factors:
        if not isinstance(factor, Factor):
            raise InputError(f"factors must be of Factor, got {shown(factor)}")
    if given is not None:
        return Candidates(factors, "table", _rows(factors, columns_of(given, "candidates")))
    stepped = [factor for factor in factors if factor.grid]
    if not stepped:
        return Candidates(factors, "box")
    for factor in factors:
        if not factor.grid:
            raise InputError(
                f"either every factor must have a step or levels, or none, got {stepped[0].name!r} with "
                f"and {factor.name!r} without"
            )
    count = math.prod(len(factor.grid) for factor in factors)
    if count > MOST:
        raise InputError(
            f"the grid of steps and levels must have at most {MOST} candidates, got {count}: widen a "
            "step, leave all steps out, or hand in a table of candidates"
        )
    return Candidates(
        factors, "grid", tuple(itertools.product(*(factor.grid for factor in factors)))
    )


def _rows(
    factors: tuple[Factor, ...], columns: Mapping[str, list[Any]]
) -> tuple[tuple[Value, ...], ...]:
    for factor in factors:
        if factor.name not in columns:
            raise InputError(
                f"candidates must have a column for every factor, got none for {factor.name!r} among "
                f"{shown(list(columns))}"
            )
    count = len(columns[factors[0].name])
    if not 1 <= count <= MOST:
        raise InputError(f"candidates must be 1 to {MOST} rows, got {count}")
    rows = []
    for number in range(count):
        row = (
            factor.read(columns[factor.name][number], f"{factor.name} in row {number}")
            for factor in factors
        )
        rows.append(tuple(row))
    return tuple(rows)
