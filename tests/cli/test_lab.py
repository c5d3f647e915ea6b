"""The commands of the lab, called within the process."""

import json

import pytest

from sidestep.cli.main import app
from sidestep.cli.printing import table_lines
from sidestep.errors import InputError
from sidestep.experiments.figures.styles import Rendered
from sidestep.experiments.report import build
from sidestep.experiments.results import load_results
from sidestep.experiments.spec import jobs_of, parse_spec, shipped_specs, shortened


@pytest.mark.full
@pytest.mark.filterwarnings("ignore:the arms do not reach")
def test_another_setting_is_refused_before_anything_is_replaced(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(
        build, "render", lambda plan: Rendered(plan.name, b"png", b"<svg/>", b"<svg/>")
    )
    asked = ["reproduce", "failure", "--runs", "1", "--jobs", "1", "--out", str(tmp_path)]
    app([*asked, "--horizon", "6"], standalone_mode=False)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.parquet")}
    for names in (asked[:2], ["reproduce", "lower-bound", "failure"]):
        with pytest.raises(InputError, match="failure must hold runs of this spec alone.*horizon"):
            app([*names, *asked[2:], "--horizon", "4"], standalone_mode=False)
        assert {path: path.read_bytes() for path in tmp_path.rglob("*.parquet")} == before
    app([*asked, "--horizon", "4", "--overwrite"], standalone_mode=False)
    assert load_results(tmp_path)["round"].max() == 4


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:the arms do not reach")
def test_the_panel_plays_every_policy_on_every_world(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(
        build, "render", lambda plan: Rendered(plan.name, b"png", b"<svg/>", b"<svg/>")
    )
    asked = ["reproduce", "panel", "--quick", "--runs", "1", "--horizon", "4", "--jobs", "1"]
    app([*asked, "--out", str(tmp_path), "--json"], standalone_mode=False)
    rows = json.loads(capsys.readouterr().out)
    cut = shortened(parse_spec(shipped_specs()["panel"], "panel"), {"runs": 1, "horizon": 4})
    assert {row["policy"] for row in rows} <= {job.policy_id for job in jobs_of(cut)}
    assert {(row["world"], row["entry"]) for row in rows} == {
        (world.id, entry.id) for world in cut.worlds for entry in cut.policies if entry.plays(world)
    }
    assert "relative to the lowest" in (tmp_path / "report.html").read_text(encoding="utf-8")
    app(["report", str(tmp_path), "--jobs", "1"], standalone_mode=False)
    assert "panel: mean regret relative to the lowest" in capsys.readouterr().out


def test_the_table_fits_a_terminal_of_80_columns_whatever_it_holds():
    row = {
        "experiment": "mine", "world": "w", "label": "Protected LinUCB, certified core set",
        "grid": True, "mean": 123456.789, "sd": 0.00012345, "difference_low": -123456.0,
        "difference_high": -1234.5, "share_linear": 1.0, "relative": 12345.6,
        "tuned_on": "these runs",
    }  # fmt: skip
    lines = table_lines([row, row | {"label": "OFUL", "sd": None, "difference_low": None}])
    assert max(map(len, lines)) <= 80
    assert any("1.235e+05" in line for line in lines)
