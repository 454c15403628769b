"""Reading what a service sent, which may be anything."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from tertulia.integrations.prose import address, harmless


class Malformed(Exception):
    """The payload isn't what the service sends. `str(error)` says why, without a period."""


MAX_TEXT: Final = 20_000
"""Characters of a text that are read: a message takes half of that."""
_MISSING: Final = object()
_SPACE: Final = re.compile(r"\s+")


@dataclass(frozen=True)
class Part:
    """A part of a payload, or all of it. Paths are names with dots between (`a.b.c`).

    Texts mention nobody: what others wrote elsewhere must not wake people here.
    """

    value: Any
    path: str = ""

    def find(self, path: str) -> "Part | None":
        """What is at the path; None where nothing is, or null."""
        value = self._at(path)
        return None if value is None or value is _MISSING else Part(value, self._named(path))

    def part(self, path: str) -> "Part":
        """The same. Malformed where nothing is there."""
        found = self.find(path)
        if found is None:
            raise Malformed(f"'{self._named(path)}' is missing")
        return found

    def parts(self, path: str = "") -> list["Part"]:
        """The items of a list. None where nothing is there; Malformed where something else is."""
        found = self.find(path) if path else self
        if found is None:
            return []
        if not isinstance(found.value, list):
            raise Malformed(f"'{found.path}' isn't a list")
        return [Part(one, f"{found.path}[{n}]") for n, one in enumerate(found.value)]

    def items(self) -> Iterator[tuple[str, "Part"]]:
        """The names and values of an object. Malformed where it is none."""
        if not isinstance(self.value, dict):
            raise Malformed(f"'{self.path}' isn't an object" if self.path else "it isn't an object")
        for name, value in self.value.items():
            yield harmless(str(name)), Part(value, self._named(str(name)))

    def text(self, path: str = "", default: str | None = None) -> str:
        """A text, or a number as text. Without a default Malformed where there is none."""
        found = self.find(path) if path else self
        if found is None or isinstance(found.value, dict | list):
            if default is None:
                raise Malformed(f"'{self._named(path)}' is missing or isn't text")
            return default
        if isinstance(found.value, bool):
            return "true" if found.value else "false"
        return harmless(str(found.value)[:MAX_TEXT])

    def line(self, path: str = "", default: str | None = None) -> str:
        """The same on one line."""
        return _SPACE.sub(" ", self.text(path, default)).strip()

    def word(self, path: str = "", default: str | None = None) -> str:
        """A text as it is, for comparing it; not for showing it."""
        found = self.find(path) if path else self
        if found is None or not isinstance(found.value, str):
            if default is None:
                raise Malformed(f"'{self._named(path)}' is missing or isn't text")
            return default
        return found.value

    def url(self, path: str) -> str:
        """An address on the web; empty where there is none."""
        return address(self.word(path, ""))

    def flag(self, path: str) -> bool:
        """Whether that is true."""
        return self._at(path) is True

    def number(self, path: str, default: float | None = None) -> float:
        """A number. Without a default Malformed where there is none."""
        value = self._at(path)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return value
        if default is None:
            raise Malformed(f"'{self._named(path)}' is missing or isn't a number")
        return default

    def _at(self, path: str) -> Any:
        value = self.value
        for name in path.split("."):
            if not isinstance(value, dict):
                return _MISSING
            value = value.get(name, _MISSING)
        return value

    def _named(self, path: str) -> str:
        return f"{self.path}.{path}" if self.path and path else self.path or path
