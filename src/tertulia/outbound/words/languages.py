"""The languages that mails, pushes and pages are written in."""

from collections.abc import Mapping
from typing import Final

from tertulia.model.users import User
from tertulia.outbound.words import de, en, es, fr, ja, pt
from tertulia.outbound.words.said import Said
from tertulia.state.organization import State

SAID: Final[Mapping[str, Said]] = {
    "de": de.SAID,
    "en": en.SAID,
    "es": es.SAID,
    "fr": fr.SAID,
    "ja": ja.SAID,
    "pt": pt.SAID,
}
"""By their tags; Portuguese is as in Brazil. What the web client speaks: a test holds both to it."""


def language_of(tag: str) -> str:
    """The nearest of them: `pt` for `pt-br`, English where there is none."""
    base = tag.lower().partition("-")[0]
    return base if base in SAID else "en"


def language_for(state: State, user: User) -> str:
    """In which the account is written to."""
    return language_of(state.settings[user.id].default_language)
