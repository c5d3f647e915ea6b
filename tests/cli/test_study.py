"""`sidestep study`: exit codes, sentences, JSON, and what a person reads at 80 columns."""

import json
import subprocess
import sys

import pytest

from sidestep.studies.study import Study

pytestmark = pytest.mark.full  # make test runs them, make check does not

VERBS = """create ask tell correct withdraw show history best explain import export list verify backup
restore doctor close""".split()  # noqa: SIM905


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help_with_an_example(verb, run):
    done = run(verb, "--help")
    assert done.returncode == 0
    assert f"Example: sidestep study {verb}" in done.stdout


def test_the_example_is_a_study_that_can_be_created_asked_told_and_judged(run):
    assert run("create", "bp", "--from", "study.toml").returncode == 0
    asked = json.loads(run("ask", "bp", "--json").stdout)
    assert asked["ticket"] == 2
    told = run("tell", "bp", 2, 139, "--yes")
    assert told.returncode == 0
    assert "Saved as entry 3" in told.stdout
    assert "can be recommended yet." in run("best", "bp").stdout
    assert json.loads(run("best", "bp", "--json").stdout)["results"] == 1


def test_a_command_on_a_card_finds_the_study_in_its_storage(run):
    run("create", "bp", "--from", "study.toml", "--storage", "my pilot.db")
    asked = run("ask", "bp", "--storage", "my pilot.db")
    told = json.loads(run("ask", "bp", "--storage", "my pilot.db", "--json").stdout)
    command = next(line for line in asked.stdout.splitlines() if "sidestep study" in line).split()
    assert " ".join(command) == "Then sidestep study tell bp 2 VALUE -s 'my pilot.db'"
    assert told["text"] == asked.stdout.rstrip("\n")


@pytest.mark.parametrize("verb", ["show", "history", "best", "explain", "verify"])
def test_every_view_has_json_and_fits_80_columns(started, verb):
    started("tell", "bp", 2, 139, "--yes")
    content = json.loads(started(verb, "bp", "--json").stdout)
    assert content["study"] == "bp"
    text = started(verb, "bp").stdout
    assert text.strip()
    assert max(len(line) for line in text.splitlines()) <= 80


def test_a_study_with_a_context_is_asked_told_judged_and_closed(run):
    (run.folder / "age.toml").write_text(
        'model = "0 + dose + dose:age"\n'
        "[[factors]]\nname = 'dose'\nlow = 0\nhigh = 40\nstep = 10\n"
        "[[context]]\nname = 'age'\nlow = 20\nhigh = 80\n"
        "[target]\nname = 'pain'\ngoal = 'lower'\nrange = [0, 10]\n"
    )
    assert run("create", "pain", "--from", "age.toml").returncode == 0
    assert run("ask", "pain", "--context", "age=63").returncode == 0
    assert run("tell", "pain", 2, 4, "--reason", "a good day").returncode == 0
    assert "a good day" in run("history", "pain").stdout
    assert "age" in run("best", "pain").stderr
    for verb in (["best"], ["explain"], ["close", "--accept"]):
        assert run(verb[0], "pain", *verb[1:], "--context", "age=63").returncode == 0, verb


def test_data_go_to_stdout_and_talk_to_stderr(started):
    refused = started("tell", "bp", 2, "1,380")
    assert refused.stdout == ""
    assert "may be 1.380 or 1380" in refused.stderr
    exported = started("export", "bp", "--out", "bp.jsonl")
    assert exported.stdout == ""
    assert "bp.jsonl" in exported.stderr


def test_a_surprising_value_must_be_confirmed(started):
    doubted = started("tell", "bp", 2, 99999)
    assert doubted.returncode == 2
    assert "Nothing was saved" in doubted.stderr
    assert started("tell", "bp", 2, 99999, stdin="n\n").returncode == 1
    assert len(json.loads(started("history", "bp", "--json").stdout)["events"]) == 2
    assert started("tell", "bp", 2, 99999, stdin="y\n").returncode == 0
    assert len(json.loads(started("history", "bp", "--json").stdout)["events"]) == 3


