"""Where compiled code is kept: a folder that is named after the whole source.

numba's own cache looks only at the file of the function that is called. A kernel that calls another
file's kernel would go on with yesterday's version of it. Here an edit of any file gives a new folder, and
everything is compiled anew, once.
"""

import hashlib
import os
import sys
import tempfile
from functools import cache
from pathlib import Path

_ROOMS = ("core", "policies", "environments", "experiments")  # where kernels are written


def cache_folder() -> str:
    """A folder of this very source in NUMBA_CACHE_DIR if that is set, else in the user's cache.

    Where the user's cache cannot be written (a locked-down account), in a folder for temporary files.
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
    """A name for this very source: it changes with every edit of a room that holds kernels."""
    source = Path(__file__).parents[1]
    content = hashlib.sha256(sys.version.encode())
    for room in _ROOMS:
        for file in sorted((source / room).glob("*.py")):
            content.update(file.read_bytes())
    return content.hexdigest()[:16]
