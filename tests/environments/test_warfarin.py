"""The Warfarin reader and its worlds. Every table here but the fixture `iwpc` is made up."""

import csv
import io
import sys
import zipfile
from pathlib import Path
from xml.sax.saxutils import escape

import numpy as np
import pytest

from sidestep.environments import warfarin, warfarin_lookalike
from sidestep.environments.warfarin import PRESETS, STATIN_COUNTS, describe
from sidestep.environments.warfarin_table import STATINS, read_records
from sidestep.errors import InputError, UnknownNameError, UnreachedDirectionsWarning

SUBJECT, DOSE = "PharmGKB Subject ID", "Therapeutic Dose of Warfarin"
INR, STABLE = (
    "INR on Reported Therapeutic Dose of Warfarin",
    "Subject Reached Stable Dose of Warfarin",
)
AGE, RANGE = "Age", "Estimated Target INR Range Based on Indication"
GENOTYPE = "VKORC1 genotype: -1639 G>A (3673); chr16:31015190; rs9923231; C/T"
BRANDS = ("Zocor", "Lipitor", "Lescol", "Mevacor", "Pravachol", "Crestor", "Baycol")
DRUGS = [f"{drug.capitalize()} ({brand})" for drug, brand in zip(STATINS, BRANDS, strict=True)]
AMIODARONE = "Amiodarone (Cordarone)"
QC = GENOTYPE.replace("genotype", "QC genotype")
HEADER = [SUBJECT, AGE, *DRUGS, AMIODARONE, RANGE, STABLE, DOSE, INR, GENOTYPE, QC, "", ""]
EFFECT = np.array(
    [-0.2, 0.3, 0.1, -0.4, 0.2, 0.5, 0.15, 0.0]
)  # made up: INR - 2.5 on the paper's columns


