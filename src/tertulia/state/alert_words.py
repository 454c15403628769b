"""Whom a text alerts: an index from alert words to the users who have them.

Words are filed under their first run of letters and digits, so a text is looked up by its own runs
and never compared with everybody's words.
"""

import re
from typing import Final

from tertulia.model.personal import AlertWords
from tertulia.state.tables import Index, Table

_RUN: Final = re.compile(r"[^\W_]+")


class AlertWordIndex(Index):
    """The users by their alert words."""

    def __init__(self, alert_words: Table[AlertWords]) -> None:
        self.users_by_word: dict[str, set[int]] = {}
        """By the word as it is compared."""
        self._words_by_run: dict[str, set[str]] = {}
        self.follow(alert_words, self._words_changed)

    def _words_changed(self, before: AlertWords | None, after: AlertWords | None) -> None:
        if before is not None:
            for word in before.words:
                self._remove(compared(word), before.user_id)
        if after is not None:
            for word in after.words:
                key = compared(word)
                self.users_by_word.setdefault(key, set()).add(after.user_id)
                self._words_by_run.setdefault(_first_run(key), set()).add(key)

    def _remove(self, key: str, user_id: int) -> None:
        users = self.users_by_word[key]
        users.discard(user_id)
        if users:
            return
        del self.users_by_word[key]
        run = _first_run(key)
        self._words_by_run[run].discard(key)
        if not self._words_by_run[run]:
            del self._words_by_run[run]

    def alerted_by(self, text: str) -> set[int]:
        """The users of whose words at least one is in the text: in any case, and as whole words."""
        if not self.users_by_word:
            return set()
        plain = compared(text)
        found: set[int] = set()
        # Words without a letter or digit are under no run of the text.
        for run in {*_RUN.findall(plain), ""} & self._words_by_run.keys():
            for word in self._words_by_run[run]:
                users = self.users_by_word[word]
                if not users <= found and _contains(plain, word):
                    found |= users
        return found


def compared(word: str) -> str:
    """The word, or a text, in the form in which case makes no difference."""
    return word.casefold()


def _first_run(word: str) -> str:
    match = _RUN.search(word)
    return match[0] if match else ""


def _contains(text: str, word: str) -> bool:
    """Whether the word is in the text, with no letter, digit or underscore beside it."""
    start = text.find(word)
    while start >= 0:
        end = start + len(word)
        if not (start and _is_letter(text[start - 1])) and not (
            end < len(text) and _is_letter(text[end])
        ):
            return True
        start = text.find(word, start + 1)
    return False


def _is_letter(character: str) -> bool:
    return character.isalnum() or character == "_"
