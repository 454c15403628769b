"""The changes that create groups, folders, channels, and subscriptions."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from tertulia.domain import channel_access, names
from tertulia.domain.channels import subscription_changes
from tertulia.domain.groups.group_settings import CHANNEL_SETTINGS, GROUP_SETTINGS
from tertulia.imports.context import ImportContext
from tertulia.imports.identifiers import Identifiers
from tertulia.imports.records import (
    SourceChannel,
    SourceGroup,
    SourceSubscription,
)
from tertulia.imports.values import TakenNames
from tertulia.model import changes
from tertulia.model.changes import AnyChange
from tertulia.model.channels import Channel
from tertulia.model.folders import ChannelFolder
from tertulia.model.groups import SystemGroup, UserGroup

SUBSCRIBER_BATCH: Final = 500
"""The most people that one change subscribes."""
_PERSONAL: Final = frozenset(
    {
        *("desktop_notifications", "audible_notifications", "push_notifications"),
        *("email_notifications", "wildcard_mentions_notify"),
    }
)


class MembershipStep(Struct, frozen=True):
    """A subscription that begins or ends after the message with this key."""

    after: int
    subscription: SourceSubscription
    ends: bool = False
    is_first: bool = False
    """Whether this is the subscription's first beginning."""


def memberships(
    subscriptions: Sequence[SourceSubscription],
) -> tuple[list[SourceSubscription], list[MembershipStep]]:
    """Return the subscriptions that begin before the first message, by channel, and the later steps
    in order: when other subscriptions begin, and when each ends."""
    first: list[SourceSubscription] = []
    later: list[MembershipStep] = []
    for subscription in subscriptions:
        is_first = True
        for after, until in subscription.spans:
            if until is not None and until <= after:
                continue
            if after <= 0:
                first.append(subscription)
            else:
                later.append(MembershipStep(after, subscription, is_first=is_first))
            is_first = False
            if until is not None:
                later.append(MembershipStep(until, subscription, ends=True))
    first.sort(key=lambda subscription: str(subscription.channel))
    later.sort(key=lambda step: (step.after, not step.ends))
    return first, later


