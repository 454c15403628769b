"""Emoji reactions, and submessages: the actions of users on a message's widget."""

from collections.abc import Collection, Hashable, Iterable
from typing import Annotated, Any, Final, NamedTuple, TypeVar

from msgspec import Struct, convert, field

from tertulia.domain import channel_access, permissions
from tertulia.domain.messages import reactions
from tertulia.domain.messages.reactions import RequestedEmoji
from tertulia.model.changes import OnMessage, ReactionAdded, ReactionRemoved, SubmessageAdded
from tertulia.model.errors import Refused
from tertulia.model.messages import MessagePlace, Submessage
from tertulia.model.reactions import EmojiKind, Reaction
from tertulia.model.users import User
from tertulia.service.messages import reactions as service
from tertulia.state.state import State
from tertulia.wire.api.emoji import NEUTRAL_TYPE, REACTION_TYPES, TYPE_OF
from tertulia.wire.api.events import Event
from tertulia.wire.api.projection import (
    Projection,
    ProjectionContext,
    Projections,
    Viewer,
    projected,
)
from tertulia.wire.api.users.objects import api_email, unknown_user
from tertulia.wire.api.visibility import reads_after_move, sees_user
from tertulia.wire.http.parameters import Doc, Int, IntPath
from tertulia.wire.http.routing import Call


class Reactor(Struct, kw_only=True):
    """The user who reacted."""

    user_id: int
    email: str
    full_name: str


class ReactionObject(Struct, kw_only=True):
    """A user's reaction to a message."""

    emoji_name: str
    emoji_code: str
    reaction_type: str
    user_id: int
    user: Reactor


class SubmessageObject(Struct, kw_only=True):
    """A part of a message's widget. `content` is JSON text."""

    id: int
    message_id: int
    sender_id: int
    kind: str = field(name="msg_type")
    content: str


def reaction_type(reaction: Reaction) -> str:
    """Return the type of the reaction's emoji, by the name that the client used if the emoji has
    two."""
    return NEUTRAL_TYPE if reaction.neutral else TYPE_OF[reaction.kind]


def reactor(state: State, user: User, host: str, *, sees_user: bool, sees_address: bool) -> Reactor:
    """Return the user who reacted, as seen by viewers who can see the account and its address, or
    can't."""
    if not sees_user:
        unknown = unknown_user(user, host, joined_at=state.realm.created_at)
        return Reactor(user_id=user.id, email=unknown.email, full_name=unknown.full_name)
    return Reactor(
        user_id=user.id,
        email=api_email(state, user, host, sees_address=sees_address),
        full_name=user.full_name,
    )


def reaction_object(reaction: Reaction, by: Reactor) -> ReactionObject:
    return ReactionObject(
        emoji_name=reaction.name,
        emoji_code=reaction.code,
        reaction_type=reaction_type(reaction),
        user_id=reaction.user_id,
        user=by,
    )


def submessage_object(submessage: Submessage) -> SubmessageObject:
    return convert(submessage, SubmessageObject, from_attributes=True)


ReactionChange = ReactionAdded | ReactionRemoved
R = TypeVar("R", ReactionAdded, ReactionRemoved)


class ReactionEvent(Event, ReactionObject, kw_only=True, tag="reaction"):
    """Someone added a reaction to a message (`add`) or removed it (`remove`)."""

    op: str
    message_id: int


def message_audience(
    state: State, place: MessagePlace, involved: Collection[int]
) -> Collection[int]:
    """Return the users who may follow a message, including `involved`, who have a direct connection
    to it."""
    if place.channel_id is None:
        return state.directs[place.direct_id].members
    return {*state.subscriptions.of_channel[place.channel_id], *involved}


def follows_message(
    context: ProjectionContext, change: OnMessage, involved: Collection[int], viewer: Viewer
) -> bool:
    """Whether the viewer gets events about a message.

    They must be able to read it, both where it was at the time of the change and where it is now.
    They must also have received it, be subscribed to its channel, be in `involved` (with a direct
    connection to the message), or have a queue that follows all public channels.
    """
    state, user, place = context.state, viewer.user, change.place
    if (
        change.gone
        or not channel_access.reads_message(state, user, place)
        or not reads_after_move(context, place.id, change.moved_to, viewer)
    ):
        return False
    if user.id in involved or state.received(user.id, place):
        return True
    if place.channel_id is None:
        return False
    return state.is_subscribed(user.id, place.channel_id) or (
        viewer.registration.all_public_channels and not state.channels[place.channel_id].is_private
    )


