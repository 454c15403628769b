"""Finding out from a running Zulip's events which records to read again."""

from collections.abc import Collection, Sequence

from msgspec import Struct

from tertulia.imports.zulip.rows import Row, flag, number, numbers, text


class Touched(Struct, frozen=True, kw_only=True):
    """The IDs of messages that changed there."""

    looks: Collection[int] = frozenset()
    """The messages to read again."""
    deleted: Collection[int] = frozenset()
    edited: Collection[int] = frozenset()
    flagged: Collection[int] = frozenset()
    """The messages whose flags the owner changed."""


def touched_by(events: Sequence[Row]) -> Touched:
    """Return the messages that the events affect."""
    looks: set[int] = set()
    deleted: set[int] = set()
    edited: set[int] = set()
    flagged: set[int] = set()
    for event in events:
        ids = {*numbers(event, "message_ids"), *numbers(event, "messages")}
        message = event.get("message")
        ids |= {
            value
            for value in (
                number(event, "message_id"),
                number(message, "id") if isinstance(message, dict) else None,
            )
            if value is not None
        }
        match text(event, "type"):
            case "delete_message":
                deleted |= ids
            case "update_message":
                looks |= ids
                if not flag(event, "rendering_only"):
                    edited |= {number(event, "message_id") or 0} if "content" in event else set()
            case "update_message_flags":
                if flag(event, "all"):
                    continue
                looks |= ids
                flagged |= ids
            case "message" | "reaction" | "submessage":
                looks |= ids
    return Touched(looks=looks - deleted, deleted=deleted, edited=edited, flagged=flagged)
