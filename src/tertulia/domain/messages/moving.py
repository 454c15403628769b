"""Moving messages to another topic or channel, and resolving topics."""

import contextlib
from collections.abc import Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct
from pyroaring import BitMap

from tertulia.domain import channel_access, names, permissions
from tertulia.domain.channels import topics
from tertulia.domain.channels.topics import TopicExcerpt, TopicMessages
from tertulia.domain.messages import bot_messages, editing, sending
from tertulia.domain.messages.bot_messages import Render
from tertulia.domain.messages.editing import LoadedMessage, require_current
from tertulia.domain.messages.move_effects import move_change
from tertulia.domain.messages.sending import ComposedMessage
from tertulia.model.changes import (
    AnyChange,
    MessageEdited,
    MessagesMoved,
    TopicMoveEnded,
    TopicMoveStarted,
)
from tertulia.model.channels import Channel, topic_key
from tertulia.model.edits import TopicMove
from tertulia.model.errors import Conflict, Refused, TooOldToMove
from tertulia.model.groups import GroupSetting
from tertulia.model.messages import Message, Propagation
from tertulia.model.ranges import (
    ids_in_spans,
)
from tertulia.state.decision import CommandContext, Decision
from tertulia.state.messages import moving, renaming
from tertulia.state.state import State


class Move(Struct, frozen=True, kw_only=True):
    """A request to move messages. None keeps the topic or channel."""

    topic: str | None = None
    channel_id: int | None = None
    propagation: Propagation = Propagation.ONE
    tell_old: bool = False
    """Post a message about the move in the old topic."""
    tell_new: bool = True
    """Post a message about the move in the new topic."""


BATCH = 400
"""The most messages that one entry of the log moves, unless it renames their topic. A move to
another channel in batches moves up to twice as many per entry."""
_LEAST_BATCH = 50


