"""Earlier studies teach the next one: by their results, frozen into its record."""

import json

import numpy as np
import pytest

from sidestep import Factor, Outcome, Study
from sidestep.errors import InputError, StudyExists
from sidestep.studies.learning import earlier
from sidestep.studies.learning.earlier import SCALES, STRANGE, Lesson, pooled, pooled_columns
from sidestep.studies.learning.features import Features
from sidestep.studies.learning.observations import Observation, Sums
from sidestep.studies.learning.prior import S0, prior_of
from sidestep.studies.plan import plan_from_config
from sidestep.studies.setup import read_setup
from sidestep.studies.storage.exchange import import_study
from sidestep.studies.storage.memory import MemoryStore

FACTORS = [Factor("dose", 0, 40, unit="mg", step=10), Factor("heat", 0, 1, step=0.25)]
PRESSURE = Outcome("pressure", "mmHg", goal="lower", range=(100, 180), noise=4)
SODIUM = Outcome("sodium", "mmol/L", range=(130, 150), tolerance=2.5, noise=0.8)
TRUTH = {"pressure": (-20.0, -6.0), "sodium": (1.0, -4.0)}


def begun(name, store, **more):
    settings = {
        "factors": FACTORS,
        "target": PRESSURE,
        "protected": [SODIUM],
        "shape": "straight",
        "vocabulary": "clinic",
    }
    return Study.create(name, store, **(settings | more))


def told(study, rng, rounds=20, sign=1.0, cv=0.2):
    """Measure both outcomes at settings in turn, in a patient of the population."""
    noise = {"pressure": 4, "sodium": 0.8}
    mine = {name: sign * np.array(t) * (1 + cv * rng.normal(size=2)) for name, t in TRUTH.items()}
    for number in range(rounds):
        setting = {"dose": 10.0 * (number % 5), "heat": 0.25 * (number * 2 % 5)}
        at = np.array([setting["dose"] / 40, setting["heat"]])
        for name in TRUTH:
            value = 140 + mine[name] @ at + noise[name] * rng.standard_normal()
            study.tell(None, value, measured=name, given=setting)
    return study


def clinic(patients=3, store=None):
    store = store or MemoryStore()
    rng = np.random.default_rng(5)
    for number in range(patients):
        told(begun(f"patient-{number}", store), rng)
    return store, [f"patient-{number}" for number in range(patients)]


@pytest.fixture(scope="module")
def learned():
    store, names = clinic()
    return store, begun("next", store, learn_from=names)


def text_of(study):
    return " ".join(study.best().card.text().split())


def test_earlier_studies_narrow_what_is_believed(learned):
    store, study = learned
    plain = begun("plain", store)
    for each in (study, plain):
        told(each, np.random.default_rng(9), rounds=2)
    rows = [
        next(row for row in each.explain().rows if row.action == {"dose": 40.0, "heat": 0.0})
        for each in (study, plain)
    ]
    for name in TRUTH:
        mine, other = (row.effects[name] for row in rows)
        assert mine.high - mine.low < 0.6 * (other.high - other.low)
    trust = study.best().trust
    assert trust.studies == 3
    assert trust.alike > 1 - STRANGE
    assert plain.best().trust is None
    assert "Learned from 3 earlier patients: like them " in text_of(study)


def test_the_overview_names_who_teaches(learned):
    text = " ".join(learned[1].show().text().split())
    assert "Known before patient-0 40 results patient-1 40 results" in text


def test_a_patient_who_does_not_fit_is_named_a_stranger(learned):
    store, _ = learned
    study = begun("stranger", store, learn_from=["patient-0", "patient-1", "patient-2"])
    told(study, np.random.default_rng(3), rounds=20, sign=-1.0)
    assert study.best().trust.alike < 0.5
    assert "This patient does not fit them; its own results decide." in text_of(study)


def test_what_was_learned_is_frozen_and_replays_without_the_earlier_studies(learned, tmp_path):
    store, study = learned
    ticket = study.ask()
    study.tell(ticket.id, 141.0)
    path = tmp_path / "next.jsonl"
    study.export(path)
    alone = MemoryStore()
    import_study(alone, path.read_text(encoding="utf-8").splitlines())
    again = Study.open("next", alone)
    config = study.history()[0].body["config"]
    assert config["version"] == 2
    assert config["earlier"]["studies"] == [
        {"name": f"patient-{n}", "results": 40} for n in range(3)
    ]
    assert plan_from_config(json.loads(json.dumps(config)), None) == study.plan
    # a result that is told to an earlier study later changes nothing here
    before = study.best()
    told(Study.open("patient-0", store), np.random.default_rng(1), rounds=5, sign=-5)
    assert Study.open("next", store).best() == before
    assert again.best() == before
    assert again.verify(asks=True).data["holds"]


