"""Rocket.Chat's markup as Tertulia's Markdown."""

import re
from collections.abc import Callable, Collection, Mapping
from typing import Final

from tertulia.imports import references
from tertulia.imports.emoji_aliases import with_own_names
from tertulia.imports.markdown import BEFORE_MENTION, convert

_URL: Final = re.compile(r"<?https?://[^\s<>|]{1,2000}")
_LABELED: Final = re.compile(r"<(https?://[^\s<>|]{1,2000})\|([^<>\n]{1,500})>")
_TARGET: Final = re.compile(r"\]\(\s*([^\s()]{1,2000})\s*\)")
_MESSAGE: Final = re.compile(
    r"https?://[^\s/?#]{1,300}/(?:[^\s/?#]{1,100}/){0,3}(?:channel|group|direct)/[^\s?#]{1,200}"
    r"\?(?:[^\s#()<>]{0,200}&)?msg=([A-Za-z0-9_-]{1,64})"
)
_QUOTED: Final = re.compile(r"\[ ?\]\(\s*" + _MESSAGE.pattern + r"\s*\)[ \t]*\n?")
_KEPT: Final = re.compile(r"\x01(\d+)\x01")
_BOLD: Final = re.compile(r"(?<![\w*])\*(?=[^\s*])([^*\n]{1,2000})(?<=\S)\*(?![\w*])")
_ITALIC: Final = re.compile(r"(?<![\w_])(_{1,2})(?=[^\s_])([^_\n]{1,2000})(?<=\S)\1(?![\w_])")
_STRUCK: Final = re.compile(r"(?<![\w~])~(?=[^\s~])([^~\n]{1,2000})(?<=\S)~(?![\w~])")
_MATH_BLOCK: Final = re.compile(r"\\\[((?:(?!\\\[).){1,5000}?)\\\]", re.DOTALL)
_MATH: Final = re.compile(r"\\\(((?:(?!\\\().){1,2000}?)\\\)")
_MENTION: Final = re.compile(BEFORE_MENTION + r"@([\w.-]{1,100})")
_CHANNEL: Final = re.compile(r"(?<![\w/#&])#([\w.-]{1,100})")
_EVERYONE: Final = frozenset({"all", "here"})
Keep = Callable[[str], str]
"""Keeps a piece of text unchanged, and returns the placeholder for it."""


class RocketChatMarkup:
    """Converts texts, and records the people that the current message mentions."""

    def __init__(
        self,
        people: Mapping[str, str],
        teams: Mapping[str, str],
        rooms: Mapping[str, str],
        emoji: Collection[str],
    ) -> None:
        """`people`, `teams`, and `rooms` are keys by name; `emoji` names of custom emoji."""
        self._people = people
        self._teams = teams
        self._rooms = rooms
        self._emoji = emoji
        self.mentioned: set[str] = set()
        """Keys of the mentioned people."""
        self.linked: set[str] = set()
        """IDs of messages that any text so far links."""

    def begin(self) -> None:
        """Forget what the previous message mentioned."""
        self.mentioned = set()

    def without_quotes(self, text: str) -> str:
        """Return a message's text without the invisible links to the messages that it quotes."""
        return _QUOTED.sub("", text) if "[" in text else text

    def markdown(self, text: str) -> str:
        """Return a text as Markdown."""
        return convert(references.clean(text), self._plain)

    def message_url(self, url: str) -> str:
        """Convert a URL that may be that of a message."""
        match = _MESSAGE.fullmatch(url)
        if match is None:
            return url
        self.linked.add(match[1])
        return references.message_url(match[1], url)

    def _plain(self, text: str) -> str:
        kept: list[str] = []

        def keep(written: str) -> str:
            kept.append(written)
            return f"\x01{len(kept) - 1}\x01"

        def bare(match: re.Match[str]) -> str:
            result = _MESSAGE.match(match[0])
            if result is None:
                return keep(match[0])
            end = match[0][result.end() :]
            return keep(f"[message]({self.message_url(result[0])})") + end

        # URLs are taken out first, because their characters aren't markup.
        if "://" in text:
            text = _LABELED.sub(lambda m: keep(f"[{m[2]}]({self.message_url(m[1])})"), text)
            text = _TARGET.sub(lambda m: keep(f"]({self.message_url(m[1])})"), text)
            text = _URL.sub(bare, text)
        if "\\" in text:
            text = _MATH_BLOCK.sub(lambda m: keep(f"\n```math\n{m[1].strip()}\n```\n"), text)
            text = _MATH.sub(lambda m: keep(f"$${m[1].strip()}$$"), text)
        if "@" in text:
            text = _MENTION.sub(lambda m: self._mention(m, keep), text)
        if "#" in text:
            text = _CHANNEL.sub(lambda m: self._channel(m, keep), text)
        if "*" in text:
            text = _BOLD.sub(lambda m: f"**{m[1]}**", text)
        if "_" in text:
            text = _ITALIC.sub(lambda m: f"*{m[2]}*", text)
        if "~" in text:
            text = _STRUCK.sub(lambda m: f"~~{m[1]}~~", text)
        text = with_own_names(text, self._emoji)
        return _KEPT.sub(lambda m: kept[int(m[1])], text) if kept else text

    def _mention(self, match: re.Match[str], keep: Keep) -> str:
        name = match[1]
        if name in _EVERYONE:
            return keep("@**all**")
        known = name
        while known and known[-1] in ".-_" and known not in self._people:
            known = known[:-1]
        if known in self._people:
            key = self._people[known]
            self.mentioned.add(key)
            return keep(references.person(key, f"@{known}")) + name[len(known) :]
        if known in self._teams:
            return keep(references.group(self._teams[known], f"@{known}")) + name[len(known) :]
        return keep("@**all**") + name[len(known) :] if known in _EVERYONE else match[0]

    def _channel(self, match: re.Match[str], keep: Keep) -> str:
        name = match[1]
        known = name if name in self._rooms else name.rstrip(".-")
        if known not in self._rooms:
            return match[0]
        return keep(references.channel(self._rooms[known], f"#{known}")) + name[len(known) :]
