"""Settings of Sphinx for the documentation's site; `docs/site/build.py` runs it."""

import os
from pathlib import Path

HERE = Path(__file__).resolve().parent
ASSETS = HERE.parents[1] / "src" / "tertulia" / "wire" / "assets"

project = "Tertulia"
version = release = os.environ["TERTULIA_VERSION"]
root_doc = "index"
extensions = ["myst_parser"]
myst_heading_anchors = 4
nitpicky = True
# What there is, is listed below; the build sees to it that nothing is forgotten.
suppress_warnings = ["toc.not_included"]
smartquotes = False

html_theme = "theme"
html_theme_path = [str(HERE)]
html_static_path = [str(ASSETS / "tokens.css"), str(ASSETS / "icon.svg")]
html_title = project
html_copy_source = False
html_use_index = False
html_permalinks_icon = "#"
html_search_options = {"type": "default"}

PAGES = {
    "For everybody": {
        "using": "Using it in a browser",
        "tasks": "Ten tasks, in presses",
    },
    "For administrators": {
        "administering": "Administering an organization",
    },
    "For operators": {
        "operating": "Operating a server",
        "scale": "Scale",
        "performance": "Performance",
        "releases": "Releases",
        "changelog": "Changelog",
        "security-policy": "Security",
        "security": "Security, point by point",
    },
    "For authors of programs": {
        "integrating": "Connecting programs",
        "compatibility": "Compatibility",
        "specification": "The interface, by statements",
    },
    "For those who change it": {
        "architecture": "Architecture",
        "glossary": "Glossary",
        "decisions/README": "Decisions",
        "bench": "The bench",
        "translating": "Translating",
        "voice": "How we write",
    },
}
"""The pages by who reads them, with what they are called at the side."""
html_context = {"pages_by_reader": PAGES}