def test_a_surprising_correction_must_be_confirmed(started):
    started("tell", "bp", 2, 139, "--yes")
    doubted = started("correct", "bp", 2, 99999, "--reason", "misread")
    assert doubted.returncode == 2
    assert "99999" in doubted.stderr
    assert "Nothing was saved" in doubted.stderr
    assert started("correct", "bp", 2, 99999, "--reason", "misread", stdin="n\n").returncode == 1
    assert len(json.loads(started("history", "bp", "--json").stdout)["events"]) == 3
    assert started("correct", "bp", 2, 99999, "--reason", "misread", "--yes").returncode == 0


def test_an_import_with_values_out_of_range_must_be_confirmed_and_the_same_again_is_refused(run):
    head = "lisinopril,amlodipine,chlortalidone,sodium,potassium\n"
    (run.folder / "earlier.csv").write_text(head + "20,0,0,139,4.2\n40,10,25,1370,43\n")
    run("create", "bp", "--from", "study.toml")
    doubted = run("import", "bp", "earlier.csv")
    assert doubted.returncode == 2
    assert "row 1: 43 mmol/L is far from what is plausible for potassium" in doubted.stderr
    assert "one more result" in doubted.stderr
    assert run("import", "bp", "earlier.csv", stdin="n\n").returncode == 1
    assert json.loads(run("show", "bp", "--json").stdout)["counts"] == {}
    assert run("import", "bp", "earlier.csv", "--yes").returncode == 0
    again = run("import", "bp", "earlier.csv", "--yes")
    assert again.returncode == 4
    assert "--again" in again.stderr
    assert run("import", "bp", "earlier.csv", "--yes", "--again").returncode == 0


def test_on_a_terminal_a_study_is_closed_only_after_confirmation(started):
    declined = started("close", "bp", stdin="n\n", terminal=True)
    assert declined.returncode == 1
    assert "it cannot be opened again" in declined.stderr
    assert "Nothing was saved" in declined.stderr
    assert json.loads(started("show", "bp", "--json").stdout)["status"] == "open"
    assert started("close", "bp", "--reason", "done", stdin="y\n", terminal=True).returncode == 0
    assert json.loads(started("show", "bp", "--json").stdout)["status"] == "closed"
    assert started("close", "bp", "--yes", terminal=True).stderr == ""  # no question


def test_a_negative_number_is_accepted_as_a_result(run):
    text = (
        (run.folder / "study.toml").read_text().replace("range = [100, 190]", "range = [-100, 190]")
    )
    (run.folder / "study.toml").write_text(text)
    run("create", "bp", "--from", "study.toml")
    run("ask", "bp")
    assert run("tell", "bp", 2, "-0.5", "--measured", "systolic pressure").returncode == 0


def test_correct_and_withdraw_stay_on_record_with_their_reasons(started):
    started("tell", "bp", 2, 139, "--yes")
    assert started("correct", "bp", 2, 138, "--reason", "misread", "--yes").returncode == 0
    assert started("withdraw", "bp", 2, "--reason", "haemolysed").returncode == 0
    text = started("history", "bp").stdout
    assert "misread" in text
    assert "haemolysed" in text


def test_a_different_setting_can_be_recorded_as_given(started):
    done = started("tell", "bp", 2, 139, "--yes", "--given", "lisinopril=30", "--json")
    assert json.loads(done.stdout)["entries"][0]["action"]["lisinopril"] == 30


def test_restrictions_of_an_ask_are_kept(run):
    run("create", "bp", "--from", "study.toml")
    arguments = ["--allow", "lisinopril=0:10", "--measure-only", "sodium", "--panel", 1]
    asked = json.loads(run("ask", "bp", *arguments, "--json").stdout)
    assert asked["action"]["lisinopril"] <= 10
    assert asked["measure"] == ["sodium"]


