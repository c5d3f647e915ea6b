"""The paper's remark on the rank, played: what is decided, when, and at what cost.

theta_1 = (1, 0, 0), theta_2 = (1, Delta, 0), both over sqrt(1 + Delta^2), theta_0 = (0.48, 0.64, 0.6);
R = 0.1, 50 fresh arms a round. For every Delta > 0 the side effects span two dimensions; as Delta falls
the second can be seen less and less. DirectedThompson is told a resolution of 0.1 (the smallest
singular value that matters), and its regret is set beside that of one who is told s = 2. Prints a
Markdown table: `python benchmarks/remark.py`.
"""

from dataclasses import replace

import numpy as np

import sidestep as ss
from sidestep.environments import FreshArms, Instance
from sidestep.experiments.simulate import play

WEAK = (1.0, 0.5, 0.3, 0.2, 0.1, 0.05, 0.01)
ROUNDS, RUNS, RESOLUTION = 2000, 20, 0.1


def world(weak):
    """The remark's instance."""
    theta = np.array([[0.48, 0.64, 0.6], [1.0, 0.0, 0.0], [1.0, weak, 0.0]])
    theta[1:] /= np.sqrt(1 + weak**2)
    return Instance(theta, FreshArms(50, 3), noise_scale=0.1)


def decided(instance, seed):
    """The round from which two directions were taken for real for good, or None; and the regret."""
    policy = ss.DirectedThompson(
        replace(instance.problem, subspace_dim=None, resolution=RESOLUTION)
    )
    since, regret, seen = None, 0.0, None
    for turn in play(policy, instance, ROUNDS, seed):
        two = turn.state.ranks.assumed == 2
        since = (since or turn.number) if two else None
        regret += turn.regret
        seen = turn.decision.spectrum
    return since, regret, seen


def main():
    """One row for every Delta."""
    print(
        f"| Delta | sigma_2 | rank 2 at round {ROUNDS} | decided in round (median) | certain / open "
        "at the end | regret | regret, told s |\n|---|---|---|---|---|---|---|"
    )
    for weak in WEAK:
        instance = world(weak)
        sigma = np.linalg.svd(instance.theta[1:], compute_uv=False)[1]
        runs = [decided(instance, seed) for seed in range(RUNS)]
        when = [since for since, _, _ in runs if since is not None]
        told = [
            ss.simulate(ss.DirectedThompson(instance.problem), instance, ROUNDS, seed, every=ROUNDS)
            for seed in range(RUNS)
        ]
        certain = np.mean([seen.separated for _, _, seen in runs])
        still = np.mean([seen.undecided for _, _, seen in runs])
        middle = f"{np.median(when):.0f}" if when else "-"
        print(
            f"| {weak:g} | {sigma:.3f} | {len(when)} of {RUNS} | {middle} | {certain:.1f} / "
            f"{still:.1f} | {np.mean([regret for _, regret, _ in runs]):.1f} | "
            f"{np.mean([trace.cumulative_regret[-1] for trace in told]):.1f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
