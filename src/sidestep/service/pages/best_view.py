"""What a template shows of today's recommendation: words of its card, and pictures."""

from typing import Any, NamedTuple

from sidestep.service.pages import svg
from sidestep.service.pages.views import effect_rows
from sidestep.studies.advice import Best
from sidestep.studies.cards.ask_card import baseline_text
from sidestep.studies.cards.best_card import (
    contest_text,
    effect_text,
    enough_text,
    limits_text,
    settling_text,
    shape_texts,
    standing_text,
    towards_text,
    tried_text,
    unsettled_text,
)
from sidestep.studies.cards.card import WITHIN, Prose
from sidestep.studies.cards.markup import Markup
from sidestep.studies.cards.words import named, percent, plain
from sidestep.studies.plan import CLEAN, Plan

RIVALS = 4  # largest number of rivals that are named


class Point(NamedTuple):
    """One line about something that is settled or not."""

    tone: str
    lead: str
    text: str
    confirm: str = ""  # the outcome for which a confirmation can be asked
    shares: Markup = Markup("")
    legend: tuple[tuple[str, str, str], ...] = ()


def best_view(plan: Plan, best: Best) -> dict[str, Any]:
    """Everything that the card of a recommendation shows."""
    known, at_baseline = best.action is not None, best.action == plan.baseline
    return {
        "known": known,
        "results": best.results,
        "needed": best.needed,
        "few": is_few(plan, best),
        "headline": effect_text(plan.target, best.effects[plan.target.name]) if known else "",
        "nothing": best.within is False,
        "standing": standing_text(plan, best) if known else None,
        "clean": towards_text(plan.target, best.clean) if best.clean else "",
        "setting": [
            (factor.name, plain(best.action[factor.name]), factor.unit)
            for factor in plan.factors
            if best.action
        ],
        "baseline": baseline_text(plan) if at_baseline else "",
        "effects": effect_rows(plan, best.effects, goal=False) if known and not at_baseline else [],
        "points": points(plan, best) if known and not is_few(plan, best) else [],
        "shape": [_said(prose) for prose in shape_texts(plan, best)] if known else [],
        "settled": is_settled(best),
    }


def is_few(plan: Plan, best: Best) -> bool:
    """Whether there are too few results for the aim "clean"; elsewhere the recommendation says so."""
    return plan.aim == CLEAN and best.action is not None and best.results < best.needed


def is_settled(best: Best) -> bool:
    """Whether the study can stop: enough for the goal, and every protected outcome within limits."""
    verdicts = [effect.verdict for effect in best.effects.values() if effect.verdict is not None]
    if best.within is False:
        return False
    return bool(best.enough) and all(verdict == WITHIN for verdict in verdicts)


def points(plan: Plan, best: Best) -> list[Point]:
    """Is it settled? One sentence each."""
    found: list[Point] = []
    if best.unmeasured:
        return found
    if best.loss is not None:
        enough = enough_text(plan, best)
        found.append(Point("in" if best.enough else "open", *_said(enough)))
    if (tried := tried_text(plan, best)) is not None:
        found.append(Point("in", *_said(tried)))
    if (limits := limits_text(plan, best)) is not None:
        found.append(Point("in" if best.within else "open", *_said(limits)))
    found += [
        Point("open", *_said(unsettled_text(plan, best, each)), each.outcome)
        for each in best.unsettled
    ]
    if best.settles is not None and not is_settled(best):
        found.append(Point("plain", *_said(settling_text(plan, best.settles))))
    if best.probability is not None:
        found.append(_contest(plan, best))
    return found


def _contest(plan: Plan, best: Best) -> Point:
    said = contest_text(plan, best, shares=False)
    parts = _parts(plan, best)
    if len(parts) < 2:
        return Point("plain", *_said(said))
    legend = tuple((class_, name, percent(share)) for name, share, class_ in parts)
    return Point("plain", *_said(said), "", svg.shares(parts), legend)


def _parts(plan: Plan, best: Best) -> list[tuple[str, float, str]]:
    known = [each for each in best.contenders if each.candidate is not None][:RIVALS]
    parts = [
        (named(plan, each.action), each.probability, f"share-{place}")
        for place, each in enumerate(known)
    ]
    rest = 1 - sum(share for _, share, _ in parts)
    return [*parts, ("others", rest, "share-9")] if known and rest > 0.01 else parts


def _said(prose: Prose) -> tuple[str, str]:
    return prose.lead, prose.text
