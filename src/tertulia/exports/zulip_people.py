"""People and bots in Zulip's format, with their private data where it's included."""

import itertools
import secrets
from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from tertulia.exports.scope import ExportScope
from tertulia.exports.zulip_names import (
    REACTION_KINDS,
    REALM,
    SYSTEM_BOTS,
    Clients,
    Recipients,
    settings_columns,
)
from tertulia.exports.zulip_realm import Rows
from tertulia.model.drafts import DraftKind, SavedDraft, Snippet
from tertulia.model.personal import NavigationView
from tertulia.model.scheduled import Reminder, ScheduledMessage
from tertulia.model.users import PersonalSettings, User
from tertulia.store import bots, queries
from tertulia.store.database import Connection

_SEND_LATER, _REMIND = 1, 2
"""Delivery types of scheduled messages."""


class PeopleTables:
    """Makes the rows of people and their records."""

    def __init__(
        self,
        scope: ExportScope,
        recipients: Recipients,
        clients: Clients,
        connection: Connection,
        host: str,
    ) -> None:
        """`host` is used for the placeholders of hidden addresses."""
        self._scope = scope
        self._state = scope.state
        self._recipients = recipients
        self._clients = clients
        self._connection = connection
        self._host = host
        accounts = sorted(self._state.users, key=lambda user: user.id)
        self._users = [user for user in accounts if not user.is_system_bot]
        self._sharing = [user for user in self._users if scope.shares(user.id)]

    def tables(self) -> Iterator[tuple[str, Rows]]:
        people = [user for user in self._users if not self._is_dummy(user)]
        dummies = filter(self._is_dummy, self._users)
        yield "zerver_userprofile", map(self._account, people)
        yield "zerver_userprofile_mirrordummy", map(self._account, dummies)
        yield "zerver_userprofile_crossrealm", self._system_bots()
        yield "zerver_service", self._services()
        yield "zerver_botstoragedata", self._storage()
        yield "zerver_customprofilefieldvalue", self._profiles()
        yield "zerver_alertword", self._alert_words()
        yield "zerver_muteduser", self._muted()
        yield "zerver_onboardingstep", self._steps()
        yield "zerver_userpresence", self._presence()
        yield "zerver_userstatus", self._statuses()
        yield "zerver_usertopic", self._topics()
        yield "zerver_savedsnippet", map(_snippet, self._own("snippets"))
        yield "zerver_navigationview", map(_view, self._own("navigation_views"))
        # Zulip has these rows, but neither exports nor imports them. Tertulia imports them.
        yield "zerver_draft", map(self._draft, self._own("drafts"))
        scheduled = [self._scheduled(value) for value in self._own("scheduled_messages")]
        first = max((row["id"] for row in scheduled), default=0) + 1
        reminders = map(self._reminder, itertools.count(first), self._own("reminders"))
        rows = itertools.chain(scheduled, reminders)
        yield "zerver_scheduledmessage", (row for row in rows if row["recipient"] is not None)

    def _own(self, table: str) -> list[Any]:
        """Return the table's records whose owners share private data."""
        records = self._state.tables[table]
        result = (record for record in records if self._scope.shares(record.user_id))
        return sorted(result, key=records.noun.key_of)

    def _is_dummy(self, user: User) -> bool:
        return user.is_deleted or user.is_placeholder or not self._scope.shows_address(user)

    def _account(self, user: User) -> dict[str, Any]:
        settings = self._settings(user)
        address = user.address
        if not self._scope.shows_address(user):
            address = f"exported-user-{secrets.token_hex(16)}@{self._host}"
        is_open = user.is_bot or settings.email_address_visibility == 1
        is_dummy = self._is_dummy(user)
        bot = user.bot
        return {
            "id": user.id,
            **settings_columns(settings),
            "delivery_email": address,
            "email": address if is_open else f"user{user.id}@{self._host}",
            "realm": REALM,
            "recipient": self._recipients.person(user.id),
            "full_name": user.full_name,
            "date_joined": float(user.joined_at),
            "last_login": None,
            "is_staff": False,
            "is_superuser": False,
            "is_active": user.is_active and not is_dummy,
            "is_bot": user.is_bot,
            "bot_type": bot.kind.value if bot else None,
            "bot_owner": bot.owner_id if bot else None,
            "role": user.role.value,
            "long_term_idle": False,
            "last_active_message_id": None,
            "is_mirror_dummy": is_dummy,
            "is_imported_stub": user.is_placeholder,
            "default_sending_stream": self._channel(
                bot.default_sending_channel_id if bot else None
            ),
            "default_events_register_stream": self._channel(
                bot.default_events_channel_id if bot else None
            ),
            "default_all_public_streams": bool(bot and bot.default_all_public_channels),
            "timezone": user.timezone,
            "avatar_source": user.avatar_source,
            "avatar_version": user.avatar_version,
            "avatar_hash": None,
            "groups": [],
            "user_permissions": [],
        }

    def _channel(self, channel_id: int | None) -> int | None:
        return channel_id if channel_id in self._scope.channel_ids else None

    def _settings(self, user: User) -> PersonalSettings:
        """Return the account's settings. For people who don't share them, only the settings that
        say how their data is treated."""
        settings = self._state.settings.get(user.id) or PersonalSettings(user_id=user.id)
        if self._scope.shares(user.id):
            return settings
        return replace(
            PersonalSettings(user_id=user.id),
            email_address_visibility=settings.email_address_visibility,
            allow_private_data_export=settings.allow_private_data_export,
        )

    def _system_bots(self) -> Rows:
        for user in self._state.users:
            if user.is_system_bot:
                yield {
                    "id": user.id,
                    "email": SYSTEM_BOTS.get(user.id, user.address),
                    "recipient_id": self._recipients.person(user.id),
                }

    def _services(self) -> Rows:
        numbers = itertools.count(1)
        for user in self._sharing:
            if user.bot is None:
                continue
            if user.bot.service is not None:
                service = user.bot.service
                yield _service(next(numbers), user, user.full_name, service.url, service.format)
            elif user.bot.embedded is not None:
                yield _service(next(numbers), user, user.bot.embedded.program, "", 1)

    def _storage(self) -> Rows:
        numbers = itertools.count(1)
        for user in self._sharing:
            if user.is_bot:
                stored = bots.stored_values(self._connection, user.id, None)
                for key, value in stored.items():
                    yield {
                        "id": next(numbers),
                        "bot_profile": user.id,
                        "key": key,
                        "value": value,
                    }

    def _profiles(self) -> Rows:
        values = sorted(
            self._state.profile_values, key=lambda value: (value.user_id, value.field_id)
        )
        for number, value in enumerate(values, 1):
            yield {
                "id": number,
                "user_profile": value.user_id,
                "field": value.field_id,
                "value": value.value,
                "rendered_value": value.rendered or None,
            }

    def _alert_words(self) -> Rows:
        words = (
            (value.user_id, word) for value in self._own("alert_words") for word in value.words
        )
        for number, (user_id, word) in enumerate(words, 1):
            yield {"id": number, "realm": REALM, "user_profile": user_id, "word": word}

    def _muted(self) -> Rows:
        for number, value in enumerate(self._own("muted_users"), 1):
            yield {
                "id": number,
                "user_profile": value.user_id,
                "muted_user": value.muted_id,
                "date_muted": float(value.since),
            }

    def _steps(self) -> Rows:
        for number, value in enumerate(self._own("onboarding_steps"), 1):
            yield {
                "id": number,
                "user": value.user_id,
                "onboarding_step": value.name,
                "timestamp": float(self._state.users[value.user_id].joined_at),
            }

    def _presence(self) -> Rows:
        seen = (presence for presence in queries.presence(self._connection))
        shared = sorted(
            (presence for presence in seen if self._scope.shares(presence.user_id)),
            key=lambda presence: presence.user_id,
        )
        for number, presence in enumerate(shared, 1):
            yield {
                "id": number,
                "user_profile": presence.user_id,
                "realm": REALM,
                "last_update_id": 0,
                "last_connected_time": float(max(presence.active_at, presence.idle_at)) or None,
                "last_active_time": float(presence.active_at) or None,
            }

    def _statuses(self) -> Rows:
        for number, value in enumerate(self._own("user_statuses"), 1):
            yield {
                "id": number,
                "user_profile": value.user_id,
                "timestamp": 0.0,
                "client": Clients.INTERNAL,
                "status_text": value.text,
                "emoji_name": value.emoji.name if value.emoji else "",
                "emoji_code": value.emoji.code if value.emoji else "",
                "reaction_type": REACTION_KINDS[value.emoji.kind]
                if value.emoji
                else "unicode_emoji",
            }

    def _topics(self) -> Rows:
        chosen = (
            value
            for value in self._own("user_topics")
            if value.channel_id in self._scope.channel_ids
        )
        for number, value in enumerate(chosen, 1):
            yield {
                "id": number,
                "user_profile": value.user_id,
                "stream": value.channel_id,
                "recipient": self._recipients.channel(value.channel_id),
                "topic_name": value.name,
                "last_updated": float(value.changed_at),
                "visibility_policy": value.visibility.value,
            }

    def _draft(self, draft: SavedDraft) -> dict[str, Any]:
        recipient = None
        if draft.kind is DraftKind.DIRECT:
            recipient = self._recipients.direct(draft.user_id, draft.to)
        elif (
            draft.kind is DraftKind.CHANNEL and draft.to and draft.to[0] in self._scope.channel_ids
        ):
            recipient = self._recipients.channel(draft.to[0])
        return {
            "id": draft.id,
            "user_profile": draft.user_id,
            "recipient": recipient,
            "topic": draft.topic,
            "content": draft.content,
            "last_edit_time": float(draft.edited_at),
        }

    def _scheduled(self, scheduled: ScheduledMessage) -> dict[str, Any]:
        recipient = None
        if scheduled.channel_id is not None:
            if scheduled.channel_id in self._scope.channel_ids:
                recipient = self._recipients.channel(scheduled.channel_id)
        else:
            recipient = self._recipients.direct(scheduled.user_id, scheduled.user_ids)
        return {
            "id": scheduled.id,
            "recipient": recipient,
            "sender": scheduled.user_id,
            "subject": scheduled.topic,
            "content": scheduled.content,
            "rendered_content": scheduled.rendered,
            "sending_client": self._clients.of(scheduled.client),
            "stream": self._channel(scheduled.channel_id),
            "realm": REALM,
            "scheduled_timestamp": float(scheduled.deliver_at),
            "read_by_sender": scheduled.read_by_sender,
            "delivered": False,
            "delivered_message": None,
            "has_attachment": bool(self._state.uploads.linked_files(scheduled.content)),
            "failed": scheduled.failed,
            "failure_message": None,
            "delivery_type": _SEND_LATER,
            "reminder_target_message_id": None,
            "reminder_note": None,
        }

    def _reminder(self, number: int, reminder: Reminder) -> dict[str, Any]:
        return {
            "id": number,
            "recipient": self._recipients.person(reminder.user_id),
            "sender": reminder.user_id,
            "subject": "",
            "content": reminder.content,
            "rendered_content": reminder.rendered,
            "sending_client": Clients.INTERNAL,
            "stream": None,
            "realm": REALM,
            "scheduled_timestamp": float(reminder.deliver_at),
            "read_by_sender": False,
            "delivered": False,
            "delivered_message": None,
            "has_attachment": False,
            "failed": False,
            "failure_message": None,
            "delivery_type": _REMIND,
            "reminder_target_message_id": reminder.message_id,
            "reminder_note": reminder.note,
        }


def _snippet(snippet: Snippet) -> dict[str, Any]:
    return {
        "id": snippet.id,
        "realm": REALM,
        "user_profile": snippet.user_id,
        "title": snippet.title,
        "content": snippet.content,
        "date_created": float(snippet.created_at),
    }


def _view(view: NavigationView) -> dict[str, Any]:
    return {
        "id": view.id,
        "user": view.user_id,
        "fragment": view.fragment,
        "is_pinned": view.is_pinned,
        "name": view.name,
    }


def _service(number: int, user: User, name: str, url: str, interface: int) -> dict[str, Any]:
    return {
        "id": number,
        "name": name,
        "user_profile": user.id,
        "base_url": url,
        "token": "",  # It's secret, and the other server creates its own.
        "interface": int(interface),
    }
