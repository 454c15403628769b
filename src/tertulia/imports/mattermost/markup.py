"""Converting Mattermost's Markdown to Tertulia's: mentions, links to channels, emoji, and image
sizes."""

import re
from collections.abc import Container
from typing import Final

from tertulia.imports import references
from tertulia.imports.emoji_aliases import with_own_names
from tertulia.imports.markdown import BEFORE_MENTION, convert

_MENTION: Final = re.compile(BEFORE_MENTION + r"@([A-Za-z0-9][A-Za-z0-9._-]{0,63})")
_CHANNEL: Final = re.compile(r"(?<![\w~])~([a-z0-9][a-z0-9_-]{0,63})(?![~\w])")
_IMAGE_SIZE: Final = re.compile(r"(!\[[^\]\n]{0,500}\]\([^\s)]{1,2000}) =\d{0,5}x?\d{0,5}\)")
_PERMALINK: Final = re.compile(r"https?://[^\s/)]{1,300}/(?:[^\s/)]{1,64}/)?pl/[a-z0-9]{26}\b")
_EVERYONE: Final = frozenset({"all", "channel", "here"})


class MattermostMarkup:
    """Converts texts, and records the people that the current message mentions."""

    def __init__(self, people: Container[str], channels: Container[str]) -> None:
        """`people` are user names, and `channels` keys."""
        self._people = people
        self._channels = channels
        self.mentioned: set[str] = set()
        self.permalinks = 0
        """The number of links to messages in the last text."""

    def begin(self) -> None:
        """Forget what the previous message mentioned."""
        self.mentioned = set()
        self.permalinks = 0

    def markdown(self, text: str, team: str) -> str:
        """Return a text of a team's channel as Markdown."""
        return convert(references.clean(text), lambda plain: self._plain(plain, team))

    def _plain(self, text: str, team: str) -> str:
        def channel(match: re.Match[str]) -> str:
            key = f"{team}/{match[1]}"
            return references.channel(key, match[0]) if key in self._channels else match[0]

        if "@" in text:
            text = _MENTION.sub(self._mention, text)
        if "~" in text:
            text = _CHANNEL.sub(channel, text)
        if "](" in text:
            text = _IMAGE_SIZE.sub(r"\1)", text)
        if "/pl/" in text:
            self.permalinks += len(_PERMALINK.findall(text))
        return with_own_names(text, ())

    def _mention(self, match: re.Match[str]) -> str:
        name = match[1]
        if name.lower() in _EVERYONE:
            return "@**all**"
        known = name.lower()
        while known and known not in self._people and known[-1] in "._-":
            known = known[:-1]
        if known in _EVERYONE:
            return f"@**all**{name[len(known) :]}"
        if known not in self._people:
            return match[0]
        self.mentioned.add(known)
        return references.person(known, f"@{name[: len(known)]}") + name[len(known) :]
