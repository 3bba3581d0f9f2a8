"""The documentation site: `make docs` builds it, without a network, into build/site."""

import os
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tools"))

from docsite.source_pages import linkcode_resolve  # noqa: E402, F401

import attnscope  # noqa: E402

project = "attnscope"
author = "the attnscope authors"
copyright = "the attnscope authors, Apache-2.0"
release = version = attnscope.__version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.linkcode",
    "numpydoc",
    "sphinx_copybutton",
    "sphinx_design",
    "docsite",
]
exclude_patterns = ["_*", "**/.ipynb_checkpoints"]
nitpicky = False
suppress_warnings = ["myst.header"]

html_theme = "furo"
html_title = "attnscope"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sphinx = False
html_copy_source = False
html_math_renderer = "mathml"
html_extra_path = ["../build/reports"]
(ROOT / "build" / "reports").mkdir(parents=True, exist_ok=True)
pygments_style = "friendly"
pygments_dark_style = "native"

myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath", "fieldlist"]
myst_heading_anchors = 4

# Notebooks run once per change, in a kernel of this environment, each in an empty folder.
nb_execution_mode = "cache"
nb_execution_cache_path = str(ROOT / "build" / "notebooks")
nb_execution_in_temp = True
nb_execution_raise_on_error = True
nb_execution_timeout = 240
nb_merge_streams = True
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ["PYTHONPATH"] = os.pathsep.join(
    filter(None, [str(ROOT / "src"), os.environ.get("PYTHONPATH")])
)
# A page shows the same whatever corpora and caches its builder has.
for name in ("ATTNSCOPE_DATA", "ATTNSCOPE_CACHE"):
    os.environ.pop(name, None)

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_type_aliases = {}
python_maximum_signature_line_length = 80
add_module_names = False
toc_object_entries = False
autodoc_default_options = {"exclude-members": "model_config"}
numpydoc_show_class_members = False
numpydoc_xref_param_type = False
copybutton_exclude = ".linenos, .gp"
