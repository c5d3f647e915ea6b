"""Common to the tests: the statistical oracle, the check of error messages, the Warfarin table."""

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy import stats

import databases
import temporary
from databases import own_postgres, postgres, storage, way  # noqa: F401  # fixtures
from disks import small_disk  # noqa: F401
from sidestep.core.jit import ieee_arithmetic
from sidestep.errors import InputError
from sidestep.experiments import simulate
from temporary import _own_temporary_folder  # noqa: F401

ROOT = Path(__file__).parents[1]
IWPC = Path(os.environ.get("SIDESTEP_IWPC") or ROOT / ".." / "shared" / "data" / "warfarin.csv")


# they come first, and so go to one process, which compiles what the policies share only once
COMPILING = ("test_instance.py", "test_policies.py", "test_simulate.py", "test_deviations.py")
# they begin the second half, and so the other process starts with them: a site, a browser or a server
# is set up once, and no long test is left for the end
LONG = ("test_site.py", "test_browser.py", "test_load.py", "test_crash.py", "test_typing.py")


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Iterator[None]:
    """Run tests that need a server, ours or PostgreSQL, only in `make test`; put all in order."""
    for item in items:
        words = getattr(item, "callspec", None)
        if "service" in item.path.parts or (words and {"postgresql", "http"} & {*words._idlist}):
            item.add_marker(pytest.mark.full)
    yield  # here tests are deselected by their marks
    compiling = [item for item in items if item.path.name in COMPILING]
    long = [item for item in items if item.path.name in LONG]
    others = [item for item in items if item.path.name not in COMPILING + LONG]
    half = max(0, len(items) // 2 - len(compiling))
    items[:] = [*compiling, *others[:half], *long, *others[half:]]


def pytest_configure(config: pytest.Config) -> None:
    """Folders of the session, for the server and for all that is temporary."""
    databases.set_up(config)
    temporary.set_up(config)


def pytest_unconfigure(config: pytest.Config) -> None:
    """The server is stopped, the folders go."""
    databases.tear_down(config)
    temporary.tear_down(config)


class Oracle(NamedTuple):
    """Statistical tests. A true claim is rejected with probability at most `doubt` per call."""

    doubt: float = 1e-6

    def at_most(self, failures: int, runs: int, rate: float) -> bool:
        """Whether a failure rate of at most `rate` can give this many failures."""
        _check_count(failures, runs)
        return bool(stats.binom.sf(failures - 1, runs, rate) >= self.doubt)

    def at_least(self, successes: int, runs: int, rate: float) -> bool:
        """Whether a success rate of at least `rate` can give this few successes."""
        return self.at_most(runs - successes, runs, 1 - rate)

    def about(self, hits: int, runs: int, rate: float) -> bool:
        """Whether a rate of exactly `rate` can give a count this far from its mean, on either side."""
        half = self._replace(doubt=self.doubt / 2)
        return half.at_most(hits, runs, rate) and half.at_least(hits, runs, rate)

    def mean_at_most(self, sample: np.ndarray, bound: float) -> bool:
        """Whether independent values of mean at most `bound` can average this high (Student)."""
        sample = np.asarray(sample, dtype=float)
        error = sample.std(ddof=1) / np.sqrt(len(sample))
        slack = stats.t.isf(self.doubt, len(sample) - 1) * error
        return bool(sample.mean() <= bound + slack)

    def mean_about(self, sample: np.ndarray, expected: float) -> bool:
        """Whether independent values of that mean can average this far off (Student)."""
        half = self._replace(doubt=self.doubt / 2)
        return half.mean_at_most(sample, expected) and half.mean_at_most(
            -np.asarray(sample, dtype=float), -expected
        )


def _check_count(count: int, runs: int) -> None:
    if not 0 <= count <= runs or runs < 1:
        raise ValueError(f"a count must lie in 0..{runs}, got {count}")


@pytest.fixture(scope="session")
def oracle() -> Oracle:
    """The one judge of every statistical claim: tolerances follow from the number of runs."""
    return Oracle()


@pytest.fixture(scope="session")
def refusal() -> Callable[..., str]:
    """The message of the InputError that a call raises: one sentence, what was expected and given."""

    def message_of(call: Callable[..., Any], *args: Any, **kwargs: Any) -> str:
        with pytest.raises(InputError) as caught:
            call(*args, **kwargs)
        message = str(caught.value)
        assert isinstance(caught.value, ValueError)
        assert ", got " in message
        assert "\n" not in message
        assert not re.search(r"\.\s+[A-Z]", message)  # one sentence
        assert len(message) <= 600
        return message

    return message_of


@pytest.fixture(scope="session")
def iwpc() -> Path:
    """The Warfarin table of the paper; it may not be distributed, so a clone need not have it."""
    if not IWPC.is_file():
        pytest.skip(f"the Warfarin table is not here: SIDESTEP_IWPC names it, else {IWPC}")
    return IWPC


@pytest.fixture(autouse=True)
def _ieee_arithmetic():
    """Kernels that a test calls from Python divide by zero without a warning, as elsewhere."""
    with ieee_arithmetic():
        yield


@pytest.fixture
def interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short runs are interpreted, whatever was played or compiled on this machine before."""
    monkeypatch.setattr(simulate, "is_worth_compiling", lambda *_, **__: False)
