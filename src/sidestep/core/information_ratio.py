"""Expected regret of an action and information of its measurement, from posterior draws.

With N draws of all vectors, and values[n, k] the value of arm k under draw n:

    regret(k)    = mean over n of  max_j values[n, j] - values[n, k]
    open(k)      = s (phi(z) - z Phi(-z)),  z = m / s,  m and s the mean and the standard deviation over
                   draws of  values[n, leader] - values[n, k]:  expected gain of arm k over the leader

The leader is the arm with the largest mean value, the rival the arm with the largest open(k). If all
draws have the same winner, the expected regret of the leader is zero and nothing would be measured any
more. Therefore the expected regret is never taken as smaller than open(rival), which extrapolates
beyond the draws by a Gaussian with their moments. So a comparison that looks decided is measured more
and more rarely, but never abandoned.

A contest is a comparison of two arms a and b. The difference of their values has the gradient
g = g(a) - g(b) in every vector (projection.py, objective.py) and the variance sum_v R_v^2 |g_v|^2 in the
metric V_v^-1. Measuring vector v along an action reduces that variance by red(a, v)
(variance_reduction.py). The information of the measurement is -log(1 - red / variance), summed over
contests, per unit of cost.

The mixture with the least (regret)^2 / information measures with some probability per round, which is
right where many measurements are needed. Where one measurement settles a contest, the mixture delays it,
and the arms played meanwhile may be wrong. So a measurement that pays for itself within as many further
rounds as were already played (instead of a horizon, which the policy does not know) is made at once.
"""

from typing import NamedTuple

import numpy as np

from sidestep.core.arm_forms import Menu, scores, squares_in
from sidestep.core.arrays import FloatArray, IntArray
from sidestep.core.jit import compiled_as, kernel
from sidestep.core.linalg import apply, lowest_argmax
from sidestep.core.objective import expected_gain, expected_gains
from sidestep.core.posterior import Posterior
from sidestep.core.variance_reduction import variance

MOST_REMOVED = 1.0 - 1e-12  # largest share of a contest's variance that one measurement can remove


class Standing(NamedTuple):
    """Expected regrets, winners, leader and rival, from the posterior draws."""

    regret: FloatArray  # expected, of every arm; (K,)
    winners: IntArray  # of every draw; (N,)
    leader: int  # the arm with the largest mean
    rival: int  # the arm with the largest expected gain over the leader


def standing(values: FloatArray) -> Standing:
    """Expected regrets, winners, leader and rival, from the values of every arm and draw (N, K)."""
    N, mean = len(values), values.mean(axis=0)
    winners = np.array([lowest_argmax(drawn) for drawn in values])
    leader = lowest_argmax(mean)
    behind = mean[leader] - mean
    ahead = values[:, leader, None] - values
    ahead -= behind
    spread = np.sqrt(np.einsum("nk,nk->k", ahead, ahead) / max(N - 1, 1))
    gains = expected_gains(behind, spread)
    gains[leader] = 0.0
    rival = lowest_argmax(gains)
    top = values[np.arange(N), winners].mean()
    return Standing(max(top - mean[leader], gains[rival]) + behind, winners, leader, rival)


@compiled_as(standing)
def _standing_loop(values: FloatArray) -> Standing:
    N, K = values.shape
    winners, mean, top = np.empty(N, np.int64), np.zeros(K), 0.0
    for n in range(N):
        winners[n] = lowest_argmax(values[n])
        top += values[n, winners[n]] / N
        for k in range(K):
            mean[k] += values[n, k] / N
    leader = lowest_argmax(mean)
    gains = np.zeros(K)
    for k in range(K):
        if k != leader:
            spread = 0.0
            for n in range(N):
                ahead = values[n, leader] - values[n, k] - (mean[leader] - mean[k])
                spread += ahead * ahead / max(N - 1, 1)
            gains[k] = expected_gain(mean[leader] - mean[k], np.sqrt(spread))
    rival = lowest_argmax(gains)
    regret = np.empty(K)
    least = max(top - mean[leader], gains[rival])
    for k in range(K):
        regret[k] = least + (mean[leader] - mean[k])
    return Standing(regret, winners, leader, rival)


@kernel(small=True)
def contests(stand: Standing, most: int) -> IntArray:
    """The contests, one per row: two arms and the number of a draw; (C, 3).

    The first contest is leader against rival; then the winners of successive draws that differ, at most
    `most` of them.
    """
    found = np.empty((most + 1, 3), np.int64)
    found[0, 0], found[0, 1], found[0, 2] = stand.leader, stand.rival, 0
    count = 1
    for n in range(stand.winners.size - 1):
        first, second = stand.winners[n], stand.winners[n + 1]
        if first != second and count <= most:
            found[count, 0], found[count, 1], found[count, 2] = first, second, n
            count += 1
    return found[:count]


@kernel(small=True)
def information(posterior: Posterior, slopes: FloatArray, menu: Menu) -> FloatArray:
    """Information of measuring each vector along each arm, summed over contests; (L+1, K).

    slopes: the gradient of every contest; (C, L+1, d).
    """
    out = np.zeros((posterior.noise.size, menu.squared.size))
    square = squares_in(posterior.inverse, menu.columns)
    for contest in range(slopes.shape[0]):
        add_information(posterior, slopes[contest], menu, square, out)
    return out


