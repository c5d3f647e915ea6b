"""The tables of docs/theory.md: the ball, fixed arms that span, and a horizon that is told.

    python -m benchmarks.theory_tables                 # all of them
    python -m benchmarks.theory_tables --only ball     # or design, last, spanning, horizon

design    the three-stage policy of Theorem 13 and what its shares are worth, simulated through sufficient
          statistics: regret / (p G sqrt T) in the mean over runs, with its standard error
last      the policy of Theorem 14, s = d - 1, the same way, beside its bound
ball      policies of the package on the ball, among them the three queries of ProtectedThompson: slope of
          regret against p G sqrt(T)
spanning  the pair of Theorem 10 over three decades of T: the larger mean regret beside rate and bound
horizon   InformationDirected and DirectedThompson on the ten worlds of the panel on which more than 2% of
          runs are linear, with the horizon told, twice too long, half as long and not at all; seeds of
          the panel, and held out

Every line is printed as soon as it is known.
"""

import argparse
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import sidestep as ss
from benchmarks.guardrails import chance_cost, is_linear
from benchmarks.rivals import games
from sidestep.core import theory
from sidestep.core.arrays import FloatArray
from sidestep.core.last_direction import most_sweeps, remainder_of, tail_of
from sidestep.environments import Instance, spanning, synthetic

# ---------------------------------------------------------------- the three-stage policy

PILOT, STAGE = 0.35, 0.75  # exponents of T: sweeps of the first stage, rounds of the second
FLOOR = 0.05  # eta, what is shared equally in the second stage; in the theorem T^(-1/20)


class Shares(NamedTuple):
    """How the second stage divides its measurements among the vectors."""

    name: str
    of: Callable[[FloatArray], FloatArray]  # |x_v| R_v, (s+1,) -> shares


PROPORTIONAL = Shares("in proportion to abs(x_v)", lambda weight: weight / weight.sum())
EQUAL = Shares("equal", lambda weight: np.full(weight.size, 1 / weight.size))


def best_action(theta: FloatArray) -> FloatArray:
    """The unit vector along the target off the span of the protected vectors."""
    basis = np.linalg.qr(theta[1:].T)[0] if len(theta) > 1 else np.zeros((theta.shape[1], 0))
    rest = theta[0] - basis @ (basis.T @ theta[0])
    return rest / np.linalg.norm(rest)


def three_stages(
    theta: FloatArray, noise: float, horizon: float, shares: Shares, rng: np.random.Generator
) -> float:
    """Regret of one run; estimates are drawn from their distribution, not measured round by round."""
    n, d = theta.shape
    p = d - n
    best = best_action(theta)
    rest = theta[0] - np.linalg.lstsq(theta[1:].T, theta[0], rcond=None)[0] @ theta[1:]
    length = float(np.linalg.norm(rest))
    sweeps = np.ceil(horizon**PILOT)
    regret = sweeps * n * (d * length - (best * length).sum())  # along e_1 .. e_d, every vector
    pilot = theta + noise / np.sqrt(sweeps) * rng.standard_normal(theta.shape)
    x = np.linalg.lstsq(pilot[1:].T, pilot[0], rcond=None)[0]
    weight = np.append(1.0, np.abs(x)) * noise
    toward = best_action(pilot)
    left = pilot[0] - x @ pilot[1:]
    sides = np.linalg.svd(np.vstack([pilot[1:], toward]))[2][n:]  # (p, d)
    rounds = np.ceil(horizon**STAGE)
    budget = p * weight.sum() * np.sqrt(horizon) / np.linalg.norm(left)  # total of sin^2
    share = (1 - FLOOR) * shares.of(weight) + FLOOR / n
    sine = np.sqrt(min(budget / rounds, 1.0)) if p else 0.0
    cosine = np.sqrt(1 - sine**2)
    # a and its mirror image along every side: on average cos(phi) toward
    regret += rounds * length * (1 - cosine * (toward @ best))
    inside = np.linalg.svd(np.vstack([toward, sides]))[2][1 + p :]  # the span, from the pilot alone
    found = pilot @ inside.T @ inside
    along = theta @ toward + noise / (np.sqrt(rounds * share) * cosine) * rng.standard_normal(n)
    found = found + along[:, None] * toward
    if p:
        error = noise / (np.sqrt(rounds * share / p)[:, None] * sine) * rng.standard_normal((n, p))
        found = found + (theta @ sides.T + error) @ sides
    played = sweeps * n * d + rounds
    return float(regret + (horizon - played) * length * (1 - best_action(found) @ best))


