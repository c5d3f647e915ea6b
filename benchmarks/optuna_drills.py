"""The drills of tests/studies/drills.py, played on Optuna's storage."""

import random
import time
from collections import Counter
from multiprocessing.connection import Connection
from typing import Any

import optuna
from drills import Conflicts, HandOuts, Kills, Pace
from optuna.trial import TrialState
from scoreboard import Board, Counts, Places
from workers import PROCESSES, Worker

STUDY = "drill"
optuna.logging.set_verbosity(optuna.logging.ERROR)


def fresh(storage: str) -> optuna.Study:
    sampler = optuna.samplers.RandomSampler(seed=0)  # so that storage is what is measured
    return optuna.create_study(study_name=STUDY, storage=storage, sampler=sampler)


def opened(storage: str) -> optuna.Study:
    return optuna.load_study(
        study_name=STUDY, storage=storage, sampler=optuna.samplers.RandomSampler(seed=0)
    )


def pair(study: optuna.Study) -> tuple[int, float]:
    trial = study.ask()
    trial.suggest_float("dose", 0, 1)
    value = random.random()
    study.tell(trial, value)
    return trial.number, value


def pairs_for_ever(reports: Connection, storage: str) -> None:
    study = opened(storage)
    while True:
        reports.send(pair(study))


def pairs(reports: Connection, storage: str, count: int, gate: Any) -> None:
    study = opened(storage)
    gate.wait(60)
    for _ in range(count):
        trial = study.ask()
        trial.suggest_float("dose", 0, 1)
        before = time.monotonic()
        study.tell(trial, 1.0)
        reports.send(time.monotonic() - before)


def tell_all(
    reports: Connection, storage: str, numbers: list[int], value: float, gate: Any
) -> None:
    study = opened(storage)
    for number in numbers:
        gate.wait(60)
        try:
            study.tell(number, value)
        except (ValueError, RuntimeError, optuna.exceptions.OptunaError):
            continue
        reports.send(number)


def take_all(reports: Connection, storage: str, count: int, gate: Any) -> None:
    study = opened(storage)
    gate.wait(60)
    for _ in range(count):
        reports.send(study.ask().suggest_float("item", 0, 10**6))


def kill_clients(storage: str, acknowledged: int, *, clients: int = 2, seed: int = 0) -> Kills:
    fresh(storage)
    chance = random.Random(seed)
    heard: list[Any] = []
    kills = 0
    while len(heard) < acknowledged:
        workers = [Worker(pairs_for_ever, storage) for _ in range(clients)]
        if chance.random() < 0.8:
            workers[0].reports.poll(30)
        for worker in workers:
            worker.listen(chance.uniform(0.0, 0.4))
            worker.kill()
            heard += worker.heard
        kills += clients
    trials = {trial.number: trial for trial in opened(storage).trials}
    lost = sum(
        trials[number].state != TrialState.COMPLETE or trials[number].value != value
        for number, value in heard
    )
    left = sum(trial.state == TrialState.RUNNING for trial in trials.values())
    return Kills(kills, len(heard), lost, left, 0, 0)


def tell_two_values(storage: str, tickets: int) -> Conflicts:
    study = fresh(storage)
    numbers = [study.ask().number for _ in range(tickets)]
    gate = PROCESSES.Barrier(2)
    tellers = {value: Worker(tell_all, storage, numbers, value, gate) for value in (1.0, 2.0)}
    saved = {value: set(teller.join()) for value, teller in tellers.items()}
    kept = {trial.number: trial.value for trial in opened(storage).trials}
    wrong = sum(kept[number] != value for value, told in saved.items() for number in told)
    both = saved[1.0] & saved[2.0]
    return Conflicts(tickets, len(both), wrong, tickets - len(saved[1.0] | saved[2.0]))


def hand_out(storage: str, asks: int, *, askers: int = 4) -> HandOuts:
    study = fresh(storage)
    for item in range(asks):
        study.enqueue_trial({"item": item})
    gate = PROCESSES.Barrier(askers)
    workers = [Worker(take_all, storage, asks // askers, gate) for _ in range(askers)]
    taken = Counter(item for worker in workers for item in worker.join())
    queued = [count for item, count in taken.items() if item == int(item)]
    return HandOuts(taken.total(), sum(count > 1 for count in queued), asks - len(queued))


def pace(storage: str, count: int, *, clients: int = 1) -> Pace:
    fresh(storage)
    gate, each = PROCESSES.Barrier(clients + 1), count // clients
    workers = [Worker(pairs, storage, each, gate) for _ in range(clients)]
    gate.wait(60)
    before = time.monotonic()
    tells = sorted(report for worker in workers for report in worker.join())
    return Pace(len(tells), time.monotonic() - before, tells[int(0.99 * len(tells))])


def said(act: Any) -> str:
    """What came of something: an error's name, or that it was accepted."""
    try:
        act()
    except Exception as error:
        return f"{type(error).__name__}"
    return "accepted"


def again(storage: str) -> dict[str, str]:
    """The same tell again, another one, and values that are none."""
    study = fresh(storage)
    number = study.ask().number
    study.tell(number, 1.0)
    found = {
        "same": said(lambda: study.tell(number, 1.0)),
        "other": said(lambda: study.tell(number, 2.0)),
    }
    for name, value in (("NaN", float("nan")), ("inf", float("inf")), ("text", "a")):
        asked = study.ask().number
        first = said(lambda value=value, asked=asked: study.tell(asked, value))
        retry = said(lambda asked=asked: study.tell(asked, 1.0))
        found[name] = f"{first}, then a good value: {retry}"
    return found


def reopen(storage: str, rounds: int) -> float:
    """CPU seconds of the first ask after opening a study of so many rounds."""
    study = fresh(storage)
    for _ in range(rounds):
        pair(study)
    worker = Worker(first_ask, storage)
    return worker.join()[0]


def first_ask(reports: Connection, storage: str) -> None:
    before = time.process_time()
    opened(storage).ask()
    reports.send(time.process_time() - before)


def rows(board: Board, places: Places, counts: Counts) -> None:
    """The rows of Optuna."""

    def place() -> str:
        return f"sqlite:///{places.sqlite()}"

    where, few = "Optuna, SQLite", counts.peer
    tally = kill_clients(place(), few)
    board.put(
        "acknowledged tells lost under SIGKILL of the client",
        where,
        f"{tally.lost} of {tally.acknowledged} in {tally.kills} kills",
    )
    board.put("asks left open with no explanation", where, f"{tally.unexplained}")
    two = tell_two_values(place(), few)
    board.put(
        "one ticket told two values at once: both acknowledged", where, f"{two.both} of {few}"
    )
    board.put("... an acknowledged value then overwritten", where, f"{two.overwritten}")
    taken = hand_out(place(), few)
    board.put(
        "one queued ask handed to two askers, 4 processes", where, f"{taken.twice} of {taken.asks}"
    )
    for case, found in again(place()).items():
        board.put(f"told again: {case}", where, found)
    seconds = reopen(place(), counts.peer_rounds)
    board.put(
        f"first ask after reopening {counts.peer_rounds} rounds", where, f"{seconds:.2f} s of CPU"
    )
