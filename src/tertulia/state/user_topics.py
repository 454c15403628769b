"""Folds of topics that users follow, mute or unmute."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tertulia.model import changes
from tertulia.model.channels import topic_key
from tertulia.model.user_topics import UserTopic, Visibility
from tertulia.state.folds import Folds

if TYPE_CHECKING:
    from tertulia.state.state import State

FOLDS = Folds()


@FOLDS.of(changes.UserTopicChanged)
def _(state: State, change: changes.UserTopicChanged) -> None:
    key = topic_key(change.topic)
    if change.visibility is Visibility.INHERIT:
        state.user_topics.remove((change.user_id, change.channel_id, key))
        return
    state.user_topics.put(
        UserTopic(
            user_id=change.user_id,
            channel_id=change.channel_id,
            key=key,
            name=change.topic,
            visibility=change.visibility,
            changed_at=change.at,
        )
    )