def last_direction(
    theta: FloatArray,
    noise: float,
    phases: int,
    rng: np.random.Generator,
    pilot: FloatArray | None = None,
) -> FloatArray:
    """Regret of every phase of the policy of Theorem 14.

    pilot   its estimates of all vectors, (s+1, d); None: errors of the largest size that it allows
    """
    s = len(theta) - 1
    protected, best = theta[1:], best_action(theta)
    length = float(theta[0] @ best)
    if pilot is None:
        error = rng.standard_normal(theta.shape)
        error[0] = 0.0
        error *= np.linalg.svd(protected)[1][-1] / 16 / np.linalg.norm(error, 2)
        pilot = theta + error
        start = np.linalg.svd(pilot[1:])[2][-1]
        start = start * np.sign(start @ best)  # the pilot of the target shows the sign
    else:
        start = np.linalg.svd(pilot[1:])[2][-1]
        start = start * np.sign(start @ pilot[0])
    played, costs = start, np.empty(phases)
    for k in range(phases):
        costs[k] = s * 2.0**k * length * (1 - played @ best)
        seen = protected @ played + noise / np.sqrt(2.0**k) * rng.standard_normal(s)
        across = np.linalg.svd(played[None])[2][1:]  # (s, d), orthogonal to what is played
        moved = played - np.linalg.solve(pilot[1:] @ across.T, seen) @ across
        played = into_cone(moved / np.linalg.norm(moved), start)
    return costs


def pilot_of(world: Instance, horizon: float, rng: np.random.Generator) -> tuple[int, FloatArray]:
    """Sweeps of the first stage of Theorem 14, and its estimates of all vectors."""
    here, theta = remainder_of(world), world.theta
    most = int(most_sweeps(here, horizon))
    n = np.arange(1, most + 1)[:, None, None]
    walk = rng.standard_normal((most, *theta.shape)).cumsum(axis=0)
    found = theta + here.noise[:, None] * walk / n
    tail, roots = tail_of(here, horizon), np.sqrt(n[:, 0, 0])
    error, aim = tail * here.blur / roots, tail * here.noise[0] / roots
    _, sizes, directions = np.linalg.svd(found[:, 1:])
    shown = np.abs(np.einsum("nd,nd->n", found[:, 0], directions[:, -1]))
    narrow = 17 * error <= sizes[:, -1]
    turned = error / np.where(narrow, sizes[:, -1] - 2 * error, 1.0)
    length = np.linalg.norm(found[:, 0], axis=1) + aim
    over = narrow & (shown > aim + length * turned)
    last = int(over.argmax()) if over.any() else most - 1
    return last + 1, found[last]


def whole_run(world: Instance, horizon: float, rng: np.random.Generator) -> float:
    """Regret of the policy of Theorem 14, through sufficient statistics; equal noise."""
    here, theta = remainder_of(world), world.theta
    d, s, b = here.target.size, len(theta) - 1, here.length
    sweeps, pilot = pilot_of(world, horizon, rng)
    spent = sweeps * d * (s + 1)
    phases = max(int(np.ceil(np.log2(max(horizon - spent, 1) / s + 1))), 1)
    costs = last_direction(theta, float(here.noise[0]), phases, rng, pilot)
    costs[-1] *= max(horizon - spent - s * (2.0 ** (phases - 1) - 1), 0) / (s * 2.0 ** (phases - 1))
    return float(sweeps * (s + 1) * (d * b - here.rest.sum()) + costs.sum())


def last(runs: int) -> None:
    """Regret of the policy of Theorem 14 beside its bound."""
    print("| d, s, R | what | T = 1e6 | 1e9 | 1e12 | 1e15 |\n|---|---|---|---|---|---|")
    for dim, noise in ((2, 0.05), (3, 0.05), (4, 0.05)):
        theta = vectors(dim, dim - 1, 2)
        world = Instance(theta, ss.UnitBall(dim), noise_scale=noise)
        horizons = (1e6, 1e9, 1e12, 1e15)
        cells = []
        for horizon in horizons:
            rng = np.random.default_rng(7)
            cells.append(mean_of(np.array([whole_run(world, horizon, rng) for _ in range(runs)])))
        print(f"| {dim}, {dim - 1}, {noise} | regret | {' | '.join(cells)} |")
        bounds = [f"{theory.last_direction_bound(world, T):.0f}" for T in horizons]
        print(f"| | bound | {' | '.join(bounds)} |", flush=True)


