"""Sweeps: finished runs are kept, never repeated, and the same wherever they are played."""

import json
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import polars
import pytest
from made_up import TOML

from sidestep.core.problem import Query
from sidestep.errors import ExecutorError, InputError, ResultsError, UnknownNameError
from sidestep.experiments import results, sweep
from sidestep.experiments.analysis.summary import summarise
from sidestep.experiments.executors import Dask, Processes, Serial
from sidestep.experiments.results_folder import with_code
from sidestep.experiments.spec import check_names, jobs_of, parse_spec
from sidestep.policies.base import Decision


@pytest.fixture
def spec():
    return parse_spec(TOML, "mine.toml")


def columns(folder):
    return results.load_results(folder)


def test_results_are_one_frame_with_everything_named(spec, tmp_path):
    sweep.sweep(spec, tmp_path)
    frame = columns(tmp_path)
    assert frame.height == 2 * 3 * 60
    assert set(frame["policy"]) == {"uniform", "greedy"}
    assert {"experiment", "world", "run", "round", "regret", "cumulative_regret"} <= set(
        frame.columns
    )
    notes = results.read_notes(tmp_path / "mine/traces/small/uniform/2.parquet")
    assert notes["id"] == "small/uniform/2"
    assert notes["job"]["seed"] == 2
    assert {"numpy", "numba", "sidestep"} <= set(notes["versions"])
    assert notes["seconds"] > 0
    assert sum(notes["counts"]) == 60


def test_runs_that_only_choose_are_kept_apart_and_resumed_like_all_others(spec, tmp_path, refusal):
    tuned = parse_spec(
        TOML.replace("runs = 3", "runs = 1\ntune_seeds = [70, 71]")
        + "grid = { epsilon = [1, 2] }\n",
        "mine.toml",
    )
    assert sweep.sweep(tuned, tmp_path).played == 3 + 4
    assert columns(tmp_path)["run"].to_list() == [0] * 3 * 60
    lost = tmp_path / "mine/tuning/small/greedy+epsilon=2/1.parquet"
    assert results.read_notes(lost)["job"]["seed"] == 71
    lost.unlink()
    assert sweep.sweep(tuned, tmp_path, resume=True).played == 1
    other = tuned.model_copy(update={"tune_seeds": (70, 72)})
    assert "tune_seeds differs" in refusal(sweep.sweep, other, tmp_path, resume=True)


def test_lazy_results_are_the_same_frame_and_are_read_when_they_are_collected(spec, tmp_path):
    sweep.sweep(spec, tmp_path)
    lazy = results.load_results(tmp_path, lazy=True)
    assert lazy.collect().equals(columns(tmp_path), null_equal=True)
    assert isinstance(lazy, polars.LazyFrame)
    last = lazy.filter(polars.col("round") == 60).select("policy", "cumulative_regret")
    assert "PROJECT 3/" in last.explain() or "PROJECT 2/" in last.explain()
    assert last.collect().height == 2 * 3
    (tmp_path / "mine/traces/small/uniform/0.parquet").unlink()
    with pytest.raises(FileNotFoundError):
        last.collect()


def test_the_summary_is_a_frame_with_the_numbers_of_the_report(spec, tmp_path):
    sweep.sweep(spec, tmp_path)
    told = results.load_summary(tmp_path)
    finals = columns(tmp_path).filter(polars.col("round") == 60)
    for row in told.to_dicts():
        mine = finals.filter(policy=row["policy"])["cumulative_regret"]
        assert (row["n"], row["mean"]) == (3, pytest.approx(mine.mean()))
        assert row["sd"] == pytest.approx(mine.std())
    assert told["shown"].all()
    assert set(told["policy"]) == {"uniform", "greedy"}
    assert told["tuning_mean"].null_count() == told.height


