"""Pictures as SVG with attributes and classes only, so that they work in print, mail and dark mode.

Lengths are percentages of the available width, so that a picture fills its place and its strokes are
not stretched.
"""

import itertools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from sidestep.studies.advice import Effect, Response, Trade
from sidestep.studies.cards.card import BEYOND, OPEN, WITHIN
from sidestep.studies.cards.markup import Markup, joined, tag
from sidestep.studies.cards.words import counted, digits_of_change, plain, signed
from sidestep.studies.factors import Factor
from sidestep.studies.outcomes import Outcome

LEAST = 0.5  # chance of staying within limits from which a trade is shown
WIDEST = 3.0  # a gauge extends to at most this multiple of the limit on either side
TONES = {WITHIN: "in", OPEN: "open", BEYOND: "out", None: "plain"}


class Ends(NamedTuple):
    """What a picture shows, from its low end to its high end."""

    low: float
    high: float

    def at(self, value: float) -> float:
        """Position of a value, in percent; a value beyond an end is at that end."""
        share = (value - self.low) / (self.high - self.low)
        return round(100 * min(max(share, 0.0), 1.0), 2)


def mark(verdict: str | None) -> Markup:
    """A disc, a half disc or a triangle: a verdict by its shape."""
    shapes = {
        WITHIN: tag("circle", cx=6, cy=6, r=5),
        OPEN: joined(
            tag("circle", cx=6, cy=6, r=4.25, fill="none", stroke="currentColor", stroke_width=1.5),
            tag("path", d="M6 1.75a4.25 4.25 0 0 1 0 8.5z"),
        ),
        BEYOND: tag("path", d="M6 .8 11.6 11H.4z"),
    }
    if verdict is None:
        return Markup("")
    attributes: dict[str, Any] = {"viewBox": "0 0 12 12", "width": 12, "height": 12}
    class_ = f"mark {TONES[verdict]}"
    return tag("svg", shapes[verdict], class_=class_, aria_hidden="true", **attributes)


def gauge(outcome: Outcome, effect: Effect, height: int = 22) -> Markup:
    """The interval of an effect as a line over the outcome's limits, which are shaded."""
    sides = [abs(limit) for limit in outcome.limits if limit]
    if not sides:
        return Markup("")
    limit = max(sides)
    far = max(abs(effect.low), abs(effect.high), abs(effect.estimate))
    reach = min(max(2.08 * limit, 1.08 * far), WIDEST * limit)
    ends, low, high = Ends(-reach, reach), *outcome.limits
    left, right = (
        ends.at(-reach if low is None else low),
        ends.at(reach if high is None else high),
    )
    parts = [
        tag(
            "rect", class_="band", x=f"{left}%", width=f"{right - left:.2f}%", y="8%", height="84%"
        ),
        tag("line", class_="zero", x1="50%", x2="50%", y1="8%", y2="92%"),
        _level("range", ends.at(effect.low), ends.at(effect.high)),
        *_cuts(effect, reach),
        tag("circle", class_="dot", cx=f"{ends.at(effect.estimate)}%", cy="50%", r=height / 5),
    ]
    tone = TONES[effect.verdict]
    return tag(
        "svg", *parts, class_=f"gauge {tone}", width="100%", height=height, aria_hidden="true"
    )


def _cuts(effect: Effect, reach: float) -> list[Markup]:
    """An arrow where an interval extends beyond the picture."""
    cuts = []
    if effect.low < -reach:
        cuts.append(tag("svg", tag("path", d="M5 -4 1 0 5 4"), x="0%", y="50%", class_="cut"))
    if effect.high > reach:
        cuts.append(tag("svg", tag("path", d="M-5 -4-1 0-5 4"), x="100%", y="50%", class_="cut"))
    return cuts


def bar(share: float, most: float) -> Markup:
    """A share as the length of a bar, the largest nearly full."""
    wide = f"{94 * share / most if most > 0 else 0:.1f}%"
    rect = tag("rect", width=wide, height=9, rx=4.5)
    return tag("svg", rect, class_="bar", width="100%", height=9, aria_hidden="true")


def shares(parts: Sequence[tuple[str, float, str]]) -> Markup:
    """Probabilities (name, share, class) in one bar, with a text for screen readers."""
    spoken = ", ".join(f"{name} {100 * share:.0f} percent" for name, share, _ in parts)
    rects, begin = [], 0.0
    for _, share, class_ in parts:
        wide = max(100 * share - 0.6, 0.2)
        x, width = f"{begin:.2f}%", f"{wide:.2f}%"
        rects.append(tag("rect", class_=class_, x=x, width=width, height=12, rx=2.5))
        begin += 100 * share
    label = f"Probability of being the best: {spoken}"
    return tag(
        "svg", *rects, class_="shares", width="100%", height=12, role="img", aria_label=label
    )


