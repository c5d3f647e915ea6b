"""How fast a decision is, as ratios against numpy in the same process: `make bench`.

An absolute figure does not travel from machine to machine, a ratio does. One process, one core, CPU
time, medians of seven turns in which every contestant plays once. The rivals decide by the same rule
(Protected LinUCB, corrected surrogate, log-det radius), and the first 50 rounds are checked to be the
same arms and the same measured vectors before anything is timed.

fresh arms    100 new arms in R^6 every round, L = s = 2; the arms are given, their drawing is not timed.
              A round is choose and absorb, for everyone.
fixed arms    1832 arms in R^8, s = 1 and s = 2. Ours is the loop behind `simulate`, which corrects the
              forms of the last round; numpy works them out anew.
ask and tell  the same decision called from Python, one at a time, as a live study would.
"""

# ruff: noqa: E402  (the number of threads must be set before numpy is imported)
import os

for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[threads] = "1"

import platform
import time
from pathlib import Path
from statistics import median

import numba
import numpy as np

import sidestep as ss
from sidestep.core.compiled import kernel
from sidestep.core.estimator import absorb
from sidestep.core.forms import Menu, arm_of, empty_forms
from sidestep.environments.instance import feedback_of
from sidestep.experiments.simulate import streams_of
from sidestep.policies.dispatch import choose

TURNS = 7
SAME = 50  # rounds that everyone must decide alike
SETS = 1024  # arm sets drawn beforehand; a longer run goes through them again


@kernel
def play_given(knobs, evidence, core_set, truth, columns, squared, room, draws, played):
    """Rounds over given arm sets (n, d, K), by the kernels that `ask` and `tell` call."""
    rho, luck = knobs.confidence.rho, (np.empty(0), np.empty(0))
    for t in range(draws.size):
        given = t % columns.shape[0]
        menu = Menu(columns[given], squared[given])
        for i in range(room.filled.size):
            room.filled[i] = 0
        arm, index, _, _ = choose(knobs, evidence, core_set, menu, room, luck)
        action = arm_of(menu, arm)
        feedback = feedback_of(truth, action, index, draws[t])
        absorb(evidence, rho, action, index, feedback)
        played[t, 0], played[t, 1] = arm, index


def lowest_argmax(values):
    """Row of the largest value; of values that tie up to rounding, the lowest row."""
    largest = values.max()
    return int(np.argmax(values >= largest - 1e-10 * abs(largest)))


class Rival:
    """What both rivals keep of the past: V and its inverse, estimate and log-determinant."""

    def __init__(self, policy, instance):
        told = policy.problem
        n, d = told.n_vectors, told.dim
        self.rho, self.noise, self.bound = policy.rho, told.noise, told.norm_bound
        self.delta = policy.knobs.confidence.delta
        self.theta, self.scale = instance.theta, instance.truth.scale
        self.precision = np.tile(self.rho * np.eye(d), (n, 1, 1))
        self.inverse = np.tile(np.eye(d) / self.rho, (n, 1, 1))
        self.centre, self.logdet = np.zeros((n, d)), np.zeros(n)

    def radii(self):
        spread = np.sqrt(self.logdet - 2 * np.log(self.delta))
        return self.noise * spread + np.sqrt(self.rho) * self.bound

    def widest(self, action, radii):
        return lowest_argmax(radii * np.sqrt((self.inverse @ action) @ action))

    def absorb(self, action, index, draw):
        feedback = self.theta[index] @ action + self.scale[index] * draw
        gain = self.inverse[index] @ action
        growth = 1.0 + action @ gain
        self.precision[index] += np.outer(action, action)
        self.inverse[index] -= np.outer(gain, gain) / growth
        self.centre[index] += gain * ((feedback - action @ self.centre[index]) / growth)
        self.logdet[index] += np.log(growth)

    def play(self, menus, draws):
        """Arm and index of every round; menus is a list of (K, d), gone through again and again."""
        played = np.empty((len(draws), 2), np.int64)
        for t, draw in enumerate(draws):
            arms = menus[t % len(menus)]
            radii = self.radii()
            arm = self.choose(arms, radii)
            index = self.widest(arms[arm], radii)
            self.absorb(arms[arm], index, draw)
            played[t] = arm, index
        return played


