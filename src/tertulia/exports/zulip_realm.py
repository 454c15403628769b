"""The organization in Zulip's format: settings, groups, channels, and lists."""

import hashlib
import itertools
import json
from collections.abc import Iterable, Iterator
from typing import Any, Final

from tertulia.exports.scope import ExportScope
from tertulia.exports.zulip_names import (
    HISTORY_POLICIES,
    REALM,
    REALM_SETTINGS,
    TOPICS_POLICIES,
    Groups,
    Recipients,
    settings_columns,
)
from tertulia.model.channels import Channel
from tertulia.model.groups import SYSTEM_GROUPS, UserGroup
from tertulia.model.organization import Realm
from tertulia.model.profiles import ProfileField
from tertulia.model.settings import Permission, declared_settings

Rows = Iterable[dict[str, Any]]
_SUBSCRIBED, _SUBSCRIBED_AGAIN, _UNSUBSCRIBED = 301, 302, 303
"""Types of events in the audit log."""
_SUBSCRIPTION_SETTINGS: Final = (
    *("desktop_notifications", "audible_notifications", "push_notifications"),
    *("email_notifications", "wildcard_mentions_notify"),
)
_DEFAULT_COLOR: Final = "#c2c2c2"
_NO_GROUP: Final = SYSTEM_GROUPS[0].id


