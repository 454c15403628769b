"""Recipients of messages in Zulip's exports, and subscriptions to channels."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final

from tertulia.imports.records import Key, SourceSubscription
from tertulia.imports.stages import StageCounter, TellStage, tell_nobody
from tertulia.imports.zulip.realm import (
    NOTIFICATIONS,
    SUBSCRIBED,
    UNSUBSCRIBED,
    ExportedRealm,
)
from tertulia.imports.zulip.rows import number, text
from tertulia.imports.zulip.tables import (
    MessageRow,
    ReaderRow,
    RowTypes,
    message_files,
    tables,
)

PERSONAL: Final = 1
CHANNEL: Final = 2
GROUP: Final = 3
"""Types of recipients."""
LAST: Final = sys.maxsize
"""A position after the newest message."""
HISTORICAL: Final = 1 << 10
"""The flag of messages that the user didn't receive, but acted on later."""
_SYSTEM_BOTS: Final = {"welcome-bot": "welcome", "emailgateway": "email"}
"""Messages of other system bots come from the notification bot."""
_COLOR_LENGTH: Final = 7

Spans = tuple[tuple[int, int | None], ...]
_ALWAYS: Final[Spans] = ((0, None),)
"""The spans of most subscriptions, which share it."""

_RECEIVED: Final[RowTypes] = {"zerver_message": MessageRow, "zerver_usermessage": ReaderRow}


class Conversations:
    """The person, direct conversation, or channel of each recipient."""

    def __init__(self, realm: ExportedRealm) -> None:
        self._scratch = realm.scratch
        self._recipients: dict[int, tuple[int, int]] = {}
        for row in realm.rows("zerver_recipient"):
            key, kind, target = number(row, "id"), number(row, "type"), number(row, "type_id")
            if key is not None and kind is not None and target is not None:
                self._recipients[key] = kind, target
        self.system_bots: Mapping[Key, str] = {}
        bots: dict[Key, str] = {}
        for row in realm.rows("zerver_userprofile_crossrealm"):
            key, recipient = number(row, "id"), number(row, "recipient_id")
            if key is None:
                continue
            bots[key] = _SYSTEM_BOTS.get(text(row, "email").partition("@")[0], "notification")
            if recipient is not None:
                self._recipients[recipient] = PERSONAL, key
        self.system_bots = bots
        # Recipients of people are also in their own rows.
        for table in ("zerver_userprofile", "zerver_userprofile_mirrordummy"):
            for row in realm.rows(table):
                key, recipient = number(row, "id"), number(row, "recipient")
                if key is not None and recipient is not None:
                    self._recipients.setdefault(recipient, (PERSONAL, key))
        for row in realm.rows("zerver_stream"):
            key, recipient = number(row, "id"), number(row, "recipient")
            if key is not None and recipient is not None:
                self._recipients.setdefault(recipient, (CHANNEL, key))
        self._members = lru_cache(20_000)(realm.scratch.subscribers)

    def channel(self, recipient: int | None) -> int | None:
        """Return the recipient's channel, or None if the recipient isn't a channel."""
        kind, target = self._recipients.get(recipient or 0, (0, 0))
        return target if kind == CHANNEL else None

    def people(self, recipient: int | None, sender: int) -> tuple[int, ...]:
        """Return everyone in a direct conversation, including the sender; empty if it isn't
        known."""
        kind, target = self._recipients.get(recipient or 0, (0, 0))
        if kind == PERSONAL:
            return tuple(sorted({sender, target}))
        if kind == GROUP and recipient is not None:
            members = self._members(recipient)
            return members if not members or sender in members else (*members, sender)
        return ()


