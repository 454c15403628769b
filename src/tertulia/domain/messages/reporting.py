"""Reporting messages to moderators."""

from typing import Final

from tertulia.domain import channel_access, names
from tertulia.domain.messages import bot_messages
from tertulia.domain.messages.bot_messages import Render
from tertulia.model.errors import NoSuchMessage, Refused
from tertulia.model.messages import Message
from tertulia.state.decision import CommandContext, Decision
from tertulia.state.state import State
from tertulia.texts import Texts

MAX_DESCRIPTION: Final = 1000
MAX_QUOTED: Final = 8000
"""The most characters of the reported message that are quoted."""
OTHER: Final = "other"
KINDS: Final = ("spam", "harassment", "inappropriate", "norms", OTHER)
"""The reasons for a report."""


def report(
    context: CommandContext, render: Render, message: Message | None, kind: str, description: str
) -> Decision[None]:
    """Report the message to the moderators, in their channel. `kind` is one of `KINDS`. Raise
    NoSuchMessage if the actor can't read it; Refused if the organization has no such channel, and
    for a description that is too long or missing."""
    state, actor = context.state, context.actor
    channel = state.channels.get(state.realm.moderation_request_channel_id)
    if channel is None or channel.is_archived:
        raise Refused("This organization hasn't set up a channel for message reports.")
    if kind not in KINDS:
        raise Refused("Unknown report type.")
    description = description.strip()
    if len(description) > MAX_DESCRIPTION:
        raise Refused(f"A report's description can have at most {MAX_DESCRIPTION} characters.")
    if kind == OTHER and not description:
        raise Refused("Describe what is wrong with the message.")
    if message is None or not channel_access.reads_message(state, actor, message):
        raise NoSuchMessage
    author = state.users[message.sender_id]
    reporter, reported = bot_messages.silent_mention(actor), bot_messages.silent_mention(author)
    words = bot_messages.texts_for(state)
    place = _called(state, words, message)
    text = words("reported", reporter=reporter, place=place, author=reported)
    text += f"\n\n**{words.texts['report_kinds'][kind]}**"
    if description:
        text += f"\n{bot_messages.fenced_block(description, 'quote')}"
    content = message.content
    if len(content) > MAX_QUOTED:
        content = content[:MAX_QUOTED] + "…"
    text += f"\n\n{words('reported_message')}\n{bot_messages.fenced_block(content, 'spoiler')}"
    bot_message = bot_messages.channel_message(state, channel, text, _topic(author.full_name))
    return Decision(None, tuple(bot_messages.posting_changes(context, [bot_message], render)))


def _topic(name: str) -> str:
    return f"Reports of {name}"[: names.MAX_TOPIC].rstrip()


def _called(state: State, words: Texts, message: Message) -> str:
    channel = state.channels.get(message.channel_id)
    if channel is None:
        return words("a_direct")
    return f"#**{channel.name}>{message.topic}@{message.id}**"