def into_cone(direction: FloatArray, axis: FloatArray) -> FloatArray:
    """The nearest direction that makes an angle with the axis whose sine is at most 1/15."""
    off = direction - (direction @ axis) * axis
    sine = float(np.linalg.norm(off))
    if sine <= 1 / 15 and direction @ axis > 0:
        return direction
    edge: FloatArray = np.sqrt(1 - 1 / 225) * axis + off / (15 * sine)
    return edge


def vectors(dim: int, size: int, seed: int) -> FloatArray:
    """Unit vectors: the target and independent protected ones."""
    theta = np.random.default_rng(seed).standard_normal((size + 1, dim))
    return theta / np.linalg.norm(theta, axis=1, keepdims=True)


def design(runs: int) -> None:
    """Regret of the three-stage policy over p G sqrt(T)."""
    print("| d, s | shares | predicted | T = 1e10 | 1e14 | 1e18 |\n|---|---|---|---|---|---|")
    for dim, size in ((4, 1), (4, 2), (6, 2), (6, 4)):
        theta = vectors(dim, size, 1)
        world = Instance(theta, ss.UnitBall(dim), noise_scale=1.0)
        price = theory.price_of_protection(world)
        squares = 1 + float(price.coefficients @ price.coefficients)
        for shares in (PROPORTIONAL, EQUAL):
            predicted = np.sqrt((size + 1) * squares) / price.noise if shares is EQUAL else 1.0
            # the budget is set for the proportional shares: cost 1/2, gain predicted^2 / 2
            predicted = (1 + predicted**2) / 2
            cells = []
            for horizon in (1e10, 1e14, 1e18):
                rng = np.random.default_rng(7)
                costs = [three_stages(theta, 1.0, horizon, shares, rng) for _ in range(runs)]
                cells.append(mean_of(np.array(costs) / price.regret(horizon)))
            print(f"| {dim}, {size} | {shares.name} | {predicted:.2f} | {' | '.join(cells)} |")


def mean_of(values: FloatArray) -> str:
    """Mean and standard error."""
    return f"{values.mean():.2f} +- {values.std(ddof=1) / np.sqrt(len(values)):.2f}"


# ---------------------------------------------------------------- policies on the ball


def ball_world(dim: int, size: int, seed: int) -> Instance:
    return synthetic(dim, size, size, "ball", noise_scale=0.1, seed=seed)


