"""What a study recommends after few results, beside the figures it must reach.

    python benchmarks/few_results.py --studies 20                  # every row; take up again with more
    python benchmarks/few_results.py --studies 200 --shared PATH   # with the tables of PATH/data/real
    python benchmarks/few_results.py --show --figure docs/figures/few_results.png

Given up and the share beyond a limit, in percent, with standard errors. A study is a line of the file
(out/bends.jsonl, as of bends.py, whose studies count here too); seeds from 0 on.
"""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.bend_studies import (
    Cell,
    Found,
    arguments,
    grounds_of,
    looks_of,
    mean,
    read,
    run,
    summary,
)
from benchmarks.bend_tables import TABLES


@dataclass(frozen=True)
class Row:
    """A row of the table.

    name   what is told, and how is measured
    cell   how it is played
    most   what may be given up at most after so many results or visits, in percent; None: only shown
    """

    name: str
    cell: Cell
    most: Mapping[int, int | None]


def shown(*stops: int) -> dict[int, int | None]:
    """Figures without a bound."""
    return dict.fromkeys(stops)


def straight() -> list[Row]:
    """The straight clinic, and a study that is told that effects are straight."""
    return [
        Row(
            "nothing told",
            Cell("clinic", shape="straight", noise="untold"),
            {8: 100, 15: 78, 30: 52, 60: 28},
        ),
        Row("noise", Cell("clinic", shape="straight"), {8: 100, 15: 66, 30: 42, 60: 26}),
        Row(
            "noise and level",
            Cell("clinic", shape="straight", level="told"),
            {8: 85, 15: 55, 30: 32, 60: 22},
        ),
        Row(
            "noise, level, signs and sizes",
            Cell("clinic", shape="straight", level="told", expect="signs and sizes"),
            {8: 60, 15: 48, 30: 32, 60: 22},
        ),
        Row(
            "all outcomes at a visit",
            Cell("clinic", shape="straight", visits=True, last=12),
            {2: 75, 4: 55, 8: 34, 12: 27},
        ),
    ]


SINGLE = {
    "clinic": {15: 80, 30: 65, 60: 45},
    "emax": {15: 80, 30: 57, 60: 39},
    "convex": {15: 80, 30: 42, 60: 22},
    "tire": {15: None, 30: 51, 60: 27},
    "chem": {15: None, 30: 5, 60: 2},
}
VISITS = {
    "clinic": {4: None, 8: 65, 12: 53, 20: 42},
    "emax": {4: None, 8: 50, 12: 43, 20: 33},
    "convex": {4: None, 8: 38, 12: 30, 20: 16},
    "tire": {4: None, 8: 47, 12: 36, 20: 26},
    "chem": {4: None, 8: None, 12: None, 20: None},
}
WHOLE_TABLES = {
    "compiler": {8: 14, 15: 9, 30: 2},
    "lipid": {8: 14, 15: 7, 30: 7},
    "slump": {8: 96, 15: 82, 30: 64},
    "olive": shown(8, 15, 30),
}


def bent() -> list[Row]:
    """The default."""
    rows = [Row("noise", Cell(world), most) for world, most in SINGLE.items()]
    rows += [
        Row(
            "nothing told",
            Cell(world, noise="untold"),
            {stop: bound and bound + 8 for stop, bound in most.items()},
        )
        for world, most in SINGLE.items()
    ]
    rows += [
        Row("noise", Cell(world, visits=True, last=20), most) for world, most in VISITS.items()
    ]
    return rows


def smooth() -> list[Row]:
    """Without own effects; and with six earlier results of every outcome at the baseline."""
    worlds = ("clinic", "emax", "convex", "tire", "chem", "saturating", "powers", "optima")
    rows = [Row("noise", Cell(world, shape="smooth"), shown(15, 30, 60)) for world in worlds]
    rows += [
        Row(
            "noise, six at the baseline",
            Cell(world, shape="smooth", earlier=6),
            {15: None, 30: 47 if world == "clinic" else None, 60: None},
        )
        for world in ("clinic", "emax")
    ]
    rows += [
        Row("noise, six at the baseline", Cell(world, earlier=6), shown(15, 30, 60))
        for world in ("clinic", "emax")
    ]
    return rows