class RealmTables:
    """Makes the rows of the organization's tables. Groups come last, because permissions in other
    tables create unnamed groups."""

    def __init__(self, scope: ExportScope, recipients: Recipients) -> None:
        self._scope = scope
        self._state = scope.state
        self._recipients = recipients
        self._groups = Groups(group.id for group in scope.state.groups)

    def tables(self) -> Iterator[tuple[str, Rows]]:
        state = self._state
        yield "zerver_realm", [self._realm()]
        yield "zerver_realmauthenticationmethod", self._sign_in()
        yield (
            "zerver_realmuserdefault",
            [{"id": 1, **settings_columns(state.default_settings), "realm": REALM}],
        )
        yield "zerver_channelfolder", map(self._folder, _by_id(state.folders))
        yield "zerver_stream", map(self._channel, self._scope.channels)
        yield "zerver_defaultstream", self._default_channels()
        yield "zerver_huddle", self._direct_groups()
        yield "zerver_subscription", self._subscriptions()
        yield "zerver_realmauditlog", self._audit_log()
        yield "zerver_recipient", self._recipients.rows()
        yield "zerver_realmemoji", self._emoji()
        yield (
            "zerver_realmdomain",
            (
                {
                    "id": value.id,
                    "realm": REALM,
                    "domain": value.name,
                    "allow_subdomains": value.allow_subdomains,
                }
                for value in _by_id(state.domains)
            ),
        )
        yield "zerver_realmfilter", self._linkifiers()
        yield (
            "zerver_realmplayground",
            (
                {
                    "id": value.id,
                    "realm": REALM,
                    "url_template": value.url_template,
                    "name": value.name,
                    "pygments_language": value.language,
                }
                for value in _by_id(state.playgrounds)
            ),
        )
        yield "zerver_customprofilefield", map(_profile_field, _by_id(state.profile_fields))
        named = [self._named_group(group) for group in _by_id(state.groups)]
        yield "zerver_namedusergroup", named
        unnamed = self._groups.unnamed
        ids = itertools.chain((row["id"] for row in named), unnamed)
        yield "zerver_usergroup", ({"id": value, "realm": REALM} for value in ids)
        members, subgroups = self._memberships()
        yield "zerver_usergroupmembership", members
        yield "zerver_groupgroupmembership", subgroups

    def _realm(self) -> dict[str, Any]:
        realm = self._state.realm
        row: dict[str, Any] = {
            "id": REALM,
            "string_id": "",
            "date_created": float(realm.created_at),
            "deactivated": realm.deactivated,
            "plan_type": 1,
        }
        for name, declared in declared_settings(Realm).items():
            setting = declared.setting
            if setting.extension or setting.read_only or name == "password_sign_in":
                continue
            value = getattr(realm, name)
            if isinstance(setting, Permission):
                value = self._groups.of(value)
            elif name.endswith("_channel_id"):
                value = value if value in self._scope.channel_ids else None
            elif name == "message_edit_history_visibility_policy":
                value = HISTORY_POLICIES[value]
            elif name == "topics_policy":
                value = TOPICS_POLICIES[value]
            row[REALM_SETTINGS.get(name, name)] = value
        for name, default in (("icon", "G"), ("logo", "D"), ("night_logo", "D")):
            picture = getattr(realm, name)
            row[f"{name}_source"] = "U" if picture.file else default
            row[f"{name}_version"] = picture.version
        return row

    def _sign_in(self) -> Rows:
        if self._state.realm.password_sign_in:
            yield {"id": 1, "realm": REALM, "name": "Email"}

    def _folder(self, folder: Any) -> dict[str, Any]:
        return {
            "id": folder.id,
            "realm": REALM,
            "name": folder.name,
            "description": folder.description,
            "rendered_description": folder.rendered_description,
            "order": folder.order,
            "date_created": _time(folder.created_at),
            "creator": folder.creator_id,
            "is_archived": folder.is_archived,
        }

    def _channel(self, channel: Channel) -> dict[str, Any]:
        permissions = {
            name: self._groups.of(getattr(channel, name))
            for name in Channel.__struct_fields__
            if name.startswith("can_")
        }
        return {
            "id": channel.id,
            "name": channel.name,
            "realm": REALM,
            "date_created": float(channel.created_at),
            "creator": channel.creator_id,
            "deactivated": channel.is_archived,
            "description": channel.description,
            "rendered_description": channel.rendered_description,
            "recipient": self._recipients.channel(channel.id),
            "invite_only": channel.is_private,
            "history_public_to_subscribers": channel.history_public,
            "is_web_public": channel.is_web_public,
            "is_in_zephyr_realm": False,
            "message_retention_days": channel.retention_days,
            "topics_policy": TOPICS_POLICIES[channel.topics_policy.value],
            "folder": channel.folder_id,
            "first_message_id": channel.first_message_id,
            "is_recently_active": channel.is_recently_active,
            **permissions,
        }

    def _default_channels(self) -> Rows:
        defaults = (channel for channel in self._scope.channels if channel.is_default)
        for number, channel in enumerate(defaults, 1):
            yield {"id": number, "realm": REALM, "stream": channel.id}

    def _direct_groups(self) -> Rows:
        for group in self._recipients.groups:
            members = ",".join(map(str, group.members))
            yield {
                "id": group.id,
                "huddle_hash": hashlib.sha1(members.encode(), usedforsecurity=False).hexdigest(),
                "recipient": self._recipients.group(group),
                "group_size": len(group.members),
            }

    def _subscriptions(self) -> Rows:
        numbers = itertools.count(1)
        users, recipients = self._state.users, self._recipients
        for channel in self._scope.channels:
            recipient = recipients.channel(channel.id)
            for subscription in self._scope.subscriptions(channel.id):
                shares = self._scope.shares(subscription.user_id)
                yield {
                    "id": next(numbers),
                    "user_profile": subscription.user_id,
                    "recipient": recipient,
                    "active": subscription.is_active,
                    "is_user_active": users[subscription.user_id].is_active,
                    "is_muted": shares and subscription.is_muted,
                    "color": subscription.color if shares else _DEFAULT_COLOR,
                    "pin_to_top": shares and subscription.pin_to_top,
                    **{
                        name: getattr(subscription, name) if shares else None
                        for name in _SUBSCRIPTION_SETTINGS
                    },
                }
        people = ((user.id, recipients.person(user.id)) for user in _by_id(users))
        directs = (
            (member, recipients.group(group))
            for group in recipients.groups
            for member in group.members
        )
        for user_id, recipient in itertools.chain(people, directs):
            yield {
                "id": next(numbers),
                "user_profile": user_id,
                "recipient": recipient,
                "active": True,
                "is_user_active": users[user_id].is_active,
                "is_muted": False,
                "color": _DEFAULT_COLOR,
                "pin_to_top": False,
                **dict.fromkeys(_SUBSCRIPTION_SETTINGS),
            }

    def _audit_log(self) -> Rows:
        """Yield the events of subscribing and unsubscribing, which show the messages that people
        received."""
        numbers = itertools.count(1)
        for channel in self._scope.channels:
            for subscription in self._scope.subscriptions(channel.id):
                begun = _SUBSCRIBED
                for after, until in subscription.spans:
                    yield self._event(next(numbers), begun, channel, subscription.user_id, after)
                    begun = _SUBSCRIBED_AGAIN
                    if until is not None:
                        yield self._event(
                            next(numbers), _UNSUBSCRIBED, channel, subscription.user_id, until
                        )

    def _event(
        self, number: int, kind: int, channel: Channel, user_id: int, after: int
    ) -> dict[str, Any]:
        return {
            "id": number,
            # The time isn't known, but the order is.
            "event_time": channel.created_at + number / 1_000_000,
            "backfilled": True,
            "extra_data": {},
            "event_type": kind,
            "realm": REALM,
            "acting_user": None,
            "modified_user": user_id,
            "modified_stream": channel.id,
            "modified_user_group": None,
            "event_last_message_id": after,
        }

    def _emoji(self) -> Rows:
        for value in _by_id(self._state.custom_emoji):
            yield {
                "id": value.id,
                "author": value.author_id,
                "realm": REALM,
                "name": value.name,
                "file_name": value.file,
                "is_animated": bool(value.still),
                "deactivated": value.deactivated,
            }

    def _linkifiers(self) -> Rows:
        for value in _by_id(self._state.linkifiers):
            yield {
                "id": value.id,
                "realm": REALM,
                "pattern": value.pattern,
                "url_template": value.url_template,
                "order": value.order,
                "example_input": value.example_input,
                "reverse_template": value.reverse_template,
                "alternative_url_templates": list(value.alternative_url_templates),
            }

    def _named_group(self, group: UserGroup) -> dict[str, Any]:
        of = _system_permission if group.is_system else self._groups.of
        permissions = {
            name: of(getattr(group, name))
            for name in UserGroup.__struct_fields__
            if name.startswith("can_")
        }
        return {
            "id": group.id,
            "usergroup_ptr": group.id,
            "name": group.name,
            "description": group.description,
            "date_created": _time(group.created_at),
            "creator": group.creator_id,
            "is_system_group": group.is_system,
            "realm_for_sharding": REALM,
            "deactivated": group.deactivated,
            **permissions,
        }

    def _memberships(self) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """Return the direct members of all groups: users, and subgroups."""
        direct_members = self._state.memberships.direct_members
        members = [
            (group.id, user_id)
            for group in _by_id(self._state.groups)
            # Deactivated people stay members of other groups.
            for user_id in sorted(direct_members(group) if group.is_system else group.members)
        ]
        subgroups = [
            (group.id, subgroup)
            for group in _by_id(self._state.groups)
            for subgroup in group.subgroups
        ]
        for group_id, unnamed in self._groups.unnamed.items():
            members += [(group_id, user_id) for user_id in unnamed.direct_members]
            subgroups += [(group_id, subgroup) for subgroup in unnamed.direct_subgroups]
        return (
            [
                {"id": number, "user_group": group_id, "user_profile": user_id}
                for number, (group_id, user_id) in enumerate(members, 1)
            ],
            [
                {"id": number, "supergroup": group_id, "subgroup": subgroup}
                for number, (group_id, subgroup) in enumerate(subgroups, 1)
            ],
        )


def _system_permission(_: Any) -> int:
    # System groups can't be managed, whatever their records say.
    return _NO_GROUP


def _profile_field(field: ProfileField) -> dict[str, Any]:
    data: dict[str, Any] = {}
    if field.choices:
        data = {
            choice.key: {"text": choice.text, "order": choice.order} for choice in field.choices
        }
    elif field.account:
        data = {"subtype": field.account}
        if field.url_pattern:
            data["url_pattern"] = field.url_pattern
    return {
        "id": field.id,
        "realm": REALM,
        "name": field.name,
        "hint": field.hint,
        "order": field.order,
        "display_in_profile_summary": field.in_summary,
        "required": field.required,
        "editable_by_user": field.editable_by_user,
        "use_for_user_matching": field.used_for_matching,
        "field_type": field.kind.value,
        "field_data": json.dumps(data) if data else "",
    }


def _by_id(records: Iterable[Any]) -> list[Any]:
    return sorted(records, key=lambda value: value.id)


def _time(seconds: int | None) -> float | None:
    return None if seconds is None else float(seconds)
