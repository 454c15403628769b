"""The changes that create groups, folders, channels, and subscriptions."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from tertulia.domain import channel_access, names
from tertulia.domain.channels import subscription_changes
from tertulia.domain.groups.group_settings import CHANNEL_SETTINGS, GROUP_SETTINGS
from tertulia.imports.identifiers import Identifiers
from tertulia.imports.records import (
    SourceChannel,
    SourceGroup,
    SourceOrganization,
    SourceSubscription,
)
from tertulia.imports.report import ImportReport
from tertulia.imports.values import TakenNames, ValueChecks
from tertulia.model import changes
from tertulia.model.changes import AnyChange
from tertulia.model.channels import Channel
from tertulia.model.folders import ChannelFolder
from tertulia.model.groups import SystemGroup, UserGroup
from tertulia.state.state import State

SUBSCRIBED_AT_ONCE: Final = 500
"""People that one change subscribes."""
_PERSONAL: Final = frozenset(
    {
        *("desktop_notifications", "audible_notifications", "push_notifications"),
        *("email_notifications", "wildcard_mentions_notify"),
    }
)


class MembershipStep(Struct, frozen=True):
    """A subscription that begins, or ends, after the message with that key."""

    after: int
    subscription: SourceSubscription
    ends: bool = False
    is_first: bool = False
    """Whether the subscription never began before."""


def memberships(
    subscriptions: Sequence[SourceSubscription],
) -> tuple[list[SourceSubscription], list[MembershipStep]]:
    """Return the subscriptions that begin before the first message, by channel, and what follows:
    when the others begin, and when each ends, in order."""
    first: list[SourceSubscription] = []
    later: list[MembershipStep] = []
    for one in subscriptions:
        is_first = True
        for after, until in one.spans:
            if until is not None and until <= after:
                continue
            if after <= 0:
                first.append(one)
            else:
                later.append(MembershipStep(after, one, is_first=is_first))
            is_first = False
            if until is not None:
                later.append(MembershipStep(until, one, ends=True))
    first.sort(key=lambda one: str(one.channel))
    later.sort(key=lambda one: (one.after, not one.ends))
    return first, later


class ChannelChanges:
    """Makes the changes. `is_new`: whether the import creates the organization."""

    def __init__(
        self,
        state: State,
        source: SourceOrganization,
        ids: Identifiers,
        checks: ValueChecks,
        report: ImportReport,
        *,
        is_new: bool,
    ) -> None:
        self._state = state
        self._source = source
        self._ids = ids
        self.checks = checks
        self._report = report
        self._is_new = is_new

    # Groups

    def groups(self) -> Iterator[AnyChange]:
        """Yield the changes that create the groups, without what refers to other groups."""
        taken = TakenNames(group.name for group in self._state.groups)
        for source in self._source.groups:
            group_id = self._ids.find("group", source.key)
            if group_id is None or group_id in self._state.groups:
                continue
            name = self.checks.name(
                "groups",
                source.name,
                names.group_name,
                names.MAX_GROUP_NAME,
                otherwise="group",
                taken=taken,
            )
            self._report.count("groups")
            yield changes.UserGroupCreated(
                group=UserGroup(
                    id=group_id,
                    name=name,
                    description=self.checks.text(
                        "groups", source.description, names.MAX_GROUP_DESCRIPTION
                    ),
                    created_at=self.checks.seconds(source.created_at),
                    creator_id=self._ids.find("user", source.creator),
                    members=self._ids.several("user", source.members),
                    deactivated=source.deactivated,
                )
            )

    def group_contents(self) -> Iterator[AnyChange]:
        """Yield the changes that add subgroups, and permissions."""
        subgroups = self._without_cycles()
        for source in self._source.groups:
            group = self._state.groups.get(self._ids.find("group", source.key))
            if group is None:
                continue
            added = [one for one in subgroups.get(group.id, ()) if one not in group.subgroups]
            if added:
                yield changes.UserGroupMembersChanged(
                    group_id=group.id, added_groups=tuple(added), deactivated=group.deactivated
                )
            given = self.checks.permissions(source.permissions, GROUP_SETTINGS, sample=source.name)
            values = {n: value for n, value in given.items() if getattr(group, n) != value}
            if values:
                yield changes.UserGroupChanged(
                    group_id=group.id, values=values, deactivated=group.deactivated
                )

    def _without_cycles(self) -> dict[int, list[int]]:
        """Return the subgroups of each group, without those that would contain the group."""
        given: dict[int, list[int]] = {}
        for source in self._source.groups:
            group_id = self._ids.find("group", source.key)
            if group_id is not None:
                given[group_id] = _known(self._ids, source)
        found: dict[int, list[int]] = {group_id: [] for group_id in given}
        ended: set[int] = set()
        for root in given:
            path, waiting = {root: None}, [(root, iter(given[root]))] if root not in ended else []
            while waiting:
                group_id, subgroups = waiting[-1]
                one = next(subgroups, None)
                if one is None:
                    ended.add(group_id)
                    del path[group_id]
                    waiting.pop()
                elif one in path:
                    self._report.skip("subgroups", "A group can't contain itself.", group_id)
                else:
                    found[group_id].append(one)
                    if one in given and one not in ended:
                        path[one] = None
                        waiting.append((one, iter(given[one])))
        return found

    # Channels

    def folders(self) -> Iterator[AnyChange]:
        """Yield the changes that create channel folders."""
        known = (folder for folder in self._state.folders if not folder.is_archived)
        taken = TakenNames(folder.name for folder in known)
        first = max((folder.order for folder in self._state.folders), default=-1) + 1
        for n, folder in enumerate(sorted(self._source.folders, key=lambda one: one.order), first):
            folder_id = self._ids.find("folder", folder.key)
            if folder_id is None or folder_id in self._state.folders:
                continue
            name = self.checks.name(
                "folders",
                folder.name,
                names.folder_name,
                names.MAX_FOLDER_NAME,
                otherwise="folder",
                taken=None if folder.is_archived else taken,
            )
            description = self.checks.text(
                "folders", folder.description, names.MAX_FOLDER_DESCRIPTION
            )
            self._report.count("folders")
            yield changes.ChannelFolderCreated(
                folder=ChannelFolder(
                    id=folder_id,
                    name=name,
                    description=description,
                    rendered_description=self.checks.html(description),
                    order=n,
                    created_at=self.checks.seconds(folder.created_at),
                    creator_id=self._ids.find("user", folder.creator),
                    is_archived=folder.is_archived,
                )
            )

    def channels(self) -> Iterator[AnyChange]:
        """Yield the changes that create channels."""
        taken = TakenNames(channel.name for channel in self._state.channels)
        for source in self._source.channels:
            channel_id = self._ids.find("channel", source.key)
            if channel_id is not None and channel_id not in self._state.channels:
                yield self._channel(source, channel_id, taken)

    def _channel(self, source: SourceChannel, channel_id: int, taken: TakenNames) -> AnyChange:
        name = self.checks.name(
            "channels",
            source.name,
            names.channel_name,
            names.MAX_CHANNEL_NAME,
            otherwise="channel",
            taken=taken,
        )
        description = self.checks.text(
            "channels", source.description.replace("\n", " "), names.MAX_CHANNEL_DESCRIPTION
        )
        permissions: dict[str, Any] = dict(
            self.checks.permissions(source.permissions, CHANNEL_SETTINGS, sample=name)
        )
        history_public = source.history_public or not source.is_private
        if not history_public:
            permissions["can_create_topic_group"] = SystemGroup.EVERYONE.value
        self._report.count("channels")
        channel = Channel(
            id=channel_id,
            name=name,
            description=description,
            rendered_description=self.checks.html(description),
            created_at=self.checks.seconds(source.created_at),
            creator_id=self._ids.find("user", source.creator),
            is_private=source.is_private,
            is_web_public=source.is_web_public and not source.is_private,
            is_archived=source.is_archived,
            is_default=self._is_new
            and source.is_default
            and not (source.is_private or source.is_archived),
            history_public=history_public,
            retention_days=self._retention(source),
            topics_policy=source.topics_policy,
            folder_id=self._ids.find("folder", source.folder),
        )
        return changes.ChannelCreated(channel=replace(channel, **permissions))

    def _retention(self, source: SourceChannel) -> int | None:
        days = source.retention_days
        if days is None or days == -1 or 0 < days <= 36_500:
            return days
        self._report.change(
            "channels", "The retention period is invalid, so it's the default.", days
        )
        return None

    # Subscriptions

    def first_subscriptions(self, first: Sequence[SourceSubscription]) -> Iterator[AnyChange]:
        """Yield the changes that begin these subscriptions, sorted by channel, before the first
        message."""
        after = self._state.last_message_id
        colors = _Colors(self._state)
        for key, some in groupby(first, key=lambda one: one.channel):
            channel_id = self._ids.find("channel", key)
            if channel_id is None:
                self._report.skip("subscriptions", "The channel isn't in the export.", key)
                continue
            fresh: dict[int, SourceSubscription] = {}
            for one in some:
                user_id = self._ids.find("user", one.user)
                if user_id is None or user_id not in self._state.users:
                    self._report.skip("subscriptions", "The person isn't in the export.", one.user)
                elif not self._state.is_subscribed(user_id, channel_id):
                    fresh[user_id] = one
            people = sorted(fresh)
            for begin in range(0, len(people), SUBSCRIBED_AT_ONCE):
                part = people[begin : begin + SUBSCRIBED_AT_ONCE]
                self._report.count("subscriptions", len(part))
                yield self._subscribed(
                    channel_id, {one: colors.of(one, fresh[one].color) for one in part}, after
                )
                for user_id in part:
                    yield from self._settings(fresh[user_id], channel_id, user_id)

    def begun(
        self, one: SourceSubscription, channel_id: int, user_id: int, after: int
    ) -> Iterator[AnyChange]:
        """Yield the changes that begin a subscription after that message."""
        color = _Colors(self._state).of(user_id, one.color)
        yield self._subscribed(channel_id, {user_id: color}, after)
        yield from self._settings(one, channel_id, user_id)

    def ended(self, channel_id: int, user_id: int, until: int) -> AnyChange:
        """Return the change that ends a subscription after that message."""
        channel = self._state.channels[channel_id]
        return changes.Unsubscribed(
            channel_id=channel_id,
            user_ids=(user_id,),
            until=until,
            lost=self._without_sight(channel, (user_id,)),
            name=channel.name,
            archived=channel.is_archived,
        )

    def _subscribed(self, channel_id: int, colors: dict[int, str], after: int) -> AnyChange:
        channel = self._state.channels[channel_id]
        return changes.Subscribed(
            channel_id=channel_id,
            colors=colors,
            after=after,
            gained=self._without_sight(channel, colors),
            archived=channel.is_archived,
        )

    def _without_sight(self, channel: Channel, user_ids: Iterable[int]) -> tuple[int, ...]:
        """Return those who see the channel only while they are subscribed."""
        users = (self._state.users[one] for one in user_ids)
        sees = channel_access.sees_unsubscribed
        return tuple(user.id for user in users if not sees(self._state, user, channel))

    def _settings(
        self, one: SourceSubscription, channel_id: int, user_id: int
    ) -> Iterator[AnyChange]:
        for name in one.settings.keys() - _PERSONAL:
            self._report.skip("settings of subscriptions", f"There is no setting '{name}' here.")
        flags = {"is_muted": one.is_muted or None, "pin_to_top": one.pin_to_top or None}
        given = {n: value for n, value in one.settings.items() if n in _PERSONAL}
        for name, value in (*given.items(), *flags.items()):
            if isinstance(value, bool):
                yield changes.SubscriptionChanged(
                    channel_id=channel_id, user_id=user_id, property=name, value=value
                )


class _Colors:
    """Gives each person's subscriptions different colors."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._given: dict[int, list[str]] = {}

    def of(self, user_id: int, wanted: str) -> str:
        color = wanted.lower()
        if not _is_color(color):
            given = self._given.setdefault(user_id, [])
            color = subscription_changes.color_for(self._state, user_id, given)
            given.append(color)
        return color


