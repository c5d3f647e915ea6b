"""What was measured as Markdown: tables that a page of the documentation takes as they are."""

from collections.abc import Callable, Sequence
from math import isnan
from typing import Any

from benchmarks.speed.targets import find, verdicts

Row = dict[str, Any]
OURS = ("protected-linucb", "oful")


def markdown(results: Row) -> str:
    """The whole page; a table that was not measured is left out."""
    tables = results["tables"]
    parts = [heading(results), section("Promises", verdict_table(tables))]
    for title, table, write in SECTIONS:
        if tables.get(table):
            parts.append(section(title, write(tables)))
    return "\n".join(parts)


def heading(results: Row) -> str:
    """Machine, versions, date, settings."""
    machine, words = results["machine"], results["versions"].items()
    length = "quick look" if results["settings"]["quick"] else "full run"
    return (
        f"Measured {results['date']} on {machine['processor']}, {machine['cores']} cores, "
        f"{machine['system']}, load {cell(machine['load'])} before it began; {length}, one thread, "
        "CPU time, medians of turns.\n\n"
        f"Versions: {', '.join(f'{name} {number}' for name, number in words)}.\n"
    )


def section(title: str, table: str) -> str:
    """A title and its table."""
    return f"## {title}\n\n{table}\n"


def table_of(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table; the first column is words, the others are numbers."""
    lines = [columns, ["---", *["---:"] * (len(columns) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def verdict_table(tables: Row) -> str:
    """Promises: wanted, measured, reached."""
    rows = [list(row.values()) for row in verdicts(tables)]
    return table_of(("what", "wanted", "measured", "reached"), rows)


def limit_table(tables: Row) -> str:
    """The machine's own limits."""
    rows = [(row["limit"], f"{row['value']:,.1f} {row['unit']}") for row in tables["limits"]]
    return table_of(("limit", "measured"), rows)


def decision_table(tables: Row) -> str:
    """Decisions a second of every policy, and the share of the limit."""
    rows = []
    for row in tables["decisions"]:
        where = {"world": row["world"], "policy": row["policy"]}
        delay = find(tables, "latency", "microseconds", **where)
        phase = "" if row["phase"] == "play" else f" ({row['phase']})"
        share = f"{100 * row['share']:.3g}%" if row["share"] else "-"
        numbers = (brief(row["rate"]), cell(row["limit"]), share, brief(delay))
        rows.append((row["world"], row["policy"] + phase, *numbers))
    columns = ("world", "policy", "decisions/s", "limit/s", "share", "ask + tell, us")
    return table_of(columns, rows)


def contest_table(tables: Row) -> str:
    """Everybody on the same rounds, and how many times faster ours are."""
    rows = []
    for row in tables["contest"]:
        if row["rate"] is None:
            rows.append((row["world"], row["who"], row["reason"].splitlines()[0], "", "", ""))
            continue
        ratios = [
            f"{brief(find(tables, 'contest', 'rate', world=row['world'], who=name) / row['rate'])}x"
            for name in OURS
        ]
        rows.append((row["world"], row["who"], brief(row["rate"]), str(row["rounds"]), *ratios))
    return table_of(("world", "who", "rounds/s", "rounds", "Protected is", "OFUL is"), rows)


def slope_table(tables: Row) -> str:
    """Exponents, an axis a column."""
    axes = list(dict.fromkeys(row["axis"] for row in tables["slopes"]))
    names = list(dict.fromkeys(row["policy"] for row in tables["slopes"]))
    rows = []
    for name in names:
        found = [find(tables, "slopes", "exponent", axis=axis, policy=name) for axis in axes]
        rows.append((name, *("-" if isnan(slope) else f"{slope:.2f}" for slope in found)))
    powers = (f"{axis[0]}^{axis[1:]}" for axis in axes)
    return table_of(("cost grows as", *powers), rows)


def plain_table(table: str, columns: Sequence[str]) -> Callable[[Row], str]:
    """A table as it was measured."""

    def write(tables: Row) -> str:
        rows = [[cell(row[column]) for column in columns] for row in tables[table]]
        return table_of([column.replace("_", " ") for column in columns], rows)

    return write


def cell(value: Any) -> str:
    """A value of a table as text."""
    if value is None:
        return "-"
    return brief(value) if isinstance(value, float) else str(value)


def brief(number: float) -> str:
    """Three digits, with thousands marked; no powers of ten."""
    if isnan(number):
        return "-"
    return f"{number:,.0f}" if abs(number) >= 100 else f"{number:.3g}"


SECTIONS: tuple[tuple[str, str, Callable[[Row], str]], ...] = (
    ("Limits of the machine", "limits", limit_table),
    ("The same rounds for everybody", "contest", contest_table),
    ("Every policy", "decisions", decision_table),
    (
        "A decision that keeps nothing: in compiled code, and by ask and tell",
        "recomputing",
        plain_table("recomputing", ("world", "policy", "compiled_us", "asked_us")),
    ),
    (
        "Fresh arms, drawn for one run or shared between runs",
        "sharing",
        plain_table("sharing", ("policy", "alone", "shared", "times")),
    ),
    ("How the cost of a decision grows", "slopes", slope_table),
    (
        "Long runs",
        "memory",
        plain_table("memory", ("world", "rounds", "seconds", "peak_mb", "matrix_mb")),
    ),
    ("Two cores", "cores", plain_table("cores", ("how", "seconds", "times"))),
    ("Start", "startup", plain_table("startup", ("what", "seconds"))),
)
