"""Every policy by name; a wrong name gets the nearest right one."""

import pytest

import sidestep as ss
from sidestep.errors import InputError, UnknownNameError
from sidestep.policies import POLICIES, from_config
from sidestep.policies.catalog import knobs_of

PROBLEM = ss.Problem(3, 2, 1, noise_scale=0.1)


@pytest.mark.parametrize("name", POLICIES)
def test_a_name_alone_gives_the_policy_with_its_defaults(name):
    assert from_config(name, PROBLEM) == POLICIES[name](PROBLEM)


def test_the_catalog_holds_the_papers_players_and_the_yardsticks():
    assert {
        "protected-linucb": ss.ProtectedLinUCB,
        "round-robin-linucb": ss.RoundRobinLinUCB,
        "epsilon-greedy": ss.EpsilonGreedy,
        "oful": ss.OFUL,
        "explore-then-commit": ss.ExploreThenCommit,
        "uniform": ss.Uniform,
    }.items() <= POLICIES.items()


def test_knobs_are_handed_on():
    policy = from_config("protected-linucb", PROBLEM, {"rho": 0.5, "surrogate": "ellipsoid"})
    assert policy == ss.ProtectedLinUCB(PROBLEM, rho=0.5, surrogate="ellipsoid")


@pytest.mark.parametrize("word", ["as_intended", "as-intended"])
def test_a_preset_picks_the_named_constructor(word):
    policy = from_config("protected-linucb", PROBLEM, {"preset": word, "rho": 1.0})
    assert policy == ss.ProtectedLinUCB.as_intended(PROBLEM, rho=1.0)
    printed = from_config("protected-linucb", PROBLEM, {"preset": "as_printed"})
    assert printed == ss.ProtectedLinUCB.as_printed(PROBLEM)


def test_the_dict_of_knobs_is_left_alone():
    knobs = {"preset": "as_intended", "rho": 1.0}
    from_config("protected-linucb", PROBLEM, knobs)
    assert knobs == {"preset": "as_intended", "rho": 1.0}


@pytest.mark.parametrize(
    ("wrong", "nearest"),
    [
        ("protected_linucb", "protected-linucb"),
        ("ProtectedLinUCB", "protected-linucb"),
        ("eps-greedy", "epsilon-greedy"),
        ("round-robin", "round-robin-linucb"),
        ("ofull", "oful"),
        ("unifrom", "uniform"),
    ],
)
def test_a_wrong_policy_gets_the_nearest_name(refusal, wrong, nearest):
    message = refusal(from_config, wrong, PROBLEM)
    assert f"got {wrong!r}; did you mean {nearest!r}?" in message
    assert all(name in message for name in POLICIES)


def test_a_wrong_knob_gets_the_nearest_name(refusal):
    message = refusal(from_config, "protected-linucb", PROBLEM, {"surogate": "printed"})
    assert "got 'surogate'; did you mean 'surrogate'?" in message
    assert "knob of protected-linucb" in message


def test_a_wrong_preset_gets_the_nearest_name(refusal):
    message = refusal(from_config, "protected-linucb", PROBLEM, {"preset": "as_print"})
    assert "got 'as_print'; did you mean 'as_printed'?" in message


def test_a_policy_without_presets_says_so(refusal):
    assert "preset must be one of (none)" in refusal(
        from_config, "oful", PROBLEM, {"preset": "as_printed"}
    )


def test_a_name_like_no_other_gets_no_suggestion(refusal):
    assert "did you mean" not in refusal(from_config, "xyzzy", PROBLEM)


def test_a_wrong_name_is_an_unknown_name_and_an_input_error():
    with pytest.raises(UnknownNameError):
        from_config("nobody", PROBLEM)
    assert issubclass(UnknownNameError, InputError)


def test_the_problem_is_no_knob_and_neither_is_anything_computed(refusal):
    for policy in POLICIES.values():
        assert {"problem", "knobs", "rule"}.isdisjoint(knobs_of(policy))
    assert "got 'problem'" in refusal(from_config, "oful", PROBLEM, {"problem": PROBLEM})


def test_a_knob_that_the_preset_fixes_is_refused(refusal):
    knobs = {"preset": "as_printed", "radius": "logdet"}
    assert "radius" in refusal(from_config, "protected-linucb", PROBLEM, knobs)


def test_a_bad_value_is_refused_as_the_policy_refuses_it(refusal):
    message = refusal(from_config, "epsilon-greedy", PROBLEM, {"epsilon": "lots"})
    assert message == "epsilon must be positive and finite, got 'lots'"


def test_a_knob_that_was_renamed_is_read_with_a_warning():
    with pytest.warns(FutureWarning, match="'price' of directed-thompson is now called 'kappa'"):
        policy = from_config("directed-thompson", PROBLEM, {"price": 3.0})
    assert policy.kappa == 3.0
