"""Sphinx's configuration for the documentation, used by `docs/site/build.py`."""

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
# Pages are listed below, and the build checks that none is missing.
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
    "For everyone": {
        "using": "Using it in a browser",
        "tasks": "Clicks for common tasks",
    },
    "For administrators": {
        "administering": "Administering an organization",
        "moving-in": "Moving in from another server",
        "moving-out": "Moving out",
        "privacy": "Privacy",
    },
    "For operators": {
        "production": "Production in 15 minutes",
        "operating": "Operating a server",
        "install": "Install",
        "kubernetes": "Kubernetes",
        "configure": "Configure",
        "settings": "All settings",
        "signing-in": "Signing in (SSO, LDAP, 2FA)",
        "email": "Email and push notifications",
        "files": "Files",
        "backups": "Back up and restore",
        "upgrade": "Upgrade",
        "scale": "Scale",
        "monitor": "Monitor",
        "troubleshoot": "Troubleshoot",
        "securing": "Security and firewall",
        "limits": "Limits",
        "command-line": "Command line",
        "uninstall": "Uninstall",
        "performance": "Performance",
        "releases": "Releases",
        "changelog": "Changelog",
        "security-policy": "Security",
        "security": "Security requirements",
    },
    "For developers of integrations": {
        "integrating": "Connecting programs",
        "compatibility": "Compatibility",
        "specification": "API test coverage",
    },
    "For contributors": {
        "architecture": "Architecture",
        "extending": "Worked examples",
        "glossary": "Glossary",
        "decisions/README": "Decisions",
        "bench": "The benchmark",
        "translating": "Translating",
        "voice": "How we write",
    },
}
"""The pages of the sidebar and their titles, by reader."""
html_context = {"pages_by_reader": PAGES}