class ChannelChanges:
    """Makes the changes for groups, folders, channels, and subscriptions."""

    def __init__(self, context: ImportContext) -> None:
        self._context = context

    # Groups

    def groups(self) -> Iterator[AnyChange]:
        """Yield the changes that create the groups, without subgroups and permissions."""
        taken = TakenNames(group.name for group in self._context.state.groups)
        for source in self._context.report.each(self._context.source.groups):
            group_id = self._context.ids.find("group", source.key)
            if group_id is None or group_id in self._context.state.groups:
                continue
            name = self._context.checks.name(
                "groups",
                source.name,
                names.group_name,
                names.MAX_GROUP_NAME,
                otherwise="group",
                taken=taken,
            )
            self._context.report.count("groups")
            yield changes.UserGroupCreated(
                group=UserGroup(
                    id=group_id,
                    name=name,
                    description=self._context.checks.text(
                        "groups", source.description, names.MAX_GROUP_DESCRIPTION
                    ),
                    created_at=self._context.checks.seconds(source.created_at),
                    creator_id=self._context.ids.find("user", source.creator),
                    members=self._context.ids.several("user", source.members),
                    deactivated=source.deactivated,
                )
            )

    def group_contents(self) -> Iterator[AnyChange]:
        """Yield the changes that add subgroups, and permissions."""
        self._context.report.begin_record()
        subgroups = self._without_cycles()
        for source in self._context.report.each(self._context.source.groups):
            group = self._context.state.groups.get(self._context.ids.find("group", source.key))
            if group is None:
                continue
            given = self._context.checks.permissions(
                source.permissions, GROUP_SETTINGS, sample=source.name
            )
            added = [
                subgroup_id
                for subgroup_id in subgroups.get(group.id, ())
                if subgroup_id not in group.subgroups
            ]
            if added:
                yield changes.UserGroupMembersChanged(
                    group_id=group.id, added_groups=tuple(added), deactivated=group.deactivated
                )
            values = {n: value for n, value in given.items() if getattr(group, n) != value}
            if values:
                yield changes.UserGroupChanged(
                    group_id=group.id, values=values, deactivated=group.deactivated
                )

    def _without_cycles(self) -> dict[int, list[int]]:
        """Return the subgroups of each group, leaving out those that would make a group contain
        itself."""
        given: dict[int, list[int]] = {}
        for source in self._context.source.groups:
            group_id = self._context.ids.find("group", source.key)
            if group_id is not None:
                given[group_id] = _known(self._context.ids, source)
        acyclic: dict[int, list[int]] = {group_id: [] for group_id in given}
        ended: set[int] = set()
        for root in given:
            path, waiting = {root: None}, [(root, iter(given[root]))] if root not in ended else []
            while waiting:
                group_id, subgroups = waiting[-1]
                subgroup_id = next(subgroups, None)
                if subgroup_id is None:
                    ended.add(group_id)
                    del path[group_id]
                    waiting.pop()
                elif subgroup_id in path:
                    self._context.report.skip(
                        "subgroups", "A group can't contain itself.", group_id
                    )
                else:
                    acyclic[group_id].append(subgroup_id)
                    if subgroup_id in given and subgroup_id not in ended:
                        path[subgroup_id] = None
                        waiting.append((subgroup_id, iter(given[subgroup_id])))
        return acyclic

    # Channels

    def folders(self) -> Iterator[AnyChange]:
        """Yield the changes that create channel folders."""
        known = (folder for folder in self._context.state.folders if not folder.is_archived)
        taken = TakenNames(folder.name for folder in known)
        first = max((folder.order for folder in self._context.state.folders), default=-1) + 1
        for n, folder in enumerate(
            self._context.report.each(
                sorted(self._context.source.folders, key=lambda other: other.order)
            ),
            first,
        ):
            folder_id = self._context.ids.find("folder", folder.key)
            if folder_id is None or folder_id in self._context.state.folders:
                continue
            name = self._context.checks.name(
                "folders",
                folder.name,
                names.folder_name,
                names.MAX_FOLDER_NAME,
                otherwise="folder",
                taken=None if folder.is_archived else taken,
            )
            description = self._context.checks.text(
                "folders", folder.description, names.MAX_FOLDER_DESCRIPTION
            )
            self._context.report.count("folders")
            yield changes.ChannelFolderCreated(
                folder=ChannelFolder(
                    id=folder_id,
                    name=name,
                    description=description,
                    rendered_description=self._context.checks.html(description),
                    order=n,
                    created_at=self._context.checks.seconds(folder.created_at),
                    creator_id=self._context.ids.find("user", folder.creator),
                    is_archived=folder.is_archived,
                )
            )

    def channels(self) -> Iterator[AnyChange]:
        """Yield the changes that create channels."""
        taken = TakenNames(channel.name for channel in self._context.state.channels)
        for source in self._context.report.each(self._context.source.channels):
            channel_id = self._context.ids.find("channel", source.key)
            if channel_id is not None and channel_id not in self._context.state.channels:
                yield self._channel(source, channel_id, taken)

    def _channel(self, source: SourceChannel, channel_id: int, taken: TakenNames) -> AnyChange:
        name = self._context.checks.name(
            "channels",
            source.name,
            names.channel_name,
            names.MAX_CHANNEL_NAME,
            otherwise="channel",
            taken=taken,
        )
        description = self._context.checks.text(
            "channels", source.description.replace("\n", " "), names.MAX_CHANNEL_DESCRIPTION
        )
        permissions: dict[str, Any] = dict(
            self._context.checks.permissions(source.permissions, CHANNEL_SETTINGS, sample=name)
        )
        history_public = source.history_public or not source.is_private
        if not history_public:
            permissions["can_create_topic_group"] = SystemGroup.EVERYONE.value
        self._context.report.count("channels")
        channel = Channel(
            id=channel_id,
            name=name,
            description=description,
            rendered_description=self._context.checks.html(description),
            created_at=self._context.checks.seconds(source.created_at),
            creator_id=self._context.ids.find("user", source.creator),
            is_private=source.is_private,
            is_web_public=source.is_web_public and not source.is_private,
            is_archived=source.is_archived,
            is_default=self._context.is_new
            and source.is_default
            and not (source.is_private or source.is_archived),
            history_public=history_public,
            retention_days=self._retention(source),
            topics_policy=source.topics_policy,
            folder_id=self._context.ids.find("folder", source.folder),
        )
        return changes.ChannelCreated(channel=replace(channel, **permissions))

    def _retention(self, source: SourceChannel) -> int | None:
        days = source.retention_days
        if days is None or days == -1 or 0 < days <= 36_500:
            return days
        self._context.report.change(
            "channels", "The retention period is invalid, so the default is used.", days
        )
        return None

    # Subscriptions

    def first_subscriptions(self, first: Sequence[SourceSubscription]) -> Iterator[AnyChange]:
        """Yield the changes that begin these subscriptions before the first message. They must be
        sorted by channel."""
        after = self._context.state.last_message_id
        colors = _Colors(self._context)
        grouped = groupby(first, key=lambda subscription: subscription.channel)
        for key, some in self._context.report.each(grouped):
            channel_id = self._context.ids.find("channel", key)
            if channel_id is None:
                self._context.report.skip("subscriptions", "The channel isn't in the export.", key)
                continue
            fresh: dict[int, SourceSubscription] = {}
            for subscription in self._context.report.each(some):
                user_id = self._context.ids.find("user", subscription.user)
                if user_id is None or user_id not in self._context.state.users:
                    self._context.report.skip(
                        "subscriptions", "The person isn't in the export.", subscription.user
                    )
                elif not self._context.state.is_subscribed(user_id, channel_id):
                    fresh[user_id] = subscription
                    self._check_settings(subscription)
                else:  # The import was interrupted, perhaps before it wrote these settings.
                    known = self._context.state.tables["subscriptions"][channel_id, user_id]
                    for change in self._settings(subscription, channel_id, user_id):
                        if getattr(known, change.property) != change.value:
                            yield change
            people = sorted(fresh)
            for begin in range(0, len(people), SUBSCRIBER_BATCH):
                part = people[begin : begin + SUBSCRIBER_BATCH]
                self._context.report.count("subscriptions", len(part))
                yield self._subscribed(
                    channel_id,
                    {user_id: colors.of(user_id, fresh[user_id].color) for user_id in part},
                    after,
                )
                for user_id in part:
                    yield from self._settings(fresh[user_id], channel_id, user_id)

    def begun(
        self, subscription: SourceSubscription, channel_id: int, user_id: int, after: int
    ) -> Iterator[AnyChange]:
        """Yield the changes that begin a subscription after that message."""
        color = _Colors(self._context).of(user_id, subscription.color)
        self._check_settings(subscription)
        yield self._subscribed(channel_id, {user_id: color}, after)
        yield from self._settings(subscription, channel_id, user_id)

    def ended(self, channel_id: int, user_id: int, until: int) -> AnyChange:
        """Return the change that ends a subscription after that message."""
        channel = self._context.state.channels[channel_id]
        return changes.Unsubscribed(
            channel_id=channel_id,
            user_ids=(user_id,),
            until=until,
            lost=self._without_sight(channel, (user_id,)),
            name=channel.name,
            archived=channel.is_archived,
        )

    def _subscribed(self, channel_id: int, colors: dict[int, str], after: int) -> AnyChange:
        channel = self._context.state.channels[channel_id]
        return changes.Subscribed(
            channel_id=channel_id,
            colors=colors,
            after=after,
            gained=self._without_sight(channel, colors),
            archived=channel.is_archived,
        )

    def _without_sight(self, channel: Channel, user_ids: Iterable[int]) -> tuple[int, ...]:
        """Return the users who can see the channel only while they're subscribed."""
        users = (self._context.state.users[user_id] for user_id in user_ids)
        sees = channel_access.sees_unsubscribed
        return tuple(user.id for user in users if not sees(self._context.state, user, channel))

    def _check_settings(self, subscription: SourceSubscription) -> None:
        for name in subscription.settings.keys() - _PERSONAL:
            self._context.report.skip(
                "settings of subscriptions", f"There is no setting '{name}' here."
            )

    def _settings(
        self, subscription: SourceSubscription, channel_id: int, user_id: int
    ) -> Iterator[changes.SubscriptionChanged]:
        flags = {
            "is_muted": subscription.is_muted or None,
            "pin_to_top": subscription.pin_to_top or None,
        }
        given = {n: value for n, value in subscription.settings.items() if n in _PERSONAL}
        for name, value in (*given.items(), *flags.items()):
            if isinstance(value, bool):
                yield changes.SubscriptionChanged(
                    channel_id=channel_id, user_id=user_id, property=name, value=value
                )


