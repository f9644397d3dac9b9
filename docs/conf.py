"""Configuration of the documentation; build it with `make docs`.

The pages use no network: the theme brings its own assets, and formulas become MathML,
which browsers draw themselves.
"""

import logging
from importlib.metadata import version as installed_version

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.util.logging import getLogger

project = "tauten"
author = "The tauten developers"
project_copyright = "2026, the tauten developers"
release = version = installed_version(project)

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "sphinx_gallery.gen_gallery",
]
logging.getLogger("tauten").setLevel(logging.WARNING)  # a package of the theme logs everything
exclude_patterns = ["_build"]
templates_path = ["_templates"]

html_theme = "furo"
html_title = f"{project} {release}"
html_static_path = ["_static"]
html_css_files = ["math.css"]
html_math_renderer = "mathml"
html_copy_source = False
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 2  # pages refer to sections of others

# A module documents what its __all__ promises, wherever that is defined.
autosummary_ignore_module_all = False
# Members inherited from scikit-learn are documented there.
numpydoc_show_inherited_class_members = False
numpydoc_class_members_toctree = False

sphinx_gallery_conf = {
    "examples_dirs": "../examples/gallery",
    "gallery_dirs": "gallery",
    "within_subsection_order": "FileNameSortKey",
    "reference_url": {project: None},  # names in the code link to the reference
    "only_warn_on_example_error": False,
    "download_all_examples": False,
    "show_memory": False,
    "write_computation_times": False,
}


def _mathml(node, **options):
    try:
        return tex2mathml(node.astext(), **options)
    except MathError as error:
        getLogger(__name__).warning("formula: %s", error, location=node)
        return ""


def _inline(translator, node):
    translator.body.append(_mathml(node))
    raise nodes.SkipNode


def _display(translator, node):
    opening = translator.starttag(node, "div", CLASS="math")
    translator.body.append(f"{opening}{_mathml(node, as_block=True)}</div>")
    raise nodes.SkipNode


def setup(app):
    app.add_html_math_renderer("mathml", (_inline, None), (_display, None))
