"""What a version of sidestep writes, kept so that every later one is shown to open it.

    python make.py [postgresql://...]

run with that version installed, writes beside this file a folder named by the version:

studies.sqlite   a storage with the studies below, accounts, grants and a link
studies.sql      the same on PostgreSQL, of an empty database, as `pg_dump` writes it
clinic.jsonl     an export of one study; table.jsonl of one whose candidates are a table
states.json      of every policy: the problem, the knobs, the decisions and the state after them
studies.json     of every study: its status, the end of its chain, how many questions and results count

A folder is made once, by the version whose name it bears, and never again. Add one for a new version, or,
with the commit as a second argument, for a commit between two: test_written_by.py opens that too.
"""

import json
import random
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

import sidestep as ss
from sidestep.policies.catalog import POLICIES, from_config
from sidestep.service.passwords import hashed
from sidestep.studies.people.accounts import Accounts
from sidestep.studies.people.grants import Grants
from sidestep.studies.people.roles import EVERYWHERE, Grant
from sidestep.studies.people.tokens import make_token
from sidestep.studies.storage.exchange import export_study, write_lines
from sidestep.studies.storage.record import erase
from sidestep.studies.storage.store import open_store

WARD, LAB = "ward", "laboratory"
ARMS = np.vstack([np.eye(3), -np.eye(3), [[0.6, 0.8, 0.0], [0.0, -0.6, 0.8]]])
KNOBS: dict[str, dict[str, Any]] = {"protected-linucb": {"preset": "as_intended"}}

LISINOPRIL = ss.Factor("lisinopril", 0, 40, unit="mg/day", step=10, baseline=20)
AMLODIPINE = ss.Factor("amlodipine", 0, 10, unit="mg/day", step=2.5)
PRESSURE = ss.Outcome("systolic pressure", "mmHg", goal="lower", range=(100, 190), matters=1.0)
PROTECTED = (
    ss.Outcome("potassium", "mmol/L", baseline=4.2, range=(3, 6), tolerance=0.3),
    ss.Outcome("heart rate", "beats/min", range=(40, 120), tolerance=(-20, 6)),
)
USUAL = {"factors": [LISINOPRIL, AMLODIPINE], "target": PRESSURE, "protected": PROTECTED}
LEVEL = {"systolic pressure": 150.0, "potassium": 4.2, "heart rate": 72.0}
SLOPE = {
    "systolic pressure": (-0.2, -0.9),
    "potassium": (0.01, 0.0),
    "heart rate": (0.02, 0.5),
}


def result(rng: random.Random, outcome: str, action: Any) -> float:
    """One result of an invented patient."""
    first, second = SLOPE[outcome]
    effect = first * (action["lisinopril"] - 20) + second * action.get("amlodipine", 0.0)
    return round(LEVEL[outcome] * (1 + 0.01 * rng.gauss(0, 1)) + effect, 2)


def asked_of(ticket: Any) -> tuple[str, ...]:
    """The outcomes of a question."""
    return (ticket.measure,) if isinstance(ticket.measure, str) else ticket.measure


def play(study: Any, rounds: int, seed: int, **asked: Any) -> list[Any]:
    """Ask and tell; returns the tickets."""
    rng, tickets = random.Random(seed), []
    for _ in range(rounds):
        ticket = study.ask(**asked)
        names = asked_of(ticket)
        panel = {name: result(rng, name, ticket.action) for name in names}
        study.tell(ticket.id, panel if len(panel) > 1 else panel[names[0]])
        tickets.append(ticket)
    return tickets


