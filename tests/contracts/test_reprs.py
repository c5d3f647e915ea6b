"""What a notebook or a debugger shows is short: one line, and no arrays."""

import numpy as np
import pytest

import sidestep as ss

WORLD = ss.environments.synthetic(
    dim=6, n_protected=4, subspace_dim=2, arms="fixed:100", noise_scale=0.1, seed=0
)


@pytest.fixture(scope="module")
def study():
    made = ss.Study.create(
        "brew",
        "memory:",
        factors=[ss.Factor("grind", 1, 9, step=1, baseline=5)],
        target=ss.Outcome("taste", goal="raise", range=(0, 10)),
        protected=[ss.Outcome("bitterness", range=(0, 10), tolerance=1)],
    )
    made.tell(made.ask().id, 6.0)
    return made


def learned():
    """A policy, its state and its decision."""
    policy = ss.DirectedThompson(WORLD.problem)
    return policy, policy.init(), policy.ask(policy.init(), WORLD.actions, np.random.default_rng(0))


@pytest.mark.parametrize(
    "shown", [WORLD, WORLD.problem, *learned()], ids=lambda x: type(x).__name__
)
def test_what_a_researcher_looks_at_is_one_short_line(shown):
    assert "\n" not in repr(shown)
    assert len(repr(shown)) <= 160


@pytest.mark.parametrize("verb", ["ask", "best", "explain", "show"])
def test_what_a_study_answers_is_one_short_line(study, verb):
    shown = repr(getattr(study, verb)())
    assert "\n" not in shown
    assert len(shown) <= 160


def test_a_recommendation_names_its_action_and_how_much_it_rests_on(study):
    assert repr(study.best()) == "Best(action={'grind': 5.0}, candidate=4, within=True, results=1)"
    assert repr(study.explain()).startswith("Explanation(9 candidates, first no. ")
