"""The card of today's recommendation: its effects, whether it is enough, what is not settled."""

from collections.abc import Mapping, Sequence

from sidestep.studies.advice import (
    MOST_ROUNDS,
    Bend,
    Best,
    Contender,
    Effect,
    Leader,
    Narrowing,
    Settling,
    Trust,
    Unseen,
)
from sidestep.studies.cards.ask_card import NEWS, baseline_text, change_text
from sidestep.studies.cards.card import (
    BEYOND,
    WITHIN,
    Card,
    Cell,
    Command,
    Content,
    Gauge,
    Prose,
    Section,
    Table,
    Verdict,
)
from sidestep.studies.cards.tradeoff_card import trade_data, trade_lines
from sidestep.studies.cards.words import (
    command,
    counted,
    digits_of,
    digits_of_change,
    digits_of_loss,
    listed,
    named,
    number,
    percent,
    plain,
    quoted,
    sentence,
    set_text,
    signed,
    with_unit,
)
from sidestep.studies.expected_changes import ends_text
from sidestep.studies.outcomes import Outcome
from sidestep.studies.plan import CLEAN, Plan
from sidestep.studies.values import rounded_value

SURE = 0.995  # chance of being better from which it is not worth a line
DIFFERENT = 0.02  # chances that differ by less are told as one
FORESEEN = 5  # results of which something was expected, before their count is told
BENDS = {"flattens": "flattens above", "steepens": "grows faster above", "turns": "turns at"}
FITS = 0.5  # chance of being like earlier studies below which this one does not fit them
SUBJECTS = {"patient": "patients", "study": "studies"}
NAMED = 4  # largest number of contenders that are named
TRIED = 3  # whole visits at a setting that are a reason to stop
CLOSE = 0.95  # if the recommendation is best with this probability, rivals are not named


def best_card(plan: Plan, name: str, best: Best) -> Card:
    """If you stopped today: the action, its effects against the limits, and whether to go on."""
    if best.action is None:
        return _nothing_yet(plan, name, best)
    sections = [
        Section("", _leading(plan, best)),
        Section("", _side_effects(plan, best)),
        Section("", tuple(_settled(plan, name, best)), spaced=True),
        Section("", tuple(risk_texts(plan, best)), spaced=True),
        Section("", tuple(shape_texts(plan, best)), spaced=True),
    ]
    return Card(
        kind="best",
        title=f"If you stopped today: {_called(plan, best)}",
        aside=counted(best.results, "result"),
        sections=tuple(section for section in sections if section.content),
        data=_data(name, best),
    )


def _nothing_yet(plan: Plan, name: str, best: Best) -> Card:
    text = (
        "There is nothing to recommend: no results yet. A first recommendation needs about "
        f"{best.needed}."
    )
    ask = Command("study.ask()", command("ask", name))
    return Card(
        kind="best",
        title="If you stopped today",
        aside=counted(best.results, "result"),
        sections=(Section("", (Prose(text), ask)),),
        data=_data(name, best),
    )


def _data(name: str, best: Best) -> Mapping[str, object]:
    return {
        "study": name,
        "action": best.action,
        "candidate": best.candidate,
        "effects": {each: effect._asdict() for each, effect in best.effects.items()},
        "clean": None if best.clean is None else best.clean._asdict(),
        "within": best.within,
        "chance": best.chance,
        "probability": best.probability,
        "contenders": [contender._asdict() for contender in best.contenders],
        "loss": None if best.loss is None else best.loss._asdict(),
        "enough": best.enough,
        "rounds_left": best.rounds_left,
        "unsettled": [narrowing._asdict() for narrowing in best.unsettled],
        "settles": None if best.settles is None else best.settles._asdict(),
        "counts": best.counts,
        "results": best.results,
        "trades": [trade_data(each) for each in best.trades],
        "tried": best.tried,
        "needed": best.needed,
        "certainty": best.certainty,
        "better": best.better,
        "straight": best.straight,
        "leader": None if best.leader is None else _leader_data(best.leader),
        "unmeasured": best.unmeasured,
        "unfirm": best.unfirm,
        "bends": [bend._asdict() for bend in best.bends],
        "surprises": [surprise._asdict() for surprise in best.surprises],
        "trust": None if best.trust is None else best.trust._asdict(),
        "unexpected": [each._asdict() for each in best.unexpected],
        "inside": best.inside,
        "news": best.news,
        "unseen": [each._asdict() for each in best.unseen],
    }


