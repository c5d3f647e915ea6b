"""An experiment is data, and bad data gets one sentence that names file, key and expectation."""

from collections import defaultdict

import pytest
from made_up import TOML

from sidestep.errors import InputError
from sidestep.experiments.spec import (
    Spec,
    jobs_of,
    parse_spec,
    patients_of,
    read_spec,
    shipped_specs,
    shortened,
    with_table,
)

GOOD = (
    TOML.replace("horizon = 60", "horizon = 20")
    .replace("runs = 3", "runs = 2\nseed = 5")
    .replace('"epsilon-greedy"', '"epsilon-greedy"\ngrid = { epsilon = [0.5, 2] }')
)


def test_a_grid_becomes_one_policy_for_every_value_and_runs_of_one_seed_follow_each_other():
    ids = [job.id for job in jobs_of(parse_spec(GOOD, "good.toml"))]
    assert ids == [
        "small/uniform/0",
        "small/greedy+epsilon=0.5/0",
        "small/greedy+epsilon=2/0",
        "small/uniform/1",
        "small/greedy+epsilon=0.5/1",
        "small/greedy+epsilon=2/1",
    ]


def test_run_r_has_the_seed_of_the_experiment_plus_r():
    seeds = {job.run: job.seed for job in jobs_of(parse_spec(GOOD, "good.toml"))}
    assert seeds == {0: 5, 1: 6}


def test_a_job_that_differs_in_anything_has_another_fingerprint():
    first, second = jobs_of(parse_spec(GOOD, "good.toml"))[:2]
    longer = jobs_of(parse_spec(GOOD.replace("horizon = 20", "horizon = 21"), "good.toml"))[0]
    again = jobs_of(parse_spec(GOOD, "other.toml"))[0]
    assert len({first.fingerprint, second.fingerprint, longer.fingerprint}) == 3
    assert again.fingerprint == first.fingerprint


def test_only_points_of_a_grid_play_the_tuning_seeds():
    tuned = parse_spec(GOOD.replace("seed = 5", "seed = 5\ntune_seeds = [90, 91]"), "good.toml")
    plain = jobs_of(parse_spec(GOOD, "good.toml"))
    jobs = jobs_of(tuned)
    assert [job for job in jobs if not job.tuning] == plain
    assert [(job.id, job.seed) for job in jobs if job.tuning] == [
        ("small/greedy+epsilon=0.5/tuning-0", 90),
        ("small/greedy+epsilon=2/tuning-0", 90),
        ("small/greedy+epsilon=0.5/tuning-1", 91),
        ("small/greedy+epsilon=2/tuning-1", 91),
    ]
    assert {job.fingerprint for job in jobs} >= {job.fingerprint for job in plain}


@pytest.mark.parametrize("name", shipped_specs())
def test_every_shipped_grid_is_tuned_on_seeds_that_are_not_shown(name):
    spec = parse_spec(shipped_specs()[name], f"{name}.toml")
    assert bool(spec.tuning) == any(entry.grid for entry in spec.policies)
    assert all(not set(spec.tuning) & set(spec.seeds_of(world)) for world in spec.worlds)


def test_a_world_may_have_runs_and_a_horizon_of_its_own():
    own = 'world = "synthetic"\nruns = 3\nhorizon = 7'
    jobs = jobs_of(parse_spec(GOOD.replace('world = "synthetic"', own), "good.toml"))
    assert [(job.run, job.horizon) for job in jobs if job.policy_id == "uniform"] == [
        (0, 7), (1, 7), (2, 7),
    ]  # fmt: skip


def test_a_policy_may_name_a_group_of_worlds():
    grouped = GOOD.replace('id = "small"', 'id = "small"\ngroup = "tiny"')
    named = grouped.replace('policy = "uniform"', 'policy = "uniform"\nworlds = ["tiny"]')
    spec = parse_spec(named, "good.toml")
    assert {job.policy_id for job in jobs_of(spec)} >= {"uniform"}
    assert jobs_of(spec) == jobs_of(parse_spec(grouped, "good.toml"))


def test_worlds_are_judged_unless_they_say_otherwise():
    judged = parse_spec(GOOD, "good.toml").worlds[0].judged
    shown = GOOD.replace('world = "synthetic"', 'world = "synthetic"\njudged = false')
    assert (judged, parse_spec(shown, "good.toml").worlds[0].judged) == (True, False)


