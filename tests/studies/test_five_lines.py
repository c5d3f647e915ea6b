"""Five lines lead from the import to the first question."""

FIVE = """
import sidestep as ss
dose = ss.Factor("dose", 0, 40, unit="mg", step=10)
pressure = ss.Outcome("systolic pressure", "mmHg", goal="lower", range=(100, 190))
study = ss.Study.create("pilot", "pilot.db", factors=[dose], target=pressure)
print(study.ask())
"""


def test_five_lines_lead_to_the_first_question(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert len(FIVE.split("\n")) == 7
    exec(FIVE, {})
    printed = capsys.readouterr().out
    assert "Set" in printed
    assert "Measure  systolic pressure (mmHg), and only that" in " ".join(printed.split("  "))