@pytest.mark.full
def test_one_process_and_two_give_identical_columns(spec, tmp_path):
    sweep.check_jobs(spec)
    frames = {}
    for name, runner in {"one": Serial(), "two": Processes(2)}.items():
        sweep.sweep(spec, tmp_path / name, runner)
        frames[name] = columns(tmp_path / name)
    assert frames["one"].equals(frames["two"], null_equal=True)


def test_a_resumed_sweep_repeats_nothing_and_loses_nothing(spec, tmp_path):
    calls = []

    class Breaks:
        def run(self, work, jobs):
            for job in jobs[:4]:
                calls.append(job.id)
                yield work(job)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sweep.sweep(spec, tmp_path, Breaks())
    kept = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.parquet")}
    assert len(kept) == 4
    assert sweep.sweep(spec, tmp_path, resume=True).played == 2
    assert all(path.stat().st_mtime_ns == when for path, when in kept.items())
    whole = tmp_path / "whole"
    sweep.sweep(spec, whole)
    assert columns(tmp_path / "mine").equals(columns(whole), null_equal=True)


def test_without_resume_finished_runs_are_not_overwritten(spec, tmp_path):
    sweep.sweep(spec, tmp_path)
    with pytest.raises(InputError, match="got 6 runs of this spec: add --resume"):
        sweep.sweep(spec, tmp_path)
    before = stamps(tmp_path)
    assert sweep.sweep(spec, tmp_path, overwrite=True).played == 6
    assert not before & stamps(tmp_path)


def stamps(folder):
    """Every run with the time it was written."""
    return {(path, path.stat().st_mtime_ns) for path in folder.rglob("*.parquet")}


CHANGES = {
    "horizon 60, here 61": {"horizon": 61},
    "runs 3, here 4": {"runs": 4},
    "seed 0, here 7": {"seed": 7},
    "policy greedy is not in this one": {"policies": 1},
    "policy greedy differs": {"policies": {"epsilon": 0.5}},
    "world small differs": {"worlds": {"arms": 6}},
}


def changed(spec, change):
    if change.get("policies") == 1:
        change = {"policies": spec.policies[:1]}
    elif "policies" in change:
        other = spec.policies[1].model_copy(update={"knobs": change["policies"]})
        change = {"policies": [spec.policies[0], other]}
    elif "worlds" in change:
        knobs = spec.worlds[0].knobs | change["worlds"]
        change = {"worlds": [spec.worlds[0].model_copy(update={"knobs": knobs})]}
    return spec.model_copy(update=change)


@pytest.mark.full
@pytest.mark.parametrize("words", CHANGES)
@pytest.mark.parametrize("resume", [True, False])
def test_a_folder_refuses_another_spec_and_keeps_what_it_holds(
    spec, tmp_path, words, resume, refusal
):
    sweep.sweep(spec, tmp_path)
    before = stamps(tmp_path), (tmp_path / "mine/spec.json").read_bytes()
    message = refusal(sweep.sweep, changed(spec, CHANGES[words]), tmp_path, resume=resume)
    assert words in message
    assert "--out" in message
    assert "--overwrite" in message
    assert (stamps(tmp_path), (tmp_path / "mine/spec.json").read_bytes()) == before


def test_overwrite_with_resume_keeps_the_runs_that_both_specs_have(spec, tmp_path):
    sweep.sweep(spec, tmp_path)
    before = stamps(tmp_path)
    longer = changed(spec, {"policies": {"epsilon": 0.5}}).model_copy(update={"runs": 4})
    assert sweep.sweep(longer, tmp_path, resume=True, overwrite=True).played == 1 + 4
    assert len(before & stamps(tmp_path)) == 3
    assert columns(tmp_path).height == 2 * 4 * 60
    assert results.read_specs(tmp_path) == [longer]


def test_titles_and_notes_do_not_make_another_spec(spec, tmp_path):
    sweep.sweep(spec, tmp_path)
    titled = spec.model_copy(update={"title": "Mine", "note": "Better said."})
    assert sweep.sweep(titled, tmp_path, resume=True).played == 0
    assert results.read_specs(tmp_path)[0].title == "Mine"