def add_information(
    posterior: Posterior, slopes: FloatArray, menu: Menu, square: FloatArray, out: FloatArray
) -> None:
    """Add the information of every measurement about one contest to `out` (L+1, K).

    square: |a|^2 of every arm in the metric V_v^-1; (L+1, K)
    """
    contested = variance(posterior, slopes)
    if contested > 0.0:
        directions = (posterior.inverse @ slopes[:, :, None])[:, :, 0]
        along = posterior.noise[:, None] * (directions @ menu.columns)
        along *= along
        along /= contested * (1.0 + square)
        out -= np.log1p(
            np.negative(np.minimum(along, MOST_REMOVED, out=along), out=along), out=along
        )


@compiled_as(add_information)
def _add_information_loop(
    posterior: Posterior, slopes: FloatArray, menu: Menu, square: FloatArray, out: FloatArray
) -> None:
    contested = variance(posterior, slopes)
    if not contested > 0.0:
        return
    along = np.empty(menu.squared.size)
    for v in range(slopes.shape[0]):
        direction = apply(posterior.inverse[v], slopes[v])
        scores(menu.columns, direction, along)
        weight = posterior.noise[v] ** 2 / contested
        for k in range(along.size):
            share = weight * along[k] * along[k] / (1.0 + square[v, k])
            out[v, k] -= np.log1p(-min(share, MOST_REMOVED))


def best_measurement(information: FloatArray, costs: FloatArray) -> tuple[FloatArray, IntArray]:
    """For every arm the largest information per cost, and the vector that has it; (K,), (K,)."""
    best = information[0] / costs[0]
    vector = np.zeros(best.size, np.int64)
    for v in range(1, len(information)):
        here = information[v] / costs[v]
        is_better = here > best * (1.0 + 1e-10)
        best, vector[is_better] = np.where(is_better, here, best), v
    return best, vector


@compiled_as(best_measurement)
def _best_measurement_loop(
    information: FloatArray, costs: FloatArray
) -> tuple[FloatArray, IntArray]:
    n, K = information.shape
    best, vector = np.empty(K), np.zeros(K, np.int64)
    for k in range(K):
        best[k] = information[0, k] / costs[0]
        for v in range(1, n):
            here = information[v, k] / costs[v]
            if here > best[k] * (1.0 + 1e-10):
                best[k], vector[k] = here, v
    return best, vector


class Mixture(NamedTuple):
    """Two arms, and the probability with which the first is played."""

    first: int
    second: int
    share: float


def best_mixture(regret: FloatArray, information: FloatArray) -> Mixture:
    """The mixture of two arms with the least (regret)^2 / information.

    If arm i is played with probability q and arm j otherwise, the ratio is (r_j + q dr)^2 / (I_j + q dI)
    with dr = r_i - r_j and dI = I_i - I_j. It is least at q = (r_j dI - 2 I_j dr) / (dr dI) or at q = 0
    or 1. As arm j, only the arm of least regret and the single arm of least ratio are tried.
    """
    alone = regret * regret / np.maximum(information, 1e-300)
    single, safe = lowest_argmax(-alone), lowest_argmax(-regret)
    first, second, share, least = single, single, 1.0, alone[single]
    for j in (safe, single):
        rise, more = regret - regret[j], information - information[j]
        inside = (regret[j] * more - 2.0 * information[j] * rise) / (rise * more)
        q = np.where((rise > 0.0) & (more > 0.0), np.clip(inside, 0.0, 1.0), 1.0)
        mixed = (regret[j] + q * rise) ** 2 / np.maximum(information[j] + q * more, 1e-300)
        i = int(np.argmax(mixed <= mixed.min() * (1.0 + 1e-12)))
        if mixed[i] < least * (1.0 - 1e-12):
            first, second, share, least = i, j, q[i], mixed[i]
    return Mixture(first, second, float(share))


@compiled_as(best_mixture)
def _best_mixture_loop(regret: FloatArray, information: FloatArray) -> Mixture:
    alone, gain = np.empty(regret.size), np.empty(regret.size)
    for k in range(regret.size):
        alone[k], gain[k] = -_ratio(regret[k], information[k]), -regret[k]
    single, safe = lowest_argmax(alone), lowest_argmax(gain)
    first, second, share, least = single, single, 1.0, -alone[single]
    for j in (safe, single):
        for i in range(regret.size):
            rise, more = regret[i] - regret[j], information[i] - information[j]
            q = 1.0
            if rise > 0.0 and more > 0.0:
                q = (regret[j] * more - 2.0 * information[j] * rise) / (rise * more)
                q = min(max(q, 0.0), 1.0)
            ratio = _ratio(regret[j] + q * rise, information[j] + q * more)
            if ratio < least * (1.0 - 1e-12):
                first, second, share, least = i, j, q, ratio
    return Mixture(first, second, share)


@kernel
def picked(mixture: Mixture, coin: float) -> int:
    """The arm that is played; `coin` is uniform on [0, 1)."""
    return mixture.first if coin < mixture.share else mixture.second


@kernel
def dearer(regret: FloatArray, mixture: Mixture) -> int:
    """The arm of a mixture with the larger expected regret."""
    if regret[mixture.first] > regret[mixture.second]:
        return mixture.first
    return mixture.second


@kernel
def pays_back(least: float, price: float, information: float, rounds: float) -> bool:
    """Whether a measurement saves more regret than its price within so many rounds.

    The measurement multiplies the variance of a contest by exp(-information), and so its standard
    deviation by the square root of that factor. The expected regret per round, `least`, is proportional
    to the standard deviation.
    """
    return bool(rounds * least * (1.0 - np.exp(-0.5 * information)) > price)


@kernel
def _ratio(regret: float, information: float) -> float:
    return regret * regret / max(information, 1e-300)
