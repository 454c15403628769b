"""Events of the organization's own emoji."""

from collections.abc import Hashable, Iterable
from typing import Any, Final

from msgspec import Struct

from tertulia.model.changes import CustomEmojiAdded, CustomEmojiDeactivated
from tertulia.wire.api.events import Event
from tertulia.wire.api.objects.reactions import CustomEmojiObject, custom_emoji, custom_emoji_object
from tertulia.wire.api.projection import C, ForEverybody, ProjectionContext, Projections, Viewer


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


class _EmojiProjection(ForEverybody[C]):
    """One emoji by itself for clients that take them singly, all emoji for those that do not."""

    def view(self, context: ProjectionContext, change: C, viewer: Viewer) -> Hashable:
        return viewer.registration.capabilities.individual_emoji_changes


class CustomEmojiAddedProjection(_EmojiProjection[CustomEmojiAdded]):
    """A new emoji."""

    of = CustomEmojiAdded

    def events(
        self, context: ProjectionContext, change: CustomEmojiAdded, view: Any
    ) -> Iterable[Event]:
        if view:
            yield EmojiAddEvent(emoji=custom_emoji_object(context.state, change.emoji))
        else:
            yield EmojiUpdateEvent(realm_emoji=custom_emoji(context.state))


class CustomEmojiDeactivatedProjection(_EmojiProjection[CustomEmojiDeactivated]):
    """An emoji that is not offered any more."""

    of = CustomEmojiDeactivated

    def events(
        self, context: ProjectionContext, change: CustomEmojiDeactivated, view: Any
    ) -> Iterable[Event]:
        if view:
            yield EmojiUpdateOneEvent(
                emoji_id=str(change.emoji_id), data=EmojiNews(deactivated=True)
            )
        else:
            yield EmojiUpdateEvent(realm_emoji=custom_emoji(context.state))


PROJECTIONS: Final[Projections] = (
    CustomEmojiAddedProjection(),
    CustomEmojiDeactivatedProjection(),
)
