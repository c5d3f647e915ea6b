"""Summary: every number of the report can be had by hand from the traces."""

import numpy as np
import polars
import pytest
from made_up import HORIZON, THETA, spec_of, trace_of, write
from scipy import stats

from sidestep.core.problem import Problem
from sidestep.errors import InputError
from sidestep.experiments import results
from sidestep.experiments.analysis.run_facts import Run, exponent, log_slope
from sidestep.experiments.analysis.summary import estimate, summarise
from sidestep.experiments.spec import jobs_of
from sidestep.policies.protected_linucb import ProtectedLinUCB

T = np.arange(1, HORIZON + 1)


def noisy(job):
    """Regret that differs by run and by policy, reproducibly."""
    rng = np.random.default_rng([job.run, len(job.policy_id)])
    return rng.random(job.horizon) + 0.1 * len(job.policy_id)


def row(summary, policy, frame="policies"):
    found = getattr(summary, frame).filter(polars.col("policy") == policy)
    assert found.height == 1
    return found.row(0, named=True)


def finals(spec, policy, regret=noisy):
    return np.array([regret(job).sum() for job in jobs_of(spec) if job.policy_id == policy])


def test_mean_sd_and_student_interval_are_those_of_the_final_regrets(tmp_path):
    spec = spec_of("oful", "uniform")
    told = row(summarise(write(tmp_path, spec, noisy)), "oful")
    values = finals(spec, "oful")
    low, high = stats.t.interval(0.95, 3, values.mean(), stats.sem(values))
    assert told["n"] == 4
    assert (told["mean"], told["sd"]) == pytest.approx((values.mean(), values.std(ddof=1)))
    assert (told["low"], told["high"]) == pytest.approx((low, high))


def test_the_paired_difference_is_taken_run_by_run(tmp_path):
    spec = spec_of("oful", "uniform", reference="oful")
    told = summarise(write(tmp_path, spec, noisy))
    gaps = finals(spec, "uniform") - finals(spec, "oful")
    other = row(told, "uniform")
    low, high = stats.t.interval(0.95, 3, gaps.mean(), stats.sem(gaps))
    assert other["difference"] == pytest.approx(gaps.mean())
    assert (other["difference_low"], other["difference_high"]) == pytest.approx((low, high))
    assert row(told, "oful")["difference"] is None


def test_only_runs_that_both_played_are_paired(tmp_path):
    spec = spec_of("oful", "uniform", reference="oful")

    def gone(job):
        return None if (job.policy_id, job.run) == ("oful", 2) else noisy(job)

    told = summarise(write(tmp_path, spec, gone))
    gaps = np.delete(finals(spec, "uniform") - finals(spec, "oful"), 2)
    assert row(told, "uniform")["difference"] == pytest.approx(gaps.mean())
    assert told.worlds[0].missing == 1


def test_one_run_alone_has_no_spread():
    assert np.isnan(estimate([3.0])[2:]).all()
    assert estimate([3.0]).mean == 3.0


def test_the_tuned_point_is_the_one_with_the_lowest_mean_and_the_only_one_shown(tmp_path):
    greedy = {"id": "greedy", "policy": "epsilon-greedy", "grid": {"epsilon": [0.5, 1, 2]}}
    spec = spec_of(greedy, "uniform")
    cost = {
        "greedy+epsilon=0.5": 3.0,
        "greedy+epsilon=1": 1.0,
        "greedy+epsilon=2": 2.0,
        "uniform": 9.0,
    }
    told = summarise(write(tmp_path, spec, lambda job: cost[job.policy_id] * np.ones(HORIZON)))
    grid = told.policies.filter("grid")
    assert grid["policy"].to_list() == [name for name in cost if name != "uniform"]
    assert grid.filter("shown")["policy"].to_list() == ["greedy+epsilon=1"]
    assert [one.label for one in told.worlds[0].series] == ["greedy (epsilon=1)", "uniform"]


def test_a_grid_is_tuned_anew_on_every_world(tmp_path):
    greedy = {"id": "greedy", "policy": "epsilon-greedy", "grid": {"epsilon": [1, 2]}}
    spec = spec_of(greedy, worlds=("a", "b"))

    def cost(job):
        return (1.0 + (job.policy_id.endswith("1") == (job.world_id == "a"))) * np.ones(HORIZON)

    told = summarise(write(tmp_path, spec, cost))
    assert told.policies.filter("shown")["policy"].to_list() == [
        "greedy+epsilon=2",
        "greedy+epsilon=1",
    ]


