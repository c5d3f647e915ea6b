"""A disk that can be filled up."""

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def small_disk() -> Iterator[Path]:
    """A disk of a few megabytes, in memory."""
    folder = Path(tempfile.mkdtemp(prefix="sidestep-disk-"))
    folder.chmod(0o755)  # the server is another user
    mount = ["mount", "-t", "tmpfs", "-o", "size=20m,mode=777", "tmpfs", str(folder)]
    there = shutil.which("mount")
    if not there or subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("a small disk is needed, and none can be mounted here")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)
    folder.rmdir()


def fill_up(folder: Path) -> Path:
    """Leave no room; the file that takes it."""
    ballast = folder / "ballast"
    with ballast.open("wb", buffering=0) as file:
        for size in (2**16, 512, 1):
            try:
                while True:
                    file.write(b"x" * size)
            except OSError:
                continue
    return ballast
