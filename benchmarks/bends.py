"""What a study believes and recommends where responses bend, judged by the truth.

    python benchmarks/bends.py --studies 20                      # every cell; take up again with more
    python benchmarks/bends.py --studies 100 --shared PATH       # with the tables of PATH/data/real
    python benchmarks/bends.py --reasons --studies 40            # what every part of the belief is for
    python benchmarks/bends.py --rivals --studies 100            # D-optimal designs, least squares
    python benchmarks/bends.py --show                            # the tables of what was played
    python benchmarks/bends.py --worlds emax chem --visits --noise untold --studies 20

A study is a line of the file (out/bends.jsonl); cells are played in turn, a few studies each. Seeds from
0 on are shown and nothing was chosen on them; models and rules were chosen on seeds from 7,000,000 on.
"""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.bend_rivals import ORDERS
from benchmarks.bend_studies import (
    FORMULAS,
    GUARD,
    HEAD,
    SINGLE,
    VISITS,
    WITHOUT,
    WRONG,
    Cell,
    Summary,
    all_looks,
    arguments,
    grounds_of,
    looks_of,
    name_of,
    promise,
    read,
    row,
    run,
    summary,
)
from benchmarks.bend_tables import TABLES
from benchmarks.bend_worlds import FAMILIES

SHOWN = (*FORMULAS, "saturating", "powers", "optima", "interactions")
MANY = (3, 6, 9)  # factors


def plain(worlds: tuple[str, ...]) -> list[Cell]:
    """Noise told, nothing wrong."""
    return [
        Cell(world, visits=visits, last=VISITS[-1] if visits else SINGLE[-1])
        for world in worlds
        for visits in (False, True)
    ]


def harder() -> list[Cell]:
    """Less is told, or what is wrong; results come otherwise than planned; more factors."""
    untold = [
        Cell(world, visits=visits, noise="untold", last=20 if visits else 60)
        for world in SHOWN
        for visits in (False, True)
    ]
    roughly = [Cell(world, noise="roughly") for world in ("emax", "chem", "optima")]
    wrong = [
        Cell(world, visits=True, wrong=each, last=20)
        for each in WRONG
        for world in ("emax", "chem", "saturating", "interactions")
    ]
    many = [
        Cell(world, visits=visits, factors=count, last=20 if visits else 60)
        for count in MANY
        for world in ("saturating", "interactions")
        for visits in (False, True)
    ]
    straight = [Cell(world, shape="straight") for world in ("clinic", "emax", "convex", "chem")]
    return [*untold, *roughly, *wrong, *many, *straight]


def rivals() -> list[Cell]:
    """What a textbook does, where all factors are numbers."""
    return [
        Cell(world, visits=True, design=design, last=20) for design in ORDERS for world in SHOWN
    ]


def reasons(tables: tuple[str, ...]) -> list[Cell]:
    """The belief without one of its parts, where that part could matter."""
    parts = ("", *(part for part in WITHOUT if part != GUARD))
    cells = [
        Cell(world, without=part) for part in parts for world in ("emax", "mixtures", "sigmoids")
    ]
    cells += [Cell(world, visits=True, without=part, last=30) for part in parts for world in tables]
    young = [("clinic", "straight"), ("straight", "straight"), ("clinic", ""), ("chem", "")]
    return cells + [
        Cell(world, shape=shape, level="told", without=part, last=15)
        for part in ("", GUARD)
        for world, shape in young
    ]


def chosen(options: argparse.Namespace) -> list[Cell]:
    """The cells of the command: one kind for every world that is named, or all."""
    named = any((options.visits, options.wrong, options.factors, options.shape, options.last))
    if named or options.noise != "told" or options.level != "untold" or options.earlier:
        return [
            Cell(
                world,
                visits=options.visits,
                noise=options.noise,
                level=options.level,
                shape=options.shape,
                wrong=options.wrong,
                earlier=options.earlier,
                factors=options.factors,
                design=options.design,
                last=options.last or (20 if options.visits else 60),
            )
            for world in options.worlds or SHOWN
        ]
    if options.rivals:
        return rivals()
    if options.reasons:
        return reasons(("slump", "compiler") if options.shared else ())
    tables = tuple(TABLES) if options.shared else ()
    cells = [*plain((*SHOWN, *tables)), *([] if options.plain else harder())]
    return [cell for cell in cells if not options.worlds or cell.world in options.worlds]


def show(cells: list[Cell], path: Path) -> None:
    """Print a table for every cell that was played, and all together."""
    found = read(path)
    for cell in cells:
        looks = looks_of(found, cell)
        if not looks:
            continue
        print(f"\n{name_of(cell)}\n\n{HEAD}")
        for stop, each in looks.items():
            print(row(stop, summary(each), promise(cell, stop)))
    for name, is_table in (("all worlds", False), ("all tables", True)):
        some = [cell for cell in cells if (cell.world in TABLES) == is_table]
        looks, studies = all_looks(found, some)
        if looks:
            print(f"\n{name}\n\n{HEAD}")
            print(row("-", summary(looks, studies), promise(some[0], 60)))


def grid(cells: list[Cell], path: Path) -> None:
    """Print one row per cell: given up / beyond, of moves / covered, after every number of results."""
    found = read(path)
    for visits in (False, True):
        rows = [(cell, looks_of(found, cell)) for cell in cells if cell.visits == visits]
        stops = sorted({stop for _, looks in rows for stop in looks})
        if not stops:
            continue
        print("| | n | " + " | ".join(map(str, stops)) + " |\n|---|---|" + "---|" * len(stops))
        for cell, looks in rows:
            if looks:
                shown = [brief(summary(looks[stop])) if stop in looks else "" for stop in stops]
                n = max(map(len, looks.values()))
                print(f"| {name_of(cell)} | {n} | " + " | ".join(shown) + " |")
        print()


def brief(found: Summary) -> str:
    """A cell of the grid."""
    beyond = f"{found.beyond[0] * found.moves:.0f} of {found.moves}" if found.moves else "-"
    return f"{found.given_up[0]:.0%} / {beyond} / {found.covered[0]:.0%}"


def main() -> None:
    words = arguments(__doc__ or "", "out/bends.jsonl")
    words.add_argument("--plain", action="store_true", help="only cells with nothing wrong")
    words.add_argument("--reasons", action="store_true", help="without parts of the belief")
    words.add_argument("--grid", action="store_true", help="print one row per cell")
    words.add_argument("--rivals", action="store_true", help="D-optimal designs, least squares")
    words.add_argument("--visits", action="store_true", help=f"looked at after {VISITS}")
    words.add_argument("--noise", default="told", choices=["told", "untold", "roughly"])
    words.add_argument("--level", default="untold", choices=["told", "untold"])
    words.add_argument("--shape", default="", choices=["", "smooth", "straight"])
    words.add_argument("--wrong", default="", choices=["", *WRONG])
    words.add_argument("--earlier", type=int, default=0, help="results of every outcome")
    words.add_argument("--factors", type=int, default=0, help=f"of {', '.join(FAMILIES)}")
    words.add_argument("--design", default="aimed", choices=["aimed", "random"])
    words.add_argument("--last", type=int, help=f"results ({SINGLE}) or visits")
    options = words.parse_args()
    cells = chosen(options)
    if not options.show:
        run(cells, options.file, grounds_of(options), options.studies, first=options.seed)
    (grid if options.grid else show)(cells, options.file)


if __name__ == "__main__":
    main()
