"""A temporary folder for every test: what a test that kills leaves there, no other test sees.

All lie in one folder of the session, which goes at its end: what is made once for several tests may
stay in the folder of the first. Both may be entered by another user, as PostgreSQL's is.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator
from multiprocessing import util
from pathlib import Path

import pytest

FOLDER = "TMPDIR"  # of the session, set by its first process, inherited by its workers
OF_PYTEST = "PYTEST_DEBUG_TEMPROOT"  # `tmp_path` is where it would be, and stays to be looked at


def set_up(config: pytest.Config) -> None:
    """Agree on a folder, before there are workers."""
    if hasattr(config, "workerinput"):
        return
    os.environ.setdefault(OF_PYTEST, tempfile.gettempdir())
    util.get_temp_dir()  # multiprocessing keeps its first one, and deletes it when the process ends
    config.temporary = tempfile.mkdtemp(prefix="sidestep-tests-")
    Path(config.temporary).chmod(0o755)
    os.environ[FOLDER] = tempfile.tempdir = config.temporary


def tear_down(config: pytest.Config) -> None:
    """The first process deletes it."""
    if not hasattr(config, "workerinput"):
        shutil.rmtree(config.temporary, ignore_errors=True)


@pytest.fixture(autouse=True)
def _own_temporary_folder() -> Iterator[None]:
    before = os.environ[FOLDER]
    own = tempfile.mkdtemp(dir=before)
    Path(own).chmod(0o755)
    os.environ[FOLDER] = tempfile.tempdir = own
    yield
    os.environ[FOLDER] = tempfile.tempdir = before