def regrets(
    policy: Any, world: Instance, horizon: int, seed: int, at: tuple[int, ...]
) -> FloatArray:
    """Cumulative regret of a compiled run after the rounds in `at`."""
    trace = ss.simulate(policy, world, horizon, seed, every=max(horizon // 200, 1), compiled=True)
    found: FloatArray = np.interp(at, trace.round, trace.cumulative_regret)
    return found


BALL_PLAYERS: dict[str, Callable[[ss.Problem], Any]] = {
    "directed": ss.ProtectedThompson,
    "widest": lambda p: ss.ProtectedThompson(p, query="widest"),
    "proportional": lambda p: ss.ProtectedThompson(p, query="proportional"),
    "DirectedThompson": ss.DirectedThompson,
}


def ball(worlds: int, horizon: int) -> None:
    """Regret over p G sqrt(T), and the slope against p G sqrt(t) from T / 16 on."""
    print(f"| d, s | policy | regret at T / 100, T / 10, T = {horizon} | slope / (p G) |")
    print("|---|---|---|---|")
    at = (horizon // 100, horizon // 16, horizon // 10, horizon)
    for dim, size in ((3, 1), (4, 1), (4, 2), (5, 2), (4, 3)):
        for name, make in BALL_PLAYERS.items():
            if name == "DirectedThompson" and size != 1:
                continue
            rows, prices = [], []
            for seed in range(worlds):
                world = ball_world(dim, size, seed)
                price = theory.price_of_protection(world)
                rows.append(regrets(make(world.problem), world, horizon, seed, at))
                prices.append(price.directions * price.noise)
            table, paid = np.array(rows), np.array(prices)
            between = np.sqrt(horizon) - np.sqrt(at[1])
            slope = (
                "not fitted"
                if size == dim - 1
                else mean_of((table[:, 3] - table[:, 1]) / between / paid)
            )
            medians = ", ".join(f"{x:.1f}" for x in np.median(table[:, [0, 2, 3]], axis=0))
            print(f"| {dim}, {size} | {name} | {medians} | {slope} |", flush=True)


# ---------------------------------------------------------------- fixed arms that span


NOISE, STRENGTH = 0.1, 0.9
KAPPAS, HORIZONS = (0.1, 0.01), (100, 1000, 10_000, 100_000)


def explorer(problem: ss.Problem, horizon: int, kappa: float) -> ss.ExploreThenCommit:
    """Explores for 8 times the rate."""
    rounds = int(min(8 * rate_of(horizon, kappa), horizon))
    return ss.ExploreThenCommit(problem, rounds=max(rounds, 1))


SPANNING_PLAYERS: dict[str, Callable[[ss.Problem, int, float], Any]] = {
    "DirectedThompson": lambda p, T, k: ss.DirectedThompson(p),
    "InformationDirected": lambda p, T, k: ss.InformationDirected(p),
    "ExploreThenCommit": explorer,
    "epsilon-greedy": lambda p, T, k: ss.EpsilonGreedy(p, epsilon=1.0),
    "ProtectedThompson": lambda p, T, k: ss.ProtectedThompson(p),
    "ProtectedLinUCB": lambda p, T, k: ss.ProtectedLinUCB(p),
    "RoundRobinLinUCB": lambda p, T, k: ss.RoundRobinLinUCB(p),
    "OFUL": lambda p, T, k: ss.OFUL(p),
    "Uniform": lambda p, T, k: ss.Uniform(p),
}


def spanning_rows(runs: int) -> list[dict[str, Any]]:
    """The larger mean regret of every policy on the pair, with its standard error."""
    rows = []
    for kappa in KAPPAS:
        for horizon in HORIZONS:
            few = runs if horizon < 100_000 else max(runs // 2, 2)
            for name, make in SPANNING_PLAYERS.items():
                means = []
                for which in (1, 2):
                    world = spanning(horizon, which, kappa, NOISE, STRENGTH)
                    policy = make(world.problem, horizon, kappa)
                    paid = [
                        regrets(policy, world, horizon, seed, (horizon,))[0] for seed in range(few)
                    ]
                    means.append((float(np.mean(paid)), float(np.std(paid, ddof=1) / few**0.5)))
                mean, error = max(means)
                rows.append(
                    {"kappa": kappa, "T": horizon, "policy": name, "mean": mean, "error": error}
                )
                print(f"  {kappa} {horizon} {name}: {mean:.0f} +- {error:.0f}", flush=True)
    return rows


def rate_of(horizon: float, kappa: float) -> float:
    """The rate (R T / (sigma sqrt(kappa)))^(2/3)."""
    return float((NOISE * horizon / (STRENGTH * np.sqrt(kappa))) ** (2 / 3))


def spanning_table(runs: int, picture: str | None) -> None:
    """The table of the section on fixed arms that span, and its picture."""
    rows = spanning_rows(runs)
    print(f"| kappa | | {' | '.join(f'T = {horizon}' for horizon in HORIZONS)} |")
    print(f"|{'---|' * (2 + len(HORIZONS))}")
    for kappa in KAPPAS:
        rates = [f"{rate_of(horizon, kappa):.0f}" for horizon in HORIZONS]
        bounds = theory.spanning_bound(np.array(HORIZONS), kappa, NOISE, strength=STRENGTH)
        print(f"| {kappa:g} | rate | {' | '.join(rates)} |")
        print(f"| {kappa:g} | bound | {' | '.join(f'{bound:.0f}' for bound in bounds)} |")
        for name in SPANNING_PLAYERS:
            cells = [
                f"{row['mean']:.0f} ± {row['error']:.0f}"
                for row in rows
                if (row["kappa"], row["policy"]) == (kappa, name)
            ]
            print(f"| {kappa:g} | {name} | {' | '.join(cells)} |")
    if picture:
        draw(rows, picture)


def draw(rows: list[dict[str, Any]], path: str) -> None:
    """Regret of every policy against the rate and the bound, over three decades of T."""
    import matplotlib as mpl  # noqa: PLC0415  (for the picture alone)

    mpl.use("Agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415

    figure, axes = plt.subplots(1, len(KAPPAS), figsize=(9, 4.8), sharey=True, layout="constrained")
    for axis, kappa in zip(axes, KAPPAS, strict=True):
        T = np.geomspace(HORIZONS[0], HORIZONS[-1], 60)
        bound = theory.spanning_bound(T, kappa, NOISE, strength=STRENGTH)
        axis.plot(T, [rate_of(x, kappa) for x in T], "k-", label="rate")
        axis.plot(T, bound, "k--", label="lower bound")
        for marker, name in zip("osv^DPX*+", SPANNING_PLAYERS, strict=True):
            here = [row for row in rows if row["kappa"] == kappa and row["policy"] == name]
            means, errors = ([row[key] for row in here] for key in ("mean", "error"))
            axis.errorbar(HORIZONS, means, errors, marker=marker, capsize=2, label=name)
        axis.set(xscale="log", yscale="log", xlabel="T", title=f"kappa = {kappa:g}")
    axes[0].set_ylabel("larger of the two mean regrets")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, fontsize=8, loc="outside lower center", ncols=4)
    figure.savefig(path, dpi=110)


# ---------------------------------------------------------------- a horizon that is told

TOLD = (None, 1.0, 2.0, 0.5)
TEN = (  # worlds of the panel with fixed arms and more than 2% of linear runs of InformationDirected
    "low-rank-r0.1,one-hot-r1,near-parallel-r0.1,all-but-one-r0.1,interactions-r0.1,fixed-r1,"
    "one-hot-r0.1,dear-oracle-r1,blind-spot-r0.3,many-outcomes-r0.1"
)
SLOW, FEW = "30 outcomes", 0.4  # the world that takes ten times as long, and its share of the seeds
FIRST = (0, 7000)  # the panel's seeds, and held out
PLAYERS: dict[str, Callable[..., Any]] = {
    "InformationDirected": ss.InformationDirected,
    "DirectedThompson": ss.DirectedThompson,
}


def horizon_table(player: str, words: list[str], seeds: range) -> None:
    """Mean regret and linear runs of one policy, by what it is told."""
    few = seeds[: max(int(FEW * len(seeds)), 2)]
    print(f"{player}, seeds {seeds.start} to {seeds.stop - 1}, {len(few)} of them for {SLOW}")
    print("| world, T | not told | told T | told 2 T | told T / 2 |\n|---|---|---|---|---|")
    totals, logs, spreads = np.zeros(len(TOLD), int), [], []
    for game in games(words):
        if not isinstance(game.make(0).actions, ss.Arms):
            continue
        used = few if game.name.startswith(SLOW) else seeds
        paid, linear = np.zeros((len(TOLD), len(used))), np.zeros(len(TOLD), int)
        for k, share in enumerate(TOLD):
            for j, seed in enumerate(used):
                world = game.make(seed)
                told = None if share is None else int(share * game.horizon)
                policy = PLAYERS[player](world.problem, horizon=told)
                trace = ss.simulate(policy, world, game.horizon, seed, every=10, compiled=True)
                paid[k, j] = trace.cumulative_regret[-1]
                linear[k] += is_linear(trace, chance_cost(world))
        totals += linear
        means, root = paid.mean(axis=1), len(used) ** 0.5
        errors = paid.std(axis=1, ddof=1) / root
        cells = [
            f"{mean:.1f} +- {error:.1f}, {count}"
            for mean, error, count in zip(means, errors, linear, strict=True)
        ]
        share_of = paid / means[:, None]
        logs.append(np.log(means / means[0]))
        spreads.append((share_of - share_of[0]).std(axis=1, ddof=1) / root)  # of the log ratio
        print(f"| {game.name}, {game.horizon} | {' | '.join(cells)} |", flush=True)
    ratios = np.exp(np.mean(logs, axis=0))
    errors = ratios * np.sqrt((np.array(spreads) ** 2).sum(axis=0)) / len(logs)
    cells = [
        f"{ratio:.3f} +- {error:.3f}, {count}"
        for ratio, error, count in zip(ratios, errors, totals, strict=True)
    ]
    print(f"| geometric mean of the ratios, linear runs | {' | '.join(cells)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", default="design,last,ball,spanning,horizon", help="which tables")
    parser.add_argument("--runs", type=int, default=6, help="runs of a cell of `spanning`")
    parser.add_argument("--picture", help="file for the picture of `spanning`")
    parser.add_argument("--worlds", type=int, default=10, help="worlds of a row of `ball`")
    parser.add_argument("--rounds", type=int, default=100_000, help="T of `ball`")
    parser.add_argument("--seeds", type=int, default=50, help="seeds of `horizon`")
    parser.add_argument("--first", type=int, nargs="+", default=FIRST, help="first of them")
    parser.add_argument("--players", default=",".join(PLAYERS), help="of `horizon`")
    parser.add_argument("--words", default=TEN, help="worlds of `horizon`")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    tables = asked.only.split(",")
    if "design" in tables:
        design(400)
    if "last" in tables:
        last(200)
    if "ball" in tables:
        ball(asked.worlds, asked.rounds)
    if "spanning" in tables:
        spanning_table(asked.runs, asked.picture)
    if "horizon" in tables:
        for player in asked.players.split(","):
            for first in asked.first:
                seeds = range(first, first + asked.seeds)
                horizon_table(player, asked.words.split(","), seeds)


if __name__ == "__main__":
    main()