def batch_size(most: int, renames: int) -> int:
    """Return how many messages of a topic that was renamed `renames` times can move in one batch:
    `most` if it never was. Their histories are written with them."""
    return max(5 * most // (5 + renames), _LEAST_BATCH)


class MovePlan(Struct, frozen=True):
    """A checked move."""

    source: Channel
    target: Channel
    topic: str
    """The new topic's name."""
    ids: BitMap
    is_whole: bool
    """Whether the move includes all messages of the topic."""
    renames: bool
    """Whether the topic is renamed: moved as a whole to a name that no other topic has."""
    joins: bool
    """Whether the new topic already has messages."""
    batch: int
    """The most messages that can move in one batch."""


def plan_move(
    context: CommandContext, loaded: LoadedMessage, excerpt: TopicExcerpt, request: Move
) -> MovePlan:
    """Check the move and return its plan. Only the IDs of the topic's messages have to be loaded.
    Raise as `move`."""
    message = require_current(context, loaded, loaded.message.conversation)
    if message.channel_id is None:
        raise Refused("Direct messages don't have a topic and can't be moved.")
    state, topic_before = context.state, excerpt.topic
    if topic_before and state.recent_writes.since(topic_before.seq, [message.conversation]):
        raise Conflict
    source = state.channels[message.channel_id]
    target = _target(context, source, request.channel_id)
    topic = message.topic if request.topic is None else names.topic_name(request.topic)
    if (target.id, topic) == (source.id, message.topic):
        raise Refused("The message is already in this topic.")
    ids = BitMap((message.id,))
    if topic_before is not None:
        ids = ids_in_spans(
            topic_before.ids, channel_access.readable_spans(state, context.actor, source)
        )
        if request.propagation is Propagation.LATER:
            ids -= BitMap(range(message.id))
    resolves = target.id == source.id and topics.toggles_resolution(message.topic, topic)
    _check_rights(context, source, target, topic, resolves=resolves)
    origin, there = (source.id, topic_key(message.topic)), (target.id, topic_key(topic))
    is_whole = len(ids) == state.topics[origin].message_count
    if not resolves:
        _check_age(context, message, topic_before, ids, is_between=source.id != target.id)
    return MovePlan(
        source=source,
        target=target,
        topic=topic,
        ids=ids,
        is_whole=is_whole,
        renames=is_whole
        and source.id == target.id
        and (origin == there or there not in state.topics),
        joins=there in state.topics,
        batch=batch_size(BATCH, 0 if topic_before is None else topic_before.renames),
    )


def move(
    context: CommandContext,
    loaded: LoadedMessage,
    excerpt: TopicExcerpt,
    request: Move,
    render: Render,
) -> Decision[int | None]:
    """Move the message, and other messages of its topic as requested. Permissions are checked now
    for all of them. Return None, or the ID of a `TopicMove` whose messages `move_batch` must move.

    `excerpt` has all messages of the topic if more than one may move. If they fit one batch and the
    topic isn't renamed, it also has what `preconditions` reads about them. Raise Refused,
    TooOldToMove, NoSuchChannel, or Conflict.
    """
    plan = plan_move(context, loaded, excerpt, request)
    state, message = context.state, loaded.message
    if plan.renames:
        change = _rename_change(context, loaded, plan, request)
    elif (known := _running_move(state, message, plan, request)) is not None:
        return Decision(known)
    elif len(plan.ids) > plan.batch:
        return _begin(context, message, plan, request)
    else:
        lines = [line for line in excerpt.lines if line.id in plan.ids]
        is_first_gone = state.recent_writes.since(loaded.seq, [excerpt.first_elsewhere])
        if len(lines) != len(plan.ids) or is_first_gone:
            raise Conflict
        change = move_change(
            context,
            TopicMove(
                **_place(message, plan, request),
                id=0,
                user_id=context.actor.id,
                ranges=(),
                count=len(lines),
                is_whole=plan.is_whole,
            ),
            loaded,
            excerpt,
            lines,
        )
    messages = bot_messages.move_messages(
        state,
        context.actor,
        change,
        tell_old=request.tell_old,
        tell_new=request.tell_new,
        is_all=plan.renames or bool(change.emptied),
        count=len(plan.ids),
    )
    changes: list[AnyChange] = [
        change,
        *topics.moving_visibility_changes(context, change, joins=plan.joins),
        *bot_messages.posting_changes(context, messages, render),
    ]
    return Decision(None, changes)


def _place(message: Message, plan: MovePlan, request: Move) -> dict[str, Any]:
    return {
        "anchor_id": message.id,
        "channel_id": plan.source.id,
        "topic": message.topic,
        "new_channel_id": plan.target.id,
        "new_topic": plan.topic,
        "propagation": request.propagation,
        "tell_old": request.tell_old,
        "tell_new": request.tell_new,
        "joins": plan.joins,
    }


def _running_move(state: State, message: Message, plan: MovePlan, request: Move) -> int | None:
    """Return the ID of the unfinished move that an equal request began, if any."""
    fields = _place(message, plan, request)
    there = [fields[name] for name in _SAME]
    for known in state.topic_moves:
        if [getattr(known, name) for name in _SAME] == there and known.last_id >= plan.ids.max():
            return known.id
    return None


def _begin(
    context: CommandContext, message: Message, plan: MovePlan, request: Move
) -> Decision[int | None]:
    """Begin a move that takes several batches."""
    state = context.state
    fields = _place(message, plan, request)
    spans = channel_access.readable_spans(state, context.actor, plan.source)
    first, last = plan.ids.min(), plan.ids.max()
    ranges = tuple(
        (max(after, first - 1), last if until is None else min(until, last))
        for after, until in spans
        if after < last and (until is None or until >= first)
    )
    started = TopicMove(
        **fields,
        id=state.topic_moves.next_id(),
        user_id=context.actor.id,
        ranges=ranges,
        count=len(plan.ids),
        is_whole=plan.is_whole,
    )
    return Decision(started.id, (TopicMoveStarted(move=started),))


_SAME: Final = ("channel_id", "topic", "new_channel_id", "new_topic", "propagation")
"""The fields that are equal in two requests for the same move."""


class MoveBatch(Struct, frozen=True, kw_only=True):
    """The next messages of a move, as of an entry of the log."""

    move: TopicMove
    seq: int
    found: LoadedMessage | None
    """The message that was named in the request for the move, if it's among them."""
    excerpt: TopicExcerpt
    ids: Sequence[int]
    is_last: bool


def move_batch(context: CommandContext, piece: MoveBatch, render: Render) -> Decision[bool]:
    """Move a batch of messages. Return whether more are left. Raise Conflict."""
    state, move = context.state, piece.move
    if state.topic_moves.get(move.id) is None:
        return Decision(False)
    old_topic = (move.channel_id, topic_key(move.topic))
    excerpt = piece.excerpt
    read = (*piece.ids, *(line.id for line in excerpt.lines), excerpt.first_elsewhere)
    # New messages in the topic don't move, and must not delay the move.
    if state.topic_moves[move.id] != move or state.recent_writes.since(
        piece.seq, (renaming(*old_topic), moving(*old_topic), *read)
    ):
        raise Conflict
    changes: list[AnyChange] = []
    ids = frozenset(piece.ids)
    if ids:
        lines = [line for line in excerpt.lines if line.id in ids]
        change = move_change(context, move, piece.found, excerpt, lines)
        changes = [change, *topics.moving_visibility_changes(context, change, joins=move.joins)]
    # If the topic keeps other messages, only the ranges say which are left to move.
    left = move.before(piece.ids[0]) if move.respells and ids else move.ranges
    is_last = piece.is_last or not left
    after = msgspec.structs.replace(move, ranges=left, has_begun=move.has_begun or bool(ids))
    if not is_last and after != move:
        changes.append(TopicMoveStarted(move=after))
    if is_last:
        changes.append(TopicMoveEnded(move_id=move.id))
        user = state.users[move.user_id]
        messages = bot_messages.move_messages(
            state,
            user,
            move,
            tell_old=move.tell_old,
            tell_new=move.tell_new,
            is_all=move.is_whole,
            count=move.count,
        )
        # The move must end even if the channel no longer accepts messages.
        with contextlib.suppress(Refused):
            changes += bot_messages.posting_changes(context, messages, render)
    return Decision(not is_last, changes)


def edit_and_move(
    context: CommandContext,
    loaded: LoadedMessage,
    composed: ComposedMessage,
    excerpt: TopicExcerpt,
    request: Move,
    render: Render,
) -> Decision[tuple[tuple[int, ...], int | None]]:
    """Edit a message and move it, both or neither. Return the files that it no longer links, and
    the result of `move`. A topic that the message already has doesn't count as a move. Raise as
    `editing.edit` and `move`."""
    edited = editing.edit(context, loaded, composed)
    if request.channel_id is None and request.topic is not None:
        name = names.topic_name(request.topic)
        if loaded.message.channel_id is not None and name == loaded.message.topic:
            return Decision((edited.result, None), edited.changes)
    for change in edited.changes:
        if isinstance(change, MessageEdited):
            loaded = msgspec.structs.replace(loaded, message=change.message, flags=change.flags)
    moved = move(context, loaded, excerpt, request, render)
    return Decision((edited.result, moved.result), [*edited.changes, *moved.changes])


def _target(context: CommandContext, source: Channel, channel_id: int | None) -> Channel:
    if channel_id is None or channel_id == source.id:
        return source
    return channel_access.visible_channel(context.state, context.actor, channel_id=channel_id)


def _check_rights(
    context: CommandContext, source: Channel, target: Channel, topic: str, *, resolves: bool
) -> None:
    state, actor, realm = context.state, context.actor, context.state.realm

    def holds(*settings: GroupSetting) -> bool:
        return any(permissions.holds(state, actor, setting) for setting in settings)

    if source.is_archived:
        raise Refused("You can't move messages in an archived channel.")
    if resolves:
        permissions.require(
            holds(realm.can_resolve_topics_group, source.can_resolve_topics_group),
            "You don't have permission to resolve topics in this channel.",
        )
        return
    if target.id != source.id:
        permissions.require(
            permissions.holds_as_member(
                state, actor, realm.can_move_messages_between_channels_group
            )
            or holds(source.can_move_messages_out_of_channel_group),
            "You don't have permission to move messages out of this channel.",
        )
        permissions.require(
            channel_access.may_send_to(state, actor, target),
            f"You don't have permission to send messages to '{target.name}'.",
        )
    else:
        permissions.require(
            holds(
                realm.can_move_messages_between_topics_group,
                source.can_move_messages_within_channel_group,
            ),
            "You don't have permission to move messages between topics in this channel.",
        )
    sending.check_topic(state, actor, target, topic)


def age_limit(context: CommandContext, *, is_between: bool) -> int | None:
    """Return the age in seconds after which the actor can't move a message within its channel, or
    between channels; None for no limit."""
    realm = context.state.realm
    if permissions.is_moderator(context.state, context.actor):
        return None
    if is_between:
        return realm.move_messages_between_channels_limit_seconds
    return realm.move_messages_within_channel_limit_seconds


def _check_age(
    context: CommandContext,
    message: Message,
    topic: TopicMessages | None,
    ids: BitMap,
    *,
    is_between: bool,
) -> None:
    """Raise TooOldToMove (Refused for a single message) if a message is too old for the actor to
    move."""
    limit = age_limit(context, is_between=is_between)
    if limit is None:
        return
    if topic is None:
        if context.now - message.sent_at > limit:
            raise Refused("The time limit for moving this message has passed.")
        return
    if topic.young is None:
        raise Conflict
    young = topic.young & ids
    if len(young) < len(ids):
        raise TooOldToMove(
            first_allowed=young.min() if young else None,
            total=len(topic.ids),
            allowed=len(young),
        )


def _rename_change(
    context: CommandContext, loaded: LoadedMessage, plan: MovePlan, request: Move
) -> MessagesMoved:
    """Return the change that renames a topic with all of its messages."""
    message = loaded.message
    topic = context.state.topics[(plan.source.id, topic_key(message.topic))]
    after = msgspec.structs.replace(topic, key=topic_key(plan.topic), name=plan.topic)
    plan.ids.run_optimize()
    return MessagesMoved(
        message_ids=(),
        anchor_id=message.id,
        channel_id=topic.channel_id,
        topic=message.topic,
        new_channel_id=topic.channel_id,
        new_topic=plan.topic,
        propagation=request.propagation,
        topics=(after,),
        emptied=() if after.key == topic.key else ((topic.channel_id, topic.key),),
        flags=dict(sorted(loaded.flags.items())),
        read_by=tuple(sorted(loaded.read_by)),
        mentions_all=message.mentions_all,
        whole_topic=plan.ids.serialize(),
    )
