"""Sphinx reads this: how the site is built from the folder that ``assemble.py`` puts together."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import netpurify

project = "netpurify"
author = "The netpurify authors"
version = release = netpurify.__version__
html_title = "netpurify"
language = "en"

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "public_names",
]
nitpicky = True  # a reference that leads nowhere is a warning, and warnings are errors
nitpick_ignore_regex = [
    # Types of other libraries: their inventories would have to be downloaded.
    (r"py:.*", r"(abc|collections|concurrent|enum|functools|io|numbers|os|pathlib|types|typing)(\..*)?"),
    (r"py:class", r"Path|Result"),  # short names of a standard class and of a type variable
    (r"py:.*", r"(np|numpy|torch|nn|Tensor|jinja2|sklearn|scipy|hf|npt|ArrayLike|NDArray)(\..*)?"),
]

myst_heading_anchors = 4  # as on a code host: ## A title -> #a-title
myst_enable_extensions = ["attrs_block", "attrs_inline", "colon_fence", "deflist"]
smartquotes = False  # -- is an option, and ' a transpose

autodoc_default_options = {"members": True}
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
autodoc_class_signature = "mixed"
python_maximum_signature_line_length = 88
napoleon_numpy_docstring = False
napoleon_use_ivar = True
napoleon_attr_annotations = False  # types stand in the signature
napoleon_use_rtype = False
add_module_names = False

html_theme = "furo"
html_static_path = [str(Path(__file__).parent / "static")]
html_css_files = ["site.css"]
html_show_sphinx = False
html_copy_source = False
html_use_index = True
html_theme_options = {
    "sidebar_hide_name": False,
    "light_css_variables": {"color-brand-primary": "#1f5fae", "color-brand-content": "#1f5fae"},
    "dark_css_variables": {"color-brand-primary": "#7fb2f2", "color-brand-content": "#7fb2f2"},
}
pygments_style = "tango"
pygments_dark_style = "github-dark"