def lane(places: Sequence[tuple[float, str]], spoken: str, waiting: bool = False) -> Markup:  # noqa: FBT001, FBT002
    """A dot for every round in which an outcome was measured, on a line of time (shares of it)."""
    dots = [
        tag("circle", tag("title", title), class_="told", cx=f"{100 * share:.2f}%", cy="50%", r=4.5)
        for share, title in places
    ]
    if waiting:
        dots.append(
            tag("circle", tag("title", "asked now"), class_="asked", cx="100%", cy="50%", r=6)
        )
    line = tag("line", x1="0", x2="100%", y1="50%", y2="50%")
    return tag(
        "svg", line, *dots, class_="lane", width="100%", height=18, role="img", aria_label=spoken
    )


def plot(outcome: Outcome, told: Sequence[tuple[int, Effect]], height: int) -> Markup:
    """The estimate of an effect after every result: a line in its band, over the limits."""
    ends = _plotted(outcome, told)
    last = told[-1][0] or 1
    steps = [(100 * count / last, effect) for count, effect in told]
    curve = _stretched(
        tag("path", class_="area", d=_area(steps, ends)),
        tag("path", class_="line", d=_line(steps, ends)),
    )
    end = tag("circle", class_="end", cx="100%", cy=f"{_down(ends, told[-1][1].estimate)}%", r=4)
    parts = [*_strip(outcome, ends), *_ticks(outcome, ends), curve, end]
    return tag("svg", *parts, class_="plot", width="100%", height=height, aria_hidden="true")


def response(
    outcome: Outcome, factor: Factor, along: Response, at: float, height: int = 150
) -> Markup:
    """An outcome along a factor: a line in its band, over the limits; where it was measured, as dots.

    at   where it bends
    """
    far = max(max(abs(each.low), abs(each.high)) for each in along.effects)
    ends = _reached(outcome, far)
    across = [_across(factor, value) for value in along.values]
    told = list(zip(across, along.effects, strict=True))
    up = [f"{x} {_down(ends, each.high)}" for x, each in told]
    down = [f"{x} {_down(ends, each.low)}" for x, each in told]
    line = [f"{x} {_down(ends, each.estimate)}" for x, each in told]
    most = max(along.measured.values(), default=1)
    dots = [
        tag(
            "circle",
            tag("title", f"{plain(value)}: {counted(count, 'result')}"),
            class_="told",
            cx=f"{_across(factor, value)}%",
            cy="100%",
            r=f"{2.5 + 3 * math.sqrt(count / most):.1f}",
        )
        for value, count in along.measured.items()
    ]
    now, bent = f"{_across(factor, float(factor.baseline or 0))}%", f"{_across(factor, at)}%"
    parts = [
        *_strip(outcome, ends),
        *_ticks(outcome, ends),
        tag("line", class_="axis", x1=now, x2=now, y2="100%"),
        tag("line", class_="bent", x1=bent, x2=bent, y2="100%"),
        _stretched(
            tag("path", class_="area", d="M" + "L".join([*up, *reversed(down)]) + "Z"),
            tag("path", class_="line", d="M" + "L".join(line)),
        ),
        *dots,
    ]
    return tag(
        "svg", *parts, class_="plot response", width="100%", height=height, aria_hidden="true"
    )


def _across(factor: Factor, value: float) -> float:
    """The place of a value in a factor's range, in percent, on its scale."""
    low, high, here = (
        factor.coordinates(float(each or 0))[0] for each in (factor.low, factor.high, value)
    )
    return Ends(low, high).at(here)


def trade(
    outcome: Outcome,
    trades: Sequence[Trade],
    chosen: Trade | None,
    marked: Sequence[Trade],
    certainty: float,
    height: int = 208,
) -> Markup:
    """The largest effect at every chance of staying within limits; what is certain enough is shaded.

    The effect is drawn upwards towards the goal. No trade is chosen where one should stay.
    """
    sides = Ends(LEAST, 1.0)
    ends = Ends(0.0, 1.12 * max(outcome.sign * each.effect.estimate for each in trades))
    points = [(sides.at(each.chance), _up(outcome, ends, each)) for each in trades]
    corners = [f"0 {points[0][1]}"]
    for (x, y), (_, below) in itertools.pairwise([*points, (100.0, 100.0)]):
        corners += [f"{x} {y}", f"{x} {below}"]
    enough = sides.at(certainty)
    parts = [
        tag("rect", class_="band", x=f"{enough}%", width=f"{100 - enough}%", height="100%"),
        *_steps(outcome, ends),
        _stretched(tag("path", class_="line soft", d="M" + "L".join(corners))),
    ]
    parts += [
        tag(
            "text",
            f"{each}%",
            class_="x" if each < 100 else "x last",
            x=f"{sides.at(each / 100)}%",
            y="100%",
            dy=18,
        )
        for each in range(50, 101, 10)
    ]
    for each in marked:
        x, y = sides.at(each.chance), _up(outcome, ends, each)
        parts.append(tag("circle", class_="other", cx=f"{x}%", cy=f"{y}%", r=4.5))
    x, y = (
        (100.0, 100.0) if chosen is None else (sides.at(chosen.chance), _up(outcome, ends, chosen))
    )
    parts.append(tag("circle", class_="chosen", cx=f"{x}%", cy=f"{y}%", r=6))
    word = "stay" if chosen is None else "recommended"
    parts.append(
        tag("text", word, class_="named", x=f"{x}%", y=f"{y}%", dx=-11, dy=-9 if y > 85 else 16)
    )
    return tag("svg", *parts, class_="plot trade", width="100%", height=height, aria_hidden="true")


