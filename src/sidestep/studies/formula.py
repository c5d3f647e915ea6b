"""Features of a setting and its context from a formula: "0 + dose + statin + dose:age" (extra `formula`).

A feature is a difference from the baseline row in the same context, divided by half its range over the
candidates, so that units cancel and effects stay changes from the baseline. Terms that depend only on the
context cancel too, since they are not an effect of the action.
"""

import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from sidestep.core.arrays import FloatArray
from sidestep.errors import InputError
from sidestep.studies.factors import Factor, Setting, Value
from sidestep.studies.grammar import named_contexts, tokens_of, with_real_powers
from sidestep.studies.plan import Plan
from sidestep.studies.values import standard

FUNCTIONS = {"log": np.log, "exp": np.exp, "sqrt": np.sqrt, "abs": np.abs}
MARKS = re.compile(r"\x1b\[[\d;]*m|[\u29da\u29db]")  # colours and brackets of the parser's words
DIGITS = 10  # decimals kept; a formula loses a few more digits than a division (values.py)
TINY = 1e-9  # a feature that varies by less than this share of the largest is constant

Context = Mapping[str, Value]


class Features:
    """The features of settings in a context, from a formula."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        tokens_of(
            str(plan.model), _names(plan)
        )  # formulas are evaluated, and anyone may have written them
        self._spec = _model_spec(plan)
        self._kept: Any = slice(None)
        self._half: Any = 1.0
        everywhere = np.concatenate([self.rows(_settings(plan), each) for each in _corners(plan)])
        half = (np.maximum(everywhere.max(axis=0), 0) - np.minimum(everywhere.min(axis=0), 0)) / 2
        self._kept = half > TINY * max(float(half.max()), 1e-300)
        self._half = half[self._kept]
        if not self._kept.any():
            raise InputError(f"a model formula must have features that move, got {plan.model!r}")
        kept = everywhere[:, self._kept] / self._half
        self.count = kept.shape[1]
        self.longest = standard(np.sqrt((kept**2).sum(axis=1).max()))

    def of(self, settings: Any, context: Context) -> FloatArray:
        """Features of several settings in one context; (K, d)."""
        rows = [settings.setting(number) for number in range(len(settings))]
        return self.rows(rows, context)

    def rows(self, settings: Sequence[Mapping[str, Value]], context: Context) -> FloatArray:
        """Features of a list of settings in one context; (K, d)."""
        raw = self._raw([self._plan.baseline, *settings], context)
        scaled = (raw[1:] - raw[0])[:, self._kept] / self._half
        return np.asarray(np.round(scaled, DIGITS) + 0.0)

    def _raw(self, settings: Iterable[Mapping[str, Value]], context: Context) -> FloatArray:
        rows = [{**setting, **context} for setting in settings]
        frame = _frame(self._plan, rows)
        with np.errstate(all="ignore"):  # what is not finite is refused below, in a sentence
            matrix = np.asarray(self._spec.get_model_matrix(frame, context=FUNCTIONS), dtype=float)
        undefined = np.flatnonzero(~np.isfinite(matrix).all(axis=1))
        if len(undefined):
            where = ", ".join(f"{name} {value}" for name, value in rows[undefined[0]].items())
            raise InputError(
                f"a model formula must be finite everywhere, got {self._plan.model!r}, which is not at "
                f"{where}"
            )
        return matrix


def _model_spec(plan: Plan) -> Any:
    """The parsed formula, with the categories of all possible settings."""
    try:
        formulaic = import_module("formulaic")
    except ImportError as error:
        raise InputError(
            "a model formula needs the extra 'formula' (pip install 'sidestep[formula]'), got "
            f"{plan.model!r}"
        ) from error
    settings = _settings(plan)
    frame = _frame(plan, ({**each, **here} for here in _corners(plan) for each in settings))
    written = with_real_powers(str(plan.model), _names(plan)) if plan.powers else str(plan.model)
    try:
        formula = formulaic.Formula(written)
        with np.errstate(all="ignore"):
            # rows that are undefined stay: they are refused by name
            found = formula.get_model_matrix(frame, context=FUNCTIONS, na_action="ignore")
            return found.model_spec
    except Exception as error:  # whatever its parser raises
        came = " ".join(MARKS.sub("", str(error)).split())
        raise InputError(f"model must be a formula, got {plan.model!r}: {came:.200}") from error


def _frame(plan: Plan, rows: Iterable[Mapping[str, Any]]) -> Any:
    """The rows as a data frame; words are categories, including words that do not occur in these rows."""
    pandas = import_module("pandas")  # formulaic brings it
    frame = pandas.DataFrame(list(rows))
    for factor in (*plan.factors, *plan.context):
        if factor.is_category:
            frame[factor.name] = pandas.Categorical(
                frame[factor.name], categories=list(factor.grid)
            )
        elif factor.is_yes_no:
            frame[factor.name] = frame[factor.name].astype(float)
    return frame


def _settings(plan: Plan) -> list[Setting]:
    """The candidates; in a box, its ends and its middle in every factor (grammar.py counts them)."""
    if not plan.candidates.is_box:
        return [plan.candidates.setting(number) for number in range(len(plan.candidates))]
    names = [factor.name for factor in plan.factors]
    return [
        dict(zip(names, values, strict=True))
        for values in itertools.product(
            *(
                (float(f.low or 0), f.nearest(sum(_ends(f)) / 2), float(f.high or 0))
                for f in plan.factors
            )
        )
    ]


def _ends(factor: Factor) -> tuple[float, float]:
    low, high = (factor.coordinates(float(end or 0))[0] for end in (factor.low, factor.high))
    return low, high


def _corners(plan: Plan) -> list[Setting]:
    """Contexts at the ends of their ranges; those that the formula does not name, at their baseline."""
    named = named_contexts(plan)
    choices = [
        factor.grid if factor.is_category else (float(factor.low or 0), float(factor.high or 0))
        for factor in named
    ]
    names = [factor.name for factor in named]
    return [
        {**plan.usual_context, **dict(zip(names, values, strict=True))}
        for values in itertools.product(*choices)
    ]


def _names(plan: Plan) -> list[str]:
    return [factor.name for factor in (*plan.factors, *plan.context)]
