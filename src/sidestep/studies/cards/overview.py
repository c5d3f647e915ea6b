"""What a study is and where it stands, from the record alone; and what its entries say, in words."""

from typing import Any

from sidestep.studies.book import Book, Question
from sidestep.studies.cards.ask_card import tell_command
from sidestep.studies.cards.card import Card, Command, Prose, Section, Table
from sidestep.studies.cards.list_card import age_text
from sidestep.studies.cards.words import command, counted, listed, set_text, with_unit
from sidestep.studies.expected_changes import ends_text, told_of_changes
from sidestep.studies.plan import CLEAN, Plan
from sidestep.studies.storage.events import written
from sidestep.studies.storage.log import Head
from sidestep.studies.storage.store import CLOSED


def show_card(plan: Plan, head: Head, book: Book, closed: str = "") -> Card:
    """The goal, the candidates, the open questions, and how often each outcome was measured.

    closed: how the study was closed; empty if it is open.
    """
    words, open_questions = plan.words, list(book.open.values())
    sections = [
        Section("", (Prose(goal_text(plan)), Prose(_menu_text(plan)))),
        *(
            [Section("Known before", (Table(known),), spaced=True)]
            if (known := _known(plan))
            else []
        ),
        Section("Open", _open_lines(plan, open_questions, closed), spaced=True),
        Section("Measured", (Table(tuple(_counts(plan, book))),), spaced=True),
        Section("Next", (_next(head, open_questions),), spaced=True),
    ]
    rounds = f"{words.round} {book.rounds}" if book.rounds else f"no {words.round} yet"
    return Card(
        kind="show",
        title=plan.title or head.name,
        aside=f"{counted(book.n_results, 'result')}, {rounds}",
        sections=tuple(sections),
        data=standing(head, book) | {"config": head.config},
    )


def standing(head: Head, book: Book) -> dict[str, Any]:
    """Where a study stands, for a program; without its set-up."""
    return {
        "study": head.name,
        "status": head.status,
        "results": book.n_results,
        "rounds": book.rounds,
        "counts": dict(book.counts),
        "open": [question.to_json() for question in book.open.values()],
        "entries": head.seq,
        "hash": head.hash,
        "updated": written(head.updated),
    }


def goal_text(plan: Plan) -> str:
    """Lower systolic pressure. Leave potassium and sodium alone."""
    target = plan.target
    text = f"{'Lower' if target.goal == 'lower' else 'Raise'} {target.name}."
    if plan.protected:
        text += f" Leave {listed([outcome.name for outcome in plan.protected])} alone"
        text += "." if plan.aim == CLEAN else ", within limits."
    return text


def _menu_text(plan: Plan) -> str:
    if plan.candidates.is_box:
        return "Any values of the ranges are allowed."
    allowed = f"{len(plan.candidates)} {plan.words.candidates} are allowed."
    return " ".join(filter(None, (allowed, apart_text(plan))))


def apart_text(plan: Plan) -> str:
    """That the baseline is no candidate, as where it is off the steps of a factor; else empty."""
    if plan.candidates.is_box or plan.candidates.find(plan.baseline) is not None:
        return ""
    now = set_text(plan.factors, plan.baseline)
    return f"The baseline, {now}, is not one of them: it is neither asked nor recommended."


def _known(plan: Plan) -> tuple[tuple[str, ...], ...]:
    """What was expected, and whose results teach the study."""
    rows = [
        (f"{factor} on {name}", with_unit(ends_text(ends), plan.outcome(name).change_unit))
        for name, some in told_of_changes(plan.expect, plan.monotone).items()
        for factor, ends in some.items()
    ]
    rows += [
        (each["name"], counted(each["results"], "result"))
        for each in plan.earlier.get("studies", ())
    ]
    return tuple(rows)


def _open_lines(plan: Plan, questions: list[Question], closed: str) -> tuple[Prose | Table, ...]:
    if closed:
        return (Prose(closed),)
    if not questions:
        return (Prose("No answer is awaited."),)
    rows = tuple(
        (
            f"question {question.id}",
            f"{plan.words.round} {question.body['round']}",
            ", ".join(question.waiting),
            f"asked {age_text(question.at)} by {question.actor}",
        )
        for question in questions
    )
    return (Table(rows),)


def _counts(plan: Plan, book: Book) -> list[tuple[str, ...]]:
    most = max([*book.counts.values(), 1])
    rows: list[tuple[str, ...]] = []
    for outcome in plan.outcomes:
        count = book.counts[outcome.name]
        rows.append((outcome.name, str(count), "•" * (count if most <= 40 else count * 40 // most)))
    return rows


def _next(head: Head, questions: list[Question]) -> Command:
    if head.status == CLOSED:
        return Command("study.history()", command("history", head.name))
    if questions:
        return tell_command(head.name, questions[0])
    return Command("study.ask()", command("ask", head.name))
