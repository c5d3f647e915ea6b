"""What earlier studies teach the next one: the population that their effects are drawn from.

In study p the weights of straight parts, words and bends (the pooled ones) are

    w_p ~ N(m, t^2 V),   m ~ N(0, (1 - t^2) V),   V = c^2 S0^2 diag(v),

so that a first study has the usual prior whatever t is. What acts strongly also differs more: t^2 V is
multiplied, weight by weight, by a number whose mean over the weights of a kind is 1, and which grows with
the square of m as it is believed before. How much studies differ, t, is on a grid, and so
are c and the shapes; all are averaged by what the results of the earlier studies say. Everything else of
a study (its level, free curves, interactions, own effects) is its own and has the usual prior.

What is kept is the prior of the next study: for every t its weight and the mean and a root of the
covariance of the pooled weights; what was learned of sizes; and nothing of any study alone. What was
learned of shapes is left out: a world that bends otherwise than any shape taught the wrong one.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sidestep.core.arrays import FloatArray, IntArray
from sidestep.studies.learning.features import Features, Kind
from sidestep.studies.learning.knowledge import (
    EARLIER,
    STRANGER,
    Knowledge,
    Part,
    Variants,
)
from sidestep.studies.learning.observations import Sums
from sidestep.studies.learning.posterior import Design, Shape, log_sum, shapes_of
from sidestep.studies.learning.prior import BLOCK, LEVEL, S0, Prior
from sidestep.studies.learning.rows import Extreme, rows_of

STRANGE = 0.2  # prior chance that the next study has nothing to do with the earlier ones
SCALES = (0.05, 0.1, 0.2, 0.35, 0.6, 1.0)  # t
PROPORTION = 0.7  # of what studies differ by, that grows with the population's effect
USUAL = 0.5  # the scale of its half-Cauchy prior
LEAST = -4.0  # of the logarithm of what they say of a size, which may be otherwise
NEIGHBOURS = 2  # scales that are taken together where the next study begins
RARE = 0.03  # weight of a scale from which it counts
POOLED = (Kind.STRAIGHT, Kind.WORDS, Kind.BEND)


@dataclass(frozen=True, eq=False)
class Pooled:
    """What earlier studies say of one outcome.

    weights   of the scales t; sum to 1
    means     of the pooled weights of the next study, for every t; (t, q)
    roots     of their covariance, lower triangular; (t, q, q)
    sizes     logarithms of what they say of c
    """

    weights: FloatArray
    means: FloatArray
    roots: FloatArray
    sizes: FloatArray


@dataclass(frozen=True, eq=False)
class Lesson:
    """An earlier study.

    features   of its settings
    sums       of its results, by outcome
    noises     s.d. of one result, by outcome
    gross      results that are likely grossly wrong, by outcome; they teach nothing
    """

    features: Features
    sums: Sequence[Sums]
    noises: Sequence[float]
    gross: Sequence[Sequence[Extreme]]


def pooled_columns(features: Features) -> IntArray:
    """The columns that studies share."""
    return np.flatnonzero(np.isin(features.kinds, POOLED))


@dataclass(frozen=True, eq=False)
class _Said:
    """A study's likelihood of its pooled weights w: exp(fixed - w'precision w/2 + w'right)."""

    precision: FloatArray  # (shapes, sizes, q, q)
    right: FloatArray  # (shapes, sizes, q)
    fixed: FloatArray  # (shapes, sizes)


def pooled(
    features: Features,
    prior: Prior,
    outcome: int,
    lessons: Sequence[Lesson],
) -> Pooled:
    """Work out the population of an outcome from earlier studies."""
    shapes = shapes_of(prior, features, [Part(EARLIER, 1.0)])
    columns = pooled_columns(features)
    said = [
        _said(each, prior, shapes, columns, outcome) for each in lessons if each.sums[outcome].rows
    ]
    terms = prior.terms(features)[:, columns]
    unit = np.array([shape.factors[:-1] @ terms for shape in shapes])  # (shapes, q)
    sizes = prior.centres.array
    variance = (sizes[:, None] * S0) ** 2 * np.maximum(unit[:, None], 1e-12)  # (shapes, sizes, q)
    alike = np.ones(len(columns))
    first = _averaged(prior, shapes, said, variance, alike)
    acts = _shares(features.kinds[columns], first.weights @ first.means)
    return _averaged(prior, shapes, said, variance, (1 - PROPORTION) * alike + PROPORTION * acts)


