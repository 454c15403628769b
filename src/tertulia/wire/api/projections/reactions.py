"""Events of what people add to messages: reactions, and what they do with widgets."""

from collections.abc import Collection, Hashable, Iterable
from typing import Any, Final, NamedTuple, TypeVar

from tertulia.domain import permissions
from tertulia.model.changes import OnMessage, ReactionAdded, ReactionRemoved, SubmessageAdded
from tertulia.model.messages import MessagePlace
from tertulia.state.organization import State
from tertulia.wire.api.events import Event
from tertulia.wire.api.objects.reactions import Reactor, reaction_type, reactor
from tertulia.wire.api.projection import Projection, ProjectionContext, Projections, Viewer
from tertulia.wire.api.projections.messages import reads_where_it_is
from tertulia.wire.api.projections.visibility import sees_user

R = TypeVar("R", ReactionAdded, ReactionRemoved)


class ReactionEvent(Event, kw_only=True, tag="reaction"):
    """Somebody reacted to a message (`add`), or took that back (`remove`)."""

    op: str
    message_id: int
    emoji_name: str
    emoji_code: str
    reaction_type: str
    user_id: int
    user: Reactor


def message_audience(state: State, place: MessagePlace, own: Collection[int]) -> Collection[int]:
    """The users who may follow a message; `own` have a relation of their own to it."""
    if place.channel_id is None:
        return state.directs[place.direct_id].members
    return {*state.subscriptions.of_channel[place.channel_id], *own}


def follows_message(
    context: ProjectionContext, change: OnMessage, own: Collection[int], viewer: Viewer
) -> bool:
    """Whether the viewer can read the message, where it was and where it is, and has a reason to
    be shown what happens to it: they received it, are subscribed to its channel or have a relation
    of their own to it, or the queue follows all public channels."""
    state, user, place = context.state, viewer.user, change.place
    if (
        change.gone
        or not permissions.reads_message(state, user, place)
        or not reads_where_it_is(context, place.id, change.moved_to, viewer)
    ):
        return False
    if user.id in own or state.received(user.id, place):
        return True
    if place.channel_id is None:
        return False
    return state.is_subscribed(user.id, place.channel_id) or (
        viewer.registration.all_public_channels and not state.channels[place.channel_id].is_private
    )


class _ReactorView(NamedTuple):
    sees_user: bool
    sees_address: bool


class ReactionProjection(Projection[R]):
    """A reaction, to those who follow the message."""

    for_all_public = True

    def __init__(self, of: type[R], op: str) -> None:
        self.of = of
        self._op = op

    def audience(self, state: State, change: R) -> Collection[int]:
        return message_audience(state, change.place, (*change.holders, change.reaction.user_id))

    def view(self, context: ProjectionContext, change: R, viewer: Viewer) -> Hashable | None:
        own = (*change.holders, change.reaction.user_id)
        if not follows_message(context, change, own, viewer):
            return None
        user = context.state.users[change.reaction.user_id]
        return _ReactorView(
            sees_user=sees_user(context, viewer.user, user),
            sees_address=permissions.sees_address(context.state, viewer.user, user),
        )

    def events(self, context: ProjectionContext, change: R, view: Any) -> Iterable[Event]:
        reaction = change.reaction
        yield ReactionEvent(
            op=self._op,
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


class SubmessageEvent(Event, kw_only=True, tag="submessage"):
    """Somebody did something with a message's widget. `content` is JSON text."""

    msg_type: str
    content: str
    message_id: int
    sender_id: int
    submessage_id: int


class SubmessageAddedProjection(Projection[SubmessageAdded]):
    """What somebody did with a widget, to those who follow the message."""

    of = SubmessageAdded
    for_all_public = True

    def audience(self, state: State, change: SubmessageAdded) -> Collection[int]:
        return message_audience(state, change.place, (*change.holders, change.submessage.sender_id))

    def view(
        self, context: ProjectionContext, change: SubmessageAdded, viewer: Viewer
    ) -> Hashable | None:
        own = (*change.holders, change.submessage.sender_id)
        if not follows_message(context, change, own, viewer):
            return None
        return ()

    def events(
        self, context: ProjectionContext, change: SubmessageAdded, view: Any
    ) -> Iterable[Event]:
        part = change.submessage
        yield SubmessageEvent(
            msg_type=part.kind,
            content=part.content,
            message_id=part.message_id,
            sender_id=part.sender_id,
            submessage_id=part.id,
        )


PROJECTIONS: Final[Projections] = (
    ReactionProjection(ReactionAdded, "add"),
    ReactionProjection(ReactionRemoved, "remove"),
    SubmessageAddedProjection(),
)