GRID = {"id": "greedy", "policy": "epsilon-greedy", "grid": {"epsilon": [1, 2]}}


def lucky(job):
    """The first point is better on the runs that are shown, the second on the tuning seeds."""
    first = job.policy_id == "greedy+epsilon=1"
    return np.full(HORIZON, 1.0 + (first == job.tuning) + 0.1 * job.run)


def test_the_point_of_a_grid_is_chosen_on_the_tuning_seeds_and_measured_on_the_others(tmp_path):
    spec = spec_of(GRID, "uniform", tune_seeds=(1000, 1001))
    told = summarise(write(tmp_path, spec, lucky))
    first, second = (row(told, f"greedy+epsilon={value}") for value in (1, 2))
    assert (first["shown"], second["shown"]) == (False, True)
    assert (second["mean"], second["n"]) == (pytest.approx(2.15 * HORIZON), 4)
    assert second["tuning_mean"] == pytest.approx(1.05 * HORIZON)
    assert {first["tuned_on"], second["tuned_on"]} == {"seeds 1000 to 1001"}
    assert row(told, "uniform")["tuned_on"] == ""
    assert told.worlds[0].missing == 0
    assert told.runs.height == 3 * 4


def test_without_tuning_seeds_the_rows_say_that_the_runs_shown_chose(tmp_path):
    told = summarise(write(tmp_path, spec_of(GRID), lucky))
    assert row(told, "greedy+epsilon=1")["shown"]
    assert set(told.policies["tuned_on"]) == {"these runs"}


def test_points_are_compared_on_tuning_seeds_that_all_of_them_played(tmp_path):
    spec = spec_of(GRID, tune_seeds=(1000, 1002))

    def interrupted(job):
        if job.tuning and job.policy_id == "greedy+epsilon=2" and job.run < 2:
            return None
        return lucky(job)

    told = summarise(write(tmp_path, spec, interrupted))
    assert row(told, "greedy+epsilon=2")["tuned_on"] == "seed 1002"
    assert row(told, "greedy+epsilon=1")["tuning_mean"] == pytest.approx(2.2 * HORIZON)
    assert told.worlds[0].missing == 2


def test_a_reference_with_a_grid_is_its_tuned_point(tmp_path):
    greedy = {"id": "greedy", "policy": "epsilon-greedy", "grid": {"epsilon": [1, 2]}}
    spec = spec_of(greedy, "oful", reference="greedy")
    cost = {"greedy+epsilon=1": 2.0, "greedy+epsilon=2": 1.0, "oful": 5.0}
    told = summarise(write(tmp_path, spec, lambda job: cost[job.policy_id] * np.ones(HORIZON)))
    assert row(told, "oful")["difference"] == pytest.approx(4.0 * HORIZON)


def test_the_curve_is_mean_and_sd_of_what_was_written(tmp_path):
    spec = spec_of("oful")
    one = summarise(write(tmp_path, spec, noisy)).worlds[0].series[0]
    curves = np.array([np.cumsum(noisy(job)) for job in jobs_of(spec)])
    at = one.rounds.astype(int) - 1
    np.testing.assert_allclose(one.mean, curves.mean(axis=0)[at])
    np.testing.assert_allclose(one.sd, curves.std(axis=0, ddof=1)[at])
    assert one.rounds[-1] == HORIZON


def test_a_long_curve_is_drawn_by_few_points_and_keeps_both_ends(tmp_path):
    spec = spec_of("oful", horizon=5000, runs=2)
    one = summarise(write(tmp_path, spec, lambda job: np.ones(5000))).worlds[0].series[0]
    assert len(one.rounds) <= 400
    assert (one.rounds[0], one.rounds[-1]) == (1, 5000)


def test_linear_runs_are_linear_and_square_roots_are_not(tmp_path):
    cost = {
        "uniform": np.ones(HORIZON),
        "oful": 0.5 * np.ones(HORIZON),
        "root": np.diff(np.sqrt(T), prepend=0),
    }
    spec = spec_of("uniform", "oful", {"id": "root", "policy": "epsilon-greedy"})
    told = summarise(write(tmp_path, spec, lambda job: cost[job.policy_id]))
    assert [row(told, name)["share_linear"] for name in cost] == [1.0, 1.0, 0.0]
    assert row(told, "oful")["linear_rule"] == "Uniform"


