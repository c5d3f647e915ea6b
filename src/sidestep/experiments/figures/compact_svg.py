"""An SVG of matplotlib's in two thirds of the bytes, and the same picture.

Matplotlib writes places to six digits, a name and a line for every element, and groups that say nothing.
"""

import re

TAG = re.compile(r"<[^>]*>")
METADATA = re.compile(r"<metadata>.*?</metadata>", re.DOTALL)
PLACES = re.compile(r' (?:d|x|y|width|height|viewBox|transform)="[^"]*"')
DECIMALS = re.compile(r"-?\d+\.\d{3,}")
GROUP = re.compile(r"<(/?)g(?: id='[^']*')?( [^>]*)?>")
NOTHING = re.compile(r"<g\b[^>]*/>")
CURVE = re.compile(r"[CQ]")
BETWEEN, LINES = re.compile(r">\s+<"), re.compile(r"\s*\n\s*")


def compact(svg: str) -> str:
    """The picture with places to a hundredth of a point, and without what nothing refers to."""
    svg = BETWEEN.sub("><", METADATA.sub("", svg))
    return _without_empty_groups(TAG.sub(_tag, LINES.sub(" ", svg)))


def _tag(found: re.Match[str]) -> str:
    """A tag with rounded places, and single quotes, which need no escape where a page holds it."""
    return PLACES.sub(_places, found[0]).replace("'", "").replace('"', "'")


def _places(found: re.Match[str]) -> str:
    places = DECIMALS.sub(_hundredths, found[0])
    lines_only = places.startswith(" d=") and not CURVE.search(places)
    return places.replace(" L ", " ") if lines_only else places  # what follows M is a line unasked


def _hundredths(number: re.Match[str]) -> str:
    return f"{float(number[0]):.2f}".rstrip("0").rstrip(".")


def _without_empty_groups(svg: str) -> str:
    """Groups that have nothing but a name are taken off their content."""
    kept: list[bool] = []

    def group(found: re.Match[str]) -> str:
        if found[1]:
            return found[0] if kept.pop() else ""
        kept.append(bool(found[2]))
        return f"<g{found[2]}>" if found[2] else ""

    return GROUP.sub(group, NOTHING.sub("", svg))
