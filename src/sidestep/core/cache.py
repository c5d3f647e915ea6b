"""Where compiled code is kept: in a folder whose name is a hash of the whole source.

numba's own cache checks only the file of the function that is called. A kernel that calls a kernel of
another file would keep using the old version of that file. Here an edit of any file gives a new folder,
and everything is compiled once more.
"""

import hashlib
import os
import sys
import tempfile
from functools import cache
from pathlib import Path

_ROOMS = ("core", "policies", "environments", "experiments")  # where kernels are written


def cache_folder() -> str:
    """The folder for this version of the source: in NUMBA_CACHE_DIR if set, else in the user's cache.

    Where the user's cache is not writable (a locked-down account), it is in the temporary directory.
    """
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    if chosen:
        return os.path.join(chosen, fingerprint())
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    folder = os.path.join(home, "sidestep", fingerprint())
    try:
        os.makedirs(folder, exist_ok=True)
        if os.access(folder, os.W_OK):
            return folder
    except OSError:
        pass
    mine = f"sidestep-{os.getuid() if hasattr(os, 'getuid') else 'user'}"
    return os.path.join(tempfile.gettempdir(), mine, fingerprint())


@cache
def fingerprint() -> str:
    """Hash of the source of all packages that contain kernels; it changes with every edit of them."""
    source = Path(__file__).parents[1]
    content = hashlib.sha256(sys.version.encode())
    for room in _ROOMS:
        for file in sorted((source / room).rglob("*.py")):
            content.update(file.read_bytes())
    return content.hexdigest()[:16]
