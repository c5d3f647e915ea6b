"""How runs kept the tolerances of their world, from the last round to the page."""

import numpy as np
import pytest

import sidestep as ss
from sidestep.cli.printing import table_lines
from sidestep.experiments.analysis.summary import summarise
from sidestep.experiments.report.build import build
from sidestep.experiments.spec import Spec, jobs_of, parse_spec, shipped_specs
from sidestep.experiments.sweep import kept, policy_and_world, sweep, within_all

SMALL = {"arms": 12, "dim": 3, "n_protected": 2, "subspace_dim": 1}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    spec = Spec.model_validate(
        {
            "name": "guarded",
            "horizon": 30,
            "runs": 2,
            "worlds": [
                {"id": "arms", "world": "guarded-arms", "knobs": SMALL, "group": "all"},
                {"id": "grid", "world": "dose-grid", "group": "all"},
            ],
            "policies": [
                {"id": "directed", "policy": "directed-thompson"},
                {
                    "id": "paper",
                    "policy": "directed-thompson",
                    "told": {"tolerance": "unknown"},
                    "worlds": ["arms"],
                },
            ],
        }
    )
    folder = tmp_path_factory.mktemp("guarded")
    assert not sweep(spec, folder).failed
    return folder


def test_the_share_of_rounds_beyond_a_tolerance_is_counted_by_the_hidden_vectors():
    world = ss.environments.guarded_arms(**SMALL, seed=1)
    policy = ss.Uniform(world.problem)
    trace = ss.simulate(policy, world, 200)
    effects = np.abs(trace.action @ world.theta[1:].T)
    found = kept(policy, world, trace)["tolerances"]
    assert found["beyond"] == (effects > 0.15).any(axis=1).mean()
    advice = ss.recommend(policy, trace.state, world.actions)
    assert found["within"] == within_all(world, advice.action[None])[0]
    assert found["said"] == advice.assured


def test_a_world_without_tolerances_says_nothing_of_them():
    world = ss.environments.failure()
    policy = ss.Uniform(world.problem)
    assert kept(policy, world, ss.simulate(policy, world, 5)) == {}


@pytest.mark.parametrize("compiled", [False, None])
def test_a_trace_carries_what_the_policy_knew_after_the_last_round(compiled):
    world = ss.environments.guarded_arms(**SMALL)
    trace = ss.simulate(ss.DirectedThompson(world.problem), world, 25, compiled=compiled)
    assert trace.state.round == 25


def test_the_player_of_the_paper_s_aim_is_judged_by_the_tolerances_of_the_world():
    spec = parse_spec(shipped_specs()["guardrails"], "guardrails.toml")
    job = next(job for job in jobs_of(spec) if job.policy_id == "paper-aim")
    policy, world = policy_and_world(job)
    assert policy.problem.limits is None
    assert policy.problem.subspace_dim == 2
    assert world.problem.limits is not None


@pytest.mark.full
def test_the_summary_has_a_share_for_every_policy(folder):
    rows = {(row["world"], row["policy"]): row for row in summarise(folder).policies.to_dicts()}
    for row in rows.values():
        assert 0 <= row["beyond_tolerance"] <= 1
        assert row["recommends_within"] in (0.0, 0.5, 1.0)
    assert np.isnan(rows["arms", "paper"]["says_within"])  # it was told of no tolerance
    assert rows["arms", "directed"]["says_within"] in (0.0, 0.5, 1.0)


def test_effects_over_levels_are_those_against_nothing_done(folder):
    world = ss.environments.dose_grid(seed=0)
    found = [
        row
        for row in summarise(folder).effects.to_dicts()
        if row["world"] == "grid" and row["outcome"] == "target" and not np.isnan(row["mean"])
    ]
    assert all(abs(row["mean"]) < 1.5 for row in found)
    assert abs(world.truth.level).max() > 0


@pytest.mark.full
def test_the_page_and_the_terminal_show_how_tolerances_were_kept(folder):
    report = build(folder)
    page = report.page.read_text(encoding="utf-8")
    assert "Share of rounds beyond a tolerance, by world" in page
    assert "is truly within all tolerances / says that it is" in page
    assert (folder / "figures" / "guarded-all-tolerances.png").stat().st_size > 1000
    lines = "\n".join(table_lines(report.shown.to_dicts()))
    assert "and of tolerances:" in lines
