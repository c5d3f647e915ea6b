"""The legend of several pictures, once and as part of the page: colour, line, marker and name."""

from collections.abc import Mapping

import numpy as np
from matplotlib.markers import MarkerStyle

from sidestep.experiments.page.page import text
from sidestep.experiments.pictures.sheets import Style

WIDE, TALL, SIZE = 40, 12, 7.0  # of a key, and of its marker


def legend(styles: Mapping[str, Style], names: Mapping[str, str]) -> str:
    """One key for every policy that has a name here."""
    keys = [
        f'<span class="key">{key(style)}{text(names[entry])}</span>'
        for entry, style in styles.items()
        if entry in names
    ]
    return f'<p class="legend">{" ".join(keys)}</p>\n' if keys else ""


def key(style: Style) -> str:
    """How a policy is drawn, as a small picture."""
    dashes = " ".join(f"{1.3 * length:g}" for length in style.dashes)
    dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
    middle = TALL / 2
    return (
        f'<svg width="{WIDE}" height="{TALL}" viewBox="0 0 {WIDE} {TALL}" aria-hidden="true">'
        f'<path d="M1 {middle:g}H{WIDE - 1}" stroke="{style.colour}" stroke-width="1.6"{dashed}/>'
        f'<path d="{_marker(style.marker)}" fill="{style.colour}"/></svg>'
    )


def _marker(word: str) -> str:
    """The outline of a marker of matplotlib's, in the middle of a key."""
    marker = MarkerStyle(word)
    outline = marker.get_path().transformed(marker.get_transform())
    polygons = [np.asarray(polygon, dtype=float) for polygon in outline.to_polygons()]
    corners = [
        " ".join(f"{WIDE / 2 + SIZE * x:.1f},{TALL / 2 - SIZE * y:.1f}" for x, y in polygon)
        for polygon in polygons
    ]
    return "".join(f"M{points}Z" for points in corners)