def test_runs_of_another_setting_that_lie_there_are_not_replaced(spec, tmp_path):
    sweep.sweep(spec, tmp_path)
    results.write_spec(tmp_path, longer := spec.model_copy(update={"horizon": 61}))  # as 0.1 did
    with pytest.raises(InputError, match="must hold runs of this spec alone, got 6"):
        sweep.sweep(longer, tmp_path, resume=True)


OWN_FILE = """
from sidestep import Uniform
from sidestep.environments import synthetic


class Mine(Uniform):
    pass


def small(seed=0):
    return synthetic(3, 2, 1, 5, noise_scale=0.1, seed=seed)
"""


@pytest.mark.parametrize("changed", ['"uniform"\n\n', '"synthetic"\n'])
def test_a_changed_file_of_ones_own_is_another_setting(changed, tmp_path, monkeypatch, refusal):
    name = "own_mine:Mine" if "uniform" in changed else "own_mine:small"
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "own_mine.py").write_text(OWN_FILE)
    toml = TOML.replace(changed, f'"{name}"\n\n')
    if "small" in name:
        toml = toml.replace("knobs = { dim", "# knobs = { dim")
    spec, out = parse_spec(toml, "mine.toml"), tmp_path / "out"
    try:
        sweep.sweep(spec, out)
        assert sweep.sweep(spec, out, resume=True).played == 0
        (tmp_path / "own_mine.py").write_text(OWN_FILE + "# changed\n")
        message = refusal(sweep.sweep, spec, out, resume=True)
    finally:
        sys.modules.pop("own_mine", None)
    assert f"(the code of {name} differs): choose another --out" in message
    assert summarise(out).runs.height == 6  # a report asks for no code


def test_runs_of_the_catalog_keep_the_fingerprint_they_had(spec):
    assert jobs_of(spec)[0].fingerprint == "83e41be49e0cc35b"
    assert with_code(jobs_of(spec)) == jobs_of(spec)


def test_runs_that_say_nothing_of_code_are_of_one_setting_with_those_that_do(spec):
    job, *_ = (job._asdict() for job in jobs_of(spec))
    older = {name: value for name, value in job.items() if name != "code"}
    results._check_one_setting("here", [job, older])
    results._check_one_setting("here", [older, job])


def test_a_broken_file_is_played_again(spec, tmp_path):
    sweep.sweep(spec, tmp_path)
    (tmp_path / "mine/traces/small/greedy/1.parquet").write_bytes(b"nothing")
    assert sweep.sweep(spec, tmp_path, resume=True).played == 1


@pytest.mark.full
def test_results_are_of_one_setting_or_the_sentence_says_which_there_are(spec, tmp_path, refusal):
    sweep.sweep(spec, tmp_path)
    longer = spec.model_copy(update={"horizon": 61, "seed": 5})
    job = jobs_of(longer)[0]
    results.write_whole(results.trace_path(tmp_path, job), sweep.run_job(job).content)
    message = refusal(results.load_results, tmp_path)
    assert "mine/small/uniform" in message
    assert (
        "1 runs with horizon 61, first seed 5 and 2 runs with horizon 60, first seed 0" in message
    )
    other = tmp_path / "other"
    sweep.sweep(longer, other)
    assert columns(other).height == 2 * 3 * 61


def test_a_half_written_file_is_never_left_behind(tmp_path, monkeypatch):
    path = tmp_path / "a" / "b.parquet"

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(results.os, "fsync", full)
    with pytest.raises(ResultsError, match=r"b.parquet: the disk is full; finished runs are kept"):
        results.write_whole(path, b"x" * 1000)
    assert list(path.parent.iterdir()) == []