def knowing() -> list[Row]:
    """What people know and what earlier patients teach, rightly and wrongly, in patients of clinics."""
    told = {"shape": "straight", "level": "told"}
    pooled = {"shape": "straight"}
    singles = shown(8, 15, 30, 60)
    bounds = {0.5: {8: 55, 15: 39, 30: 30, 60: 20}, 0.2: {8: 50, 15: 32, 30: 25, 60: 19}}
    rows = [
        Row("noise and level", Cell("clinic", cv=0.5, **told), singles),
        *(
            Row(
                f"noise, level, {what}",
                Cell("clinic", cv=0.5, expect=what, **told),
                {8: 60, 15: 48, 30: 32, 60: 22} if what == "as patients differ" else singles,
            )
            for what in (
                "signs",
                "as patients differ",
                "signs and sizes",
                "half the size",
                "opposite signs",
            )
        ),
        Row("noise", Cell("clinic", cv=0.5, **pooled), singles),
        *(
            Row(f"noise, 5 earlier, cv {cv}", Cell("clinic", cv=cv, before=5, **pooled), most)
            for cv, most in bounds.items()
        ),
        *(
            Row(
                f"noise, {count} earlier, cv {cv}",
                Cell("clinic", cv=cv, before=count, **pooled),
                singles,
            )
            for count, cv in ((1, 0.5), (2, 0.5), (3, 0.5), (5, 1.0), (3, 1.0))
        ),
        *(
            Row(
                f"noise, {count} earlier, cv 0.2, opposite effects",
                Cell("clinic", cv=0.2, before=count, unlike=True, **pooled),
                singles,
            )
            for count in (5, 1)
        ),
    ]
    for world in ("emax", "convex"):
        rows += [
            Row("noise, cv 0.5", Cell(world, cv=0.5, last=30), shown(8, 15, 30)),
            Row(
                "noise, 5 earlier, cv 0.5", Cell(world, cv=0.5, before=5, last=30), shown(8, 15, 30)
            ),
        ]
    return rows


def telling() -> list[Row]:
    """Straight random worlds of three factors at nine levels: telling more must not make it worse."""
    told = {
        "nothing told": {"noise": "untold"},
        "level": {"noise": "untold", "level": "told"},
        "noise roughly": {"noise": "roughly"},
        "noise": {},
        "noise and level": {"level": "told"},
    }
    return [
        Row(
            name,
            Cell("straight", shape=shape, factors=3, **how),
            shown(15, 30, 60),
        )
        for shape in ("straight", "")
        for name, how in told.items()
    ]


def tables() -> list[Row]:
    """Real experiments, all outcomes at every visit."""
    return [
        Row("noise", Cell(world, visits=True, last=30), most)
        for world, most in WHOLE_TABLES.items()
    ]


ROWS = (*straight(), *bent(), *smooth(), *knowing(), *telling(), *tables())


def figure(given_up: tuple[float, float], bound: int | None) -> str:
    """A figure with its standard error and the bound: met, missed, or neither within two errors."""
    value, error = 100 * given_up[0], 100 * given_up[1]
    text = f"{value:.0f} ({error:.1f})"
    if bound is None:
        return text
    if value <= bound:
        return f"{text} <= {bound}"
    return f"{text} {'**>' if value - 2 * error > bound else '>'} {bound}" + (
        "**" if value - 2 * error > bound else ""
    )


def pairs(found: Found, first: Cell, second: Cell, stop: int) -> list[float]:
    """What the second gives up more than the first, in the same worlds with the same seeds."""
    one, two = (found.get(cell.key(), {}) for cell in (first, second))
    both = [(one[seed], two[seed]) for seed in sorted(set(one) & set(two))]
    return [b[stop].given_up - a[stop].given_up for a, b in both if stop in a and stop in b]


