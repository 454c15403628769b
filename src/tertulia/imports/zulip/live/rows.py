"""Converting rows of messages from a running Zulip."""

from collections.abc import Iterable
from typing import Any, Final

from tertulia.domain import names
from tertulia.imports.records import MAX_REACTIONS
from tertulia.imports.report import ImportReport
from tertulia.imports.zulip.links import LocalLinks
from tertulia.imports.zulip.live.previous_state import PreviousState
from tertulia.imports.zulip.rows import Row, clean, number, text
from tertulia.log.log import Log
from tertulia.model.errors import Refused
from tertulia.model.messages import Flag, Submessage
from tertulia.model.reactions import EmojiKind, Reaction

EMPTY: Final = "(empty message)"
"""The content of messages that are empty there. Messages here can't be empty."""
FLAGS: Final = {
    "starred": Flag.STARRED,
    "collapsed": Flag.COLLAPSED,
    "mentioned": Flag.MENTIONED,
    "stream_wildcard_mentioned": Flag.CHANNEL_WILDCARD_MENTIONED,
    "topic_wildcard_mentioned": Flag.TOPIC_WILDCARD_MENTIONED,
    "has_alert_word": Flag.HAS_ALERT_WORD,
}
_KINDS: Final = {
    "unicode_emoji": EmojiKind.UNICODE,
    "realm_emoji": EmojiKind.CUSTOM,
    "zulip_extra_emoji": EmojiKind.EXTRA,
}


class MessageRows:
    """Converts the rows. Skipped values are added to the report."""

    def __init__(self, log: Log, host: str, report: ImportReport) -> None:
        self._log = log
        self._report = report
        self._links = LocalLinks(host)

    def place(self, row: Row) -> tuple[int, str] | None:
        """Return the channel and topic, or None if the channel doesn't exist here."""
        channel_id = number(row, "stream_id")
        if channel_id is None or channel_id not in self._log.state.channels:
            return None
        return channel_id, self.topic(text(row, "subject"))

    def topic(self, given: str) -> str:
        """Return a topic's name in its final form."""
        if given == "(no topic)":
            return ""
        try:
            return names.topic_name(given)
        except Refused:
            visible = "".join(
                text for text in given if text.isprintable() and names.is_visible(text)
            )
            return names.topic_name(visible)

    def content(self, given: Any) -> str:
        """Return a message's text in its final form."""
        content = self._links.local(clean(given)) if isinstance(given, str) else ""
        try:
            return names.message_content(content)
        except Refused:
            return EMPTY

    def reactions(self, there: PreviousState, row: Row, message_id: int) -> Iterable[Reaction]:
        """Yield the reactions of people who have an account here."""
        given = row.get("reactions")
        state = self._log.state
        for value in (given if isinstance(given, list) else ())[:MAX_REACTIONS]:
            if not isinstance(value, dict):
                continue
            user_id = there.user(number(value, "user_id"))
            kind, code = _KINDS.get(text(value, "reaction_type")), text(value, "emoji_code")[:100]
            if kind is None or user_id not in state.users or user_id is None:
                continue
            if kind is EmojiKind.CUSTOM and not (
                code.isdecimal() and len(code) < 16 and int(code) in state.custom_emoji
            ):
                self._report.skip(
                    "reactions", "The custom emoji isn't here.", text(value, "emoji_name")
                )
                continue
            yield Reaction(
                message_id=message_id,
                user_id=user_id,
                kind=kind,
                code=code,
                name=text(value, "emoji_name")[:100],
            )

    def parts(self, there: PreviousState, row: Row, message_id: int) -> list[Submessage]:
        """Return the parts of a widget, such as votes, without IDs."""
        given = row.get("submessages")
        submessages = []
        for value in given if isinstance(given, list) else ():
            if not isinstance(value, dict):
                continue
            sender_id = there.user(number(value, "sender_id"))
            if sender_id in self._log.state.users and sender_id is not None:
                submessages.append(
                    Submessage(
                        id=0,
                        message_id=message_id,
                        sender_id=sender_id,
                        kind=text(value, "msg_type")[:100],
                        content=text(value, "content")[:100_000],
                    )
                )
        return submessages
