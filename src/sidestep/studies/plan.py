"""The plan of a study, fixed at its creation: factors, outcomes, candidates, aim, policy and seed."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sidestep.errors import InputError
from sidestep.studies.candidates import Candidates, candidates_of
from sidestep.studies.cards.words import VOCABULARIES, Vocabulary
from sidestep.studies.expected_changes import (
    Expect,
    Monotone,
    checked_expect,
    checked_monotone,
    expect_config,
)
from sidestep.studies.factors import Factor, Setting, checked_steps
from sidestep.studies.outcomes import Outcome
from sidestep.studies.values import (
    checked_number,
    checked_positive,
    checked_text,
    checked_word,
    shown,
)

WITHIN, CLEAN = "within", "clean"
STRAIGHT, SMOOTH = "straight", "smooth"
DECIDE, EARN = "decide", "earn"
ASKING = ("shape", "questions", "panel", "largest_step", "caution", "expect", "monotone")
ALL = "all"  # of the outcomes, at every visit
NAMED = "directed-thompson"  # the policy where one is needed and none is named
# of the stored configuration; version 1 names a policy and knows no scale, never, pair of noises, power
# in a formula, shape, panel, largest step, caution, expectations or earlier studies
VERSION = 2
POWER = re.compile(r"\*\*|\^")


@dataclass(frozen=True)
class Plan:
    """The set-up of a study, checked. It never changes; what was learned is in the record."""

    factors: tuple[Factor, ...]
    target: Outcome
    protected: tuple[Outcome, ...]
    candidates: Candidates
    aim: str = WITHIN
    rank: int | None = None  # of the side effects, under the aim "clean"
    resolution: float | None = None  # smallest effect that matters there, in half-ranges
    policy: str | None = None  # that asks; None: the study asks what decides
    knobs: Mapping[str, Any] = field(default_factory=dict)
    shape: str | None = None  # of responses: "straight", "smooth"; None: whatever they are
    questions: str = DECIDE  # what they are chosen for
    panel: int | tuple[str, ...] = 1  # outcomes that are measured at a visit
    largest_step: Mapping[str, float] = field(default_factory=dict)  # since the last visit
    caution: float | None = None  # least chance that a question is within all limits
    expect: Expect = field(
        default_factory=dict
    )  # changes over whole ranges that would not surprise
    monotone: Monotone = field(default_factory=dict)  # "rises" or "falls", by outcome and factor
    earlier: Mapping[str, Any] = field(default_factory=dict)  # what earlier studies taught, frozen
    seed: int = 0
    vocabulary: str = "experiment"
    title: str = ""
    model: str | None = None
    powers: bool = True  # whether x**2 in the formula is a square; in studies of version 1 it is x
    context: tuple[Factor, ...] = ()

    def __post_init__(self) -> None:
        checked_word("aim", self.aim, (WITHIN, CLEAN))
        checked_word("vocabulary", self.vocabulary, VOCABULARIES)
        checked_text("title", self.title)
        if not isinstance(self.seed, int) or isinstance(self.seed, bool) or self.seed < 0:
            raise InputError(f"seed must be an integer >= 0, got {shown(self.seed)}")
        self._take_policy()
        self._check_policy()
        self._check_kinds()
        self._check_names()
        self._check_aim()
        self._check_questions()
        self._check_expectations()
        if self.policy is not None:
            self._check_features()

    def _take_policy(self) -> None:
        """The policy that asks, where the aim or its knobs need one and none is named."""
        if self.policy is not None:
            return
        knobs = dict(self.knobs) if isinstance(self.knobs, Mapping) else {}
        if self.aim == WITHIN and set(knobs) == {"caution"} and self.caution is None:
            object.__setattr__(self, "caution", knobs["caution"])
            object.__setattr__(self, "knobs", {})
        elif self.aim == CLEAN or knobs:
            object.__setattr__(self, "policy", NAMED)

    def _check_features(self) -> None:
        """A policy asks over the factors, or over the features of a formula for listed candidates."""
        if self.context and self.model is None:
            raise InputError(
                f"context needs a model formula that uses it, got {self.context[0].name!r} and none"
            )
        if self.model is not None and self.candidates.is_box:
            raise InputError(
                "a model formula needs candidates (steps, levels or a table), got the box of ranges"
            )

    def _check_questions(self) -> None:
        if self.shape is not None:
            checked_word("shape", self.shape, (STRAIGHT, SMOOTH))
        checked_word("questions", self.questions, (DECIDE, EARN))
        if self.aim == CLEAN and self.shape is not None:
            raise InputError('shape belongs to aim="within", got it with aim="clean"')
        if self.policy is not None and self.questions != DECIDE:
            raise InputError(
                f'questions="earn" is for studies without a named policy, got {self.policy!r}'
            )
        object.__setattr__(self, "panel", self._checked_panel())
        steps = checked_steps(self.factors, self.largest_step)
        object.__setattr__(self, "largest_step", dict(steps))
        if self.caution is None:
            return
        if self.policy is not None:
            raise InputError(
                "caution is for studies without a named policy, where it is a knob, got "
                f"{self.policy!r} and caution"
            )
        caution = checked_number("caution", self.caution)
        if not 0.5 <= caution < 1:
            raise InputError(f"caution must lie in 0.5 to below 1, got {caution:g}")
        object.__setattr__(self, "caution", caution)

    def _check_expectations(self) -> None:
        """What is known before the first result, where a belief can take it."""
        given = {"expect": self.expect, "monotone": self.monotone, "learn_from": self.earlier}
        for name, told in given.items():
            if told and self.policy is not None:
                raise InputError(
                    f"{name} is for studies without a named policy, got {self.policy!r}"
                )
            if told and self.model is not None:
                raise InputError(f"{name} is for studies without a model formula, got one")
        expect = checked_expect(self.expect, self.factors, self.outcomes)
        object.__setattr__(self, "expect", expect)
        monotone = checked_monotone(self.monotone, self.factors, self.outcomes, expect)
        object.__setattr__(self, "monotone", monotone)

    def _checked_panel(self) -> int | tuple[str, ...]:
        names = [outcome.name for outcome in self.outcomes]
        panel: Any = self.panel
        if panel == ALL:
            return tuple(names)
        if isinstance(panel, (list, tuple)) and panel and all(name in names for name in panel):
            return tuple(name for name in names if name in panel)
        if isinstance(panel, int) and not isinstance(panel, bool) and 1 <= panel <= len(names):
            return panel
        raise InputError(
            f'panel must be "all", a number from 1 to {len(names)}, or names of {", ".join(names)}, '
            f"got {shown(panel)}"
        )

    def _check_policy(self) -> None:
        if not isinstance(self.policy, str | None):
            raise InputError(f"policy must be the word of one, got {shown(self.policy)}")
        if not isinstance(self.knobs, Mapping):
            raise InputError(f"knobs must be a value for every knob, got {shown(self.knobs)}")
        if self.rank is not None and type(self.rank) is not int:
            raise InputError(f"rank must be a whole number, got {shown(self.rank)}")
        if self.resolution is not None:
            checked_positive("resolution", self.resolution)
        if self.model is not None and not isinstance(self.model, str):
            raise InputError(f"model must be a formula, got {shown(self.model)}")

    def _check_kinds(self) -> None:
        for what, things, kind in (
            ("factors", self.factors, Factor),
            ("context", self.context, Factor),
            ("protected", self.protected, Outcome),
            ("target", (self.target,), Outcome),
        ):
            for thing in things:
                if not isinstance(thing, kind):
                    raise InputError(f"{what} must be of {kind.__name__}, got {shown(thing)}")
        if not self.factors:
            raise InputError("factors must name at least one factor, got none")

    def _check_names(self) -> None:
        things: tuple[Factor | Outcome, ...] = (*self.factors, *self.context, *self.outcomes)
        names = [thing.name for thing in things]
        twice = [name for name in names if names.count(name) > 1]
        if twice:
            raise InputError(
                f"factors and outcomes must have different names, got {twice[0]!r} twice"
            )
        for outcome in self.protected:
            if outcome.goal is not None:
                raise InputError(
                    f"{outcome.name} is protected and must have a tolerance, got a goal: "
                    f"{outcome.goal!r}"
                )

    def _check_aim(self) -> None:
        if self.target.tolerance is not None:
            raise InputError(
                f"{self.target.name} is the target and must have no tolerance, got one"
            )
        if self.aim == WITHIN:
            for outcome in self.protected:
                if outcome.tolerance is None:
                    raise InputError(
                        f"{outcome.name} is protected and must have a tolerance, a change from the "
                        'baseline that does no harm, got none (or choose aim="clean")'
                    )
                if not any(outcome.limits) and outcome.penalty is None:
                    raise InputError(
                        f"{outcome.name} must have a penalty where its tolerance is 0, got none"
                    )
            if self.rank is not None or self.resolution is not None:
                raise InputError('rank and resolution belong to aim="clean", got aim="within"')
        elif self.protected and (self.rank is None) == (self.resolution is None):
            raise InputError(
                'aim="clean" must be told either the rank of the side effects or a resolution, got '
                + ("neither" if self.rank is None else "both")
            )

    @property
    def outcomes(self) -> tuple[Outcome, ...]:
        """The target, then every protected outcome."""
        return (self.target, *self.protected)

    @property
    def words(self) -> Vocabulary:
        """What things are called in this study."""
        return VOCABULARIES[self.vocabulary]

    @property
    def baseline(self) -> Setting:
        """The setting from which effects are counted."""
        return {factor.name: factor.baseline for factor in self.factors}  # type: ignore[misc]

    @property
    def usual_context(self) -> Setting:
        """The baseline of every context factor."""
        return {factor.name: factor.baseline for factor in self.context}  # type: ignore[misc]

    def index(self, name: object) -> int:
        """Index of the outcome of that name: 0 the target, 1.. the protected ones."""
        names = [outcome.name for outcome in self.outcomes]
        if name not in names:
            raise InputError(f"an outcome must be one of {', '.join(names)}, got {shown(name)}")
        return names.index(str(name))

    def outcome(self, name: object) -> Outcome:
        """The outcome of that name."""
        return self.outcomes[self.index(name)]

    def _is_new(self) -> bool:
        """Whether a program that knows only version 1 would misread the plan."""
        if self.policy is None or self._asking():
            return True
        if self.powers and POWER.search(self.model or ""):
            return True
        things: list[Factor | Outcome] = [*self.factors, *self.context, *self.outcomes]
        return any(thing.scale is not None for thing in things) or any(
            each.never is not None or isinstance(each.noise, tuple) for each in self.outcomes
        )

    def to_config(self) -> dict[str, Any]:
        """The plan as JSON, without the rows of its candidates, which are stored separately."""
        config: dict[str, Any] = {
            "version": VERSION if self._is_new() else 1,
            "factors": [_as_numbers(factor) for factor in self.factors],
            "target": self.target.to_config(),
            "protected": [outcome.to_config() for outcome in self.protected],
            "candidates": {"kind": self.candidates.kind, "count": len(self.candidates)},
            "aim": self.aim,
            **({} if self.policy is None else {"policy": self.policy, "knobs": dict(self.knobs)}),
            "seed": self.seed,
            "vocabulary": self.vocabulary,
            "title": self.title,
            "context": [_as_numbers(factor) for factor in self.context],
        }
        if yes_no := [each.name for each in (*self.factors, *self.context) if each.is_yes_no]:
            config["yes_no"] = yes_no
        told = {"rank": self.rank, "resolution": self.resolution, "model": self.model}
        config |= {name: value for name, value in told.items() if value is not None}
        return config | self._asking()

    def _asking(self) -> dict[str, Any]:
        """How the study asks and believes, where it is not as usual."""
        asking: dict[str, Any] = {}
        if self.shape is not None:
            asking["shape"] = self.shape
        if self.questions != DECIDE:
            asking["questions"] = self.questions
        if self.panel != 1:
            asking["panel"] = self.panel if isinstance(self.panel, int) else list(self.panel)
        if self.largest_step:
            asking["largest_step"] = dict(self.largest_step)
        if self.caution is not None:
            asking["caution"] = self.caution
        if self.expect:
            asking["expect"] = expect_config(self.expect, self.outcomes)
        if self.earlier:
            asking["earlier"] = dict(self.earlier)
        if self.monotone:
            asking["monotone"] = {name: dict(some) for name, some in self.monotone.items()}
        return asking


def plan_from_config(config: Mapping[str, Any], rows: Sequence[Sequence[Any]] | None) -> Plan:
    """The stored plan, with the rows of its candidates if they are a table."""
    if config.get("version") not in range(1, VERSION + 1):
        raise InputError(
            f"this study must have a set-up of version 1 to {VERSION}, got {config.get('version')!r}: "
            "a newer sidestep wrote it"
        )
    yes_no = config.get("yes_no", [])
    factors = tuple(_from_numbers(each, yes_no) for each in config["factors"])
    kept = ("aim", "rank", "resolution", "policy", "knobs", "seed", "vocabulary", "title", "model")
    return Plan(
        factors=factors,
        target=Outcome(**config["target"]),
        protected=tuple(Outcome(**each) for each in config["protected"]),
        candidates=_stored(factors, config["candidates"]["kind"], rows),
        context=tuple(_from_numbers(each, yes_no) for each in config["context"]),
        powers=config["version"] > 1 or not POWER.search(config.get("model") or ""),
        **{name: config[name] for name in (*kept, *ASKING, "earlier") if name in config},
    )


def _as_numbers(factor: Factor) -> dict[str, Any]:
    """A factor as JSON; a yes or no as 1 and 0, so that version 0.2 opens the study too."""
    config = factor.to_config()
    if factor.is_yes_no:
        config["levels"] = [float(level) for level in factor.grid]
        config["baseline"] = float(factor.baseline or 0)
    return config


def _from_numbers(config: Mapping[str, Any], yes_no: Sequence[str]) -> Factor:
    """The factor that `_as_numbers` wrote."""
    if config["name"] not in yes_no:
        return Factor(**config)
    return Factor(**{**config, "levels": [bool(level) for level in config["levels"]]})


def _stored(
    factors: tuple[Factor, ...], kind: str, rows: Sequence[Sequence[Any]] | None
) -> Candidates:
    if rows is None:
        return candidates_of(factors, None)
    return Candidates(factors, kind, tuple(tuple(row) for row in rows))
