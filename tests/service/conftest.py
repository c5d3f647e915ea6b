"""Services that tests talk to."""

import httpx
import pytest
from houses import Browser, furnish

from clinic import clinic
from running import Running


@pytest.fixture
def running(tmp_path):
    """An empty service on loopback, where nobody has to log in."""
    with Running(tmp_path / "served.db") as service:
        yield service


@pytest.fixture
def web(running):
    """A program that talks to it."""
    with httpx.Client(base_url=running.url, timeout=30) as client:
        yield client


@pytest.fixture
def study(running):
    """A study with nothing asked yet, and the address of its interface."""
    clinic(running.store)
    return "/v1/studies/bp"


@pytest.fixture
def browser(running):
    """A person at the machine, who need not log in."""
    with Browser(running) as made:
        yield made


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    """A shared service with people and studies, for tests that only read or do not mind changes."""
    with Running(tmp_path_factory.mktemp("house") / "served.db") as running:
        yield furnish(running)


@pytest.fixture
def own_house(tmp_path):
    """A service with people and studies for one test."""
    with Running(tmp_path / "served.db") as running:
        yield furnish(running)
