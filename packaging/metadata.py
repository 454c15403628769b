"""What the package says of where it comes from.

The place of the repository is in no file, for it may move: `make release REPOSITORY=https://…`
names it. Then the package links it, and its README has the addresses of pictures and pages there,
for places that show the README alone, such as a package index.
"""

import os
import runpy
from pathlib import Path
from typing import Any, Final

from hatchling.metadata.plugin.interface import MetadataHookInterface

REPOSITORY: Final = "RELEASE_REPOSITORY"


class WhereItIs(MetadataHookInterface):
    """Fills in `readme` and `urls`."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Called with the static metadata, when a package is put together."""
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
