"""The end of the report: what can be concluded, and how to repeat it."""

import json
import os
import platform

from sidestep.experiments.numbers.summary import Summary
from sidestep.experiments.page.page import details, items, section, text
from sidestep.experiments.spec import Spec, parse_spec, shipped_specs

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
