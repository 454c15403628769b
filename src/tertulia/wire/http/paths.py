"""Which of the interface's paths a request is for."""

from collections.abc import Mapping
from typing import Any, Generic, TypeVar

from starlette.convertors import Convertor, register_url_convertor
from starlette.routing import compile_path

T = TypeVar("T")


class _Digits(Convertor[str]):
    """An ID in a path, as it was written. What is longer than any ID can be is none."""

    regex = "0|[1-9][0-9]{0,15}"

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


register_url_convertor("id", _Digits())


class Paths(Generic[T]):
    """What lies at each path. Those without parameters are looked up; of the others, those that
    begin with the same word are tried in order."""

    def __init__(self, prefix: str, places: Mapping[str, T]) -> None:
        """`places` by their paths after the prefix, with `{name}` or `{name:int}` for their
        parts."""
        self.paths = tuple(places)
        """Without the prefix."""
        self._exact: dict[str, T] = {}
        self._begun: dict[str, list[tuple[Any, Mapping[str, Convertor[Any]], T]]] = {}
        self._at = prefix.count("/") + 1
        """Which of the parts between slashes is the first word."""
        for path, place in places.items():
            whole = prefix + path
            if "{" not in path:
                self._exact[whole] = place
                continue
            pattern, _, convertors = compile_path(whole.replace(":int}", ":id}"))
            self._begun.setdefault(self._word(whole), []).append((pattern, convertors, place))

    def find(self, path: str) -> tuple[T, dict[str, Any]] | None:
        """What lies there, and the path's parameters; None for nothing."""
        place = self._exact.get(path)
        if place is not None:
            return place, {}
        for pattern, convertors, patterned in self._begun.get(self._word(path), ()):
            if match := pattern.match(path):
                texts = match.groupdict()
                return patterned, {name: convertors[name].convert(texts[name]) for name in texts}
        return None

    def _word(self, path: str) -> str:
        parts = path.split("/", self._at + 1)
        return parts[self._at] if len(parts) > self._at else ""