class Pinv(Rival):
    """As it would first be written: the appendix line by line for every arm, its sign repaired."""

    def choose(self, arms, radii):
        return lowest_argmax(np.array([self.value(arm, radii) for arm in arms]))

    def value(self, a, radii):
        target = self.centre[0] + radii[0] * a / np.sqrt(a @ self.precision[0] @ a)
        protected = []
        for i in range(1, len(self.centre)):
            norm = np.sqrt(a @ self.precision[i] @ a)
            reach = radii[i] * np.linalg.norm(a) ** 2 / norm
            alpha = np.clip((reach - a @ self.centre[i]) / (2 * reach), 0, 1)
            protected.append(self.centre[i] + (2 * alpha - 1) * radii[i] * a / norm)
        span = np.array(protected).T
        projector = np.eye(len(a)) - span @ np.linalg.pinv(span)
        return a @ projector @ target


class Vectorised(Rival):
    """All arms at once: value = <a, theta_0> - p' G^-1 q with the s x s Gram matrix G of every arm."""

    def choose(self, arms, radii):
        squared = np.einsum("kd,kd->k", arms, arms)
        linear = self.centre @ arms.T  # (n, K)
        square = np.einsum("nkd,kd->nk", arms @ self.precision, arms)  # |a|_V^2
        shift = radii[:, None] / np.sqrt(square)
        np.clip(-linear[1:] / squared, -shift[1:], shift[1:], out=shift[1:])
        moved = linear + shift * squared  # <a, theta_i>
        products = self.centre @ self.centre.T
        # <c_i + s_i a, c_j + s_j a> for every pair and arm; (n, n, K)
        gram = products[:, :, None] + shift[:, None] * moved[None] + linear[:, None] * shift[None]
        return lowest_argmax(moved[0] - self.along(gram, moved))

    @staticmethod
    def along(gram, moved):
        """p' G^-1 q for all arms, by elimination in the s x s system (s is 1 or 2)."""
        one, p, q = gram[1, 1], moved[1], gram[1, 0]
        weight = np.divide(1.0, one, out=np.zeros_like(one), where=one > 0)
        along = weight * p * q
        if len(moved) == 3:
            both, two = gram[1, 2], gram[2, 2]
            share = weight * both
            left = two - share * both
            weight = np.divide(1.0, left, out=np.zeros_like(left), where=left > 1e-12 * two)
            along += weight * (moved[2] - share * p) * (gram[2, 0] - share * q)
        return along


def cpu(function, *arguments):
    """CPU seconds of one call."""
    start = time.process_time()
    function(*arguments)
    return time.process_time() - start


def rates(contestants):
    """Median rounds a second of every contestant: name -> (rounds, function)."""
    seconds = {name: [] for name in contestants}
    for _ in range(TURNS):
        for name, (_, function) in contestants.items():
            seconds[name].append(cpu(function))
    return {name: rounds / median(seconds[name]) for name, (rounds, _) in contestants.items()}


def unit_vectors(rng, *shape):
    vectors = rng.standard_normal(shape)
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def fresh_arms():
    """Rates over 100 new arms in R^6 every round, L = s = 2."""
    instance = ss.environments.synthetic(6, 2, 2, 100, noise_scale=0.1, seed=1)
    policy = ss.ProtectedLinUCB(instance.problem)
    rng = np.random.default_rng(0)
    menus = list(unit_vectors(rng, SETS, 100, 6))
    draws = rng.standard_normal(64 * SETS)
    columns = np.ascontiguousarray(np.transpose(menus, (0, 2, 1)))
    squared = np.einsum("njk,njk->nk", columns, columns)

    def ours(rounds):
        state, played = policy.init(), np.empty((rounds, 2), np.int64)
        room = empty_forms(policy.knobs.metric, 3, 100)
        play_given(
            *(policy.knobs, state.evidence, state.core_set, instance.truth),
            *(columns, squared, room, draws[:rounds], played),
        )
        return played

    decided = ours(SAME)
    for rival in (Pinv, Vectorised):
        assert (rival(policy, instance).play(menus, draws[:SAME]) == decided).all(), rival.__name__
    return rates(
        {
            "ours": (len(draws), lambda: ours(len(draws))),
            "numpy": (1000, lambda: Vectorised(policy, instance).play(menus, draws[:1000])),
            "pinv": (10, lambda: Pinv(policy, instance).play(menus, draws[:10])),
        }
    )


