"""How the site is built: `make docs`, or sphinx-build docs docs/_build/html."""

import logging
import os
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
SOURCE = str(HERE.parent / "src")
sys.path[:0] = [str(HERE / "_ext"), SOURCE]
# Notebooks play what this tree holds, and find `sidestep` as a shell of this environment would.
os.environ["PYTHONPATH"] = SOURCE
os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"

# A build says what is wrong, and not which notebook it runs: kernels read a profile of their own.
logging.getLogger("traitlets").setLevel(logging.WARNING)
IPYTHON = tempfile.TemporaryDirectory(prefix="sidestep-site-")
PROFILE = Path(IPYTHON.name) / "profile_default" / "ipython_kernel_config.py"
PROFILE.parent.mkdir()
PROFILE.write_text('get_config().IPKernelApp.log_level = "ERROR"\n')
os.environ["IPYTHONDIR"] = IPYTHON.name

import sidestep  # noqa: E402  (from this tree)

project = "sidestep"
author = "The sidestep developers"
copyright = f"2026, {author}. Apache License 2.0"
version = release = sidestep.__version__

extensions = ["myst_nb", "sphinx.ext.autodoc", "docstrings", "commands", "interface", "mathml"]
exclude_patterns = ["_build", "_ext"]
default_role = "code"
nitpicky = False  # signatures name numpy's types, whose pages are elsewhere
python_use_unqualified_type_names = True
toc_object_entries_show_parents = "hide"

# Notebooks run at every build; the fast test of the site builds with -D nb_execution_mode=off.
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 300
nb_execution_in_temp = True
nb_merge_streams = True
myst_enable_extensions = ["deflist", "colon_fence"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True

# The pages work from a folder, without a network: system fonts, no script of anyone else's.
html_theme = "furo"
html_math_renderer = "mathml"
html_title = f"sidestep {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sphinx = False
html_copy_source = False
html_theme_options = {"navigation_with_keys": True}
