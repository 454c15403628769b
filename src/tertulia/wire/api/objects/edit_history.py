"""What a message was before it was edited and moved."""

from collections.abc import Sequence

from msgspec import UNSET, Struct, UnsetType

from tertulia.domain.channels.topics import toggles_resolution
from tertulia.model.messages import Edit
from tertulia.state.organization import State
from tertulia.wire.api.objects.topics import topic_shown


class PastEdit(Struct, kw_only=True):
    """One change of a message: what was different before."""

    timestamp: int
    user_id: int | None
    prev_content: str | UnsetType = UNSET
    prev_rendered_content: str | UnsetType = UNSET
    prev_topic: str | UnsetType = UNSET
    topic: str | UnsetType = UNSET
    prev_stream: int | UnsetType = UNSET
    stream: int | UnsetType = UNSET


def edited_at(edits: Sequence[Edit]) -> int | UnsetType:
    """When the content was last changed. `edits` are newest first, here as below."""
    return next((edit.at for edit in edits if edit.changed_content), UNSET)


def moved_at(edits: Sequence[Edit]) -> int | UnsetType:
    """When the message was last moved."""
    return next((edit.at for edit in edits if _is_move(edit)), UNSET)


def past_edits(state: State, edits: Sequence[Edit], *, empty_topic_name: bool) -> list[PastEdit]:
    """What the message was before, as far as the organization shows it."""
    policy = state.realm.message_edit_history_visibility_policy
    return [
        _past(edit, empty_topic_name=empty_topic_name)
        for edit in edits
        if policy == "all" or (policy == "moves" and not edit.changed_content)
    ]


def _is_move(edit: Edit) -> bool:
    """Whether the message went somewhere; a topic that is only resolved stays where it is."""
    if edit.was_channel_id is not None:
        return True
    if edit.was_topic is None or edit.topic is None:
        return False
    return not toggles_resolution(edit.was_topic, edit.topic)


def _past(edit: Edit, *, empty_topic_name: bool) -> PastEdit:
    past = PastEdit(timestamp=edit.at, user_id=edit.user_id)
    if edit.was_content is not None:
        past.prev_content = edit.was_content
        past.prev_rendered_content = edit.was_rendered or ""
    if edit.was_topic is not None and edit.topic is not None:
        past.prev_topic = topic_shown(edit.was_topic, empty_topic_name=empty_topic_name)
        past.topic = topic_shown(edit.topic, empty_topic_name=empty_topic_name)
    if edit.was_channel_id is not None and edit.channel_id is not None:
        past.prev_stream, past.stream = edit.was_channel_id, edit.channel_id
    return past
