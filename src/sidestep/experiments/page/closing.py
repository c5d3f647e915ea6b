"""How the report ends: beside the bounds, what is promised, how to repeat it."""

import json
import os
import platform
from collections.abc import Mapping, Sequence

from sidestep.experiments.numbers.bounds import FORMS, Pairs, upper_rows
from sidestep.experiments.numbers.summary import Summary, WorldSummary
from sidestep.experiments.numbers.traces import Row
from sidestep.experiments.page.page import (
    details,
    items,
    number,
    picture,
    section,
    slope,
    table,
    text,
)
from sidestep.experiments.spec import Spec, parse_spec, shipped_specs

NEWLINE = "\n"
UPPER = (
    "Upper bounds are proved for Protected LinUCB on the unit ball only, with probability 1 - δ, the "
    "main one for M = R = rho = 1; elsewhere, and over arms, they stand for scale. λ_min is estimated "
    "from the traces, median over runs. A bound above 2MT says nothing: nobody can lose more."
)

PROMISES = (
    "Regret is pseudo-regret: what the best action of the round would have earned, knowing the "
    "vectors, less what the action played earns, both by the reward ⟨a, θ⊥⟩. The reward is never "
    "observed; below zero is possible only where a basis vector off the menu beats the menu.",
    "Where a world has tolerances, regret is by that aim: the effect on the target less a penalty for "
    "every protected effect beyond its tolerance. Rounds beyond one are counted by the hidden vectors; "
    "no player here promises to keep a tolerance in every round.",
    "Protection is in the reward and nowhere else. On the unit ball the best action is orthogonal to "
    "every protected vector. Over finitely many arms it need not be: the best arm by this reward may "
    "move a protected outcome, even more than an unprotected choice does. Nothing here bounds a "
    "side effect on arms; the tables of effects show it.",
    "Effects and rewards late in the run are estimates: every vector by least squares from all that "
    "was measured of it in a run, by all policies together, since they meet the same world. A dash "
    "stands where nobody measured that outcome along the actions played.",
    "The regret bound is proved for Protected LinUCB on the unit ball, with an exact optimistic "
    "action. Over finitely many arms no upper bound is proved for any policy here, and optimism can "
    "lock in for good.",
    "The lower bound says that no policy does well on both instances of a pair that depends on the "
    "horizon. It is no statement about any one world.",
    "Bands are ± 1 sd between runs, as in the paper. Intervals are 95% intervals for the mean "
    "(Student, over runs); with few or skewed runs they are rough. Differences are taken run by run "
    "on the same world, arms and noise. Nothing is corrected for the number of comparisons.",
    "A tuned policy is the best point of its grid on the very runs that are shown: in its favour.",
    "The paper's CORE-SET plays basis vectors, which need not be on the menu.",
)


def theory(
    worlds: Sequence[WorldSummary], pairs: Sequence[Pairs], pictures: Mapping[str, bytes]
) -> str:
    """Measured regret beside each bound."""
    lines = [_bound_line(world, row) for world in worlds for row in upper_rows(world)]
    drawn = "".join(
        picture(png, f"Measured regret and the upper bounds ({name.removeprefix('bound-')}).")
        for name, png in pictures.items()
        if name.startswith("bound-")
    )
    parts = [f"<p>{UPPER}</p>\n" if lines else "", table(lines)]
    parts.append(f'<div class="figures">{drawn}</div>\n' if drawn else "")
    parts += [_pair(pair, pictures[f"pairs-{k}"]) for k, pair in enumerate(pairs)]
    nothing = "<p>No bound fits what was played.</p>\n" if not lines and not pairs else ""
    return section(2, "theory", "Beside the bounds", nothing, *parts)


def _bound_line(world: WorldSummary, row: Row) -> Row:
    return {
        "world": f"{world.experiment}: {world.spec.title or world.spec.id}",
        "policy": row["policy"],
        "proved here": "yes" if row["proved"] else "no",
        "λ_min": row["lambda_min"],
        "mean regret": row["mean"],
        "largest": row["largest"],
        **{f"bound, {form}": row[form] for form in FORMS},
        "CORE-SET rounds": row["core_set_rounds"],
        "at most": row["core_set_bound"],
    }


def _pair(pair: Pairs, png: bytes) -> str:
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
        f"The larger mean regret of the pair of instances, R={number(pair.noise)}, and what no "
        "policy can stay below on both. The corrected bound is for alpha = √R T^(-1/4) ≤ 1/4, "
        "and 0 elsewhere."
    )
    words = (
        "The larger of the two regrets against the horizon; exponents are fitted over all horizons."
    )
    drawn = f'<div class="figures">{picture(png, words)}</div>\n'
    return section(3, "", "The lower bound", drawn, table(list(lines.values()), caption))


def promises() -> str:
    """What a reader may conclude from all this, and what not."""
    return section(2, "promises", "What is and is not promised", items([text(p) for p in PROMISES]))


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
        "follow from it, so two policies of one run meet the same world, arms and noise.",
        "Traces: EXPERIMENT/traces/WORLD/POLICY/RUN.parquet, settings in each file's metadata; "
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
    title = "Machine, versions, seeds; how to repeat"
    return section(2, "repeat", title, items(lines), shell, *specs)


def _command(spec: Spec) -> str:
    """What plays an experiment again: a shipped one with what differs from it, or its own file."""
    text_of = shipped_specs().get(spec.name)
    if text_of is None:
        return f"sidestep run {spec.name}.toml --out DIR"
    shipped = parse_spec(text_of, spec.name)
    names = [n for n in ("runs", "horizon", "seed") if getattr(spec, n) != getattr(shipped, n)]
    flags = "".join(f" --{name} {getattr(spec, name)}" for name in names)
    data = " --data FILE" if any("path" in world.knobs for world in spec.worlds) else ""
    return f"sidestep reproduce {spec.name}{data}{flags} --out DIR"
