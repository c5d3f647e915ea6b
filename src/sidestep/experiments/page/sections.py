"""The sections of the report: numbers of a summary as tables and sentences."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import polars

from sidestep.experiments.numbers.summary import Summary, WorldSummary
from sidestep.experiments.numbers.traces import Row
from sidestep.experiments.numbers.tuning import FLATTERED, HERE
from sidestep.experiments.page.page import (
    brief,
    details,
    interval,
    items,
    number,
    picture,
    share,
    slope,
    table,
    text,
)
from sidestep.experiments.pictures.sheets import Rendered
from sidestep.experiments.spec import Spec

CAPTIONS = {
    "regret": "Cumulative regret: mean over the runs, and one standard deviation as a band.",
    "growth": "Means on logarithmic axes. Exponent: slope over the last half (thick line).",
    "phases": "Regret by phase: CORE-SET, exploring, playing.",
    "finals": "Final regret of all runs: quartiles, median, extremes.",
    "tolerances": "Share of rounds that moved a protected outcome beyond its tolerance; diamonds: "
    "share of runs that recommend such an action after the last round.",
    "queries": "How often each vector was measured; 0 is the target.",
    "widths": "Half-width of the interval for the measured effect, before the measurement.",
}

BEYOND = "Share of rounds beyond a tolerance, by world."
ENDS = (
    "The last recommendation, by world: share of runs in which it is truly within all tolerances / "
    "says that it is / is right, of those that say so. Told the paper's aim, a policy says nothing."
)
ACROSS = (
    "Final regret, mean ± sd, by world; in brackets the share of runs that turned linear, if any."
)


def failure_figure(pictures: Mapping[str, Rendered]) -> str:
    """The picture of the failure example."""
    words = (
        "The instance: playing a_1 = u(45°) never shrinks the confidence set of the protected vector "
        "along u(-45°), so an optimistic player may keep hoping for the vector drawn in orange. If "
        "that vector is protected, both arms are worth cos²(π/8); in truth a_2 is better by 0.21 per "
        "round."
    )
    return picture(pictures["failure"].svg, words)


def across(summary: Summary, worlds: Sequence[WorldSummary]) -> list[Row]:
    """One row per policy, one column per world."""
    labels = {e.id: e.label or e.id for e in _spec(summary, worlds[0]).policies}
    lines: dict[str, Row] = {entry: {"policy": label} for entry, label in labels.items()}
    for world in worlds:
        for row in _shown(summary, world).to_dicts():
            stuck = f" ({share(row['share_linear'])})" if row["share_linear"] else ""
            cell = f"{brief(row['mean'])} ± {brief(row['sd'])}{stuck}"
            lines[row["entry"]][world.title] = cell
    return [line for line in lines.values() if len(line) > 1]


def keeping(worlds: Sequence[WorldSummary]) -> str:
    """How every policy kept the tolerances: one row per policy, one column per world; empty without."""
    rounds: dict[str, Row] = {}
    ends: dict[str, Row] = {}
    for world in worlds:
        for series in world.series:
            if series.kept:
                title, first = world.title, series.label.partition(" (")[0]
                beyond, *last = series.kept
                rounds.setdefault(series.entry, {"policy": first})[title] = share(beyond)
                known = " / ".join(share(part) for part in last if not math.isnan(part))
                ends.setdefault(series.entry, {"policy": first})[title] = known.replace("% /", " /")
    return table(list(rounds.values()), BEYOND) + table(list(ends.values()), ENDS)


def _shown(summary: Summary, world: WorldSummary, which: str = "shown") -> polars.DataFrame:
    here = (polars.col("experiment") == world.experiment) & (polars.col("world") == world.spec.id)
    return summary.policies.filter(here & polars.col(which))


def _spec(summary: Summary, world: WorldSummary) -> Spec:
    return next(spec for spec in summary.specs if spec.name == world.experiment)


def policies(spec: Spec) -> list[Row]:
    """The policies of an experiment and their knobs."""
    return [
        {
            "policy": entry.label or entry.id,
            "id": entry.id,
            "algorithm": entry.policy,
            "knobs": _knobs(entry.knobs) or "defaults",
            "grid": "; ".join(f"{k} in {', '.join(map(str, v))}" for k, v in entry.grid.items()),
            "worlds": ", ".join(entry.worlds) if entry.worlds is not None else "all",
        }
        for entry in spec.policies
    ]


def numbers(summary: Summary, worlds: Sequence[WorldSummary]) -> str:
    """Sentences and tables of every world, collapsed."""
    return details("Every number, world by world", "".join(_numbers(summary, w) for w in worlds))


def _numbers(summary: Summary, world: WorldSummary) -> str:
    inner = items(in_words(summary, world)) + main_table(summary, world)
    inner += grid_tables(summary, world) + _effects(world) + _queries(world)
    return details(world.title, inner)


def settings(spec: Spec, worlds: Sequence[WorldSummary]) -> str:
    """Worlds, policies and all knobs, collapsed."""
    rows = [_settings(spec, world) for world in worlds]
    return details("Settings: worlds, players, knobs", table(rows) + table(policies(spec)))


def _settings(spec: Spec, world: WorldSummary) -> Row:
    row: Row = {"world": world.title, "rounds": world.horizon}
    runs = world.spec.runs or spec.runs
    row |= {"runs": runs, "seeds": f"{spec.seed} to {spec.seed + runs - 1}"}
    if spec.tuning:
        row |= {"tuned on": f"{spec.tuning[0]} to {spec.tuning[-1]}"}
    row |= {"recorded": "every round" if spec.every == 1 else f"every {spec.every}th"}
    problem = world.facts.problem
    if problem:
        row |= {"d": problem.dim, "L": problem.n_protected, "s": problem.subspace_dim}
        row |= {"R": _plain(problem.noise_scale), "M": problem.norm_bound}
        if problem.limits is not None:
            row |= {"tolerance": str(problem.tolerance), "penalty": str(problem.limits.penalty)}
    solid = "a solid" if problem and problem.limits is not None else "unit ball"
    row["actions"] = solid if world.facts.on_ball else "arms"
    return row | {"made by": ": ".join(filter(None, [world.spec.world, _knobs(world.spec.knobs)]))}


def _knobs(knobs: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in knobs.items())


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, float | int) else str(list(value))


def in_words(summary: Summary, world: WorldSummary) -> list[str]:
    """The results of a world, in sentences."""
    rows = _shown(summary, world).sort("mean").to_dicts()
    best = rows[0]
    lines = [f"Lowest mean final regret: <b>{text(best['label'])}</b>, {number(best['mean'])}."]
    lines += [
        f"{text(row['label'])}: CORE-SET had not ended by round {world.horizon} in "
        f"{share(row['core_set_open'])} of the runs, and took "
        f"{share(row['core_set_rounds'] / world.horizon)} of all rounds."
        for row in rows
        if row["core_set_open"] > 0
    ]
    stuck = [row for row in rows if row["share_linear"] > 0]
    if stuck:
        names = ", ".join(f"{text(row['label'])} {share(row['share_linear'])}" for row in stuck)
        lines.append(f"Runs that turned linear: {names}.")
    if world.missing:
        lines.append(f"{world.missing} runs are missing.")
    return lines


def main_table(summary: Summary, world: WorldSummary) -> str:
    """Mean, sd, interval, paired difference, share of linear runs, exponent, speed."""
    rows = _shown(summary, world).to_dicts()
    phase = any(row["core_set_rounds"] > 0 for row in rows)
    compared = any(row["difference"] is not None for row in rows)
    reference = _spec(summary, world).reference
    names = {row["entry"]: row["label"] for row in rows}
    lines = []
    for row in rows:
        line = {"policy": row["label"] + _chosen(row), "runs": row["n"]}
        line |= {"mean": row["mean"], "sd": row["sd"]}
        line["95% interval"] = interval(row["low"], row["high"])
        if compared:
            line["minus reference"] = row["difference"]
            line["its 95% interval"] = interval(row["difference_low"], row["difference_high"])
        line |= {"linear": share(row["share_linear"]), "exponent": slope(row["exponent"])}
        line |= {"CORE-SET rounds": row["core_set_rounds"]} if phase else {}
        line |= {"s per run": row["seconds"], "rounds/s": row["rounds_per_second"]}
        lines.append(line)
    rule = rows[0]["linear_rule"]
    limit = "a round of Uniform" if rule == "Uniform" else "one in its own first 5% of rounds"
    caption = (
        f"Final cumulative pseudo-regret after {world.horizon} rounds. Reference: "
        f"{names.get(reference, 'none')}, on the same runs. Linear: the regret of the second half is "
        f"more than 0.9 of the first, and a round costs more than a tenth of {limit}."
    )
    flattered = f" Tuned on these runs: {FLATTERED}." if _tuned_here(rows) else ""
    return table(lines, caption + flattered)


def _chosen(row: Row) -> str:
    """Which runs chose a point of a grid, beside its name."""
    return f" (tuned on {row['tuned_on']})" if row["tuned_on"] else ""


def _tuned_here(rows: Sequence[Row]) -> bool:
    return any(row["tuned_on"] == HERE for row in rows)


def grid_tables(summary: Summary, world: WorldSummary) -> str:
    """Every grid, all of its points, the chosen one marked."""
    frame = _shown(summary, world, "grid")
    parts = []
    for entry in dict.fromkeys(frame["entry"]):
        rows = frame.filter(polars.col("entry") == entry).to_dicts()
        lines = [
            {
                "point": row["policy"].partition("+")[2] + (" (chosen)" if row["shown"] else ""),
                **({} if _tuned_here(rows) else {"mean where chosen": row["tuning_mean"]}),
                "mean": row["mean"],
                "sd": row["sd"],
                "95% interval": interval(row["low"], row["high"]),
                "linear": share(row["share_linear"]),
            }
            for row in rows
        ]
        on = rows[0]["tuned_on"] or "no other point"
        caption = f"The grid of {entry}: final regret at every point. Chosen on {on}."
        parts.append(table(lines, caption))
    return "".join(parts)


def _effects(world: WorldSummary) -> str:
    """Reward and effect on every outcome late in the run, from least squares on the traces."""
    found = {(row["policy"], row["outcome"]): row for row in world.rows["effects"]}
    outcomes = list(dict.fromkeys(outcome for _, outcome in found))
    shown = [row for row in world.rows["policies"] if row["shown"]]
    lines = [
        {"policy": row["label"]}
        | {
            name: "{} ({})".format(
                *(number(found[row["policy"], name][k]) for k in ("mean", "size"))
            )
            for name in outcomes
        }
        for row in shown
    ]
    caption = (
        "Effect of a round on every outcome, over the last tenth of the rounds: mean (mean size). "
        f"Estimated from the traces; standard error of a mean about {number(world.facts.error)}."
    )
    return table(lines, caption)


def _queries(world: WorldSummary) -> str:
    counts: dict[str, Row] = {}
    names = {row["policy"]: row["label"] for row in world.rows["policies"] if row["shown"]}
    for row in world.rows["queries"]:
        if row["policy"] in names:
            line = counts.setdefault(row["policy"], {"policy": names[row["policy"]]})
            line[f"vector {row['vector']}"] = row["mean"]
    return table(
        list(counts.values()), "Mean number of measurements per run, by vector; 0 is the target."
    )