def test_the_panel_judges_all_but_what_nobody_can_do_well_on():
    spec = parse_spec(shipped_specs()["panel"], "panel.toml")
    aside = {world.id for world in spec.worlds if not world.judged}
    assert aside == {
        "warfarin-paper-r0.001",
        "lower-bound-1",
        "lower-bound-2",
        "rank-deficient-r0.1",
    }
    assert all((world.runs or spec.runs) >= 50 for world in spec.worlds)
    assert {world.runs for world in spec.worlds if world.world == "blind-spot-family"} == {200}
    assert spec.panel
    assert spec.reference == "directed-thompson"


@pytest.mark.parametrize(
    "name", ["synthetic", "warfarin", "failure", "lower-bound", "ball", "diabetes", "panel"]
)
def test_shipped_experiments_are_read_like_users_specs(name):
    spec = parse_spec(shipped_specs()[name], f"{name}.toml")
    assert spec.name == name
    assert jobs_of(spec)


@pytest.mark.parametrize("name", shipped_specs())
def test_the_default_player_is_among_the_players_on_every_world_of_every_experiment(name):
    spec = parse_spec(shipped_specs()[name], f"{name}.toml")
    players = [entry for entry in spec.policies if entry.policy == "directed-thompson"]
    assert any(entry.worlds is None and not entry.told for entry in players)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            ("horizon = 20", "horizon = 0"),
            ["bad.toml", "horizon", "greater than or equal to 1", "0"],
        ),
        (("horizon = 20", 'horizon = "long"'), ["bad.toml", "horizon", "integer", "long"]),
        (("horizon = 20", ""), ["bad.toml", "horizon", "required"]),
        (("seed = 5", "seed = -1"), ["seed", "-1"]),
        (("seed = 5", "speed = 5"), ["speed is no key of a spec", "5"]),
        (('id = "small"', 'id = "a/b"'), ["worlds.0.id", "a/b"]),
        (('id = "uniform"', 'id = "greedy"'), ["policies", "differ", "greedy"]),
        (
            ('policy = "uniform"', 'policy = "uniform"\nworlds = ["x"]'),
            ["policies.uniform.worlds must be ids or groups of worlds", "'x'"],
        ),
        (("seed = 5", 'reference = "x"'), ["reference", "'x'"]),
        (("seed = 5", "seed = = 5"), ["bad.toml", "TOML"]),
        (("seed = 5", "seed = 5\ntune_seeds = [6, 9]"), ["not shown (shown are 5 to 6)", "[6, 9]"]),
        (("seed = 5", "seed = 5\ntune_seeds = [9, 8]"), ["the first and the last", "[9, 8]"]),
        (("seed = 5", "seed = 5\ntune_seeds = [9]"), ["tune_seeds.1 is required"]),
    ],
)
def test_a_bad_spec_gets_one_sentence_that_names_the_key(change, words):
    with pytest.raises(InputError) as error:
        parse_spec(GOOD.replace(*change), "bad.toml")
    text = str(error.value)
    assert "\n" not in text
    assert all(word in text for word in words), text


def test_all_mistakes_of_a_spec_are_named_at_once(refusal):
    bad = GOOD.replace("horizon = 20", "horizon = 0").replace("seed = 5", "speed = 5")
    message = refusal(parse_spec, bad.replace('id = "small"', 'id = "a/b"'), "bad.toml")
    for words in ("horizon must be greater", "speed is no key", "worlds.0.id must match"):
        assert words in message
    twice = GOOD.replace('id = "uniform"', 'id = "greedy"').replace("seed = 5", 'reference = "x"')
    message = refusal(parse_spec, twice, "bad.toml")
    assert "ids of policies must differ, got 'greedy' 2 times" in message
    assert "reference must be the id of a policy, got 'x'" in message


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(InputError, match="nowhere.toml: there is no such file"):
        read_spec(tmp_path / "nowhere.toml")