def _shares(kinds: IntArray, means: FloatArray) -> FloatArray:
    """Squares of the population's weights, in the mean of those of their kind."""
    found = np.ones(len(means))
    for kind in np.unique(kinds):
        squares = means[kinds == kind] ** 2
        if squares.sum() > 0:
            found[kinds == kind] = squares / squares.mean()
    return found


def _averaged(
    prior: Prior,
    shapes: Sequence[Shape],
    said: Sequence[_Said],
    variance: FloatArray,
    unlike: FloatArray,
) -> Pooled:
    """The population, shapes and sizes averaged; unlike: how much studies differ in a weight, squared."""
    weights, means, squares = [], [], []
    for scale in SCALES:
        log, mean, square = _population(said, variance, scale, unlike)
        weights.append(log)
        means.append(mean)
        squares.append(square)
    chance = np.array(prior.centres.weights) @ prior.sizes_given_centre
    size_log = np.log(chance / chance.sum())
    shape_log = np.array([shape.log_weight for shape in shapes])
    shape_log = shape_log - log_sum(shape_log, 0)
    scale_log = np.log([t / (1 + (t / USUAL) ** 2) for t in SCALES])
    logs = np.array(weights) + scale_log[:, None, None] + shape_log[:, None] + size_log
    logs = logs - log_sum(logs.ravel(), 0)
    weight = np.exp(logs)  # (scales, shapes, sizes)
    by_scale = weight.sum(axis=(1, 2))
    share = weight / np.maximum(by_scale, 1e-300)[:, None, None]
    middle = np.einsum("tsc,tscq->tq", share, np.array(means))
    apart = np.array(means) - middle[:, None, None]
    spread = np.einsum("tsc,tscqp->tqp", share, np.array(squares))
    spread = spread + np.einsum("tsc,tscq,tscp->tqp", share, apart, apart)
    return Pooled(
        by_scale,
        middle,
        np.linalg.cholesky(spread + 1e-14 * np.eye(len(unlike))),
        _news(weight.sum(axis=(0, 1)), np.exp(size_log)),
    )


def _news(after: FloatArray, before: FloatArray) -> FloatArray:
    """Logarithms of how much likelier something has become, never much less likely."""
    found = np.log(np.maximum(after, 1e-300) / before)
    found = np.maximum(found - found.max(), LEAST)
    return np.asarray(found - np.log(before @ np.exp(found)))


def _said(
    lesson: Lesson, prior: Prior, shapes: Sequence[Shape], columns: IntArray, outcome: int
) -> _Said:
    """What one study says of its pooled weights, everything else of it averaged."""
    features, noise = lesson.features, lesson.noises[outcome]
    design = Design(features, rows_of(lesson.sums[outcome], lesson.gross[outcome]), prior)
    rows = design.rows
    measured = rows.side == 0  # what was below a limit of detection says too little
    share = np.ones(features.count)
    share[columns] = 0.0
    zero = np.zeros(features.count)
    rest = Knowledge(share, zero, zero, np.zeros((features.count, 0)))
    kernel = np.tensordot(
        np.array([shape.factors for shape in shapes]), design.kernels(rest), 1
    )  # (shapes, n, n)
    own = np.where(rows.told == 0.0, noise**2, rows.told) / rows.weight + rows.extra
    prior_sd = np.array([LEVEL, 0.0, BLOCK])[design.kinds]
    fixed = np.diag(own) + (design.columns * prior_sd**2) @ design.columns.T
    sizes = (prior.centres.array * S0) ** 2
    whole = fixed + sizes[:, None, None] * kernel[:, None]  # (shapes, sizes, n, n)
    whole = whole[:, :, measured][:, :, :, measured]
    y, rows_of_features = rows.mean[measured], design.features[measured][:, columns]
    solved = np.linalg.solve(whole, np.column_stack([rows_of_features, y]))
    turned, left = solved[..., :-1], solved[..., -1]
    log = np.linalg.slogdet(whole)[1] + left @ y
    return _Said(rows_of_features.T @ turned, left @ rows_of_features, -0.5 * log)


