"""A bare installation, without the extra `lab`: what runs, and what says which extra it needs.

Every test runs in a process of its own in which numba, polars, matplotlib and pillow cannot be imported.
"""

import subprocess
import sys

import pytest

BLOCK = """
import sys
for name in ("numba", "polars", "matplotlib", "PIL"):
    sys.modules[name] = None
"""
WORLD = """
import sidestep as ss
world = ss.environments.synthetic(3, 2, 1, 5, noise_scale=0.1, seed=0)
policy = ss.DirectedThompson(world.problem)
"""
NOTICE = 'playing without a compiler; pip install "sidestep[lab]" brings the compiled loop'


def bare(code, *arguments):
    """What a program prints, on both channels, and its exit code."""
    return subprocess.run(
        [sys.executable, "-c", BLOCK + code, *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


@pytest.mark.full
def test_simulate_plays_interpreted_and_says_once_how_to_get_the_compiled_loop():
    done = bare(
        WORLD
        + """
for seed in range(2):
    print(len(ss.simulate(policy, world, 3, seed).regret))
print(len(ss.simulate_many(policy, world, 2, runs=2)))
"""
    )
    assert done.stdout.split() == ["3", "3", "2"]
    assert done.stderr.count("sidestep[lab]") == 1
    assert NOTICE in done.stderr


@pytest.mark.full
def test_a_policy_of_another_package_is_played_without_a_message():
    done = bare(
        WORLD
        + """
class Mine:
    problem = policy.problem
    init, tell, state_from_json = policy.init, policy.tell, policy.state_from_json
    def ask(self, state, actions, rng): return policy.ask(state, actions, rng)
ss.simulate(Mine(), world, 3)
"""
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.full
def test_it_warns_before_more_rounds_than_anyone_should_play_interpreted():
    done = bare(
        WORLD
        + """
import warnings
warnings.simplefilter("error", ss.errors.SlowRunWarning)
for play in (lambda: ss.simulate(policy, world, 100_001),
             lambda: ss.simulate_many(policy, world, 50_001, runs=2)):
    try: play()
    except ss.errors.SlowRunWarning as warning: print(warning)
"""
    )
    one, many = done.stdout.splitlines()
    assert one.startswith("100,001 rounds without a compiler")
    assert many.startswith("100,002 rounds without a compiler")
    assert "sidestep[lab]" in one


NEEDS_THE_LAB = {
    "ss.simulate(policy, world, 3, compiled=True)": ("compiled code", "numba"),
    "ss.simulate(policy, world, 3).to_frame()": ("a frame", "polars"),
    "ss.load_results('out')": ("load_results", "polars"),
    "ss.load_summary('out')": ("load_summary", "polars"),
    "import sidestep.experiments.figures.figures": ("drawing figures", "polars"),
    "import sidestep.experiments.report.build": ("a report", "polars"),
}


@pytest.mark.full
def test_what_needs_the_lab_names_it_in_one_sentence():
    tries = [
        f"try: {call}\nexcept ss.errors.MissingExtra as error: print(error)\n"
        for call in NEEDS_THE_LAB
    ]
    assert bare(WORLD + "".join(tries)).stdout.splitlines() == [
        f'{what} needs {package}, which is not installed: pip install "sidestep[lab]"'
        for what, package in NEEDS_THE_LAB.values()
    ]


@pytest.mark.full
@pytest.mark.parametrize("command", ["reproduce", "run", "report"])
def test_commands_of_the_lab_name_it_and_exit_with_2(tmp_path, command):
    spec = tmp_path / "mine.toml"
    spec.write_text("")
    arguments = {"reproduce": ["synthetic"], "run": [str(spec)], "report": [str(tmp_path)]}[command]
    done = bare("from sidestep.cli.main import main; main()", command, *arguments)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith("sidestep: ")
    assert 'pip install "sidestep[lab]"' in line


@pytest.mark.full
def test_ask_tell_and_recommend_import_nothing_of_the_lab():
    done = bare(
        WORLD
        + """
import numpy as np
state, arms = policy.init(), ss.Arms(np.eye(3))
decision = policy.ask(state, arms, np.random.default_rng(0))
state = policy.tell(state, decision.query, 0.5)
print(ss.recommend(policy, policy.state_from_json(state.to_json()), arms).arm in (0, 1, 2))
"""
    )
    assert (done.stdout, done.stderr) == ("True\n", "")


@pytest.mark.full
def test_every_policy_keeps_the_contract_without_a_compiler():
    done = bare(
        """
from sidestep import policies, testing
testing.ROUNDS = 4
for policy in policies.POLICIES.values():
    testing.check_policy(policy)
print(len(policies.POLICIES))
"""
    )
    assert done.stdout.strip().isdigit(), done.stderr