def _leader_data(leader: Leader) -> dict[str, object]:
    effects = {name: effect._asdict() for name, effect in leader.effects.items()}
    return {**leader._asdict(), "effects": effects}


def _called(plan: Plan, best: Best) -> str:
    """The title: the recommended candidate, or that there is none."""
    if best.within is False:
        return "nothing is known to be within limits"
    return named(plan, best.action or plan.baseline)


def _leading(plan: Plan, best: Best) -> tuple[Prose, ...]:
    """What to do, and what it does to the goal."""
    said = standing_text(plan, best)
    lines = [] if said is None else [said]
    if best.action is not None and best.within is not False:
        whole = set_text(plan.factors, best.action)
        lines += [Prose(whole)] if whole != named(plan, best.action) else []
    if best.action == plan.baseline:
        return (*lines, Prose(baseline_text(plan)))
    text = effect_text(plan.target, best.effects[plan.target.name])
    if best.clean is not None and best.results >= best.needed:
        text += f" Of it, {towards_text(plan.target, best.clean)} is clean."
    return (*lines, Prose(text))


def standing_text(plan: Plan, best: Best) -> Prose | None:
    """Why it is not a recommendation yet: too few results, or nothing assured to be within limits."""
    if plan.aim != CLEAN:
        return staying_text(plan, best) if best.action == plan.baseline else better_text(best)
    few = best.action is not None and best.results < best.needed
    more = f"A first recommendation needs about {best.needed} results. " if few else ""
    if best.within is False and best.action is not None:
        lead = "Nothing is yet known to be within limits."
        leader = f"The leading contender is {set_text(plan.factors, best.action)}."
        if best.chance is not None:
            leader += f" It is {percent(best.chance)} likely to be within all limits."
        return Prose(f"{more}{leader}", lead="Not enough data yet." if few else lead)
    if few:
        return Prose(more.strip(), lead="Not enough data yet.")
    baseline = bool(plan.protected) and best.action == plan.baseline
    if best.within and baseline and len(best.contenders) > 1:
        rival = best.contenders[1]
        text = f"The leading contender is {named(plan, rival.action)}."
        return Prose(text, lead="Nothing but the baseline is yet known to be within limits.")
    return None


def staying_text(plan: Plan, best: Best) -> Prose | None:
    """Why nothing but the baseline is recommended."""
    words, lead = plan.words, f"No {plan.words.candidate} can be recommended yet."
    if best.unmeasured:
        text = (
            f"{sentence(listed(list(best.unmeasured)))} {_were(best.unmeasured)} never measured: "
        )
        text += f"nothing is recommended before every {words.outcome} was."
        return Prose(text, lead=lead)
    leader = best.leader
    if leader is None:
        return Prose(
            f"No {words.candidate} is more likely than not to be better than the baseline.",
            lead="Stay:",
        )
    where = named(plan, leader.action)
    text = f"The leading contender is {where}, {percent(leader.chance)} likely within all limits; "
    text += f"{percent(best.certainty)} are asked for."
    if best.unfirm:
        text = f"Too few results of {listed(list(best.unfirm))} vouch for it. {text}"
    return Prose(text, lead=lead)


def better_text(best: Best) -> Prose | None:
    """How likely the recommendation is better than what is done now, where that is not sure."""
    if best.better is None or best.better >= SURE:
        return None
    return Prose(f"{percent(best.better)} likely.", lead="Better than now:")


