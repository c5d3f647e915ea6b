"""Measured regret beside the theoretical bounds."""

from collections.abc import Mapping, Sequence

from sidestep.experiments.numbers.bounds import FORMS, Pairs, upper_rows
from sidestep.experiments.numbers.summary import WorldSummary
from sidestep.experiments.numbers.traces import Row
from sidestep.experiments.page.page import details, number, picture, pictures_row, slope, table
from sidestep.experiments.pictures.sheets import Rendered

UPPER = (
    "The upper bounds are proved only for Protected LinUCB on the unit ball, with probability 1 - δ, "
    "and the main one for M = R = rho = 1. Over arms they are shown for comparison. λ_min is estimated "
    "from the traces (median over runs). A bound above 2MT is vacuous: no policy can lose more."
)
BOUND = (
    "Mean regret and the bounds on logarithmic axes, {}. Our bound for posterior sampling is an "
    "average over the prior; it needs L = s."
)
PAIR = (
    "The larger of the two mean regrets against the horizon, and the lower bound: no policy can stay "
    "below it on both instances."
)


def upper(worlds: Sequence[WorldSummary], pictures: Mapping[str, Rendered]) -> str:
    """Every Protected LinUCB beside the regret bound; collapsed if it is not proved."""
    drawn = [
        picture(pictures[name].svg, BOUND.format(world.title))
        for world in worlds
        if (name := f"bound-{world.experiment}-{world.spec.id}") in pictures
    ]
    rows = [(world, row) for world in worlds for row in upper_rows(world)]
    numbers = table([_line(world, row) for world, row in rows], UPPER)
    if not any(row["proved"] for _, row in rows):
        numbers = details("Beside the upper bounds, which are not proved here", numbers)
    return pictures_row(drawn) + numbers


def _line(world: WorldSummary, row: Row) -> Row:
    return {
        "world": world.title,
        "policy": row["policy"],
        "proved here": "yes" if row["proved"] else "no",
        "mean regret": row["mean"],
        "largest": row["largest"],
        **{f"bound, {form}": row[form] for form in FORMS},
        "λ_min": row["lambda_min"],
        "CORE-SET rounds": row["core_set_rounds"],
        "at most": row["core_set_bound"],
    }


def lower(pairs: Mapping[str, Pairs], pictures: Mapping[str, Rendered]) -> str:
    """The larger regret of every pair of instances, beside the lower bounds."""
    return "".join(
        pictures_row([picture(pictures[name].svg, PAIR)]) + _pair_table(pair)
        for name, pair in pairs.items()
    )


def _pair_table(pair: Pairs) -> str:
    lines: dict[str, Row] = {}
    for row in pair.rows():
        line = lines.setdefault(row["policy"], {"policy": row["policy"]})
        line[f"T={row['horizon']}"] = row["larger"]
    for series in pair.series():
        lines[series.label]["exponent"] = slope(series.slope)
    bounds = {row["horizon"]: row for row in pair.rows()}
    for form in ("printed", "corrected"):
        line = {f"T={horizon}": row.get(form) for horizon, row in bounds.items()}
        lines[form] = {"policy": f"lower bound, {form}", **line, "exponent": "0.75"}
    caption = (
        f"The larger mean regret of the pair, R={number(pair.noise)}; exponents are fitted over all "
        "horizons. The corrected bound is for alpha = √R T^(-1/4) ≤ 1/4, and 0 elsewhere."
    )
    return table(list(lines.values()), caption)
