"""Events of the organization's own emoji."""

from collections.abc import Hashable, Iterable
from typing import Any

from msgspec import Struct

from tertulia.model.changes import CustomEmojiAdded, CustomEmojiDeactivated
from tertulia.wire.api.events import Event, ForAll, ProjectionContext, Viewer
from tertulia.wire.api.objects.reactions import CustomEmojiObject, custom_emoji, custom_emoji_object


class EmojiUpdateEvent(Event, kw_only=True, tag="realm_emoji"):
    """The organization's emoji are others now: all of them, by ID."""

    op: str = "update"
    realm_emoji: dict[str, CustomEmojiObject]


class EmojiAddEvent(Event, kw_only=True, tag="realm_emoji"):
    """There is a new emoji."""

    op: str = "add"
    emoji: CustomEmojiObject


class EmojiNews(Struct, kw_only=True):
    """What is new about an emoji."""

    deactivated: bool


class EmojiUpdateOneEvent(Event, kw_only=True, tag="realm_emoji"):
    """One emoji has changed."""

    op: str = "update_one"
    emoji_id: str
    data: EmojiNews


class CustomEmojiAddedProjection(ForAll[CustomEmojiAdded]):
    """A new emoji: by itself for clients that know how, with all others for those that do not."""

    of = CustomEmojiAdded

    def view(
        self, context: ProjectionContext, change: CustomEmojiAdded, viewer: Viewer
    ) -> Hashable:
        return viewer.registration.capabilities.individual_emoji_changes

    def events(
        self, context: ProjectionContext, change: CustomEmojiAdded, view: Any
    ) -> Iterable[Event]:
        if view:
            yield EmojiAddEvent(emoji=custom_emoji_object(context.state, change.emoji))
        else:
            yield EmojiUpdateEvent(realm_emoji=custom_emoji(context.state))


class CustomEmojiDeactivatedProjection(ForAll[CustomEmojiDeactivated]):
    """An emoji that is not offered any more; as above."""

    of = CustomEmojiDeactivated

    def view(
        self, context: ProjectionContext, change: CustomEmojiDeactivated, viewer: Viewer
    ) -> Hashable:
        return viewer.registration.capabilities.individual_emoji_changes

    def events(
        self, context: ProjectionContext, change: CustomEmojiDeactivated, view: Any
    ) -> Iterable[Event]:
        if view:
            yield EmojiUpdateOneEvent(
                emoji_id=str(change.emoji_id), data=EmojiNews(deactivated=True)
            )
        else:
            yield EmojiUpdateEvent(realm_emoji=custom_emoji(context.state))