def shape_texts(plan: Plan, best: Best) -> list[Prose]:
    """What the shape of responses means for the limits, and what the results show of it."""
    found = []
    subject, chance = "it", best.chance
    if best.better is None:
        subject = named(plan, best.leader.action) if best.leader else ""
        chance = best.leader.chance if best.leader else None
    if best.straight is not None and chance is not None and _differ(best.straight, chance):
        text = (
            f"{subject} is {percent(best.straight)} likely within all limits if effects are straight, "
            f"{percent(chance)} if they bend as your results allow."
        )
        found.append(Prose(sentence(text)))
    found += [bend_text(plan, bend) for bend in best.bends]
    for surprise in best.surprises:
        outcome = plan.outcome(surprise.outcome)
        told = with_unit(number(surprise.value, digits_of(outcome)), outcome.unit)
        where = named(plan, surprise.action)
        text = f"{outcome.name} {told} at {where} fits nothing else; it hardly counts. Is it right?"
        found.append(Prose(text, lead="A surprise:"))
    if best.trust is not None:
        found.append(trust_text(plan, best.trust))
    for each in best.unexpected:
        ends = with_unit(ends_text((each.low, each.high)), plan.outcome(each.outcome).change_unit)
        text = f"{each.factor} on {each.outcome}: {ends}; the results say otherwise"
        found.append(Prose(f"{text} ({percent(each.chance)} likely).", lead="Expected of"))
    found += [unseen_text(plan, each) for each in best.unseen]
    if best.news:
        found.append(Prose(NEWS))
    inside, total = best.inside
    if total >= FORESEEN:
        text = f"Of {total} results, {inside} fell inside what was expected (19 in 20 should)."
        found.append(Prose(text))
    return found


def bend_text(plan: Plan, bend: Bend) -> Prose:
    """Potassium: the effect of lisinopril flattens above 20 mg/day; 98% likely."""
    factor = next(each for each in plan.factors if each.name == bend.factor)
    at = with_unit(plain(rounded_value(bend.value)), factor.unit)
    text = f"the effect of {bend.factor} {BENDS[bend.kind]} {at}; {percent(bend.chance)} likely."
    return Prose(text, lead=f"{sentence(bend.outcome)}:")


def trust_text(plan: Plan, trust: Trust) -> Prose:
    """How far the earlier studies are trusted now, and whether this one does not fit them."""
    subject = "patient" if plan.vocabulary == "clinic" else "study"
    earlier = counted(trust.studies, f"earlier {subject}", f"earlier {SUBJECTS[subject]}")
    text = f"like them {percent(trust.alike)}, a stranger {percent(1 - trust.alike)}."
    if trust.alike < FITS:
        fit = "it" if trust.studies == 1 else "them"
        text += f" This {subject} does not fit {fit}; its own results decide."
    return Prose(text, lead=f"Learned from {earlier}:")


def _differ(one: float, other: float) -> bool:
    return abs(one - other) >= DIFFERENT


def unseen_text(plan: Plan, unseen: Unseen) -> Prose:
    """What nobody can see, or has seen so far: raising one factor while lowering another."""
    parts = [
        f"{'raising' if change > 0 else 'lowering'} "
        + with_unit(f"{factor.name} by {plain(rounded_value(abs(change)))}", factor.unit)
        for factor in plan.factors
        if (change := unseen.change.get(factor.name))
    ]
    together = " while ".join(parts)
    if unseen.outcome is None:
        text = f"{together}: no two {plan.words.candidates} differ by that."
        return Prose(text, lead="Nobody can see what this does:")
    return Prose(
        f"{together}, on {unseen.outcome}: its results do not tell that apart.",
        lead="Nobody has seen yet what this does:",
    )


def _were(names: Sequence[str]) -> str:
    return "was" if len(names) == 1 else "were"


def _side_effects(plan: Plan, best: Best) -> tuple[Table, ...]:
    """Every protected outcome against its limits, with a picture; none at the baseline."""
    if best.action == plan.baseline:
        return ()
    rows: list[tuple[Cell, ...]] = []
    for outcome in plan.protected:
        effect = best.effects[outcome.name]
        change = change_text(outcome, effect[:3])
        if effect.verdict is None:
            rows.append((outcome.name, with_unit(change, outcome.change_unit)))
        else:
            picture = Gauge(*effect[:3], *outcome.limits)
            rows.append((outcome.name, change, Verdict(effect.verdict), picture))
    return (Table(tuple(rows)),) if rows else ()


def effect_text(outcome: Outcome, effect: Effect) -> str:
    """Systolic pressure falls by 16 mmHg (13 to 19); or changes by -3 (-11 to +6), its sign open."""
    name = sentence(outcome.name)
    if effect.low == effect.high == 0:
        return f"{name} stays as it is."
    digits = digits_of_change(outcome)
    if effect.low < 0 < effect.high:
        size, low, high = (signed(end, digits) for end in effect[:3])
        return f"{name} changes by {with_unit(size, outcome.change_unit)} ({low} to {high})."
    sign = -1 if effect.estimate < 0 else 1
    ends = sorted((sign * effect.low, sign * effect.high))
    verb = "falls" if sign < 0 else "rises"
    size = with_unit(number(abs(effect.estimate), digits), outcome.change_unit)
    low, high = (number(end, digits) for end in ends)
    return f"{name} {verb} by {size} ({low} to {high})."