def made_up(count=60, seed=0):
    """Invented subjects: at most one statin each, INR exactly linear in the unit actions."""
    rng = np.random.default_rng(seed)
    people = []
    for number in range(count):
        person = dict.fromkeys(HEADER, "")
        person |= {SUBJECT: f"X{number}", AGE: "10 - 19", RANGE: "2-3", GENOTYPE: "A/G"}
        person |= dict.fromkeys((*DRUGS, AMIODARONE), "0")
        if number % 2:
            person[DRUGS[number // 2 % 6]] = "1"
        person |= {AMIODARONE: str(number % 5 // 4), STABLE: str(int(rng.random() < 0.8))}
        person[DOSE] = f"{rng.uniform(5, 80):.2f}"
        taken = np.array([float(person[name]) for name in (DOSE, *DRUGS)])
        person[INR] = repr(float(2.5 + taken @ EFFECT / np.linalg.norm(taken)))
        people.append(person)
    return people


def grid(people, header=HEADER):
    return [header, *([person[name] for name in HEADER] for person in people)]


def as_csv(rows, delimiter=",", end="\r\n"):
    out = io.StringIO()
    csv.writer(out, delimiter=delimiter, lineterminator=end).writerows(rows)
    return out.getvalue()


def coursework(people):
    return b"\xef\xbb\xbf" + as_csv([*grid(people), [""] * len(HEADER)]).encode()


def mangled(people):
    changed = [person | {AGE: "19-Oct", RANGE: "3-Feb"} for person in people]
    return as_csv(grid(changed), end="\n").encode()


def as_workbook(rows, sheets=("Metadata", "Subject Data")):
    """The smallest workbook that holds these rows on its last sheet, numbers as numbers."""

    def cell(text):
        try:
            return f'<c t="n"><v>{float(text)!r}</v></c>'
        except ValueError:
            return f'<c t="inlineStr"><is><t>{escape(text)}</t></is></c>'

    def sheet(rows):
        body = "".join("<row>" + "".join(map(cell, row)) + "</row>" for row in rows)
        return f'<worksheet xmlns="{main}"><sheetData>{body}</sheetData></worksheet>'

    office = "http://schemas.openxmlformats.org"
    main = f"{office}/spreadsheetml/2006/main"
    relation, package = f"{office}/officeDocument/2006/relationships", f"{office}/package/2006"
    listed, linked, types = [], [], []
    for number, name in enumerate(sheets, 1):
        listed.append(f'<sheet name="{name}" sheetId="{number}" r:id="r{number}"/>')
        linked.append(
            f'<Relationship Id="r{number}" Type="{relation}/worksheet" Target="s{number}.xml"/>'
        )
        types.append(
            f'<Override PartName="/xl/s{number}.xml" ContentType="application/vnd.openxmlformats-'
            'officedocument.spreadsheetml.worksheet+xml"/>'
        )
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr(
            "[Content_Types].xml",
            f'<Types xmlns="{package}/content-types"><Default Extension="rels" ContentType="'
            'application/vnd.openxmlformats-package.relationships+xml"/><Override PartName='
            '"/xl/workbook.xml" ContentType="application/vnd.openxmlformats-officedocument.'
            f'spreadsheetml.sheet.main+xml"/>{"".join(types)}</Types>',
        )
        archive.writestr(
            "_rels/.rels",
            f'<Relationships xmlns="{package}/relationships"><Relationship Id="r" Type="{relation}/'
            'officeDocument" Target="xl/workbook.xml"/></Relationships>',
        )
        archive.writestr(
            "xl/workbook.xml",
            f'<workbook xmlns="{main}" xmlns:r="{relation}"><sheets>{"".join(listed)}</sheets>'
            "</workbook>",
        )
        archive.writestr(
            "xl/_rels/workbook.xml.rels",
            f'<Relationships xmlns="{package}/relationships">{"".join(linked)}</Relationships>',
        )
        for number in range(1, len(sheets) + 1):
            content = rows if number == len(sheets) else [["about", "nothing"]]
            archive.writestr(f"xl/s{number}.xml", sheet(content))
    return out.getvalue()


COPIES = {
    "coursework": coursework,
    "mangled": mangled,
    "workbook": lambda people: as_workbook(grid(people)),
    "semicolons": lambda people: as_csv(grid(people), ";").encode(),
    "tabs in UTF-16": lambda people: as_csv(grid(people), "\t").encode("utf-16"),
    "latin-1": lambda people: as_csv(grid([person | {AGE: "über 90"} for person in people])).encode(
        "latin-1"
    ),
    "shouted header": lambda people: as_csv(
        grid(people, [f" {name.upper().replace(' ', '_')}." for name in HEADER])
    ).encode(),
    "title above": lambda people: as_csv([["a table"], [], *grid(people)]).encode(),
    "longer name beside": lambda people: as_csv(
        grid(people, [*HEADER[:-1], f"{DOSE} (old)"])  # the whole name wins
    ).encode(),
    "short rows": lambda people: as_csv([row[:-2] for row in grid(people)]).encode(),
}


@pytest.fixture
def write(tmp_path):
    def to_file(content, name="table.pdf"):  # a name that lies: only the content counts
        path = tmp_path / name
        path.write_bytes(content)
        return path

    return to_file


def changed(people, row, **cells):
    """The table with cells of one row changed; row 2 is the first below the header."""
    copy = [dict(person) for person in people]
    copy[row - 2] |= cells
    return copy


@pytest.mark.parametrize("copy", COPIES)
def test_every_copy_gives_the_same_records(copy, write):
    people = made_up()
    records = read_records(write(COPIES[copy](people)), STATINS, genotype=True)
    assert records.columns == ("dose", *STATINS)
    expected = [[float(person[name]) for name in (DOSE, *DRUGS)] for person in people]
    np.testing.assert_array_equal(records.taken, expected)
    np.testing.assert_array_equal(records.inr, [float(person[INR]) for person in people])
    np.testing.assert_array_equal(records.stability, [float(person[STABLE]) for person in people])
    assert records.tally.kept == len(people)


def test_rows_are_counted_for_the_first_reason_they_go(write):
    people = made_up(12)
    people[0][DOSE] = people[1][DOSE] = "NA"
    people[1][INR] = "NA"  # already gone
    people[2][DRUGS[3]] = ""
    people[3][INR] = "n/a"
    people[4][STABLE] = "NA"
    people[5][GENOTYPE] = "NA"
    people[6][SUBJECT] = ""
    people[7][AMIODARONE] = "NA"  # not asked for
    path = write(coursework(people))
    tally = read_records(path, STATINS, genotype=True).tally
    reasons = {reason: count for reason, count in tally.dropped if count}
    assert reasons == {
        "blank": 1,
        "subject not known": 1,
        "dose not known": 2,
        "lovastatin not known": 1,
        "INR not known": 1,
        "stability not known": 1,
        "VKORC1 genotype not known": 1,
    }
    assert tally.rows == 13 == tally.kept + sum(reasons.values())
    lines = tally.summary().splitlines()
    assert lines[-1].split() == ["records", "kept", "5"]
    assert len({len(line) for line in lines}) == 1
    assert read_records(path, STATINS, genotype=False).tally.kept == 6
    full_rank = (*STATINS[:6], "amiodarone")
    assert read_records(path, full_rank, genotype=True).tally.kept == 4


REFUSED = {
    "an empty file": b"",
    "an empty file:": b"\xef\xbb\xbf\r\n,,,\r\n",
    "a Git LFS pointer": b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n",
    "a saved web page": b"\n<!DOCTYPE html><html><body>Subject Data</body></html>",
    "a PDF": b"%PDF-1.7 ...",
    "a binary file": b"\x89PNG\r\n\x1a\n\0\0",
    "a workbook that cannot be opened": b"PK\x03\x04 and no more",
    "a workbook without the sheet 'Subject Data'": as_workbook([["a"]], ("Metadata", "Table 1")),
    r"columns PharmGKB Subject ID, .*Rosuvastatin, Cerivastatin, .*3673\): ": b"a,b\n1,2\n",
    "no complete record among 0 rows": as_csv([HEADER]).encode(),
    "without the column Cerivastatin: ": as_csv([[n for n in HEADER if "Bay" not in n]]).encode(),
    "2 columns Simvastatin": as_csv([[*HEADER, "Simvastatin (generic)"]]).encode(),
}


@pytest.mark.parametrize("sentence", REFUSED)
def test_a_file_that_is_not_a_table_is_recognised_by_its_content(sentence, write):
    path = write(REFUSED[sentence], "warfarin.csv")
    with pytest.raises(
        InputError, match=f"^expected the IWPC Warfarin table, got .*{sentence}"
    ) as e:
        warfarin(path)
    assert str(path) in str(e.value)
    assert "\n" not in str(e.value)


def test_a_path_without_a_table_says_so(tmp_path):
    with pytest.raises(InputError, match=r"got no file at .*nowhere\.csv"):
        warfarin(tmp_path / "nowhere.csv")
    with pytest.raises(InputError, match="got a folder"):
        warfarin(tmp_path)


@pytest.mark.parametrize(
    ("column", "value", "allowed"),
    [
        (DOSE, "0", "above 0 to 350 mg/week"),
        (DOSE, "350.5", "above 0 to 350 mg/week"),
        (DOSE, "-1", "above 0 to 350 mg/week"),
        (DOSE, "thirty", "above 0 to 350 mg/week"),
        (DOSE, "inf", "above 0 to 350 mg/week"),
        (INR, "0.2", "from 0.3 to 15"),
        (INR, "15.1", "from 0.3 to 15"),
        (INR, "3-Feb", "from 0.3 to 15"),
        (STABLE, "2", "0 or 1"),
        (DRUGS[2], "0.5", "0 or 1"),
    ],
)
def test_an_impossible_value_is_named_by_row_and_column(column, value, allowed, write):
    path = write(coursework(changed(made_up(), 17, **{column: value})))
    name = column.partition(" (")[0]
    with pytest.raises(
        InputError, match=rf"^row 17, column {name}: must be {allowed} or NA, got '{value}'"
    ):
        warfarin(path)


def test_values_at_the_edge_are_possible(write):
    people = changed(made_up(), 2, **{DOSE: "350", INR: "0.3"})
    people = changed(people, 3, **{DOSE: "0.01", INR: "15"})
    assert read_records(write(coursework(people)), STATINS, genotype=True).tally.kept == len(people)


def test_a_repeated_subject_is_refused_with_both_rows(write):
    path = write(coursework(changed(made_up(), 9, **{SUBJECT: "X3"})))
    with pytest.raises(InputError, match=r"^row 9: .* got X3 of row 5 again"):
        warfarin(path)


def test_a_row_with_a_cell_too_many_is_refused(write):
    rows = grid(made_up())
    rows[6] = ["0", *rows[6][:-1], "x"]
    with pytest.raises(InputError, match=r"^row 7: must have the 18 cells of the header, got 19"):
        warfarin(write(as_csv(rows).encode()))


def test_a_file_that_changed_is_read_again(write):
    people = made_up()
    assert read_records(write(coursework(people)), STATINS, genotype=True).tally.kept == 60
    assert read_records(write(coursework(people[:50])), STATINS, genotype=True).tally.kept == 50


def test_a_workbook_without_its_reader_says_what_to_install(write, monkeypatch):
    monkeypatch.setitem(sys.modules, "python_calamine", None)
    with pytest.raises(InputError, match=r"python-calamine: pip install 'sidestep\[data\]'"):
        warfarin(write(as_workbook(grid(made_up()))))


def test_vectors_are_least_squares_of_minimum_norm_on_unit_actions(write):
    people = made_up()
    path = write(coursework(people))
    with pytest.warns(UnreachedDirectionsWarning, match="do not reach cerivastatin"):
        instance = warfarin(path, "paper", "raw")
    taken = np.array([[float(person[name]) for name in (DOSE, *DRUGS)] for person in people])
    unit = taken / np.linalg.norm(taken, axis=1, keepdims=True)
    stable = np.array([float(person[STABLE]) for person in people])
    np.testing.assert_allclose(instance.actions.vectors, unit, atol=1e-15)
    np.testing.assert_allclose(instance.theta[0], np.linalg.pinv(unit) @ stable, atol=1e-10)
    np.testing.assert_allclose(instance.theta[1], EFFECT, atol=1e-10)
    assert instance.problem.norm_bound == np.linalg.norm(instance.theta, axis=1).max()
    assert (instance.problem.n_protected, instance.problem.subspace_dim) == (1, 1)
    with pytest.warns(UnreachedDirectionsWarning):
        swapped = warfarin(path, "paper", "raw", "inr", noise_scale=0.5)
    np.testing.assert_array_equal(swapped.theta, instance.theta[::-1])
    assert swapped.problem.noise_scale == 0.5


def test_full_rank_takes_amiodarone_and_max_divides_by_the_largest(write):
    people = made_up()
    instance = warfarin(write(coursework(people)), "full-rank", "max")  # spans: no warning
    names = (DOSE, *DRUGS[:6], AMIODARONE)
    taken = np.array([[float(person[name]) for name in names] for person in people])
    taken /= taken.max(axis=0)
    unit = taken / np.linalg.norm(taken, axis=1, keepdims=True)
    np.testing.assert_allclose(instance.actions.vectors, unit, atol=1e-15)


@pytest.mark.parametrize(
    ("knobs", "near"),
    [
        ({"preset": "ful-rank"}, "full-rank"),
        ({"scale": "maxx"}, "max"),
        ({"target": "stable"}, "stability"),
    ],
)
@pytest.mark.parametrize("real", [True, False])
def test_an_unknown_word_suggests_the_nearest(knobs, near, real, write):
    path = write(coursework(made_up())) if real else None
    with pytest.raises(UnknownNameError, match=f"did you mean '{near}'"):
        warfarin(path, **knobs)


def test_the_paper_s_table_gives_the_paper_s_world(iwpc):
    with pytest.warns(UnreachedDirectionsWarning, match="cerivastatin"):
        instance = warfarin(iwpc)
    stability = (0.951858, 0.782234, 1.242347, 0.906768, 1.034362, 0.320083, 0.716365, 0)
    inr = (-0.072863, 1.559908, 0.098907, 3.61528, 1.091013, 0.361343, -4.998758, 0)
    np.testing.assert_allclose(instance.theta, [stability, inr], atol=1e-4)
    assert len(instance.actions) == 1832
    assert instance.best_reward(instance.actions) == pytest.approx(1.0609, abs=5e-5)
    report = describe(iwpc)
    assert (report.records, report.distinct_arms) == (1832, 182)
    assert (report.rank, report.dim, report.unreached) == (7, 8, "cerivastatin")
    assert report.condition == pytest.approx(350, abs=0.6)
    assert report.greedy_loss == pytest.approx(0.0159, abs=5e-5)
    assert report.r_squared == pytest.approx((0.006, 0.006), abs=5e-4)
    assert "1832" in report.summary()
    assert not report.synthetic


def test_the_best_arm_moves_inr_more_than_the_unprotected_choice(iwpc):
    report = describe(iwpc)
    assert report.best.protected == pytest.approx(-0.64, abs=5e-3)
    assert report.greedy.protected == pytest.approx(0.15, abs=5e-3)


@pytest.mark.full
@pytest.mark.parametrize(
    ("preset", "records", "arms", "rank"),
    [
        ("paper", 1832, 182, 7),
        ("full-rank", 1832, 246, 8),
        ("statins", 2132, 255, 7),
        ("statins6", 2419, 319, 7),
    ],
)
def test_presets_keep_the_records_that_were_announced(preset, records, arms, rank, iwpc):
    report = describe(iwpc, preset, "max")
    assert (report.records, report.distinct_arms, report.rank) == (records, arms, rank)
    assert report.tally.kept == records
    assert report.tally.rows == 5701


def test_every_figure_of_the_documentation_is_measured(iwpc):
    page = (Path(__file__).parents[2] / "docs" / "warfarin.md").read_text(encoding="utf-8")
    rows = [line.strip("| \n").split(" | ") for line in page.splitlines() if "| raw |" in line]
    rows += [line.strip("| \n").split(" | ") for line in page.splitlines() if "| max |" in line]
    assert len(rows) == 8
    for preset, scale, records, arms, rank, condition, *figures in rows:
        report = describe(iwpc, preset, scale)
        assert (records, arms) == (str(report.records), str(report.distinct_arms))
        assert (rank, condition) == (f"{report.rank} of {report.dim}", f"{report.condition:.0f}")
        measured = [report.best.reward, report.greedy_loss]
        measured += [report.best.protected, report.greedy.protected]
        np.testing.assert_allclose([float(x) for x in figures], measured, atol=5.001e-5)


@pytest.mark.slow
def test_the_other_copies_of_the_real_table_give_the_same_world(iwpc, write):
    rows = list(csv.reader(io.StringIO(iwpc.read_text(encoding="utf-8-sig"), newline="")))
    spoiled = {"2-3": "3-Feb", "3-4": "4-Mar", "10 - 19": "19-Oct"}
    mangled_rows = [[spoiled.get(cell, cell) for cell in row] for row in rows]
    expected = describe(iwpc)
    assert describe(write(as_workbook(rows))) == expected
    assert describe(write(as_csv(mangled_rows).encode())) == expected


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("preset", PRESETS)
def test_on_the_look_alike_protection_matters(preset, seed):
    columns = ("dose", *PRESETS[preset].drugs)
    if "cerivastatin" in columns:
        with pytest.warns(UnreachedDirectionsWarning, match="cerivastatin"):
            instance = warfarin_lookalike(seed, preset=preset)
    else:
        instance = warfarin_lookalike(seed, preset=preset)
    greedy = instance.actions.vectors[np.argmax(instance.actions.vectors @ instance.theta[0])]
    assert instance.best_reward(instance.actions) - instance.reward(greedy) > 0.2
    assert instance.problem.norm_bound < 1


def test_the_look_alike_has_the_aggregates_of_the_table():
    instance = warfarin_lookalike(3, "raw", "full-rank")
    vectors = instance.actions.vectors
    assert len(vectors) == 1832
    assert tuple((vectors[:, 1:7] > 0).sum(axis=0)) == STATIN_COUNTS[:6]
    assert ((vectors[:, 1:7] > 0).sum(axis=1) <= 1).all()
    assert (vectors[:, 7] > 0).sum() == 113
    takes = vectors[:, 1:].max(axis=1) > 0
    dose = vectors[takes, 0] / vectors[takes, 1:].max(axis=1)  # raw: the others are 0 or 1
    assert dose.min() > 4.5 - 1e-9
    assert dose.max() < 120 + 1e-9
    on_grid = np.isclose(dose / 1.25, np.round(dose / 1.25), atol=1e-9) | np.isclose(dose, 4.5)
    assert on_grid.all()
    error = 0.49 / np.sqrt(takes.sum())
    assert np.log(dose).mean() == pytest.approx(3.41, abs=5 * error)


def test_the_look_alike_is_labelled_and_depends_on_its_seed_alone():
    report = describe(None, "full-rank", "max")
    assert report.synthetic
    assert "SYNTHETIC" in report.summary()
    assert "PS206767" in report.source
    assert report.tally is None
    assert report.r_squared is None
    instance = warfarin(None, "full-rank", "max")
    assert instance.best_reward(instance.actions) == pytest.approx(report.best.reward)
    same, other = (warfarin_lookalike(seed, "max", "full-rank") for seed in (0, 1))
    np.testing.assert_array_equal(same.actions.vectors, instance.actions.vectors)
    assert (other.actions.vectors != instance.actions.vectors).any()
    np.testing.assert_array_equal(
        warfarin_lookalike(0, "max", "full-rank", "inr").theta, instance.theta[::-1]
    )


@pytest.mark.parametrize("seed", [-1, 0.5])
def test_a_seed_is_a_whole_number(seed):
    with pytest.raises(InputError, match=f"seed must be an integer >= 0, got {seed}"):
        warfarin_lookalike(seed)