def show_telling(path: Path) -> None:
    """Print what a study gives up less when it is told more, in pairs."""
    found, rows = read(path), telling()
    for shape in ("straight", ""):
        some = [row for row in rows if row.cell.shape == shape]
        for row in some[1:]:
            figures = [
                f"{stop}r {100 * value:+.1f} ({100 * error:.1f})"
                for stop in row.most
                for value, error in [mean(pairs(found, some[0].cell, row.cell, stop))]
            ]
            print(f"{shape or 'default'}, {row.name} minus nothing told: {', '.join(figures)}")


def show(path: Path, rows: list[Row]) -> None:
    """Print every row that was played."""
    found = read(path)
    print(
        "| world | shape | told | n | given up, after results (r) or visits (v) | beyond, of moves |"
    )
    print("|---|---|---|---|---|---|")
    for row in rows:
        looks = looks_of(found, row.cell)
        if not looks:
            continue
        unit = "v" if row.cell.visits else "r"
        some = {stop: summary(looks[stop]) for stop in looks}
        given_up = "; ".join(
            f"{stop}{unit} {figure(some[stop].given_up, row.most[stop])}" for stop in row.most
        )
        beyond = ", ".join(
            f"{some[stop].beyond[0] * some[stop].moves:.0f} of {some[stop].moves}"
            if some[stop].moves
            else "-"
            for stop in row.most
        )
        first = next(iter(some.values()))
        shape = row.cell.shape or "default"
        print(
            f"| {row.cell.world} | {shape} | {row.name} | {first.studies} | {given_up} | {beyond} |"
        )


LINES = ("-", "--", ":", "-.", (0, (5, 1)))
GREYS = ("#000000", "#444444", "#000000", "#666666", "#888888")


def figure_of(path: Path, target: Path) -> None:
    """Draw what is given up after so many results; bars are standard errors."""
    import matplotlib  # noqa: PLC0415 - only for the figure

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt  # noqa: PLC0415
    from PIL import Image  # noqa: PLC0415

    found = read(path)
    panels = [
        ('straight clinic, shape="straight"', [(row.name, row.cell) for row in straight()[:3]]),
        ("by default, noise told", [(world, Cell(world)) for world in SINGLE]),
    ]
    figure, both = plt.subplots(
        1, 2, figsize=(7.6, 2.9), dpi=110, sharey=True, layout="constrained"
    )
    for axes, (title, lines) in zip(both, panels, strict=True):
        for number, (name, cell) in enumerate(lines):
            looks = looks_of(found, cell)
            stops = [stop for stop in (8, 15, 30, 60) if stop in looks]
            pairs = [mean(look.given_up for look in looks[stop]) for stop in stops]
            axes.errorbar(
                stops,
                [100 * value for value, _ in pairs],
                [100 * error for _, error in pairs],
                linestyle=LINES[number],
                color=GREYS[number],
                marker="osD^v"[number],
                markersize=4,
                capsize=2,
                label=name,
            )
        axes.set(xscale="log", ylim=(0, None), xlabel="single results")
        axes.set_xticks([8, 15, 30, 60], ["8", "15", "30", "60"])
        axes.minorticks_off()
        axes.set_title(title, fontsize=9)
        axes.tick_params(labelsize=8)
        axes.legend(fontsize=8, frameon=False)
        axes.spines[["top", "right"]].set_visible(False)
    both[0].set_ylabel("given up, %", fontsize=8)
    figure.canvas.draw()
    picture = Image.fromarray(np.asarray(figure.canvas.buffer_rgba())).convert("L")
    picture.quantize(16).save(target, optimize=True)


def main() -> None:
    words = arguments(__doc__ or "", "out/bends.jsonl")
    words.add_argument("--figure", type=Path, help="draw it too, from what was played")
    options = words.parse_args()
    rows = [
        row
        for row in ROWS
        if (options.shared or row.cell.world not in TABLES)
        and (not options.worlds or row.cell.world in options.worlds)
    ]
    if not options.show:
        cells = [row.cell for row in rows]
        run(cells, options.file, grounds_of(options), options.studies, first=options.seed)
    show(options.file, rows)
    print()
    show_telling(options.file)
    if options.figure:
        figure_of(options.file, options.figure)


if __name__ == "__main__":
    main()