def test_a_straight_line_that_costs_next_to_nothing_is_not_called_linear(tmp_path):
    cost = {"uniform": 1.0, "oful": 0.09}
    spec = spec_of(*cost)
    told = summarise(write(tmp_path, spec, lambda job: cost[job.policy_id] * np.ones(HORIZON)))
    assert row(told, "oful")["share_linear"] == 0.0


def test_without_uniform_a_run_is_held_against_its_own_first_rounds(tmp_path):
    late = np.where(T <= 5, 1.0, 0.05)  # settles at a twentieth
    cost = {"oful": np.ones(HORIZON), "greedy": late}
    spec = spec_of("oful", {"id": "greedy", "policy": "epsilon-greedy"})
    told = summarise(write(tmp_path, spec, lambda job: cost[job.policy_id]))
    assert row(told, "oful")["share_linear"] == 1.0
    assert row(told, "greedy")["share_linear"] == 0.0
    assert row(told, "oful")["linear_rule"] == "early rounds"


def test_the_share_of_linear_runs_counts_runs(tmp_path):
    stuck = spec_of("oful")

    def some(job):
        return np.ones(HORIZON) if job.run == 0 else np.where(T < 20, 1.0, 0.0)

    assert row(summarise(write(tmp_path, stuck, some)), "oful")["share_linear"] == 0.25


def test_the_exponent_of_an_exact_power_is_that_power():
    t = np.arange(1.0, 1001.0)
    assert exponent(t, 3.7 * t**0.75) == pytest.approx(0.75)
    assert exponent(t[9::10], t[9::10] ** 0.5) == pytest.approx(0.5)


@pytest.mark.parametrize("power", [-0.5, 0.0, 1.0, 1.6])
def test_the_slope_of_a_power_law_is_its_log_slope(power):
    sizes = np.array([3.0, 10.0, 50.0, 400.0])
    assert log_slope(sizes, 7e-6 * sizes**power) == pytest.approx(power, abs=1e-12)


def test_one_size_has_no_slope():
    assert np.isnan(log_slope([5.0], [1.0]))


def test_regret_that_is_not_positive_has_no_exponent():
    t = np.arange(1.0, 11.0)
    assert np.isnan(exponent(t, np.zeros(10)))
    assert np.isnan(exponent(t[:1], t[:1]))


def test_regret_per_phase_adds_up_to_the_whole(tmp_path):
    spec = spec_of("oful")
    words = ["core-set"] * 20 + ["explore"] * 30 + ["play"] * 50
    told = summarise(write(tmp_path, spec, lambda job: trace_of(job, T / 10, words)))
    phases = {r["phase"]: r for r in told.phases.to_dicts()}
    expected = {"core-set": (T / 10)[:20], "explore": (T / 10)[20:50], "play": (T / 10)[50:]}
    for name, part in expected.items():
        assert phases[name]["regret"] == pytest.approx(part.sum())
        assert phases[name]["rounds"] == len(part)
    assert row(told, "oful")["core_set_rounds"] == 20
    assert row(told, "oful")["core_set_open"] == 0.0


def test_a_thinned_trace_loses_no_regret(tmp_path):
    spec = spec_of("oful", every=7)
    told = summarise(write(tmp_path, spec, lambda job: trace_of(job, T / 10, "core-set")))
    assert told.phases.filter(polars.col("phase") == "core-set")["regret"][0] == pytest.approx(505)
    assert row(told, "oful")["core_set_rounds"] == HORIZON
    assert row(told, "oful")["core_set_open"] == 1.0


def test_queries_are_counted_from_the_metadata_not_from_the_kept_rounds(tmp_path):
    spec = spec_of("oful", every=50)
    indices = np.where(T <= 90, 1, 0)
    told = summarise(write(tmp_path, spec, lambda job: trace_of(job, T, indices=indices)))
    assert told.queries["mean"].to_list() == [10.0, 90.0]


def test_speed_is_rounds_over_seconds(tmp_path):
    told = row(summarise(write(tmp_path, spec_of("oful"), noisy)), "oful")
    assert told["seconds"] == 0.5
    assert told["rounds_per_second"] == pytest.approx(HORIZON / 0.5)


