import json
import subprocess
import sys

import numpy as np
import pytest

from sidestep import environments
from sidestep.environments import WORLDS, Instance, from_config
from sidestep.environments.catalog import knobs_of_world
from sidestep.errors import InputError, UnknownNameError, UnreachedDirectionsWarning

NEEDED = {"lower-bound": {"horizon": 1000, "which": 1}, "warfarin": {"preset": "full-rank"}}
NEEDED["warfarin-lookalike"] = NEEDED["warfarin"]
NEEDED["unspanned"] = {"which": 1}
NEEDED["spanning"] = NEEDED["lower-bound"]
NEEDED["held-out"] = {"kind": "one-hot"}


@pytest.mark.parametrize("name", WORLDS)
def test_every_world_is_built_by_name(name):
    instance = from_config(name, NEEDED.get(name), seed=3)
    assert isinstance(instance, Instance)
    assert getattr(environments, name.replace("-", "_")) is WORLDS[name]


def test_knobs_reach_the_world():
    instance = from_config("synthetic", {"dim": 4, "n_protected": 2, "subspace_dim": 1, "arms": 7})
    assert instance.theta.shape == (3, 4)
    assert instance.actions.count == 7


def test_the_seed_goes_to_worlds_that_take_one_unless_a_knob_fixes_it():
    by_seed = [from_config("synthetic", seed=seed).theta for seed in (1, 1, 2)]
    np.testing.assert_array_equal(by_seed[0], by_seed[1])
    assert (by_seed[0] != by_seed[2]).any()
    np.testing.assert_array_equal(from_config("synthetic", {"seed": 2}, seed=1).theta, by_seed[2])
    np.testing.assert_array_equal(
        from_config("failure", seed=1).theta, from_config("failure", seed=2).theta
    )


@pytest.fixture
def mine(tmp_path, monkeypatch):
    (tmp_path / "my_worlds.py").write_text(
        "from sidestep.environments import failure\n"
        "def shifted(noise_scale=0.1, seed=0): return failure(noise_scale + seed)\n"
        "def free(**knobs): return failure(**knobs)\n"
        "def strange(): return 3\n"
        "number = 3\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    yield
    sys.modules.pop("my_worlds", None)


@pytest.mark.usefixtures("mine")
def test_a_world_of_one_s_own_is_named_by_module_and_function():
    assert from_config("my_worlds:shifted", {"noise_scale": 0.5}, 1).problem.noise_scale == 1.5
    assert from_config("my_worlds:free", {"noise_scale": 0.5}, 1).problem.noise_scale == 0.5


@pytest.mark.usefixtures("mine")
@pytest.mark.parametrize(
    ("name", "knobs", "kind", "sentence"),
    [
        ("syntetic", {}, UnknownNameError, "did you mean 'synthetic'"),
        ("synthetic", {"dims": 3}, UnknownNameError, "knob of synthetic .*did you mean 'dim'"),
        ("my_worlds:shifted", {"noise": 3}, UnknownNameError, "did you mean 'noise_scale'"),
        ("lower-bound", {"horizon": 1000}, InputError, "lower-bound cannot be built.*which"),
        ("failure", {"noise_scale": "loud"}, InputError, "^noise_scale must be .*'loud'"),
        ("failure", {"noise_scale": -1}, InputError, "^noise_scale must be zero or positive"),
        ("no_such_module:thing", {}, InputError, "cannot be imported: No module named"),
        ("my_worlds:nothing", {}, InputError, "cannot be imported: .*nothing"),
        (":thing", {}, InputError, "cannot be imported"),
        (
            "my_worlds:number",
            {},
            InputError,
            "must be a function that returns an Instance, got int",
        ),
        ("my_worlds:strange", {}, InputError, "must return an Instance, got int"),
        ("builtins:dict", {}, InputError, "cannot be built"),
    ],
)
def test_a_wrong_name_or_knob_is_one_sentence(name, knobs, kind, sentence):
    with pytest.raises(kind, match=sentence) as error:
        from_config(name, knobs)
    assert "\n" not in str(error.value)


def test_the_warning_about_unreached_columns_passes_through():
    with pytest.warns(UnreachedDirectionsWarning, match="cerivastatin"):
        from_config("warfarin")


def test_worlds_say_in_a_line_what_they_are_and_which_knobs_they_have():
    assert all((maker.__doc__ or "").partition("\n")[0].endswith(".") for maker in WORLDS.values())
    knobs = {name: knobs_of_world(maker) for name, maker in WORLDS.items()}
    assert knobs["lower-bound"]["horizon"] == "(needed)"
    assert knobs["diabetes"]["threshold"] == 0.1
    assert json.loads(json.dumps(knobs["synthetic"]))["dim"] == 6


@pytest.mark.full
def test_the_worlds_load_without_the_extras():
    code = (
        "import sys, sidestep.environments\n"
        "print([m for m in ('sklearn', 'polars', 'python_calamine') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