def fixed_arms(size):
    """Rates over 1832 fixed arms in R^8, L = s = size."""
    arms = unit_vectors(np.random.default_rng(2), 1832, 8)
    instance = ss.environments.synthetic(8, size, size, ss.Arms(arms), noise_scale=0.1, seed=3)
    policy = ss.ProtectedLinUCB(instance.problem)
    draws = streams_of(0)[1].standard_normal(500)
    decided = ss.simulate(policy, instance, SAME)
    again = Vectorised(policy, instance).play([arms], draws[:SAME])
    assert (again == np.stack([decided.arm, decided.index], axis=1)).all()
    return rates(
        {
            "ours": (20_000, lambda: ss.simulate(policy, instance, 20_000, every=20_000)),
            "numpy": (500, lambda: Vectorised(policy, instance).play([arms], draws)),
        }
    )


def ask_and_tell(n_arms, dim, size):
    """Microseconds of one `ask` and one `tell` from Python, arms and generator given."""
    arms = ss.Arms(unit_vectors(np.random.default_rng(4), n_arms, dim))
    instance = ss.environments.synthetic(dim, size, size, arms, noise_scale=0.1, seed=5)
    policy, rng = ss.ProtectedLinUCB(instance.problem), np.random.default_rng(6)
    draws = rng.standard_normal(2000) * 0.1

    def rounds():
        state = policy.init()
        for draw in draws:
            query = policy.ask(state, arms, rng).query
            state = policy.tell(state, query, draw)

    rounds()
    return 1e6 / rates({"ours": (len(draws), rounds)})["ours"]


def machine():
    """The processor and the versions that matter."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.split(":")[1].strip() for line in lines if line.startswith("model name")]
    processor = names[0] if names else platform.processor() or platform.machine()
    versions = f"Python {platform.python_version()}, numpy {np.__version__}"
    return f"{processor}; {versions}, numba {numba.__version__}, sidestep {ss.__version__}"


def main():
    """Measure and print; the exit code tells whether every target is met."""
    print(machine())
    print(f"one core, CPU time, medians of {TURNS}; K rounds/s\n")
    fresh, one, two = fresh_arms(), fixed_arms(1), fixed_arms(2)
    rows = [
        ("100 fresh arms, d=6, s=2", "pinv per arm", fresh, "pinv", 3000),
        ("100 fresh arms, d=6, s=2", "numpy", fresh, "numpy", 30),
        ("1832 fixed arms, d=8, s=1", "numpy", one, "numpy", 8),
        ("1832 fixed arms, d=8, s=2", "numpy", two, "numpy", 8),
    ]
    print(f"{'world':<27}{'ours':>9}  {'rival':<13}{'its':>9}{'ratio':>9}{'target':>9}")
    met = True
    for world, rival, rate, name, target in rows:
        ratio = rate["ours"] / rate[name]
        met = met and ratio >= target
        verdict = "pass" if ratio >= target else "falls short"
        print(
            f"{world:<27}{rate['ours'] / 1e3:>9.1f}  {rival:<13}{rate[name] / 1e3:>9.3f}"
            f"{ratio:>8,.0f}x{target:>8,}x  {verdict}"
        )
    print(f"\nask and tell from Python, 100 x 6, s=2:  {ask_and_tell(100, 6, 2):6.1f} us")
    print(f"ask and tell from Python, 1832 x 8, s=1: {ask_and_tell(1832, 8, 1):6.1f} us")
    return 0 if met else 1


if __name__ == "__main__":
    raise SystemExit(main())