@pytest.mark.full
def test_kill_minus_nine_in_the_middle_leaves_whole_files_only(tmp_path):
    code = (
        "from pathlib import Path; from sidestep.experiments import results\n"
        "i = 0\n"
        "while True:\n"
        f"    path = Path({str(tmp_path)!r}) / f'{{i % 5}}.bin'\n"
        "    results.write_whole(path, bytes([i % 251]) * 400_000)\n"
        "    i += 1\n"
    )
    child = subprocess.Popen([sys.executable, "-c", code])
    deadline = time.monotonic() + 60
    while len(list(tmp_path.glob("[0-9].bin"))) < 5 and time.monotonic() < deadline:
        time.sleep(0.05)
    child.send_signal(signal.SIGKILL)
    child.wait()
    files = list(tmp_path.glob("[0-9].bin"))
    assert len(files) == 5
    for file in files:
        content = file.read_bytes()
        assert len(content) == 400_000
        assert len(set(content)) == 1


def test_a_wrong_knob_is_refused_before_anything_runs(tmp_path):
    wrong = parse_spec(
        TOML.replace('policy = "epsilon-greedy"', 'policy = "epsilon-gredy"'), "w.toml"
    )
    with pytest.raises(UnknownNameError, match="small/greedy.*did you mean 'epsilon-greedy'"):
        sweep.check_jobs(wrong)
    knob = TOML + "knobs = { epsilom = 2.0 }\n"
    with pytest.raises(UnknownNameError, match="did you mean 'epsilon'"):
        sweep.check_jobs(parse_spec(knob, "w.toml"))


def test_a_policy_of_ones_own_is_named_by_module_and_class(tmp_path):
    own = parse_spec(
        TOML.replace('"uniform"\n\n', '"sidestep.policies.uniform:Uniform"\n\n'), "o.toml"
    )
    sweep.sweep(own, tmp_path)
    assert columns(tmp_path).height == 360
    missing = parse_spec(TOML.replace('"uniform"\n\n', '"no.such:Thing"\n\n'), "o.toml")
    with pytest.raises(InputError, match="cannot be imported"):
        sweep.check_jobs(missing)


def test_every_wrong_entry_of_a_spec_is_named_at_once(refusal):
    wrong = TOML.replace('"epsilon-greedy"', '"epsilon-gredy"') + OWN % "{ bad = 1, width = 2 }"
    message = refusal(sweep.check_jobs, parse_spec(wrong, "w.toml"))
    assert "small/greedy: policy must be one of" in message
    assert "small/own: knob of test_sweep:Trying must be one of bad, got 'width'" in message


def test_a_knob_that_ones_own_policy_needs_is_asked_for_without_a_line_of_ours(refusal):
    message = refusal(sweep.check_jobs, parse_spec(TOML + OWN % "{}", "w.toml"))
    assert "small/own: knobs of test_sweep:Trying must fit it" in message
    assert "argument: 'bad'" in message
    assert "line" not in message


def test_every_unknown_name_and_knob_of_a_spec_is_told_at_once_with_its_table(refusal):
    wrong = TOML.replace('"epsilon-greedy"', '"epsilon-gredy"').replace("arms = 5", "arm = 5")
    wrong += OWN % "{ width = 2 }"
    message = refusal(check_names, parse_spec(wrong, "w.toml"), "w.toml")
    assert message.startswith("w.toml: worlds.small: knob of synthetic must be one of")
    assert "; policies.greedy: policy must be one of" in message
    assert "; policies.own: knob of test_sweep:Trying must be one of bad, got 'width'" in message
    check_names(parse_spec(TOML, "w.toml"), "w.toml")


class Trying:
    """A user's policy that fails in a given way."""

    def __init__(self, problem, bad):
        self.problem, self.bad = problem, bad

    def init(self):
        return 0

    def ask(self, state, actions, rng):
        decision = Decision(Query(actions.vectors[0], 0), "play", arm=0)
        if state < 7:
            return decision
        if self.bad == "raises":
            raise KeyError("lost")
        phase = replace(decision, phase="thinking")
        action = replace(decision, query=Query(np.full(3, np.nan), 0))
        return {"is silent": None, "names no phase": phase, "plays NaN": action}[self.bad]

    def tell(self, state, query, feedback):
        return state + 1