def subscriptions(
    realm: ExportedRealm,
    conversations: Conversations,
    directory: Path,
    tell: TellStage = tell_nobody,
) -> Iterator[SourceSubscription]:
    """Yield the subscriptions to channels, with their beginnings and ends.

    These come from the audit log, or if it doesn't have them, from the messages that the user
    received.
    """
    scratch = realm.scratch
    hidden = {
        number(row, "id")
        for row in realm.rows("zerver_stream")
        if row.get("invite_only") is True and row.get("history_public_to_subscribers") is False
    }
    archived = {
        number(row, "id") for row in realm.rows("zerver_stream") if row.get("deactivated") is True
    }
    unlogged: dict[tuple[int, int], list[int]] = {}
    for recipient, user, *_ in scratch.subscriptions():
        channel = conversations.channel(recipient)
        if channel is not None and not scratch.events(channel, user):
            unlogged[recipient, user] = []
    if unlogged:
        _receive(directory, unlogged, tell)
    seen: set[tuple[int, int]] = set()
    for recipient, user, active, color, muted, pinned, settings in scratch.subscriptions():
        channel = conversations.channel(recipient)
        if channel is None:
            continue
        if (channel, user) in seen:
            realm.report.skip("subscriptions", "The person is subscribed twice.", (channel, user))
            continue
        seen.add((channel, user))
        received = unlogged.get((recipient, user))
        if received is not None:
            stays = bool(active) or (channel in archived and bool(received))
            spans = _received_spans(received, is_active=stays, is_hidden=channel in hidden)
            if channel in hidden and not received and active:
                realm.report.change(
                    "subscriptions",
                    "The export doesn't say since when, so the person sees only new messages in"
                    " this channel with protected history.",
                    (channel, user),
                )
        else:
            events = scratch.events(channel, user)
            # Until 2024, archiving a channel ended all subscriptions without logging that.
            stays = bool(active) or (channel in archived and events[-1][0] != UNSUBSCRIBED)
            spans = logged_spans(events, is_active=stays)
        if not spans:
            continue
        yield SourceSubscription(
            channel=channel,
            user=user,
            spans=_ALWAYS if spans == _ALWAYS else spans,
            color=sys.intern(color.lower()) if _is_color(color) else "",
            is_muted=bool(muted),
            pin_to_top=bool(pinned),
            settings=_settings(settings),
        )


@lru_cache(maxsize=1000)
def _settings(stored: str) -> Mapping[str, bool]:
    """Return the settings that `Scratch` has as a text. Subscriptions share them, which takes less
    memory."""
    return {
        name: value == "1"
        for name, value in zip(NOTIFICATIONS, stored, strict=True)
        if value != "-"
    }


def logged_spans(events: Sequence[tuple[int, int]], *, is_active: bool) -> Spans:
    """Return the spans of messages between events, which are pairs of a type and the newest message
    at that time."""
    spans: list[tuple[int, int | None]] = []
    since: int | None = None
    last = 0
    for n, (kind, message) in enumerate(events):
        last = max(last, message)
        if kind in SUBSCRIBED:
            since = last if since is None else since
        elif kind == UNSUBSCRIBED:
            if since is None and n == 0:
                since = 0  # The subscription began before the log.
            if since is not None and since < last:
                spans.append((since, last))
            since = None
    if is_active:
        spans.append((last if since is None else since, None))
    elif since is not None:
        spans.append((since, LAST))
    return tuple(spans)


def _received_spans(received: list[int], *, is_active: bool, is_hidden: bool) -> Spans:
    """Return the span from the first to the last message that a subscriber received."""
    if is_active:
        if received:
            return ((received[0] - 1, None),)
        return ((LAST, None),) if is_hidden else ((0, None),)
    return ((received[0] - 1, received[1]),) if received else ()


def _receive(directory: Path, unlogged: dict[tuple[int, int], list[int]], tell: TellStage) -> None:
    """Record the first and the last message that each of these subscribers has received."""
    wanted = {recipient for recipient, _ in unlogged}
    files = message_files(directory)
    counter = StageCounter(tell, "reading", sum(file.stat().st_size for file in files))
    for file in files:
        recipients: dict[int, int] = {}
        for _, rows in tables(file, _RECEIVED, counter.add):
            for row in rows:
                if isinstance(row, MessageRow):
                    if row.recipient in wanted:
                        recipients[row.id] = row.recipient
                elif isinstance(row, ReaderRow) and not row.flags_mask & HISTORICAL:
                    key = row.message
                    results = unlogged.get((recipients.get(key, -1), row.user_profile))
                    if results is not None:
                        results[:] = (
                            (min(results[0], key), max(results[1], key)) if results else (key, key)
                        )


def _is_color(color: str) -> bool:
    return (
        len(color) == _COLOR_LENGTH
        and color.startswith("#")
        and all(text in "0123456789abcdefABCDEF" for text in color[1:])
    )
