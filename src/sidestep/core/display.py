"""How objects are displayed: short at a prompt, as a small table in a notebook.

These texts are never parsed: states and records are stored as JSON.
"""

import dataclasses
import html
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

DIGITS = 4
NUMBERS_SHOWN = 8  # numbers of an array that are shown
STYLE = "text-align:left;vertical-align:top;padding:1px 12px 1px 0"


def non_defaults(thing: Any) -> dict[str, Any]:
    """The fields of a dataclass that have no default or differ from it."""
    return {
        field.name: value
        for field in dataclasses.fields(thing)
        if field.init and not _is(value := getattr(thing, field.name), field.default)
    }


def _is(value: Any, default: Any) -> bool:
    """Whether a value equals its default; the default True does not equal the number 1."""
    return type(value) is type(default) and value == default


def short(thing: Any) -> str:
    """A dataclass as the call that builds it, without defaults."""
    inside = ", ".join(f"{name}={value!r}" for name, value in non_defaults(thing).items())
    return f"{type(thing).__name__}({inside})"


def brief(value: Any) -> str:
    """A value in few digits: 0.1234, [1 0 0 ...], 0.31 (0.12 to 0.5)."""
    if hasattr(value, "low") and hasattr(value, "estimate"):
        return f"{brief(value.estimate)} ({brief(value.low)} to {brief(value.high)})"
    if isinstance(value, (float, np.floating)):
        return f"{value:.{DIGITS}g}"
    if isinstance(value, np.ndarray):
        more = " ..." if value.size > NUMBERS_SHOWN else ""
        return f"[{' '.join(brief(part) for part in value.ravel()[:NUMBERS_SHOWN].tolist())}{more}]"
    return str(value)


def notebook_table(title: str, rows: Mapping[str, Any], more: str = "") -> str:
    """A heading and a table of two columns as HTML; `more` is HTML that follows it."""
    lines = "".join(
        f'<tr><th style="{STYLE}">{html.escape(name)}</th>'
        f'<td style="{STYLE}">{html.escape(brief(value))}</td></tr>'
        for name, value in rows.items()
    )
    return f"<div><b>{html.escape(title)}</b><table>{lines}</table>{more}</div>"


def sparkline(values: Sequence[float]) -> str:
    """A small SVG curve of the values; the vertical axis includes zero."""
    wide, tall = 240, 48
    low, high = min(0.0, *values), max(0.0, *values)
    across = wide / max(len(values) - 1, 1)
    up = tall / ((high - low) or 1.0)
    points = " ".join(f"{k * across:.1f},{tall - (y - low) * up:.1f}" for k, y in enumerate(values))
    return (
        f'<svg width="{wide}" height="{tall + 2}" viewBox="0 -1 {wide} {tall + 2}" aria-hidden="true">'
        f'<polyline points="{points}" fill="none" stroke="#0072B2" stroke-width="1.5"/></svg>'
    )