def towards_text(outcome: Outcome, effect: Effect) -> str:
    """A change counted towards the goal: 16 (12 to 20)."""
    low, high = sorted((outcome.sign * effect.low, outcome.sign * effect.high))
    ends = (outcome.sign * effect.estimate, low, high)
    return "{} ({} to {})".format(*(number(end, digits_of_change(outcome)) for end in ends))


def _settled(plan: Plan, name: str, best: Best) -> list[Content]:
    """Whether it is enough for the goal, what is not settled, and whether it matters which is best."""
    content: list[Content] = []
    if best.unmeasured or (plan.aim == CLEAN and best.results < best.needed):
        return content
    if best.loss is not None:
        content.append(enough_text(plan, best))
    if (tried := tried_text(plan, best)) is not None:
        content.append(tried)
    if (limits := limits_text(plan, best)) is not None:
        content.append(limits)
    content += _open(plan, name, best)
    if best.probability is not None:
        content.append(contest_text(plan, best))
    return content


def _open(plan: Plan, name: str, best: Best) -> list[Content]:
    """What is not settled, and what would settle it."""
    content: list[Content] = []
    if best.unsettled:
        content.append(unsettled_text(plan, best, best.unsettled[0]))
    if best.unsettled or (plan.aim == CLEAN and best.within is False):
        which = best.unsettled[0].outcome if best.unsettled else None
        measure = f", measure={quoted(which)}" if which else ""
        content.append(
            Command(
                f'study.ask(purpose="confirm"{measure})',
                command("ask", name, "--confirm", which or "any"),
            )
        )
    if others := [narrowing.outcome for narrowing in best.unsettled[1:]]:
        content.append(Prose(f"{listed(others)}.", lead="Not settled either:"))
    if best.settles is not None and not (best.enough and best.within is not False):
        content += _settling(plan, name, best.settles)
    return content


def _settling(plan: Plan, name: str, settles: Settling) -> list[Content]:
    """The one result that would settle most, and how to ask for it."""
    content: list[Content] = [settling_text(plan, settles)]
    if settles.candidate is not None:
        number, outcome = settles.candidate, settles.outcome
        content.append(
            Command(
                f"study.ask(allowed=[{number}], measure_only={quoted(outcome)})",
                command("ask", name, "--candidate", number, "--measure-only", outcome),
            )
        )
    return content


def settling_text(plan: Plan, settles: Settling) -> Prose:
    """Sodium at lisinopril 40, amlodipine 7.5 mg/day: about 24% of what is open."""
    where = named(plan, settles.action)
    share = "less than 1%" if settles.share < 0.01 else f"about {percent(settles.share)}"
    text = f"{settles.outcome} at {where}: {share} of what is open."
    return Prose(text, lead="One result would settle most:")


def limits_text(plan: Plan, best: Best) -> Prose | None:
    """What is known of the protected outcomes together: all within, some beyond; or nothing yet."""
    names = [outcome.name for outcome in plan.protected]
    verdicts = {name: best.effects[name].verdict for name in names}
    if not names or best.within is None:
        return None
    if best.within and best.action == plan.baseline:
        return None  # at the baseline nothing changes
    if best.within:
        text = "19 times in 20" if best.chance is None else f"{percent(best.chance)} likely"
        return Prose(f"{text}.", lead=f"Every {plan.words.outcome} within limits:")
    if beyond := [name for name in names if verdicts[name] == BEYOND]:
        return Prose(f"{listed(beyond)}.", lead="Beyond limits:")
    if all(verdict == WITHIN for verdict in verdicts.values()):
        alone = f"Each {plan.words.outcome} alone is within limits 19 times in 20"
        return Prose(f"{alone}; together they are not yet.")
    return None


