"""What people add to messages: reactions, and what they do with widgets."""

from typing import Annotated

from msgspec import Meta

from tertulia.domain.messages.reactions import RequestedEmoji
from tertulia.model.errors import Refused
from tertulia.model.reactions import EmojiKind
from tertulia.service.messages import reactions as service
from tertulia.wire.api.objects.reactions import NEUTRAL_TYPE, REACTION_TYPES
from tertulia.wire.http.call import Call
from tertulia.wire.http.parameters import Int, Params, Path
from tertulia.wire.http.routing import Answer


class AddReaction(Params, kw_only=True, frozen=True):
    """An emoji to react with."""

    message_id: Annotated[Int, Path()]
    emoji_name: str
    emoji_code: Annotated[
        str | None,
        Meta(
            description="Code points in hexadecimal joined by hyphens; a custom emoji's ID; or the"
            " name of an emoji of the service's own."
        ),
    ] = None
    reaction_type: Annotated[
        str | None,
        Meta(
            description="`unicode_emoji`, `realm_emoji` or `zulip_extra_emoji`, also called"
            " `service_extra_emoji`; by default as follows from the name."
        ),
    ] = None


async def add_reaction(call: Call, params: AddReaction) -> Answer:
    """React to a message with an emoji."""
    emoji = _requested_emoji(params.emoji_name, params.emoji_code, params.reaction_type)
    await service.add_reaction(call, params.message_id, emoji)
    return Answer()


class RemoveReaction(Params, kw_only=True, frozen=True):
    """A reaction of one's own to remove, by the emoji's name or code."""

    message_id: Annotated[Int, Path()]
    emoji_name: str | None = None
    emoji_code: str | None = None
    reaction_type: str | None = None


async def remove_reaction(call: Call, params: RemoveReaction) -> Answer:
    """Take one's own reaction back."""
    emoji = _requested_emoji(params.emoji_name, params.emoji_code, params.reaction_type)
    await service.remove_reaction(call, params.message_id, emoji)
    return Answer()


def _requested_emoji(
    name: str | None, code: str | None, reaction_type: str | None
) -> RequestedEmoji:
    kind: EmojiKind | None = None
    if reaction_type is not None:
        kind = REACTION_TYPES.get(reaction_type)
        if kind is None:
            raise Refused(f"The reaction type '{reaction_type[:50]}' doesn't exist.")
    return RequestedEmoji(name=name, code=code, kind=kind, neutral=reaction_type == NEUTRAL_TYPE)


class Submit(Params, kw_only=True, frozen=True):
    """Something to do with a message's widget."""

    message_id: Int
    msg_type: Annotated[str, Meta(description="`widget`.")]
    content: Annotated[str, Meta(description="JSON text, as the widget takes it.")]


async def add_submessage(call: Call, params: Submit) -> Answer:
    """Vote in a poll, add to a list of things to do, and the like."""
    await service.use_widget(call, params.message_id, params.msg_type, params.content)
    return Answer()