def clinic(storage: str) -> None:
    """Panels, corrections, withdrawals, an import, surprising and unasked results, erased text."""
    study = ss.Study.create(
        "clinic", storage, **USUAL, vocabulary="clinic", title="Blood pressure", seed=7, actor=WARD
    )
    tickets = play(study, 3, seed=1)
    imported = study.import_results(
        {
            "lisinopril": [0, 10, 40],
            "amlodipine": [0, 2.5, 10],
            "systolic pressure": [155.0, 150.5, 139.0],
            "potassium": [4.0, None, 4.5],
        },
        actor=LAB,
    )
    panel = study.ask(panel=3)
    half = asked_of(panel)[0]
    study.tell(panel.id, LEVEL[half], measured=half, actor=LAB)
    study.withdraw(panel.id, reason="the rest of the blood was spilt")
    play(study, 4, seed=2, panel=2)
    study.correct(tickets[0].id, tickets_value(study, tickets[0]) * 1.01, reason="misread")
    study.correct(imported.entries[0], 156.0, row=0, reason="the list was of another day")
    study.withdraw(tickets[1].id, reason="another patient's", actor="Dr Grace Hopper")
    study.tell(
        None, 4.3, measured="potassium", given={"lisinopril": 30, "amlodipine": 5}, actor=LAB
    )
    late = study.ask()
    study.tell(
        late.id, LEVEL[late.measure], given={"lisinopril": 10, "amlodipine": 0}, reason="half dose"
    )
    erase(open_store(storage), "clinic", [study.history()[-1].seq], actor=WARD, reason="asked for")
    play(study, 5, seed=3)
    study.ask(key="the question of Monday")
    study.ask(new=True, largest_step={"lisinopril": 10}, price_cap=5.0, actor=LAB)


def tickets_value(study: Any, ticket: Any) -> float:
    """The number that was told for a question of one outcome."""
    told = [event for event in study.about(ticket.id) if event.kind == "answered"]
    return float(told[0].body["value"])


def ended(storage: str) -> None:
    """A study that was closed with its recommendation, and one overruled."""
    study = ss.Study.create("accepted", storage, **USUAL, seed=3, actor=WARD)
    play(study, 12, seed=4)
    study.close(accept=True, reason="enough")
    study = ss.Study.create("overruled", storage, **USUAL, seed=4, actor=WARD)
    play(study, 4, seed=5)
    study.close(overrule={"lisinopril": 30, "amlodipine": 0}, reason="she swells")


def formula(storage: str) -> None:
    """Contexts, words and a formula."""
    study = ss.Study.create(
        "formula",
        storage,
        factors=[LISINOPRIL, ss.Factor("salt", levels=["none", "calcium", "zinc"])],
        context=[ss.Factor("age", 20, 80, unit="years"), ss.Factor("sex", levels=["f", "m"])],
        model="0 + lisinopril + salt + lisinopril:age",
        target=PRESSURE,
        protected=PROTECTED[:1],
        seed=5,
        actor=WARD,
    )
    for number, age in enumerate((30, 60, 45, 72)):
        play(study, 2, seed=6 + number, context={"age": age, "sex": "fm"[number % 2]})
    study.ask(context={"age": 51, "sex": "f"})


def shapes(storage: str) -> None:
    """A box, a table of candidates, a named policy, the clean aim by rank and by resolution."""
    box = [ss.Factor("lisinopril", 0, 40, unit="mg/day"), ss.Factor("amlodipine", 0, 10)]
    study = ss.Study.create("box", storage, **(USUAL | {"factors": box}), seed=8, actor=WARD)
    play(study, 6, seed=11)
    rows = {"lisinopril": [0, 10, 20, 40, 40], "amlodipine": [0, 5, 0, 2.5, 10]}
    study = ss.Study.create("table", storage, **USUAL, candidates=rows, seed=9, actor=WARD)
    play(study, 4, seed=12)
    clean = {
        "factors": [LISINOPRIL, AMLODIPINE],
        "target": PRESSURE,
        "protected": [ss.Outcome(name, range=(0, 200)) for name in ("potassium", "heart rate")],
        "aim": "clean",
        "actor": WARD,
    }
    study = ss.Study.create("clean by rank", storage, **clean, rank=1, seed=10)
    play(study, 5, seed=13)
    study = ss.Study.create("clean by resolution", storage, **clean, resolution=0.2, seed=11)
    play(study, 5, seed=14)
    known = clean | {
        "target": ss.Outcome(
            "systolic pressure", goal="lower", range=(100, 190), baseline=150, noise=3
        ),
        "protected": [
            ss.Outcome("potassium", range=(3, 6), baseline=4.2, noise=0.1),
            ss.Outcome("heart rate", range=(40, 120), baseline=72, noise=2),
        ],
        "rank": 1,
    }
    for name in ("protected-linucb", "protected-thompson", "epsilon-greedy"):
        aim = USUAL if name == "protected-thompson" else known
        study = ss.Study.create(
            f"by {name}",
            storage,
            **{"actor": WARD, **aim},
            policy=name,
            knobs=KNOBS.get(name),
            seed=2,
        )
        play(study, 6, seed=15)
    short = {"factors": [ss.Factor("lisinopril", levels=[0, 20, 40])], "target": PRESSURE}
    study = ss.Study.create("with a snapshot", storage, **short, seed=12, actor=WARD)
    play(study, 52, seed=16)
    ss.Study.create("not begun", storage, **USUAL, vocabulary="lab", actor=WARD)


