"""Which passwords are good enough."""

import unicodedata
from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from tertulia.model.errors import Refused

MAX_LENGTH: Final = 100
_JUDGED: Final = 24
"""Characters that are judged: it takes long for long texts that are made for it, and what is good
is so by then."""


class PasswordRules(Struct, frozen=True, kw_only=True):
    """What an installation asks of new passwords. Those that people have go on."""

    min_length: int
    min_guesses: int
    """Guesses that somebody would need who knows how people make up passwords; 0 for any."""

    def require(self, text: str, own: Iterable[str] = ()) -> str:
        """The password as it is. Refused for one that is too short, too long, or guessed too
        easily. `own` is what others know of its person: address, name, organization. None of these
        is a password, whatever the installation asks for.

        It computes for a quarter of a second at most, and so does not belong on the event loop.
        """
        if not self.min_length <= len(text) <= MAX_LENGTH:
            raise Refused(f"Passwords must have {self.min_length} to {MAX_LENGTH} characters.")
        own = tuple(own)
        if not _cores(text).isdisjoint(core for one in own for core in _own_cores(one)):
            raise Refused(
                "This password is too easy to guess because it's your email address, your"
                " name, or the organization's name. Use a few words that have nothing to do"
                " with these."
            )
        if self.min_guesses and _guesses(text, own) < self.min_guesses:
            raise Refused(
                "This password is too easy to guess. Use a few words that don't belong together."
            )
        return text


def _own_cores(own: str) -> set[str]:
    """Those of a name, or of an address and of what is before its @."""
    return _cores(own) | _cores(own.partition("@")[0])


def _cores(text: str) -> set[str]:
    """The text's letters and digits, whatever their case and width, and the same without digits at
    its ends."""
    plain = "".join(filter(str.isalnum, unicodedata.normalize("NFKC", text).casefold()))
    return {plain, plain.strip("0123456789")} - {""}


def _guesses(text: str, own: Iterable[str]) -> int:
    from zxcvbn import zxcvbn  # type: ignore[import-untyped]  # Its lists take a moment.

    # Full-width letters are typed as others are guessed.
    forms = {text[:_JUDGED], unicodedata.normalize("NFKC", text[:_JUDGED])[:_JUDGED]}
    known = sorted(_known(own))
    return min(int(zxcvbn(form, user_inputs=known)["guesses"]) for form in forms)


def _known(own: Iterable[str]) -> set[str]:
    """The texts and the words in them."""
    words: set[str] = set()
    for text in own:
        plain = text.casefold()[:200]
        for mark in "@.-_+":
            plain = plain.replace(mark, " ")
        words |= {*text[:200].split("@"), text[:200], plain.replace(" ", ""), *plain.split()}
    return {word for word in words if len(word) > 2}