def test_results_and_candidates_come_from_csv(run):
    (run.folder / "regimens.csv").write_text(
        "lisinopril,amlodipine,chlortalidone\n20,0,0\n40,10,25\n0,5,12.5\n"
    )
    (run.folder / "earlier.csv").write_text(
        "lisinopril,amlodipine,chlortalidone,sodium,potassium\n20,0,0,139,4.2\n40,10,25,137,\n"
    )
    run("create", "bp", "--from", "study.toml", "--candidates", "regimens.csv")
    assert run("import", "bp", "earlier.csv").returncode == 0
    assert json.loads(run("show", "bp", "--json").stdout)["counts"] == {"sodium": 2, "potassium": 1}
    assert json.loads(run("ask", "bp", "--json").stdout)["candidate"] in (0, 1, 2)


def test_an_export_is_imported_bit_for_bit(started):
    started("export", "bp", "--out", "bp.jsonl")
    assert started("import", "bp.jsonl", "--storage", "other.db").returncode == 0
    again = started("export", "bp", "--storage", "other.db").stdout
    assert again == (started.folder / "bp.jsonl").read_text()
    assert started("import", "bp.jsonl").returncode == 0  # the same is there already
    (started.folder / "bp.jsonl").rename(started.folder / "bp.ndjson")
    assert started("import", "bp.ndjson", "--storage", "third.db").returncode == 0


def test_a_backup_is_restored_and_every_question_would_be_put_again(started):
    assert started("backup", "monday.db").returncode == 0
    assert started("restore", "monday.db", "--check").returncode == 0
    assert started("restore", "monday.db", "--storage", "new.db").returncode == 0
    assert started("verify", "bp", "--asks", "--storage", "new.db").returncode == 0
    assert started("restore", "monday.db").returncode == 4
    assert started("doctor").returncode == 0


def test_a_closed_study_shows_how_it_was_closed(started):
    started("close", "bp", "--reason", "enough", "--yes")
    shown = " ".join(started("show", "bp").stdout.split())
    assert "The study is closed, without a decision." in shown


def test_a_closed_study_shows_what_was_decided(started):
    another = [f"--overrule={name}=0" for name in ("lisinopril", "amlodipine", "chlortalidone")]
    assert started("close", "bp", *another, "--reason", "too high", "--yes").returncode == 0
    shown = " ".join(started("show", "bp").stdout.split())
    assert "closed, with lisinopril 0, amlodipine 0, chlortalidone 0 mg/day" in shown
    assert "(the recommendation was overruled)" in shown


