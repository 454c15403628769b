"""The language of a page: what its reader's browser asks for, or the organization's."""

from collections.abc import Mapping
from functools import cached_property
from typing import Final

from starlette.requests import Request

from tertulia.outbound.texts import LANGUAGES, Texts, language_of, texts

_MOST: Final = 20
"""Languages of one header that are looked at."""


def language_wanted(request: Request, otherwise: str) -> str:
    """The language that the browser asks for first, of those that there are (RFC 9110, 12.5.4);
    where it names none of them, the nearest to `otherwise`, a tag."""
    wanted: list[tuple[float, str]] = []
    for part in request.headers.get("Accept-Language", "").split(",")[:_MOST]:
        tag, _, weight = part.partition(";")
        base = tag.strip().lower().partition("-")[0]
        quality = _quality(weight)
        if base in LANGUAGES and quality > 0:
            wanted.append((quality, base))
    # Of those that are wanted as much, the first.
    return max(wanted, key=lambda one: one[0])[1] if wanted else language_of(otherwise)


def _quality(weight: str) -> float:
    name, _, value = weight.strip().partition("=")
    if name.strip().lower() != "q":
        return 1.0
    try:
        return min(max(float(value), 0.0), 1.0)
    except ValueError:
        return 0.0


class Speech:
    """The texts of pages in one language."""

    def __init__(self, language: str) -> None:
        self.language = language

    def __call__(self, name: str, /, **arguments: object) -> str:
        """Return the text with that name, with its arguments filled in."""
        return self._pages(name, **arguments)

    @cached_property
    def _pages(self) -> Texts:
        return texts(self.language, "pages")

    def refusal(self, error: Exception) -> str:
        """Return an error's message; in English if it isn't translated."""
        return str(texts(self.language, "errors").texts.get(str(error), error))


SPEECHES: Final[Mapping[str, Speech]] = {language: Speech(language) for language in LANGUAGES}
ENGLISH: Final = SPEECHES["en"]


def speech_for(request: Request, otherwise: str) -> Speech:
    """Return the texts in the language that the request's browser prefers."""
    return SPEECHES[language_wanted(request, otherwise)]
