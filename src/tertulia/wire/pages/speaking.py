"""The language of a page: what its reader's browser asks for, or the organization's."""

from collections.abc import Mapping
from typing import Final

from starlette.requests import Request

from tertulia.outbound.words.languages import SAID, language_of

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
        if base in SAID and quality > 0:
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
    """What pages say, in one language."""

    def __init__(self, language: str) -> None:
        self.language = language
        self._said = SAID[language]

    def __call__(self, name: str, /, **facts: object) -> str:
        """The text of that name, with the facts put in."""
        text = self._said.pages[name]
        return text.format_map(facts) if facts else text

    def refusal(self, error: Exception) -> str:
        """What an error says; in English where it is not among what pages say often."""
        return self._said.refusals.get(str(error), str(error))


SPEECHES: Final[Mapping[str, Speech]] = {language: Speech(language) for language in SAID}
ENGLISH: Final = SPEECHES["en"]


def speech_for(request: Request, otherwise: str) -> Speech:
    """For whoever asks."""
    return SPEECHES[language_wanted(request, otherwise)]