class _Colors:
    """Gives each person's subscriptions different colors."""

    def __init__(self, context: ImportContext) -> None:
        self._context = context
        self._given: dict[int, list[str]] = {}

    def of(self, user_id: int, wanted: str) -> str:
        color = wanted.lower()
        if not _is_color(color):
            given = self._given.setdefault(user_id, [])
            color = subscription_changes.color_for(self._context.state, user_id, given)
            given.append(color)
        return color


def _is_color(text: str) -> bool:
    return len(text) == 7 and text[0] == "#" and all(c in "0123456789abcdef" for c in text[1:])


def _known(ids: Identifiers, source: SourceGroup) -> list[int]:
    subgroups = (ids.group(key) for key in source.subgroups)
    return list(dict.fromkeys(group_id for group_id in subgroups if group_id is not None))


class AppliedMemberships:
    """Applies memberships within one commit, whose changes the state doesn't have yet."""

    def __init__(self, context: ImportContext) -> None:
        """`context` has the commit's state, and a report for its remarks."""
        self._context = context
        self._channels = ChannelChanges(context)
        self._are: dict[tuple[int, int], bool] = {}

    def applied(self, step: MembershipStep, last_id: int) -> list[AnyChange]:
        """Return the changes that apply the step; an empty list if the state is already as it
        says."""
        channel_id = self._context.ids.find("channel", step.subscription.channel)
        user_id = self._context.ids.find("user", step.subscription.user)
        if channel_id is None or user_id is None or user_id not in self._context.state.users:
            return []
        if self.has(channel_id, user_id) is not step.ends:
            return []
        self._are[channel_id, user_id] = not step.ends
        if step.ends:
            return [self._channels.ended(channel_id, user_id, last_id)]
        if step.is_first:
            self._context.report.count("subscriptions")
        return list(self._channels.begun(step.subscription, channel_id, user_id, last_id))

    def has(self, channel_id: int, user_id: int) -> bool:
        """Whether the user is subscribed to the channel now."""
        known = self._are.get((channel_id, user_id))
        return self._context.state.is_subscribed(user_id, channel_id) if known is None else known

    def people(self, channel_id: int) -> Iterator[int]:
        """Yield the users who are subscribed to the channel now."""
        known = self._context.state.subscriptions.of_channel[channel_id]
        fresh = (user_id for channel, user_id in self._are if channel == channel_id)
        for user_id in dict.fromkeys((*known, *fresh)):
            if self.has(channel_id, user_id):
                yield user_id