def test_a_table_by_subject_teaches_as_studies_do():
    store, names = clinic(2)
    by_name = begun("one", store, learn_from=names)
    rows = {"subject": [], "dose": [], "heat": [], "outcome": [], "value": []}
    for name in names:
        for event in Study.open(name, store).history():
            if event.kind == "answered":
                rows["subject"].append(name)
                rows["dose"].append(event.body["action"]["dose"])
                rows["heat"].append(event.body["action"]["heat"])
                rows["outcome"].append(event.outcome)
                rows["value"].append(event.body["value"])
    by_table = begun("two", store, learn_from=rows)
    assert by_table.plan.earlier == by_name.plan.earlier


def test_an_export_teaches_as_the_study_does(tmp_path):
    store, names = clinic(1)
    path = tmp_path / "patient-0.jsonl"
    Study.open(names[0], store).export(path)
    from_file = begun("next", MemoryStore(), learn_from=[path])
    assert from_file.plan.earlier == begun("next", store, learn_from=names).plan.earlier


def test_the_population_is_that_of_a_joint_gaussian(monkeypatch):
    """Against the textbook's formula for all weights together, where everything is known."""
    monkeypatch.setattr(earlier, "PROPORTION", 0.0)
    rng = np.random.default_rng(2)
    features = Features(FACTORS)
    prior = prior_of("straight")
    doses = [{"dose": 10.0 * (n % 5), "heat": 0.25 * (n * 3 % 5)} for n in range(12)]
    lessons, ys = [], []
    for _ in range(3):
        mine = Features(FACTORS)
        sums, y = Sums(), rng.normal(size=12)
        for setting, value in zip(doses, y, strict=True):
            sums.add(Observation(mine.place(setting), float(value)))
        lessons.append(Lesson(mine, [sums], [0.3], [()]))
        ys.append((mine, sums))
    found = pooled(features, prior, 0, lessons)
    columns = pooled_columns(features)[:2]
    chance = np.array(prior.centres.weights) @ prior.sizes_given_centre
    logs, means = [], []
    for t in SCALES:
        for size, weight in zip(prior.centres.values, chance / chance.sum(), strict=True):
            design, data = [], []
            for mine, sums in ys:
                for key, total in sorted(sums.rows.items()):
                    design.append(mine.at(np.array([key.place])).features[0][columns])
                    data.append((total[1] / total[0], 0.3**2 / total[0]))
            design, data = np.array(design), np.array(data)
            study = np.repeat(np.arange(3), len(design) // 3)
            same = study[:, None] == study
            variance = (size * S0) ** 2
            kernel = design @ design.T * variance
            common = max(1 - t * t, 1e-6)
            cov = kernel * (common + t * t * same) + 4.0 * same + np.diag(data[:, 1])
            y = data[:, 0]
            logs.append(
                np.log(weight)
                + np.log(t / (1 + (t / 0.5) ** 2))
                - 0.5 * (y @ np.linalg.solve(cov, y) + np.linalg.slogdet(cov)[1])
            )
            means.append(common * variance * design.T @ np.linalg.solve(cov, y))
    weights = np.exp(np.array(logs) - max(logs)).reshape(len(SCALES), -1)
    weights /= weights.sum()
    assert found.weights == pytest.approx(weights.sum(axis=1), abs=1e-4)
    by_scale = np.einsum("tc,tcq->tq", weights, np.array(means).reshape(*weights.shape, 2))
    by_scale /= weights.sum(axis=1)[:, None]
    assert found.means[:, :2] == pytest.approx(by_scale, abs=1e-4)


def test_what_acts_strongly_differs_more_between_studies():
    store, names = clinic(3)
    kept = begun("next", store, learn_from=names).plan.earlier["outcomes"]["sodium"]
    scale = max(kept["scales"], key=lambda each: each["weight"])
    root = np.zeros((4, 4))
    root[np.tril_indices(4)] = scale["root"]
    dose, heat = (root @ root.T).diagonal()[:2]  # sodium falls by 4 with heat, rises by 1 with dose
    assert scale["mean"][1] < -abs(scale["mean"][0])
    assert heat > dose


def test_a_grossly_wrong_result_teaches_nothing():
    store, names = clinic(2)
    before = begun("before", store, learn_from=names).plan.earlier["outcomes"]["sodium"]
    wrong = {"dose": 40.0, "heat": 0.75}  # a typing error beside right results at the same setting
    Study.open(names[0], store).tell(None, 1390.0, measured="sodium", given=wrong)
    after = begun("after", store, learn_from=names).plan.earlier["outcomes"]["sodium"]
    for one, two in zip(before["scales"], after["scales"], strict=True):
        assert two["mean"] == pytest.approx(one["mean"], abs=0.02)


def test_words_contexts_logarithms_and_expectations_go_together():
    store, rng = MemoryStore(), np.random.default_rng(0)
    settings = {
        "factors": [Factor("dose", 1, 40, scale="log"), Factor("heat", 0, 1)],
        "target": Outcome("rate", range=(50, 200), scale="log"),
        "protected": [Outcome("loss", range=(-1, 1), tolerance=0.2)],
        "context": [Factor("age", 20, 80, baseline=50), Factor("site", levels=["a", "b"])],
        "shape": None,
    }
    for number in range(2):
        earlier = begun(f"earlier-{number}", store, **settings)
        for row in range(8):
            given = {"dose": float(np.exp(rng.uniform(0, 3.6))), "heat": float(rng.uniform())}
            context = {"age": float(rng.uniform(20, 80)), "site": "ab"[row % 2]}
            rate = 100 * np.exp(0.1 * np.log(given["dose"]) + 0.02 * rng.normal())
            earlier.tell(None, float(rate), measured="rate", given=given, context=context)
            loss = 0.3 * given["heat"] + 0.05 * rng.normal()
            earlier.tell(None, float(loss), measured="loss", given=given, context=context)
    study = begun(
        "next",
        store,
        learn_from=["earlier-0", "earlier-1"],
        expect={"rate": {"dose": ("0%", None)}, "loss": {"heat": (0, 0.5)}},
        **settings,
    )
    today = {"age": 30.0, "site": "b"}
    for _ in range(3):
        ticket = study.ask(context=today)
        study.tell(ticket.id, 110.0 if ticket.measure == "rate" else 0.1)
    best = Study.open("next", store).best(context=today)
    assert 0 < best.trust.alike < 1
    assert best.straight is not None
    assert study.verify(asks=True).data["holds"]
    assert ["word", "site", "b"] in study.plan.earlier["features"]


def test_a_repeated_request_is_carried_out_once_though_earlier_studies_went_on():
    store, names = clinic(1)
    first = begun("next", store, learn_from=names, key="k", actor="ward")
    told(Study.open(names[0], store), np.random.default_rng(2), rounds=3)
    again = begun("next", store, learn_from=names, key="k", actor="ward")
    assert again.plan == first.plan
    with pytest.raises(StudyExists):
        begun("next", store, learn_from=names, key="other", actor="ward")


def test_a_file_names_studies_and_exports_beside_it(tmp_path):
    store, names = clinic(2)
    Study.open(names[1], store).export(tmp_path / "second.jsonl")
    path = tmp_path / "next.toml"
    path.write_text(
        """
        learn_from = ["patient-0", "second.jsonl"]
        shape = "straight"
        factors = [
            { name = "dose", low = 0, high = 40, unit = "mg", step = 10 },
            { name = "heat", low = 0, high = 1, step = 0.25 },
        ]
        target = { name = "pressure", unit = "mmHg", goal = "lower", range = [100, 180], noise = 4 }
        """,
        encoding="utf-8",
    )
    study = Study.create("next", store, **read_setup(path))
    assert [each["name"] for each in study.plan.earlier["studies"]] == names


@pytest.mark.parametrize(
    ("other", "sentence"),
    [
        ({"factors": [FACTORS[0]]}, "other must not teach this study: its factors are dose"),
        (
            {"factors": [Factor("dose", 0, 40, unit="g", step=10), FACTORS[1]]},
            "its dose is in 'g'",
        ),
        (
            {"factors": [Factor("dose", 0, 40, unit="mg", step=10, baseline=20), FACTORS[1]]},
            "its baseline of dose is 20",
        ),
        (
            {"factors": [Factor("dose", 0, 80, unit="mg", step=10), FACTORS[1]]},
            "its dose has another range",
        ),
        ({"protected": []}, "it does not measure sodium"),
        (
            {"protected": [Outcome("sodium", "g/L", range=(3, 4), tolerance=0.1)]},
            "its sodium is in 'g/L'",
        ),
    ],
)
def test_another_kind_of_study_is_refused_by_name(other, sentence):
    store = MemoryStore()
    begun("other", store, **other)
    with pytest.raises(InputError, match=sentence):
        begun("next", store, learn_from=["other"])
    assert list(Study.list(store)) == ["other"]


@pytest.mark.parametrize(
    ("learn_from", "sentence"),
    [
        (["nobody"], "learn_from must name studies of this storage, or exports, got 'nobody'"),
        (["patient-0", "patient-0"], "learn_from must name every study once"),
        ({"dose": [0], "heat": [0], "pressure": [140]}, "learn_from must have a column 'subject'"),
        (["empty"], "learn_from must name studies with results, got 'empty': none"),
    ],
)
def test_what_cannot_teach_is_refused_in_one_sentence(learn_from, sentence):
    store, _ = clinic(1)
    begun("empty", store)
    with pytest.raises(InputError, match=sentence):
        begun("next", store, learn_from=learn_from)


def test_a_study_with_a_policy_or_a_formula_learns_from_none():
    store, names = clinic(1)
    for more in ({"policy": "directed-thompson", "shape": None}, {"model": "0 + dose + heat"}):
        with pytest.raises(InputError, match="learn_from is for studies without a"):
            begun("next", store, learn_from=names, **more)