def test_a_closed_study_is_listed_as_such(started):
    assert "awaits one answer" in started("list").stdout
    assert started("close", "bp", "--reason", "done").returncode == 0
    assert "closed" in started("list").stdout
    another = [f"--overrule={name}=0" for name in ("lisinopril", "amlodipine", "chlortalidone")]
    refused = started("close", "bp", *another, "--reason", "too high")
    assert refused.returncode == 4
    assert "'bp' was closed already, without a decision" in refused.stderr
    assert started("ask", "bp", "--new").returncode == 4


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["ask", "bq"], 3, ["'bq'"]),
        (["show", "nope", "-s", "none.db"], 3, ["none.db", "study create", "-s FILE"]),
        (["tell", "bp", 99, 1], 3, ["no question 99"]),
        (["tell", "bp", "two", 1], 2, ["whole number"]),
        (["create", "bp", "--from", "study.toml"], 4, ["'bp'"]),
        (["create", "bq"], 2, ["--from"]),
        (["create", "bq", "--from", "nowhere.toml"], 2, ["nowhere.toml"]),
        (["create", "bq", "--from", "study.toml", "--candidates", "no.csv"], 2, ["no.csv"]),
        (["create", "bq", "--from", "study.toml", "--candidates", "no.txt"], 2, [".csv"]),
        (["tell", "bp", 2, "nan"], 2, ["number", "nan"]),
        (["tell", "bp", 2, "inf"], 2, ["number"]),
        (["tell", "bp", 2, "1e400"], 2, ["finite"]),
        (["tell", "bp", 2, "high"], 2, ["number", "high"]),
        (["tell", "bp", 2], 2, ["a value, below or change"]),
        (["tell", "bp", 2, ">0.5"], 2, ["above a limit"]),
        (["tell", "bp", 2, "a=1", "b=2"], 2, ["outcome", "'a'"]),
        (["tell", "bp", 2, 4, "--yes", "--given", "aspirin=1"], 2, ["aspirin"]),
        (["tell", "bp", 2, 4, "--yes", "--given", "lisinopril=43"], 2, ["0 to 40 mg/day, got 43"]),
        (["tell", "bp", 2, 4, "--yes", "--given", "lisinopril"], 2, ["name=value"]),
        (["correct", "bp", 2, 4, "--reason", "x"], 2, ["question 2"]),
        (["correct", "bp", 2, 4], 2, ["--reason"]),
        (["ask", "bp", "--new", "--allow", "aspirin=1"], 2, ["aspirin"]),
        (["ask", "bp", "--new", "--confirm", "iron"], 2, ["iron"]),
        (["ask", "bp", "--storage", "."], 2, ["folder"]),
        (["ask", "bp", "--storage", "no/such/folder.db"], 2, ["folder"]),
        (["ask", "bp", "--storage", "mysql://x"], 2, ["mysql"]),
        (["ask", "bp", "--storage", "postgresql://127.0.0.1:9/none"], 1, ["127.0.0.1"]),
        (["import", "earlier.csv"], 2, ["study"]),
        (["import", "bp", "earlier.csv"], 2, ["earlier.csv"]),
        (["import", "no.jsonl"], 2, ["no.jsonl"]),
        (["nonsense"], 2, ["nonsense"]),
    ],
)
def test_a_mistake_gets_a_sentence_and_its_exit_code(started, arguments, code, words):
    done = started(*arguments)
    assert done.returncode == code, done.stderr
    assert done.stdout == ""
    assert all(word in done.stderr for word in words), done.stderr


def test_the_same_result_twice_is_fine_and_another_is_a_conflict(started):
    assert started("tell", "bp", 2, 139, "--yes").returncode == 0
    assert started("tell", "bp", 2, 139.0, "--yes").returncode == 0
    other = started("tell", "bp", 2, 140, "--yes")
    assert other.returncode == 4
    assert "139" in other.stderr
    assert "140" in other.stderr


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("title = 1 2", ["TOML"]),
        ("factors = []\n[target]\nname = 'x'", ["range"]),
        ("[[factors]]\nname = 'x'\n[target]\nname = 'y'\nrange = [0, 1]", ["low of x"]),
        ("[[factor]]\nname = 'x'", ["did you mean 'factors'"]),
        ("[[factors]]\nnam = 'x'\n[target]\nname = 'y'", ["did you mean 'name'"]),
        ("title = 'x'", ["factors"]),
    ],
)
def test_a_set_up_that_is_wrong_is_named(run, text, words):
    (run.folder / "wrong.toml").write_text(text)
    done = run("create", "bp", "--from", "wrong.toml")
    assert done.returncode == 2
    assert all(word in done.stderr for word in words), done.stderr


def test_the_command_itself_asks_and_tells(started):
    command = [sys.executable, "-m", "sidestep.cli.main", "study"]
    asked = subprocess.run([*command, "ask", "bp"], capture_output=True, text=True, check=True)
    assert "question 2" in asked.stdout
    told = subprocess.run(
        [*command, "tell", "bp", "2", "99999"],
        capture_output=True,
        text=True,
        check=False,
        input="",
    )
    assert told.returncode == 2
    assert "Nothing was saved" in told.stderr


def test_an_edited_row_is_detected_by_verify(started):
    import sqlite3  # noqa: PLC0415

    with sqlite3.connect(started.folder / "sidestep.db") as database:
        triggers = database.execute(
            "SELECT name FROM sqlite_master WHERE type = 'trigger'"
        ).fetchall()
        for (name,) in triggers:
            database.execute(f"DROP TRIGGER {name}")
        database.execute("UPDATE events SET body = replace(body, 'seed', 'sead') WHERE seq = 1")
    database.close()
    done = started("verify", "bp")
    assert done.returncode == 1
    assert "not as it should be" in done.stdout or "not" in done.stderr