def people(storage: str) -> None:
    """Two people, a token, roles in one study and in all, a link to one question."""
    store = open_store(storage)
    accounts, grants = Accounts(store), Grants(store)
    ada = accounts.add_person("Ada", hashed("correct horse battery"), actor=WARD)
    grace = accounts.add_person("Grace", hashed("staple and paper"), actor=WARD)
    grants.give(Grant(ada.id, EVERYWHERE, "admin"), actor="Ada", by=ada.id)
    grants.give(Grant(grace.id, "clinic", "tell"), actor="Ada", by=ada.id)
    grants.give(Grant(grace.id, "clinic", "correct"), actor="Ada", by=ada.id)
    grants.take(Grant(grace.id, "clinic", "correct"), actor="Ada", by=ada.id)
    make_token(accounts, grants, "device", ["tell"], ["clinic"], days=None, actor="Ada", by=ada.id)
    question = ss.Study.open("clinic", store).questions()[0]
    until = datetime.now(UTC) + timedelta(days=3650)
    grants.add_link("clinic", question.id, "the nurse", expires=until, actor="Ada")
    accounts.secret("forms")


def fill(storage: str) -> None:
    """Every study and account."""
    for write in (clinic, ended, formula, shapes, people):
        write(storage)


def facts(storage: str) -> dict[str, Any]:
    """What each study held, as 0.2 counted it."""
    found = {}
    for name in ss.Study.list(storage):
        study = ss.Study.open(name, storage)
        head = open_store(storage).head(name)
        assert study.verify(asks=True).data["holds"], name
        found[name] = {
            "status": head.status,
            "seq": head.seq,
            "hash": head.hash,
            "open": [question.id for question in study.questions()],
            "results": study.n_results,
        }
    return found


def states() -> dict[str, Any]:
    """Of every policy: how to build it, what it decided, and the state it ended with."""
    found = {}
    for name in POLICIES:
        told = {"dim": 3, "n_protected": 2, "subspace_dim": 1, "noise_scale": 0.1}
        policy = from_config(name, ss.Problem(**told), KNOBS.get(name))
        rng, noise = np.random.default_rng(3), np.random.default_rng(4)
        truth = np.array([[0.5, 0.2, -0.3], [0.4, 0.0, 0.1], [0.8, 0.0, 0.2]])
        state, arms, asked = policy.init(), ss.Arms(ARMS), []
        for _ in range(25):
            decision = policy.ask(state, arms, rng)
            query = decision.query
            value = truth[query.index] @ query.action + 0.1 * noise.standard_normal()
            state = policy.tell(state, query, float(value))
            asked.append([query.action.tolist(), int(query.index)])
        found[name] = {
            "problem": told,
            "knobs": KNOBS.get(name, {}),
            "asked": asked,
            "state": state.to_json(),
        }
    return found


def dumped(address: str) -> str:
    """A database as plain SQL, without the lines that only psql or a newer server understands."""
    dump = ["pg_dump", "--inserts", "--no-owner", "--no-privileges", address]
    text = subprocess.run(dump, check=True, capture_output=True, text=True).stdout
    foreign = ("\\", "--", "SET transaction_timeout")
    return "".join(
        f"{line}\n" for line in text.splitlines() if line and not line.startswith(foreign)
    )


def main(address: str, commit: str = "") -> None:
    """Write the folder of this version."""
    name = "-".join(filter(None, (ss.__version__, commit)))
    folder = Path(__file__).parent / name
    folder.mkdir()  # once only
    file = str(folder / "studies.sqlite")
    fill(file)
    fill(address)
    counted = {"sqlite": facts(file), "postgresql": facts(address)}
    store = open_store(file)
    for study in ("clinic", "table"):
        write_lines(folder / f"{study}.jsonl", export_study(store, study))
    store.close()  # the last one to close it brings its log into the file
    assert sorted(path.suffix for path in folder.iterdir()) == [".jsonl", ".jsonl", ".sqlite"]
    (folder / "studies.sql").write_text(dumped(address), encoding="utf-8")
    for kind, found in (("studies", counted), ("states", states())):
        text = json.dumps(found) + "\n"
        (folder / f"{kind}.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