def _population(
    said: Sequence[_Said], variance: FloatArray, scale: float, unlike: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Log likelihood of all results, mean and covariance of the next study's pooled weights; given t."""
    q = variance.shape[-1]
    eye = np.eye(q)
    between = scale**2 * variance * unlike  # (shapes, sizes, q)
    common = np.maximum(1 - scale**2, 1e-6) * variance
    precision: FloatArray = eye / common[..., None, :]
    right = np.zeros(variance.shape)
    log = -0.5 * np.log(common).sum(axis=-1)
    for each in said:
        # the likelihood of m, with the study's own deviation from it averaged
        inner = eye + between[..., :, None] * each.precision
        log = log + each.fixed - 0.5 * np.linalg.slogdet(inner)[1]
        pulled = np.linalg.solve(inner, between[..., None] * each.right[..., None])[..., 0]
        log = log + 0.5 * (each.right * pulled).sum(axis=-1)
        turned = np.linalg.inv(inner)  # (1 + T A)^-1
        precision = precision + each.precision @ turned
        right = right + (each.right[..., None, :] @ turned)[..., 0, :]
    square = np.linalg.inv(precision)
    square = (square + square.swapaxes(-1, -2)) / 2
    mean = (square @ right[..., None])[..., 0]
    log = log + 0.5 * (right * mean).sum(axis=-1) - 0.5 * np.linalg.slogdet(precision)[1]
    return log, mean, square + between[..., None] * eye


def _together(found: Pooled) -> list[tuple[float, FloatArray, FloatArray]]:
    """Weights, means and roots with neighbours among the scales taken as one Gaussian."""
    taken: list[tuple[float, FloatArray, FloatArray]] = []
    for first in range(0, len(found.weights), NEIGHBOURS):
        some = slice(first, first + NEIGHBOURS)
        weight = float(found.weights[some].sum())
        share = found.weights[some] / max(weight, 1e-300)
        mean = share @ found.means[some]
        apart = np.sqrt(share)[:, None] * (found.means[some] - mean)
        inner = np.sqrt(share)[:, None, None] * found.roots[some]
        square = np.einsum("tqk,tpk->qp", inner, inner) + apart.T @ apart
        taken.append((weight, mean, np.linalg.cholesky(square + 1e-14 * np.eye(len(mean)))))
    return taken


def parts_of_pooled(
    features: Features,
    prior: Prior,
    found: Sequence[Pooled],
    expected: Sequence[Variants | None] | None = None,
) -> tuple[Part, Part]:
    """The next study is like the earlier ones, or a stranger with effects of sizes like theirs.

    expected   what else is told of the outcomes (None: nothing), which counts for a stranger
    """
    columns, count = pooled_columns(features), features.count
    ones, zero, none = np.ones(count), np.zeros(count), np.zeros((count, 0))
    share = ones.copy()
    share[columns] = 0.0
    alike: list[Variants] = []
    strange: list[Variants] = []
    for each, told in zip(found, expected or [None] * len(found), strict=True):
        sizes = each.sizes if len(each.sizes) == len(prior.centres.values) else None
        variants = []
        for weight, middle, half in _together(each):
            if weight > RARE:
                mean, root = zero.copy(), np.zeros((count, len(columns)))
                mean[columns], root[columns] = middle, half
                root = root[:, (np.abs(root) > 1e-5).any(axis=0)]
                variants.append((float(weight), Knowledge(share, mean, zero, root, sizes)))
        alike.append(variants)
        strange.append(told or [(1.0, Knowledge(ones, zero, zero, none, sizes))])
    return Part(EARLIER, 1 - STRANGE, alike), Part(STRANGER, STRANGE, strange)