def enough_text(plan: Plan, best: Best) -> Prose:
    """What would be missed by stopping now, compared with what matters."""
    target, words = plan.target, plan.words
    digits = digits_of_loss(target)
    mean, high = (number(value, digits) for value in best.loss or (0.0, 0.0))
    which = f"the best {words.candidate}"
    which += " within limits" if plan.protected and plan.aim != CLEAN else ""
    than = "the baseline" if best.action == plan.baseline else "this one"
    better = with_unit(mean, target.change_unit)
    text = (
        f"{which} is expected to do {better} better than {than}, 19 times in 20 less than {high}."
    )
    if target.matters is None:
        return Prose(text[0].upper() + text[1:])
    matters = with_unit(number(target.matters, digits), target.change_unit)
    if best.enough:
        text += (
            f" No further question is expected to change that by {matters}, which you said matters."
        )
        return Prose(text, lead="Enough for the goal:")
    text += f" You said {number(target.matters, digits)} matters"
    if best.rounds_left is not None:
        text += f": {rounds_text(*best.rounds_left)} more {words.round}s"
    return Prose(f"{text}.", lead="Not yet for the goal:")


def tried_text(plan: Plan, best: Best) -> Prose | None:
    """That the recommended setting was measured often enough; None: it was not, or it is the baseline."""
    if best.action == plan.baseline or best.tried < TRIED:
        return None
    what = f"{plan.target.name} and every protected {plan.words.outcome} were"
    if not plan.protected:
        what = f"{plan.target.name} was"
    text = f"{what} measured {best.tried} times or more at this {plan.words.candidate}."
    return Prose(text, lead="A reason to stop:")


def risk_texts(plan: Plan, best: Best) -> list[Prose]:
    """What 50, 80 and 95% buy, where that is not all the same."""
    lines = trade_lines(plan, best.trades)
    return [prose for _, prose in lines] if len(lines) > 1 else []


def rounds_text(low: int, high: int) -> str:
    """Roughly 2 to 10; "more than" if the simulation reached its last round."""
    most = f"more than {MOST_ROUNDS}" if high >= MOST_ROUNDS else str(high)
    if low >= MOST_ROUNDS:
        return most
    return f"roughly {most}" if low == high else f"roughly {low} to {most}"


def unsettled_text(plan: Plan, best: Best, narrowing: Narrowing) -> Prose:
    """The effect of more results on an outcome that is not settled."""
    outcome = plan.outcome(narrowing.outcome)
    so_far = counted(best.counts.get(outcome.name, 0), "result")
    width = with_unit(number(narrowing.width, digits_of_change(outcome)), outcome.change_unit)
    here = "here"
    if best.better is None and best.leader is not None:
        here = f"at {named(plan, best.leader.action)}"
    text = f"{so_far} so far; {narrowing.results} {here} would narrow it to ±{width}."
    if narrowing.results is None:
        text = f"{so_far} so far; more {here} alone would narrow it to ±{width} at best."
    return Prose(text, lead=f"Not settled for {outcome.name}:")


def contest_text(plan: Plan, best: Best, *, shares: bool = True) -> Prose:
    """Whether it is settled which candidate is best, or hardly matters; `shares`: also name rivals."""
    words = plan.words
    if best.probability is not None and best.probability >= CLOSE:
        return Prose(f"It is {percent(best.probability)} likely to be the best {words.candidate}.")
    hardly = ", and hardly matters" if best.enough else ""
    likeliest = sorted(best.contenders, key=lambda contender: -contender.probability)
    known = _known_text(plan, best, likeliest)
    if not shares:
        return Prose(f"is open{hardly}.{known}", lead=f"Which {words.candidate} is best")
    told, rest = likeliest[:NAMED], sum(each.probability for each in likeliest[NAMED:])
    shared = "; ".join(_share_text(plan, contender) for contender in told)
    shared += f"; {percent(rest)} others that contend" if rest else ""
    return Prose(f"Which {words.candidate} is best is open{hardly}: {shared}.{known}")


def _known_text(plan: Plan, best: Best, likeliest: list[Contender]) -> str:
    """Why it is recommended where another candidate is likelier to be the best."""
    another = bool(likeliest) and likeliest[0].candidate != best.candidate
    if not (another and best.within and plan.protected):
        return ""
    return " What is recommended is the best that is known to be within limits."


def _share_text(plan: Plan, contender: Contender) -> str:
    return f"{percent(contender.probability)} {named(plan, contender.action)}"
