"""What a figure shows, as rows for a CSV file beside it: one row for every point, bar or marker."""

from collections.abc import Callable, Iterator

from sidestep.experiments.analysis.run_facts import Row
from sidestep.experiments.analysis.summary import Series
from sidestep.experiments.figures.figures import band
from sidestep.experiments.figures.styles import Drawing, Panel


def data_of(drawing: Drawing) -> list[Row]:
    """The rows of a figure; none for one that shows no measurement."""
    rows_of = KINDS.get(drawing.kind)
    if rows_of is None:
        return []
    rows = []
    for panel in drawing.panels:
        more = _relative(panel) if drawing.kind == "panel" else {}
        rows += [
            {"world": panel.title, "policy": series.label} | row | more.get(series.label, {})
            for series in panel.series
            for row in rows_of(series)
        ]
    return rows + [
        {"world": "", "policy": law.label, "round": float(x), "mean": float(y)}
        for law in drawing.laws
        for x, y in zip(law.x, law.y, strict=True)
    ]


def _regret(series: Series) -> Iterator[Row]:
    for t, mean, low, high in zip(series.rounds, series.mean, *band(series), strict=True):
        yield {"round": float(t), "mean": float(mean), "low": float(low), "high": float(high)}


def _growth(series: Series) -> Iterator[Row]:
    for t, mean in zip(series.rounds, series.mean, strict=True):
        yield {"round": float(t), "mean": float(mean), "exponent": series.slope}


def _phases(series: Series) -> Iterator[Row]:
    for phase, regret in series.phases.items():
        yield {"phase": phase, "regret": regret}


def _queries(series: Series) -> Iterator[Row]:
    for vector, share in enumerate(series.counts / series.counts.sum()):
        yield {"vector": vector, "share": float(share)}


def _widths(series: Series) -> Iterator[Row]:
    for t, width in zip(*series.widths, strict=True):
        yield {"round": float(t), "width": float(width)}


def _finals(series: Series) -> Iterator[Row]:
    for regret in series.final:
        yield {"regret": float(regret)}


def _tolerances(series: Series) -> Iterator[Row]:
    if series.kept:
        kept = series.kept
        yield {"rounds beyond": kept.beyond, "recommendations beyond": 1 - kept.within}


def _panel(series: Series) -> Iterator[Row]:
    yield {"mean": float(series.final.mean()), "share linear": series.linear}


def _relative(panel: Panel) -> dict[str, Row]:
    """Mean final regret of every policy over the lowest of that world; None if that is 0."""
    means = {series.label: float(series.final.mean()) for series in panel.series}
    least = min(means.values(), default=0.0)
    return {
        label: {"relative": mean / least if least > 0 else None} for label, mean in means.items()
    }


KINDS: dict[str, Callable[[Series], Iterator[Row]]] = {
    "regret": _regret,
    "growth": _growth,
    "pairs": _growth,
    "price": _regret,
    "phases": _phases,
    "queries": _queries,
    "widths": _widths,
    "finals": _finals,
    "tolerances": _tolerances,
    "panel": _panel,
}