@pytest.mark.parametrize(
    ("typed", "needs", "got"),
    [
        (
            "tell bp",
            "study tell needs NAME TICKET, got no TICKET",
            "tell bp-pilot-07 55 138.0",
        ),
        (
            "correct bp 2 --reason misread",
            "study correct needs NAME NUMBER VALUE --reason REASON, got no VALUE",
            'correct bp-pilot-07 55 136.0 --reason "misread"',
        ),
        ("correct bp", "got no NUMBER", "correct bp-pilot-07 55 136.0"),
        ("correct bp 2 138", "got no --reason REASON", "correct bp-pilot-07 55 136.0"),
        ("best", "study best needs NAME, got none (name of the study)", "best bp-pilot-07"),
        ("import", "study import needs [NAME] FILE, got none", "import bp-pilot-07 earlier.csv"),
    ],
)
def test_a_missing_argument_is_one_sentence_with_an_example(run, typed, needs, got):
    done = run(*typed.split())
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert needs in done.stderr
    assert f"for example: sidestep study {got}" in done.stderr


def test_escape_sequences_of_others_do_not_reach_the_terminal(started):
    study = Study.open("bp", started.folder / "sidestep.db")
    study.tell(2, 139, reason="\x1b[2J\x9b31m", actor="Dr \x1b]0;No\x07")
    for options in ([], ["--json"]):
        printed = started("history", "bp", *options).stdout
        assert not set(printed) & {"\x1b", "\x9b", "\x07"}
        assert "No\\u0007" in printed
    refused = started("tell", "bp", 2, 140, "--yes")
    assert refused.returncode == 4
    assert "\x1b" not in refused.stderr


def test_a_result_may_have_its_error_its_repeats_or_a_limit_on_a_terminal(run):
    run("create", "bp", "--from", "study.toml")
    here = ["--given", "lisinopril=10", "--given", "amlodipine=0", "--given", "chlortalidone=0"]
    told = run("tell", "bp", "-", 4.1, "--se", 0.12, "--measured", "potassium", *here)
    assert "potassium 4.1 ± 0.12 mmol/L" in told.stdout
    told = run("tell", "bp", "-", "<3.3", "--measured", "potassium", *here, "--block", "lab B")
    assert "potassium below 3.3 mmol/L (lab B)" in told.stdout
    told = run("tell", "bp", "-", "sodium=139±0.5", "heart rate=70x3", *here)
    assert "sodium 139 ± 0.5 mmol/L" in told.stdout
    assert "heart rate 70 beats/min, the mean of 3" in told.stdout
    control = ["--change", "-0.4", "--against", "lisinopril=30", "--measured", "potassium"]
    assert "a change of −0.4 mmol/L against" in run("tell", "bp", "-", *control, *here).stdout
    fixed = run("correct", "bp", 3, 4.2, "--se", 0.2, "--reason", "another device")
    assert "is now 4.2 ± 0.2 mmol/L" in " ".join(fixed.stdout.split())
    wrong = run("tell", "bp", "-", 4.1, "--se", 0.1, "--repeats", 2, *control[4:], *here)
    assert wrong.returncode == 2
    assert "se or repeats, got both" in wrong.stderr


def test_a_formula_that_would_never_end_is_refused_in_a_set_up(run):
    (run.folder / "endless.toml").write_text(
        'model = "0 + dose + log(9**9**9)"\n'
        "[[factors]]\nname = 'dose'\nlow = 0\nhigh = 40\nstep = 10\n"
        "[target]\nname = 'pain'\ngoal = 'lower'\nrange = [0, 10]\n"
    )
    refused = run("create", "pain", "--from", "endless.toml")
    assert refused.returncode == 2
    assert "a power in a model formula must be of a single name" in refused.stderr
