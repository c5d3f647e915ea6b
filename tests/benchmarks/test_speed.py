"""The benchmark: what it fits, counts and reports. Nothing here depends on how fast the machine is."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks.speed import (
    child,
    contest,
    figure,
    grid,
    limits,
    page,
    peers,
    plan,
    targets,
)
from benchmarks.speed.clock import Effort, fitting, interleaved
from benchmarks.speed.limits import Limits
from benchmarks.speed.rivals import Rival
from benchmarks.speed.worlds import (
    AXES,
    BALL,
    FIXED,
    FRESH,
    GIVEN,
    GRID,
    PAPER,
    PAPER_GIVEN,
    WARFARIN,
    World,
    size_on,
)
from sidestep.policies.catalog import POLICIES

ROOT = Path(__file__).parents[2]
GLANCE = Effort(turns=1, seconds=1e-4)
SMALL = World(FIXED, 12, 3, 1, 1)
LIMITS = Limits(
    {"L1": 1000, "L2": 10_000, "L3": 100_000},
    {"L1": 8e9, "L2": 4e9, "L3": 2e9, "DRAM": 1e9},
    flops=1e10,
    normals=1e8,
)


def test_the_limit_over_fixed_arms_is_one_pass_at_the_speed_of_the_cache_that_holds_them():
    assert LIMITS.rate(World(FIXED, 10, 5), 3) == 8e9 / 400
    assert LIMITS.rate(World(FIXED, 100, 5), 3) == 4e9 / 4000
    assert LIMITS.rate(World(FIXED, 10_000, 5), 3) == 1e9 / 400_000


def test_other_worlds_are_limited_by_drawing_arithmetic_or_the_matrices_in_play():
    assert LIMITS.rate(World(FRESH, 100, 6), 3) == 1e8 / 600
    assert LIMITS.rate(World(GIVEN, 100, 6), 3) == 1e10 / (3 * 100 * 54)
    assert LIMITS.rate(World(BALL, 0, 5), 3) == 8e9 / (3 * 25 * 8)


@pytest.mark.full
def test_who_looks_at_no_vector_has_no_limit_but_the_drawing_of_arms():
    assert LIMITS.rate(SMALL, 0) is None
    assert LIMITS.rate(World(FRESH, 100, 6), 0) == 1e8 / 600


@pytest.mark.full
def test_limits_are_measured_for_every_cache_and_for_memory():
    found = limits.measured(Effort(turns=1, seconds=1e-3))
    assert list(found.bandwidth) == [*found.bytes_of, "DRAM"]
    assert list(found.bytes_of.values()) == sorted(found.bytes_of.values())
    assert all(1e6 < speed < 1e13 for speed in found.bandwidth.values())
    assert found.flops > 0
    assert found.normals > 0
    assert len(limits.as_rows(found)) == len(found.bandwidth) + 2


def test_everybody_plays_once_a_turn():
    played = []
    interleaved({who: (2, lambda n, who=who: played.append((who, n))) for who in "ab"}, turns=3)
    assert played == [("a", 2), ("b", 2)] * 3


def test_no_more_rounds_are_fitted_than_allowed():
    assert fitting(lambda rounds: None, seconds=10.0, most=64) == 64


def test_the_grid_holds_what_was_asked_for():
    assert {(world.kind, world.arms, world.dim) for world in GRID} == {
        (FRESH, 100, 6),
        (FIXED, 1832, 8),
        (FIXED, 10_000, 50),
        (FIXED, 100_000, 20),
        (BALL, 0, 6),
    }
    largest = {axis: max(size_on(axis, one) for one in worlds) for axis, worlds in AXES.items()}
    assert (largest["d"], largest["L"], largest["s"]) == (200, 50, 10)


def test_a_peer_that_is_missing_is_named_with_the_reason(monkeypatch):
    monkeypatch.setattr(peers, "installed", lambda package: None)
    board = peers.Board(np.zeros((1, 3, 2)), np.zeros(2), np.zeros(1))
    found = dict(peers.ready(board))
    assert set(found) == set(peers.PEERS)
    assert all(reason.startswith("not installed") for reason in found.values())


def test_a_peer_that_fails_is_named_with_what_it_said(monkeypatch):
    def refuse(board):
        raise RuntimeError("three arms are too many")

    monkeypatch.setattr(peers, "installed", lambda package: "1.0")
    monkeypatch.setattr(peers, "PEERS", (peers.Peer("other", "shared", refuse),))
    board = peers.Board(np.zeros((1, 3, 2)), np.zeros(2), np.zeros(1))
    ((peer, reason),) = peers.ready(board)
    assert peer.name == "other, shared"
    assert reason == "RuntimeError: three arms are too many"


def test_every_peer_is_pinned_in_the_file_that_installs_them():
    text = (ROOT / "benchmarks" / "peers.txt").read_text(encoding="utf-8")
    pinned = set(re.findall(r"^([\w-]+)==[\d.]+$", text, re.MULTILINE))
    assert pinned - {"optuna"} == {peer.package for peer in peers.PEERS}  # reliability's peer


@pytest.mark.slow
@pytest.mark.parametrize("world", [PAPER_GIVEN, WARFARIN], ids=lambda world: world.kind)
def test_rivals_decide_as_ours_does_before_they_are_timed(world, monkeypatch):
    monkeypatch.setattr(peers, "installed", lambda package: None)
    rows = contest.contest(world, GLANCE, with_peers=True)
    kinds = {row["who"]: row["kind"] for row in rows}
    assert kinds["protected-linucb"] == kinds["oful"] == "ours"
    assert kinds["numpy, recomputing"] == kinds["pinv per arm"] == "rival"
    assert sum(kind == "peer" for kind in kinds.values()) == len(peers.PEERS)
    assert all(row["rate"] > 0 for row in rows if row["kind"] != "peer")


@pytest.mark.slow
def test_a_rival_that_decides_otherwise_is_not_compared(monkeypatch):
    class First(Rival):
        def choose(self, arms, radii):
            return 0

    monkeypatch.setattr(contest, "RIVALS", {"the first arm": First})
    rows = contest.contest(World(GIVEN, 12, 3, 1, 1), GLANCE, with_peers=False)
    assert rows[-1]["who"] == "the first arm"
    assert rows[-1]["rate"] is None
    assert re.fullmatch(r"decides otherwise in round \d+", rows[-1]["reason"])


@pytest.mark.slow
def test_every_policy_has_a_rate_a_share_and_a_latency():
    rows = grid.decisions(SMALL, list(POLICIES), GLANCE, lambda: LIMITS)
    assert [row["policy"] for row in rows] == list(POLICIES)
    for row in rows:
        assert row["rate"] > 0
        assert row["rounds"] >= SMALL.rounds
        assert row["share"] is None or row["share"] == pytest.approx(row["rate"] / row["limit"])
    delays = grid.latency(SMALL, ["uniform"], GLANCE)
    assert delays[0]["microseconds"] > 0


def results_of(**tables):
    results = plan.empty_results(quick=True, with_peers=False, date="2026-11-15")
    return results | {"tables": tables}


CONTEST = [
    {
        "world": PAPER_GIVEN.title,
        "who": who,
        "kind": kind,
        "rounds": 10,
        "rate": rate,
        "reason": None,
    }
    for who, kind, rate in (
        ("protected-linucb", "ours", 6000.0),
        ("numpy, recomputing", "rival", 100.0),
        ("slow", "peer", 2.0),
        ("quick", "peer", 60.0),
    )
] + [
    {"world": PAPER_GIVEN.title, "who": "gone", "kind": "peer", "rate": None, "reason": "not here"}
]
DECISIONS = [
    {"world": PAPER.title, "policy": "oful", "rounds": 9, "phase": "play", "rate": 5.0,
     "limit": 10.0, "share": 0.5},
    {"world": PAPER.title, "policy": "uniform", "rounds": 9, "phase": "explore", "rate": 5.0,
     "limit": None, "share": None},
]  # fmt: skip


def test_promises_are_kept_broken_or_not_measured():
    found = {row["what"]: row for row in targets.verdicts({"contest": CONTEST})}
    numpy = found["Protected, 100 x 6 fresh: over numpy"]
    assert (numpy["wanted"], numpy["measured"], numpy["verdict"]) == ("60x", "60x", "yes")
    assert found["Protected, 100 x 6 fresh: over the fastest peer"]["measured"] == "100x"
    assert found["sidestep --help"]["verdict"] == "not measured"
    slow = {"startup": [{"what": "sidestep --help", "seconds": 0.5}]}
    assert targets.verdicts(slow)[-2]["verdict"] == "no"


def test_the_page_names_everybody_and_every_reason():
    text = page.markdown(results_of(contest=CONTEST, decisions=DECISIONS))
    assert all(row["who"] in text for row in CONTEST)
    assert "not here" in text
    assert "50%" in text
    tables = [line for line in text.splitlines() if line.startswith("|")]
    assert all(line.endswith("|") for line in tables)


def test_the_picture_is_a_png():
    assert figure.png(results_of(contest=CONTEST, decisions=DECISIONS)).startswith(b"\x89PNG")
    assert figure.png(results_of(decisions=DECISIONS)).startswith(b"\x89PNG")


def test_results_are_json_with_machine_versions_settings_and_tables():
    results = results_of(contest=CONTEST)
    again = json.loads(json.dumps(results, allow_nan=False))
    assert set(again) == {"schema", "date", "machine", "versions", "settings", "tables"}
    assert {"sidestep", "python", "numpy", "numba"} <= set(again["versions"])
    assert again["settings"] == {"quick": True, "peers": False, "threads": 1}


def test_steps_are_announced_before_they_are_taken_and_kept_one_by_one():
    results, taken = results_of(), []

    def measure(name):
        taken.append(name)
        return [{"name": name}]

    steps = [plan.Step(name, "some", lambda name=name: measure(name)) for name in "abc"]
    for number, step in plan.run_all(steps, results):
        assert taken == list("abc")[:number]
        if step.title == "c":
            break
    assert results["tables"]["some"] == [{"name": "a"}, {"name": "b"}]


@pytest.mark.parametrize("quick", [True, False])
def test_the_plan_measures_the_limits_first_and_every_table_has_a_place_on_the_page(quick):
    steps = plan.steps(quick=quick, with_peers=False)
    assert steps[0].table == "limits"
    assert {step.table for step in steps} <= {table for _, table, _ in page.SECTIONS} | {"latency"}


def test_memory_of_this_process_is_read_where_the_system_tells():
    used = child.status_of("VmRSS")
    assert used is None or used > 1 << 20
    assert child.status_of("NoSuchLine") is None


@pytest.mark.full
def test_ctrl_c_in_the_benchmark_keeps_what_was_measured(tmp_path):
    out = tmp_path / "bench"
    command = [sys.executable, "-m", "benchmarks.speed", "--quick", "--json", "--out", str(out)]
    child = subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert child.stderr is not None
    for line in child.stderr:
        if line.startswith("2/"):  # the limits of the machine are known
            break
    os.kill(child.pid, signal.SIGINT)
    printed, said = child.communicate(timeout=200)
    assert child.returncode == 130
    assert f"what was measured is kept in {out}" in said
    assert list(json.loads(printed)["tables"]) == ["limits"]
    assert json.loads((out / "bench.json").read_text()) == json.loads(printed)
    assert "reading from L1" in (out / "bench.md").read_text()