def _is_color(text: str) -> bool:
    return len(text) == 7 and text[0] == "#" and all(c in "0123456789abcdef" for c in text[1:])


def _known(ids: Identifiers, source: SourceGroup) -> list[int]:
    found = (ids.group(key) for key in source.subgroups)
    return list(dict.fromkeys(one for one in found if one is not None))


def channel_and_user(ids: Identifiers, one: SourceSubscription) -> tuple[int, int] | None:
    """Return the IDs, or None if one of them wasn't imported."""
    channel_id, user_id = ids.find("channel", one.channel), ids.find("user", one.user)
    return None if channel_id is None or user_id is None else (channel_id, user_id)


class AppliedMemberships:
    """Applies memberships within one commit, whose changes the state doesn't have yet."""

    def __init__(
        self, state: State, ids: Identifiers, channels: ChannelChanges, report: ImportReport
    ) -> None:
        self._state = state
        self._ids = ids
        self._channels = channels
        self._report = report
        self._are: dict[tuple[int, int], bool] = {}

    def applied(self, one: MembershipStep, last_id: int) -> list[AnyChange]:
        """Return the changes; none if it's so already."""
        channel_id = self._ids.find("channel", one.subscription.channel)
        user_id = self._ids.find("user", one.subscription.user)
        if channel_id is None or user_id is None or user_id not in self._state.users:
            return []
        if self.has(channel_id, user_id) is not one.ends:
            return []
        self._are[channel_id, user_id] = not one.ends
        if one.ends:
            return [self._channels.ended(channel_id, user_id, last_id)]
        if one.is_first:
            self._report.count("subscriptions")
        return list(self._channels.begun(one.subscription, channel_id, user_id, last_id))

    def has(self, channel_id: int, user_id: int) -> bool:
        """Whether the user is subscribed to the channel now."""
        known = self._are.get((channel_id, user_id))
        return self._state.is_subscribed(user_id, channel_id) if known is None else known

    def people(self, channel_id: int) -> Iterator[int]:
        """Yield those who are subscribed to the channel now."""
        known = self._state.subscriptions.of_channel[channel_id]
        fresh = (user_id for channel, user_id in self._are if channel == channel_id)
        for user_id in dict.fromkeys((*known, *fresh)):
            if self.has(channel_id, user_id):
                yield user_id