def test_effects_are_those_of_the_true_vectors_where_there_is_no_noise(tmp_path):
    still = np.tile([0.0, 1.0], (HORIZON, 1))
    wide = None  # all directions

    def make(job):
        return trace_of(job, np.ones(HORIZON), actions=still if job.policy == "oful" else wide)

    told = summarise(write(tmp_path, spec_of("oful", "uniform"), make))
    effects = told.effects.filter(polars.col("policy") == "oful")
    found = dict(zip(effects["outcome"], effects["mean"], strict=True))
    assert found["target"] == pytest.approx(THETA[0, 1])
    assert found["protected 1"] == pytest.approx(0.0, abs=1e-9)
    assert found["reward"] == pytest.approx(0.8)  # theta_perp = (0, 0.8)
    assert told.worlds[0].facts.eigenvalue == pytest.approx(1.0)


def test_an_effect_that_nobody_measured_is_unknown(tmp_path):
    still = np.tile([0.0, 1.0], (HORIZON, 1))
    never = np.ones(HORIZON, dtype=int)

    def make(job):
        return trace_of(job, np.ones(HORIZON), indices=never, actions=still)

    told = summarise(write(tmp_path, spec_of("oful"), make))
    found = dict(zip(told.effects["outcome"], told.effects["mean"], strict=True))
    assert np.isnan(found["target"])
    assert np.isnan(found["reward"])
    assert found["protected 1"] == pytest.approx(0.0, abs=1e-9)


def test_the_problem_and_the_knobs_come_from_the_notes_to_the_last_digit(tmp_path):
    told = Problem(3, 2, 1, noise_scale=(0.1, 0.2, 1 / 3), costs=np.full(3, 1 / 7))
    policy = ProtectedLinUCB(told, rho=np.float64(0.1), coreset="adaptive")
    (job, *_) = jobs_of(spec_of("oful"))
    path = tmp_path / "run.parquet"
    notes = results.notes_of(policy)
    path.write_bytes(results.to_parquet(job, trace_of(job, T), notes, seconds=1.0))
    run = Run(job, results.read_notes(path), polars.read_parquet(path))
    assert run.problem == told
    knobs = run.notes["knobs"]
    assert (knobs["rho"], knobs["coreset"], knobs["literal"]) == (0.1, "adaptive", False)


def test_a_policy_that_is_no_dataclass_and_runs_of_old_have_no_problem(tmp_path):
    class Mine:
        problem = "something"

    for player in (Mine(), None):
        notes = results.notes_of(player) if player else {}
        (job, *_) = jobs_of(spec_of("oful"))
        path = tmp_path / "run.parquet"
        path.write_bytes(results.to_parquet(job, trace_of(job, T), notes, seconds=1.0))
        assert Run(job, results.read_notes(path), polars.read_parquet(path)).problem is None


def test_runs_of_other_settings_are_not_mixed_in(tmp_path):
    write(tmp_path, spec_of("oful", seed=5), noisy)
    results.write_spec(tmp_path, spec_of("oful", seed=6))
    with pytest.raises(InputError, match="got none"):
        summarise(tmp_path)


def test_the_folder_of_one_experiment_is_read_alike(tmp_path):
    write(tmp_path, spec_of("oful"), noisy)
    assert summarise(tmp_path / "made-up").policies.equals(summarise(tmp_path).policies)


def test_a_broken_file_gives_one_sentence_that_names_it(tmp_path):
    write(tmp_path, spec_of("oful"), noisy)
    path = tmp_path / "made-up/traces/world/oful/2.parquet"
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(InputError, match=r"2\.parquet: must be a run that sidestep wrote"):
        summarise(tmp_path)


def test_a_file_whose_middle_is_broken_gives_the_same_sentence(tmp_path):
    write(tmp_path, spec_of("oful"), noisy)
    path = tmp_path / "made-up/traces/world/oful/2.parquet"
    content = bytearray(path.read_bytes())
    content[4:400] = bytes(396)
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"2\.parquet: must be a run that sidestep wrote"):
        summarise(tmp_path)


def test_a_run_of_another_format_gives_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr(results, "FORMAT", 99)
    write(tmp_path, spec_of("oful"), noisy)
    monkeypatch.undo()
    with pytest.raises(InputError, match="must have format 1, got 99"):
        summarise(tmp_path)


def test_a_folder_without_results_gives_one_sentence(tmp_path):
    with pytest.raises(InputError, match="must be a results folder"):
        summarise(tmp_path)