def key(class_: str) -> Markup:
    """The mark of a line below a picture: as the picture has it."""
    circle = tag("circle", class_=class_, cx=7, cy=7, r=6 if class_ == "chosen" else 4.5)
    return tag("svg", circle, class_="key", width=14, height=14, aria_hidden="true")


def _up(outcome: Outcome, ends: Ends, trade: Trade) -> float:
    return _down(ends, outcome.sign * trade.effect.estimate)


def _steps(outcome: Outcome, ends: Ends, most: int = 4) -> list[Markup]:
    """Lines at round effects, from none upwards, with their figures."""
    size = 10.0 ** math.floor(math.log10(ends.high / most))
    step = next(size * each for each in (1, 2, 5, 10) if size * each * most >= ends.high)
    parts = []
    for count in range(int(ends.high / step + 1e-9) + 1):
        value = count * step
        y = f"{_down(ends, value)}%"
        digits = max(0, -math.floor(math.log10(step)))
        figure = signed(outcome.sign * value, digits)
        parts.append(tag("line", class_="grid" if count else "axis", x2="100%", y1=y, y2=y))
        parts.append(tag("text", figure, x=-8, y=y, dy=".35em"))
    return parts


def _stretched(*paths: Markup) -> Markup:
    """Paths in percent of the picture's width and height."""
    box = {"viewBox": "0 0 100 100", "preserveAspectRatio": "none"}
    return tag("svg", *paths, width="100%", height="100%", **box)


def _plotted(outcome: Outcome, told: Sequence[tuple[int, Effect]]) -> Ends:
    """From the middle of the story on everything is shown; how wide it began matters less."""
    late = [effect for count, effect in told if 3 * count >= told[-1][0]] or [told[-1][1]]
    return _reached(outcome, max(max(abs(effect.low), abs(effect.high)) for effect in late))


def _reached(outcome: Outcome, far: float) -> Ends:
    """What is shown of changes up to `far`: the limits too, and of what is far beyond them little."""
    limits = [abs(limit) for limit in outcome.limits if limit]
    reach = max(1.15 * far, 1.8 * max(limits, default=0.0)) or outcome.size(1.0)
    if limits:
        reach = min(reach, 4 * max(limits))
    return Ends(-reach, reach)


def _strip(outcome: Outcome, ends: Ends) -> list[Markup]:
    low, high = outcome.limits
    if low is None and high is None:
        return []
    top = _down(ends, ends.high if high is None else high)
    bottom = _down(ends, ends.low if low is None else low)
    return [tag("rect", class_="band", width="100%", y=f"{top}%", height=f"{bottom - top:.2f}%")]


def _ticks(outcome: Outcome, ends: Ends) -> list[Markup]:
    limits = [limit for limit in outcome.limits if limit]
    marks = sorted({0.0, *(limits or _round_steps(ends))})
    parts = []
    for value in marks:
        y = f"{_down(ends, value)}%"
        parts.append(tag("line", class_="axis" if value == 0 else "grid", x2="100%", y1=y, y2=y))
        parts.append(tag("text", signed(value, digits_of_change(outcome)), x=-8, y=y, dy=".35em"))
    return parts


def _round_steps(ends: Ends) -> tuple[float, float]:
    """A round number to either side, about two thirds up."""
    about = ends.high * 2 / 3
    size = 10.0 ** math.floor(math.log10(about))
    step = math.floor(about / size + 1e-9) * size
    return -step, step


def _down(ends: Ends, value: float) -> float:
    return round(100 - ends.at(value), 2)


def _line(steps: Sequence[tuple[float, Effect]], ends: Ends) -> str:
    return "M" + "L".join(_stairs([(x, _down(ends, effect.estimate)) for x, effect in steps]))


def _area(steps: Sequence[tuple[float, Effect]], ends: Ends) -> str:
    up = _stairs([(x, _down(ends, effect.high)) for x, effect in steps])
    down = _stairs([(x, _down(ends, effect.low)) for x, effect in steps])
    return "M" + "L".join([*up, *reversed(down)]) + "Z"


def _stairs(points: Sequence[tuple[float, float]]) -> list[str]:
    """What was believed stays until the next result comes."""
    corners = [f"{points[0][0]:.2f} {points[0][1]}"]
    for (_, before), (x, y) in itertools.pairwise(points):
        corners += [f"{x:.2f} {before}", f"{x:.2f} {y}"]
    return corners


def _level(class_: str, begin: float, end: float) -> Markup:
    return tag("line", class_=class_, x1=f"{begin}%", x2=f"{end}%", y1="50%", y2="50%")
