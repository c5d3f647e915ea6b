"""Places: settings in their contexts, numbered as met. No numpy: results are saved without it."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from sidestep.studies.factors import Factor, Setting, Value

Place: TypeAlias = tuple[Value, ...]


class Places:
    """The places of a study; number 0 is the baseline in the usual context."""

    def __init__(self, factors: Sequence[Factor], context: Sequence[Factor] = ()) -> None:
        self.usual: Setting = {f.name: f.baseline for f in factors}  # type: ignore[misc]
        self.usual_context: Setting = {f.name: f.baseline for f in context}  # type: ignore[misc]
        self._numbers: dict[Place, int] = {}
        self.number(self.values(self.usual, None))

    def values(self, setting: Mapping[str, Value], context: Mapping[str, Value] | None) -> Place:
        """A setting in its context as one tuple."""
        here = context or {}
        return (
            *(setting[name] for name in self.usual),
            *(here.get(name, usual) for name, usual in self.usual_context.items()),
        )

    def number(self, values: Place) -> int:
        """The number of a place; a new one if it was not met before."""
        return self._numbers.setdefault(values, len(self._numbers))

    def known_number(self, values: Place, otherwise: int) -> int:
        """The number of a place that was met before, or another number."""
        return self._numbers.get(values, otherwise)

    def of(self, setting: Mapping[str, Value], context: Mapping[str, Value] | None = None) -> int:
        """The number of a setting in its context."""
        return self.number(self.values(setting, context))

    @property
    def known(self) -> list[Place]:
        """All places in the order of their numbers."""
        return list(self._numbers)

    def to_json(self) -> list[list[Any]]:
        """The places as plain values."""
        return [list(values) for values in self._numbers]

    def take(self, data: Sequence[Sequence[Any]]) -> None:
        """The places that were stored, with their numbers."""
        self._numbers = {tuple(values): number for number, values in enumerate(data)}
