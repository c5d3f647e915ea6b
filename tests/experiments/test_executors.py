"""Executors: every result comes once, whatever process dies; Ctrl-C loses no finished result."""

import os
import signal
import time

import pytest

from sidestep.errors import ExecutorError
from sidestep.experiments.executors import Dask, Processes, Serial, uninterrupted

pytestmark = pytest.mark.full  # worker processes take a second to start


@pytest.fixture(autouse=True)
def heard():
    """Ctrl-C is handled, even if the tests were started in the background and would ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def doubled(number):
    return 2 * number


def slept(seconds):
    time.sleep(seconds)
    return seconds


def refuse(number):
    raise ValueError(f"not {number}")


def die_once(folder):
    """Kill the process the first time it is called."""
    mark = folder / "died"
    if not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return 7


def die_always(_):
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("runner", [Serial(), Processes(1), Processes(3)])
def test_every_job_gives_one_result(runner):
    assert sorted(runner.run(doubled, range(10))) == list(range(0, 20, 2))
    assert list(runner.run(doubled, [])) == []


def where(_):
    return os.getpid()


def test_processes_wait_for_the_next_jobs_and_end_with_their_runner():
    runner = Processes(1)
    first = list(runner.run(where, range(3)))
    assert list(runner.run(where, range(3))) == first
    (process,) = {worker.process for worker in runner._idle}
    assert process.pid == first[0]
    del runner
    process.join(10)
    assert process.exitcode == 0


def test_a_process_that_died_while_it_waited_is_replaced():
    runner = Processes(1)
    (first,) = runner.run(where, [0])
    os.kill(first, signal.SIGKILL)
    runner._idle[0].process.join(10)
    (second,) = runner.run(where, [0])
    assert second != first


def test_what_a_dead_process_had_in_hand_is_run_again(tmp_path):
    assert list(Processes(2).run(die_once, [tmp_path] * 3)) == [7, 7, 7]
    with pytest.raises(ExecutorError, match="worker processes died 2 times"):
        list(Processes(1, tries=2).run(die_always, [1]))


@pytest.mark.parametrize("runner", [Serial(), Processes(2)])
def test_what_a_job_raises_is_raised(runner):
    with pytest.raises(ValueError, match="not 1"):
        list(runner.run(refuse, [1]))


def test_ctrl_c_while_a_result_is_kept_lets_what_is_finished_come_and_gives_up_the_rest():
    kept, jobs = [], [0.0, 0.1, 60.0, 60.0]
    started = None

    def keep_all():
        nonlocal started
        for result in Processes(2).run(slept, jobs):
            if not kept:
                time.sleep(2.0)  # the other worker is done meanwhile
                signal.raise_signal(signal.SIGINT)
                started = time.monotonic()
            kept.append(result)

    with pytest.raises(KeyboardInterrupt):
        keep_all()
    assert sorted(kept) == [0.0, 0.1]
    assert time.monotonic() - started < 3


def test_a_block_is_finished_before_ctrl_c_is_heard():
    done = []

    def block():
        with uninterrupted():
            signal.raise_signal(signal.SIGINT)
            done.append("kept")
        done.append("never")

    with pytest.raises(KeyboardInterrupt):
        block()
    assert done == ["kept"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize(
    "address", ["hello", "tcp://", "http://there:8786", "127.0.0.1:port", "tcp://there:99999"]
)
def test_a_scheduler_that_is_no_address_gets_a_sentence(address, refusal):
    message = refusal(Dask, address)
    assert message == f"scheduler must be an address, tcp://HOST:PORT, got {address!r}"
