"""Functions of one factor on the scale of a study, and the joint smooth part as products of few of them.

A number is u in [-1, 1] over the range of its factor; a word is one of m exchangeable levels.
"""

from functools import cache

import numpy as np

from sidestep.core.arrays import FloatArray, IntArray

BEND = np.sqrt(15.0) / 2  # gives the bend a mean variance of 1/3 over [-1, 1], that of u itself
APART = np.exp(
    -1.0
)  # correlation of the joint smooth part between two words: a squared distance of 2
NODES = 32  # of the quadrature for the smooth functions of a number
SMOOTH = 6  # smooth functions of a number that are kept: they leave out 1e-5 of the variance

LENGTH = 0.5  # of a free curve of one factor, in u
CURVES = 9  # its functions: they leave out 1e-4 of the variance


def bend(u: FloatArray) -> FloatArray:
    """The part of u^2 that is orthogonal to 1 and u on [-1, 1], of mean variance 1/3."""
    return np.asarray(BEND * (u * u - 1.0 / 3.0))


@cache
def _smooth_parts(length: float, count: int) -> tuple[FloatArray, FloatArray]:
    """Nodes, and the map from the kernel at the nodes to the largest eigenfunctions; (n,), (n, J)."""
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    root = np.sqrt(weights / 2)
    kernel = np.exp(-0.5 * ((nodes[:, None] - nodes[None, :]) / length) ** 2)
    values, vectors = np.linalg.eigh(root[:, None] * kernel * root)
    largest = np.argsort(values)[::-1][:count]
    vectors = vectors[:, largest] * np.sign(vectors[NODES // 2, largest] + 1e-300)
    return nodes, np.asarray(root[:, None] * vectors / np.sqrt(values[largest]))


def smooth(u: FloatArray, length: float = 1.0, count: int = SMOOTH) -> FloatArray:
    """Functions whose products sum to exp(-(u - u')^2 / 2 length^2), the largest first; (n, count)."""
    nodes, parts = _smooth_parts(length, count)
    return np.asarray(np.exp(-0.5 * ((u[:, None] - nodes) / length) ** 2) @ parts)


def curve(u: FloatArray) -> FloatArray:
    """Functions of a free curve: it may flatten, jump or turn within half of the range; (n, CURVES)."""
    return smooth(u, LENGTH, CURVES)


def smooth_words(count: int) -> FloatArray:
    """The same for words, whose correlation is APART: the common part, then contrasts; (m, m)."""
    contrasts = np.linalg.qr(np.column_stack([np.ones(count), np.eye(count)[:, 1:]]))[0]
    scale = np.full(count, np.sqrt(1 - APART))
    scale[0] = np.sqrt(1 - APART + count * APART)
    return np.asarray(contrasts * np.sign(contrasts[0, 0]) * scale)


def largest_products(sizes: list[FloatArray], most: int) -> IntArray:
    """The products of one function per factor with the largest mean variance; (J, factors).

    sizes holds the mean variance of every function of every factor. Only the largest products of some
    factors can be part of a largest product of more, so factors are added one at a time.
    """
    chosen, variance = np.zeros((1, 0), dtype=int), np.ones(1)
    for size in sizes:
        everything = (variance[:, None] * size).ravel()
        best = np.argsort(-everything, kind="stable")[:most]
        first, last = np.divmod(best, len(size))
        chosen = np.column_stack([chosen[first], last])
        variance = everything[best]
    return chosen


def mean_variances(count: int | None) -> FloatArray:
    """Mean variance of the smooth functions of a number (None) or of so many words."""
    if count is not None:
        return np.asarray((smooth_words(count) ** 2).mean(axis=0))
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    return np.asarray((weights / 2) @ smooth(nodes) ** 2)
