"""Common to the policies that draw from the posterior: knobs, the first state, the rank review."""

from typing import NamedTuple, Protocol

from sidestep.core.actions import Actions
from sidestep.core.arm_forms import COVARIANCE
from sidestep.core.arrays import FloatArray
from sidestep.core.checks import check_integer, check_probability
from sidestep.core.confidence import Confidence
from sidestep.core.coreset import next_check
from sidestep.core.estimator import no_evidence
from sidestep.core.pooled import first_directions, resolution_of, review_directions, spectrum_of
from sidestep.core.posterior import Posterior, Prior, effects_alone, prior_of, relative_costs
from sidestep.core.problem import Problem
from sidestep.core.rank import Spectrum
from sidestep.core.width import doubting_posterior_of
from sidestep.errors import InputError
from sidestep.policies.base import PHASES, PLAY, State
from sidestep.policies.compiled_policy import FOREVER
from sidestep.policies.knobs import confidence_for
from sidestep.policies.state import Fingerprint


class SamplingKnobs(Protocol):
    """The common knobs of these policies."""

    @property
    def prior(self) -> Prior:
        """The prior of all vectors."""

    @property
    def rank(self) -> int:
        """The rank s, or -1 where the state's `core_set` has it (core/pooled.py)."""


class Sampler(Protocol):
    """A policy that draws from the posterior."""

    @property
    def problem(self) -> Problem:
        """What the policy knows about the problem."""

    @property
    def knobs(self) -> SamplingKnobs:
        """The knobs as compiled code reads them."""

    @property
    def delta(self) -> float:
        """Level of the tests for the rank."""

    def fingerprint(self) -> Fingerprint:
        """Whose states these are."""


class CommonKnobs(NamedTuple):
    """The first fields of the knobs of these policies, in this order."""

    metric: int
    confidence: Confidence
    prior: Prior
    rank: int
    costs: FloatArray


def common_knobs(
    problem: Problem, rho: float | None, memory: float | None, delta: float, doubt: float = 0.0
) -> CommonKnobs:
    """The common knobs, checked here; doubt: level of the test whether M is too large."""
    check_probability("delta", delta)
    within = problem.tolerance is not None
    if problem.subspace_dim is None and not within:
        resolution_of(problem)
    prior = prior_of(problem, rho, doubt)
    confidence = confidence_for(
        problem,
        rho=rho,
        delta=0.05,
        needs_noise=False,
        memory=memory,
        follows_tolerances=True,
        learns_levels=True,
    )
    rank = problem.n_protected if within else -1  # within tolerances no rank is needed
    rank = rank if problem.subspace_dim is None else problem.subspace_dim
    confidence = confidence._replace(rho=prior.rho)
    return CommonKnobs(COVARIANCE, confidence, prior, rank, relative_costs(problem))


def horizon_of(horizon: int | None, *, looks_ahead: bool) -> float:
    """The knob `horizon` as kernels read it, 0 for None; checked here."""
    if horizon is None:
        return 0.0
    check_integer("horizon", horizon, low=1)
    if not looks_ahead:
        raise InputError(
            "horizon must be None here: with caution, or with tolerances and learned levels, "
            f"this policy does not look ahead, got {horizon}"
        )
    return float(horizon)


def first_state(policy: Sampler) -> State:
    """State before the first round; where the rank is unknown, rank 1 is assumed."""
    problem = policy.problem
    evidence = no_evidence(policy.knobs.prior.rho, problem.width)
    return State(evidence, first_directions(problem), policy.fingerprint())


def rounds_until_rank_review(policy: Sampler, state: State) -> int:
    """Rounds until a tenth more has been measured; then an unknown rank is reviewed."""
    return FOREVER if policy.knobs.rank >= 0 else next_check(state.round) - state.round


def review_rank(policy: Sampler, state: State) -> None:
    """Review which directions are REAL and which are OPEN (core/pooled.py), in place."""
    prior = policy.knobs.prior
    posterior = _effects(policy, state)
    review_directions(policy.problem, posterior, prior.variance, policy.delta, state.core_set)


def rank_spectrum(policy: Sampler, state: State) -> Spectrum | None:
    """Evidence about the rank; None if the policy knows it."""
    prior = policy.knobs.prior
    if policy.knobs.rank >= 0:
        return None
    posterior = _effects(policy, state)
    return spectrum_of(policy.problem, posterior, prior.variance, policy.delta)


def _effects(policy: Sampler, state: State) -> Posterior:
    """Marginal posterior of the effects, with the levels integrated out."""
    posterior = doubting_posterior_of(policy.knobs.prior, state.evidence)
    return effects_alone(posterior, policy.problem.intercept)


def judges_alone_within(policy: Sampler, phase: str, actions: Actions) -> bool:
    """Whether the measurement is for the value of the action itself: true of play within tolerances."""
    return policy.problem.limits is not None and phase == PHASES[PLAY]
