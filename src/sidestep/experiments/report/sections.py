"""The sections of the report: numbers of a summary as tables and sentences."""

import json
import math
import os
import platform
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars
from matplotlib.markers import MarkerStyle

from sidestep.experiments.analysis.bounds import FORMS, Pairs, upper_rows
from sidestep.experiments.analysis.run_facts import Row
from sidestep.experiments.analysis.summary import Summary, WorldSummary
from sidestep.experiments.analysis.tuning import FLATTERED, HERE
from sidestep.experiments.figures.styles import Rendered, Style
from sidestep.experiments.report.html import (
    brief,
    details,
    interval,
    items,
    number,
    picture,
    pictures_row,
    section,
    share,
    slope,
    table,
    text,
)
from sidestep.experiments.spec import Spec, parse_spec, shipped_specs

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


UPPER = (
    "The upper bounds are proved only for Protected LinUCB on the unit ball, with probability 1 - δ, "
    "and the main one for M = R = rho = 1. Over arms they are shown for comparison. λ_min is estimated "
    "from the traces (median over runs). A bound above 2MT is vacuous: no policy can lose more."
)
BOUND = (
    "Mean regret and the bounds on logarithmic axes, {}. Our bound for posterior sampling is an "
    "average over the prior; it needs L = s."
)
PRICE = (
    "Mean regret over p G √t, {}: p = d-s-1, G = R_0 + Σ |x_i| R_i, estimated from the traces (mean over "
    "runs). For every policy the limit is 1 or more, near any world, and one policy reaches it."
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
    drawn += [
        picture(pictures[name].svg, PRICE.format(world.title))
        for world in worlds
        if (name := f"price-{world.experiment}-{world.spec.id}") in pictures
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


NEWLINE = "\n"
PROMISES = (
    "Regret is pseudo-regret: the reward ⟨a, θ⊥⟩ of the best action of the round minus that of the "
    "action played. The reward is never observed. Regret can be negative only if a basis vector that "
    "is not in the list of arms is played and beats the list.",
    "If a world has tolerances, the reward is the effect on the target minus a penalty for every "
    "protected effect beyond its tolerance. Rounds beyond a tolerance are counted with the true "
    "vectors; no player promises to keep a tolerance in every round.",
    "Protection is part of the reward only. On the unit ball the best action is orthogonal to every "
    "protected vector. In a finite list the best arm by this reward may move a protected outcome, even "
    "more than an unprotected choice. No side effect is bounded there; the tables of effects show "
    "them.",
    "Effects and rewards late in the run are estimates: every vector is fitted by least squares to all "
    "its measurements in a run, by all policies together, because they play the same world. A dash "
    "means that no policy measured that outcome along the played actions.",
    "The regret bound is proved for Protected LinUCB on the unit ball, with an exact optimistic "
    "action. Over finitely many arms no upper bound is proved for any policy here, and optimism can "
    "lock in for good.",
    "The lower bound says that no policy does well on both instances of a pair that depends on the "
    "horizon. It says nothing about a single world.",
    "Bands are ± 1 sd between runs, as in the paper. Intervals are 95% intervals for the mean "
    "(Student, over runs); with few or skewed runs they are rough. Differences are taken run by run "
    "on the same world, arms and noise. Nothing is corrected for the number of comparisons.",
    "A tuned policy is one point of its grid. Seeds of their own choose it where the experiment has "
    "tune_seeds, and then its intervals are like all others. Without them it is the best point on the "
    "runs shown; that favours it, and its intervals do not include this.",
    "The paper's CORE-SET plays basis vectors, which need not be in the list of arms.",
)


def promises() -> str:
    """What a reader may conclude from the report, and what not."""
    lines = items([text(p) for p in PROMISES])
    return section(2, "promises", "What is and is not promised", lines)


def repeat(summary: Summary) -> str:
    """Machine, versions, seeds, commands, and the settings to the last knob."""
    commands = [_command(spec) for spec in summary.specs]
    found = sorted({words for world in summary.worlds for words in world.versions})
    versions = [" ".join(f"{k} {v}" for k, v in json.loads(words).items()) for words in found]
    machine = f"{platform.platform()}, {platform.machine()}, {os.cpu_count()} cores"
    lines = [
        f"Report built on {text(machine)}, Python {platform.python_version()}.",
        f"Traces written with {text('; '.join(versions))}.",
        "Run r of an experiment has the seed of the experiment + r: world, arms, noise and choices "
        "follow from it, so two policies in one run see the same world, arms and noise.",
        "Traces: EXPERIMENT/traces/WORLD/POLICY/RUN.parquet, runs that only choose the point of a grid "
        "in EXPERIMENT/tuning, settings in each file's metadata; "
        "tables as CSV in tables/, figures as PNG and SVG in figures/.",
    ]
    commands.append("sidestep report DIR   # this page again, from the traces")
    shell = f"<pre>{text(NEWLINE.join(commands))}</pre>\n"
    settings = [
        (spec.name, spec.model_dump_json(indent=1, exclude_defaults=True)) for spec in summary.specs
    ]
    specs = [
        details(f"Settings of {name}", f"<pre>{text(knobs)}</pre>\n") for name, knobs in settings
    ]
    folded = details("Machine, versions, seeds, files", items(lines))
    return section(2, "repeat", "How to reproduce it", shell, folded, *specs)


def _command(spec: Spec) -> str:
    """The command that repeats an experiment: a shipped one with its changed settings, or its file."""
    text_of = shipped_specs().get(spec.name)
    if text_of is None:
        return f"sidestep run {spec.name}.toml --out DIR"
    shipped = parse_spec(text_of, spec.name)
    names = [n for n in ("runs", "horizon", "seed") if getattr(spec, n) != getattr(shipped, n)]
    flags = "".join(f" --{name} {getattr(spec, name)}" for name in names)
    data = " --data FILE" if any("path" in world.knobs for world in spec.worlds) else ""
    return f"sidestep reproduce {spec.name}{data}{flags} --out DIR"


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
