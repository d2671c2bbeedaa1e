"""The site: `make docs` builds it into build/site, runs every page's code, and fails at a warning.

Nothing is fetched while it is built or read. Set SALMC_DOCS=cache, while writing, to run only the
pages that changed; a plain build runs all of them.
"""

import os
import sys
import tomllib
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[1]
_SITE = _ROOT / "docs" / "_site"
sys.path.insert(0, str(_SITE))
# Pages run in processes of their own, which draw in the site's look and see this checkout.
_SEEN = [str(_SITE), str(_ROOT / "src"), *filter(None, [os.environ.get("PYTHONPATH")])]
os.environ["PYTHONPATH"] = os.pathsep.join(_SEEN)
os.environ.setdefault("JAX_PLATFORMS", "cpu")  # no word about accelerators that are not there

_PROJECT = tomllib.loads((_ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

project = "salmc"
author = "The salmc founders"
copyright = "2026, the salmc founders"  # noqa: A001
version = release = _PROJECT["version"]

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_design",
    "flowchart",
    "docstrings",
]
exclude_patterns = ["_site", "_static", "images"]
templates_path: list[str] = []

# Markdown, and code that is run
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
myst_fence_as_directive = ["mermaid"]
nb_execution_mode = "cache" if os.environ.get("SALMC_DOCS") == "cache" else "force"
nb_execution_cache_path = str(_ROOT / "build" / "site-cache")
nb_execution_in_temp = True
nb_execution_raise_on_error = True
nb_execution_timeout = 1800  # of a cell, on a machine that is busy with other work
nb_merge_streams = True
nb_ipywidgets_js: dict[str, dict[str, str]] = {}  # they would come from elsewhere

# The reference, from docstrings
default_role = "code"
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
autodoc_default_options = {"members": True}
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True
napoleon_use_rtype = False
python_maximum_signature_line_length = 88
add_module_names = False
toc_object_entries_show_parents = "hide"

# The look
html_theme = "furo"
html_title = "salmc"
html_static_path = ["_static"]
html_css_files = ["salmc.css"]
html_logo = "_static/logo.svg"
html_favicon = "_static/logo.svg"
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
pygments_style = "friendly"
pygments_dark_style = "github-dark"
html_theme_options = {
    "source_repository": _PROJECT["urls"]["Source"],
    "source_branch": "main",
    "source_directory": "docs/",
    "top_of_page_buttons": [],
    "light_css_variables": {
        "color-brand-primary": "#b04a00",
        "color-brand-content": "#00619a",
        "color-sidebar-link-text": "var(--color-foreground-secondary)",
        "color-sidebar-link-text--top-level": "var(--color-foreground-secondary)",
        "font-stack": "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif",
        "font-stack--monospace": "ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace",
    },
    "dark_css_variables": {
        "color-brand-primary": "#f59a5b",
        "color-brand-content": "#6cb6ee",
    },
}
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
