"""A card as JSON and back, so that a client prints the same words."""

from collections.abc import Mapping
from typing import Any

from sidestep.errors import InputError
from sidestep.studies.cards.card import (
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


def card_to_json(card: Card) -> dict[str, Any]:
    """The words of a card; its numbers are `card.data`."""
    sections = [
        {
            "label": section.label,
            "spaced": section.spaced,
            "content": [_content_to_json(content) for content in section.content],
        }
        for section in card.sections
    ]
    return {"kind": card.kind, "title": card.title, "aside": card.aside, "sections": sections}


def card_from_json(words: Mapping[str, Any], data: Mapping[str, Any]) -> Card:
    """The card that was written as JSON."""
    sections = tuple(
        Section(
            each["label"],
            tuple(_content_from_json(content) for content in each["content"]),
            each["spaced"],
        )
        for each in words["sections"]
    )
    return Card(words["kind"], words["title"], words["aside"], sections, data)


def _content_to_json(content: Content) -> dict[str, Any]:
    if isinstance(content, Prose):
        return {"lead": content.lead, "text": content.text}
    if isinstance(content, Command):
        call, command, call_note, note = content
        return {"command": command, "note": note, "call": call, "call_note": call_note}
    rows = [[_cell_to_json(cell) for cell in row] for row in content.rows]
    return {"head": list(content.head), "rows": rows}


def _content_from_json(content: Mapping[str, Any]) -> Content:
    if "text" in content:
        return Prose(content["text"], content["lead"])
    if "command" in content:
        command, note = content["command"], content["note"]
        # A server of version 0.2 sends no calls.
        return Command(content.get("call", command), command, content.get("call_note", note), note)
    if "rows" in content:
        rows = tuple(tuple(_cell_from_json(cell) for cell in row) for row in content["rows"])
        return Table(rows, tuple(content["head"]))
    raise InputError(f"a card must hold text, a command or rows, got {sorted(content)}")


def _cell_to_json(cell: Cell) -> Any:
    if isinstance(cell, Gauge):
        return {"gauge": list(cell)}
    return {"verdict": cell.word} if isinstance(cell, Verdict) else cell


def _cell_from_json(cell: Any) -> Cell:
    if isinstance(cell, str):
        return cell
    return Gauge(*cell["gauge"]) if "gauge" in cell else Verdict(cell["verdict"])
