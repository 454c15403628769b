"""The package's links to its repository.

No file names the repository, because it may move: `make release REPOSITORY=https://…` does. Then
the package links to it, and so do the pictures and pages in its README, for package indexes, which
show only the README.
"""

import os
import runpy
from pathlib import Path
from typing import Any, Final

from hatchling.metadata.plugin.interface import MetadataHookInterface

REPOSITORY: Final = "RELEASE_REPOSITORY"


class RepositoryLinks(MetadataHookInterface):
    """Fills in `readme` and `urls`."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add them to the static metadata."""
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        if repository := os.environ.get(REPOSITORY, "").rstrip("/"):
            tag = f"v{metadata['version']}"
            release = runpy.run_path(str(Path(self.root) / "packaging" / "release.py"))
            text = release["linked"](text, repository, tag)
            metadata["urls"] = {
                "Source": repository,
                "Documentation": f"{repository}/blob/{tag}/docs/index.md",
                "Changelog": f"{repository}/blob/{tag}/CHANGELOG.md",
                "Issues": f"{repository}/issues",
            }
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
