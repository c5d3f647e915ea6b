"""Tables of real experiments as worlds: settings that somebody measured, with mean results as the truth.

The tables are read from a folder and are no part of this project; goals, limits and baselines are ours.

compiler   gcc_2mm.csv: flags of a compiler; time of a run, size and time of the compilation
lipid      lnp_cbd.csv: lipid particles that carry a drug; loading, logarithm of the diameter, efficiency
slump      slump.csv: concrete; strength, slump and flow
olive      olea_mae.csv: extraction from olive leaves; three phenols
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.bend_worlds import World
from sidestep import Factor


def _world(
    name: str, table, factors, goal: str, sign: int, limits: dict, noise: dict, base: int
) -> World:
    table = table.reset_index(drop=True)

    def value(cell):
        return cell if isinstance(cell, str) else float(cell)

    settings = tuple({f: value(table[f].iloc[i]) for f in factors} for i in range(len(table)))
    axes = tuple(
        Factor(f, levels=sorted({row[f] for row in settings}), baseline=settings[base][f])
        for f in factors
    )
    outcomes = (goal, *limits)
    truth = np.array([table[o].to_numpy(float) for o in outcomes])
    pad = 0.1 * (truth.max(axis=1) - truth.min(axis=1))
    ranges = np.column_stack([truth.min(axis=1) - pad, truth.max(axis=1) + pad])
    return World(
        name,
        axes,
        settings,
        outcomes,
        truth,
        ranges,
        np.array([noise[o] for o in outcomes], float),
        tuple(limits.values()),
        sign,
    )


def compiler(folder: Path) -> World:
    t = pd.read_csv(folder / "gcc_2mm.csv")
    flags = ["floop_interchange", "fprefetch_loop_arrays", "ffloat_store", "fno_asm"]
    t[flags] = t[flags].astype(float)
    t["exec"], t["ctime"], t["size"] = np.log10(t["exec"]), np.log10(t["ctime"]), t["size"] / 1000
    base = int(np.flatnonzero((t.optim == "-O1") & (t[flags] == 0).all(axis=1))[0])
    limits = {"size": (None, 0.25), "ctime": (None, 0.08)}
    return _world(
        "compiler",
        t,
        ["optim", *flags],
        "exec",
        -1,
        limits,
        {"exec": 0.01, "size": 0.02, "ctime": 0.02},
        base,
    )


def lipid(folder: Path, log: bool = True) -> World:
    t = pd.read_csv(folder / "lnp_cbd.csv")
    size = "log10_diameter" if log else "diameter_nm"
    t["lipid"] = t.solid_lipid + " " + t.surfactant.astype(str)
    first = (
        (t.drug_input == 12)
        & (t.solid_lipid == "Compritol_888")
        & (t.liquid_input == 12)
        & (t.surfactant == 0.0025)
    )
    if not first.any():
        first = (
            (t.drug_input == 12)
            & t.solid_lipid.str.startswith("Compritol")
            & (t.surfactant > 0.001)
        )
    base = int(np.flatnonzero(first)[0])
    at = t[size].iloc[base]
    limit = (np.log10(0.8), np.log10(1.2)) if log else (-0.2 * at, 0.2 * at)
    noise = {"drug_loading": 0.005, size: 0.02 if log else 0.05 * at, "encap_eff": 0.02}
    return _world(
        "lipid",
        t,
        ["drug_input", "liquid_input", "lipid"],
        "drug_loading",
        1,
        {size: limit, "encap_eff": (-0.05, None)},
        noise,
        base,
    )


def slump(folder: Path) -> World:
    t = pd.read_csv(folder / "slump.csv")
    factors = list(t.columns[:7])
    t = t.drop_duplicates(factors)
    middle = t[(t.slump > 15) & (t.slump < 25)].compressive_strength
    base = t.index.get_loc((middle - middle.median()).abs().idxmin())
    noise = {"compressive_strength": 1.0, "slump": 1.0, "flow": 2.0}
    return _world(
        "slump",
        t,
        factors,
        "compressive_strength",
        1,
        {"slump": (-4, 4), "flow": (-8, 8)},
        noise,
        int(base),
    )


def olive(folder: Path) -> World:
    t = pd.read_csv(folder / "olea_mae.csv")
    factors = ["temperature_C", "time_min", "ramp_min"]
    goal, *harms = ["tyrosol_mg_g", "verbascoside_mg_g", "oleuropein_mg_g"]
    groups = t.groupby(factors, observed=True)
    size = groups.size()
    noise = {
        o: float(np.sqrt(((size - 1) * groups[o].var()).sum() / (size - 1).sum()))
        for o in (goal, *harms)
    }
    mean = t.groupby(factors, as_index=False)[[goal, *harms]].mean()
    base = int(t.groupby(factors, as_index=False).size()["size"].to_numpy().argmax())
    at = mean.iloc[base]
    return _world(
        "olive",
        mean,
        factors,
        goal,
        1,
        {o: (-0.1 * at[o], 0.1 * at[o]) for o in harms},
        noise,
        base,
    )


TABLES: dict[str, Callable[[Path], World]] = {
    "compiler": compiler,
    "lipid": lipid,
    "slump": slump,
    "olive": olive,
}