def test_the_rounds_of_a_policy_on_all_worlds_decide_whether_it_is_compiled():
    text = shipped_specs()["lower-bound"]
    jobs = jobs_of(parse_spec(text, "lower-bound.toml"))
    assert min(job.horizon for job in jobs) == 300
    assert {job.rounds for job in jobs} == {2 * 10 * (300 + 1000 + 3000 + 10_000 + 30_000)}
    panel = shortened(
        parse_spec(shipped_specs()["panel"], "panel.toml"), {"runs": 3, "horizon": 200}
    )
    rounds = {job.policy_id: job.rounds for job in jobs_of(panel)}
    assert rounds["directed-thompson"] == 600 * len(panel.worlds)
    assert rounds["directed-untold"] == rounds["directed-thompson"]  # the loop is the same


def test_the_labels_of_a_policy_begin_with_its_one_name():
    names = defaultdict(set)
    for name, text in shipped_specs().items():
        spec = parse_spec(text, f"{name}.toml")
        labels = [entry.label for entry in spec.policies]
        assert len(set(labels)) == len(labels), spec.name
        for entry in spec.policies:
            names[entry.policy].add(entry.label.partition(", ")[0])
    assert {policy: found for policy, found in names.items() if len(found) > 1} == {}


def shipped(name):
    return parse_spec(shipped_specs()[name], name)


def horizons(spec):
    return {world.id: world.horizon or spec.horizon for world in spec.worlds}


def test_without_changes_a_variant_equals_the_spec():
    spec = shipped("panel")
    assert shortened(spec, {"runs": None, "horizon": None, "seed": None}) == spec


def test_runs_that_are_asked_for_hold_on_every_world():
    spec = shortened(shipped("panel"), {"runs": 2})
    assert {job.run for job in jobs_of(spec)} == {0, 1}
    assert any(job.world_id == "blind-spot-family" for job in jobs_of(spec))


def test_worlds_with_a_horizon_of_their_own_are_cut_and_never_stretched():
    spec = shipped("panel")
    for most in (200, 2500, 10**6):
        own = {w.id: w.horizon for w in shortened(spec, {"horizon": most}).worlds if w.horizon}
        before = {w.id: w.horizon for w in spec.worlds if w.id in own}
        assert own == {
            name: horizon if "lower-bound" in name else min(horizon, most)
            for name, horizon in before.items()
        }


def test_a_world_whose_vectors_depend_on_the_horizon_is_not_cut_but_left_out():
    assert not any(
        "lower-bound" in name for name in horizons(shortened(shipped("panel"), {"horizon": 200}))
    )
    assert horizons(shortened(shipped("lower-bound"), {"horizon": 200})) == {
        "lower-bound-1-T300": 300,
        "lower-bound-2-T300": 300,
    }


def test_tuning_seeds_follow_the_first_seed_and_are_not_more_than_the_runs():
    spec = shipped("synthetic")
    assert spec.tune_seeds == (1000, 1009)
    assert shortened(spec, {"runs": 3}).tune_seeds == (1000, 1002)
    assert shortened(spec, {"runs": 30, "seed": 1000}).tune_seeds == (2000, 2009)
    with pytest.raises(InputError, match=r"synthetic: tune_seeds must be .*shown are 0 to 1000"):
        shortened(spec, {"runs": 1001})


@pytest.mark.parametrize(("most", "every"), [(4, 1), (200, 10), (10**6, 50)])
def test_a_shorter_run_keeps_its_rounds_more_closely(most, every):
    assert shipped("panel").every == 50
    assert shortened(shipped("panel"), {"horizon": most}).every == every


def test_a_policy_of_some_worlds_loses_those_that_are_left_out():
    spec = shipped("panel")
    first = spec.policies[0].model_copy(update={"worlds": ["lower-bound-1", "failure-r1"]})
    change = {"policies": [first, *spec.policies[1:]]}
    cut = shortened(spec.model_copy(update=change), {"horizon": 200})
    assert cut.policies[0].worlds == ["failure-r1"]
    assert Spec.model_validate_json(cut.model_dump_json()) == cut


@pytest.mark.parametrize("name", ["warfarin", "panel"])
def test_the_table_goes_to_the_warfarin_worlds_and_to_no_other(name, iwpc, tmp_path):
    spec = with_table(shipped(name), iwpc)
    for world in spec.worlds:
        assert ("path" in world.knobs) == (world.world == "warfarin")
    assert patients_of(spec)
    assert all("distinct arms" in text for text in patients_of(spec))


def test_an_experiment_without_patients_needs_no_table():
    spec = shipped("failure")
    assert with_table(spec, None) == spec
    assert patients_of(spec) == []
