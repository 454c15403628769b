"""Finding the senders of messages."""

from typing import Final, NamedTuple

from tertulia.imports.slack.values import Record, record, text

MAX_NAME: Final = 100
"""Longest name of a sender, in characters. Many senders are kept in memory."""
_MAX_URL: Final = 2000
SLACKBOT: Final = "USLACKBOT"
UNKNOWN: Final = "unknown"
"""The key of the account for messages with an unknown sender."""


class SlackSender(NamedTuple):
    """A sender, as described in their messages."""

    key: str
    """The ID of a user or app; derived from the name for messages without one."""
    name: str
    is_bot: bool
    picture: str = ""
    """URL, or empty."""


def sender_of(message: Record) -> SlackSender:
    user, bot = text(message, "user")[:64], text(message, "bot_id")[:64]
    room = record(message, "room")
    if room and user in {SLACKBOT, ""} and text(room, "created_by"):
        user = text(room, "created_by")[:64]
    if user:
        profile = record(message, "user_profile")
        name = text(profile, "display_name", "real_name", "name")[:MAX_NAME]
        picture = text(profile, "image_72")
        if len(picture) > _MAX_URL:
            picture = ""
        return SlackSender(user, name or user, bool(bot), picture)
    name = text(message, "username").strip()[:MAX_NAME]
    if bot:
        profile = record(message, "bot_profile")
        return SlackSender(bot, text(profile, "name")[:MAX_NAME] or name or bot, True)
    if name:
        return SlackSender(f"bot {name}", name, True)
    return SlackSender(UNKNOWN, "Unknown sender", False)