class _ReactorView(NamedTuple):
    sees_user: bool
    sees_address: bool


def _followers(change: ReactionChange) -> Collection[int]:
    """Return the users with a direct connection to the message."""
    return (*change.holders, change.reaction.user_id)


def _reaction_view(
    context: ProjectionContext, change: ReactionChange, viewer: Viewer
) -> Hashable | None:
    if not follows_message(context, change, _followers(change), viewer):
        return None
    user = context.state.users[change.reaction.user_id]
    return _ReactorView(
        sees_user=sees_user(context, viewer.user, user),
        sees_address=permissions.sees_address(context.state, viewer.user, user),
    )


def _reaction_event(of: type[R], op: str) -> Projection[R]:
    def events(context: ProjectionContext, change: R, view: Any) -> Iterable[Event]:
        reaction = change.reaction
        yield ReactionEvent(
            op=op,
            message_id=reaction.message_id,
            emoji_name=reaction.name,
            emoji_code=reaction.code,
            reaction_type=reaction_type(reaction),
            user_id=reaction.user_id,
            user=reactor(
                context.state,
                context.state.users[reaction.user_id],
                context.host,
                sees_user=view.sees_user,
                sees_address=view.sees_address,
            ),
        )

    return projected(
        of,
        _reaction_view,
        events,
        audience=lambda state, change: message_audience(state, change.place, _followers(change)),
        for_all_public=True,
    )


class SubmessageEvent(Event, kw_only=True, tag="submessage"):
    """Someone used a message's widget. `content` is JSON text."""

    msg_type: str
    content: str
    message_id: int
    sender_id: int
    submessage_id: int


def _submessage_view(
    context: ProjectionContext, change: SubmessageAdded, viewer: Viewer
) -> Hashable | None:
    involved = (*change.holders, change.submessage.sender_id)
    return () if follows_message(context, change, involved, viewer) else None


def _submessage_events(_: ProjectionContext, change: SubmessageAdded, __: Any) -> Iterable[Event]:
    part = change.submessage
    yield SubmessageEvent(
        msg_type=part.kind,
        content=part.content,
        message_id=part.message_id,
        sender_id=part.sender_id,
        submessage_id=part.id,
    )


async def add_reaction(
    call: Call,
    message_id: IntPath,
    emoji_name: str,
    emoji_code: Annotated[
        str | None,
        Doc(
            "Hexadecimal code points joined by hyphens, a custom emoji's ID, or the name of an"
            " extra emoji."
        ),
    ] = None,
    reaction_type: Annotated[
        str | None,
        Doc(
            "`unicode_emoji`, `realm_emoji`, or `zulip_extra_emoji` (also called"
            " `service_extra_emoji`). By default, derived from the name."
        ),
    ] = None,
) -> None:
    """Add an emoji reaction to a message."""
    emoji = _requested_emoji(emoji_name, emoji_code, reaction_type)
    await service.change_reaction(call, message_id, reactions.react, emoji)


async def remove_reaction(
    call: Call,
    message_id: IntPath,
    emoji_name: str | None = None,
    emoji_code: str | None = None,
    reaction_type: str | None = None,
) -> None:
    """Remove your reaction from a message."""
    emoji = _requested_emoji(emoji_name, emoji_code, reaction_type)
    await service.change_reaction(call, message_id, reactions.take_back, emoji)


def _requested_emoji(
    name: str | None, code: str | None, reaction_type: str | None
) -> RequestedEmoji:
    kind: EmojiKind | None = None
    if reaction_type is not None:
        kind = REACTION_TYPES.get(reaction_type)
        if kind is None:
            raise Refused(f"The reaction type '{reaction_type[:50]}' doesn't exist.")
    return RequestedEmoji(name=name, code=code, kind=kind, neutral=reaction_type == NEUTRAL_TYPE)


async def add_submessage(
    call: Call,
    message_id: Int,
    msg_type: Annotated[str, Doc("Always `widget`.")],
    content: Annotated[str, Doc("JSON text in the widget's format.")],
) -> None:
    """Use a message's widget, such as voting in a poll or adding a to-do item."""
    await service.use_widget(call, message_id, msg_type, content)


PROJECTIONS: Final[Projections] = (
    _reaction_event(ReactionAdded, "add"),
    _reaction_event(ReactionRemoved, "remove"),
    projected(
        SubmessageAdded,
        _submessage_view,
        _submessage_events,
        audience=lambda state, change: message_audience(
            state, change.place, (*change.holders, change.submessage.sender_id)
        ),
        for_all_public=True,
    ),
)