OWN = """
[[policies]]
id = "own"
policy = "test_sweep:Trying"
knobs = %s
"""

BREAKDOWNS = {
    "raises": "KeyError: 'lost' (test_sweep.py, line ",
    "is silent": "ask must return a Decision, got None",
    "names no phase": "phase of a Decision must be one of",
    "plays NaN": "action must be finite numbers",
}


@pytest.mark.full
@pytest.mark.parametrize("bad", BREAKDOWNS)
def test_a_policy_that_breaks_down_is_named_and_the_others_go_on(bad, tmp_path):
    spec = parse_spec(TOML + OWN % f'{{ bad = "{bad}" }}', "own.toml")
    swept = sweep.sweep(spec, tmp_path)
    assert swept.played == 9
    assert [failed.job.id for failed in swept.failed] == [f"small/own/{run}" for run in range(3)]
    reason = swept.failed[1].reason
    assert reason.startswith(f"mine: world small, policy own, run 1: {BREAKDOWNS[bad]}")
    assert "\n" not in reason
    assert set(columns(tmp_path)["policy"]) == {"uniform", "greedy"}
    assert len(sweep.sweep(spec, tmp_path, resume=True).failed) == 3


def test_results_of_another_format_are_refused_with_a_sentence(spec, tmp_path):
    job = jobs_of(spec)[0]
    path = results.trace_path(tmp_path, job)
    path.parent.mkdir(parents=True)
    polars.DataFrame({"round": [1]}).write_parquet(
        path, metadata={"sidestep": '{"format": 99, "versions": {"sidestep": "9.9"}}'}
    )
    with pytest.raises(InputError, match="must have format 1, got 99; .*sidestep 9.9"):
        results.load_results(tmp_path)
    path.write_bytes(b"not parquet")
    with pytest.raises(InputError, match="must be a run that sidestep wrote"):
        results.load_results(tmp_path)
    with pytest.raises(InputError, match="must hold traces"):
        results.load_results(tmp_path / "nothing")
    (tmp_path / "spec.json").write_text("{}")
    with pytest.raises(InputError, match="spec.json: must be a spec that sidestep wrote"):
        results.read_specs(tmp_path)


@pytest.mark.full
def test_a_scheduler_that_is_not_there_gets_a_sentence(spec, tmp_path):
    with pytest.raises(ExecutorError, match="no Dask scheduler answers at tcp://127.0.0.1:9"):
        sweep.sweep(spec, tmp_path, Dask("tcp://127.0.0.1:9", timeout=1))


def dask(program, *arguments):
    """A process of Dask, as its command line starts it."""
    command = [
        sys.executable,
        "-m",
        f"distributed.cli.dask_{program}",
        *arguments,
        "--no-dashboard",
    ]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


@pytest.mark.full
def test_a_dask_cluster_that_loses_a_worker_gives_the_serial_result(spec, tmp_path):
    longer = spec.model_copy(update={"runs": 12, "horizon": 4000, "every": 100})
    sweep.check_jobs(longer)
    sweep.sweep(longer, tmp_path / "serial")
    file = tmp_path / "scheduler.json"
    scheduler = dask(
        "scheduler", "--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(file)
    )
    workers = []
    try:
        address = wait_for_address(file)
        workers = [dask("worker", address, "--nthreads", "1", "--no-nanny") for _ in range(2)]
        killed = []

        def watch(progress):
            if progress.done == 3 and not killed:
                workers[0].kill()
                killed.append(progress.last)

        sweep.sweep(longer, tmp_path / "dask", Dask(address, timeout=30), on_progress=watch)
        assert killed
    finally:
        for process in (*workers, scheduler):
            process.kill()
            process.wait()
    assert columns(tmp_path / "dask").equals(columns(tmp_path / "serial"), null_equal=True)


def wait_for_address(file, seconds=60):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            return json.loads(file.read_text())["address"]
        except (FileNotFoundError, ValueError):
            time.sleep(0.2)
    raise AssertionError("the scheduler did not start")
