"""Data that Zulip's format doesn't support.

Exports report it, `docs/moving-out.md` lists it, and the round-trip test allows no other
differences.
"""

from typing import Final

from msgspec import Struct

from tertulia.model.organization import Realm
from tertulia.model.settings import declared_settings
from tertulia.state.state import State
from tertulia.store.database import Connection


class Loss(Struct, frozen=True, kw_only=True):
    """Data that an organization loses in Zulip's format."""

    sentence: str
    """A list item: the data that's lost, and the effect."""
    tables: tuple[str, ...] = ()
    """The tables of the state that are left out completely."""
    fields: tuple[str, ...] = ()
    """Fields of other records, such as `users.upload_quota_mib`, including those in nested
    structs."""
    is_internal: bool = False
    """Whether people don't notice the loss, so that the report leaves it out."""


_EXTENSIONS: Final = tuple(
    f"realm.{name}"
    for name, setting in declared_settings(Realm).items()
    if setting.setting.extension
)

LOSSES: Final = (
    Loss(
        sentence="passwords, passkeys, second factors, accounts of sign-in services, API keys,"
        " sessions, access keys, and unconfirmed addresses: people set a new password",
        tables=(
            *("credentials", "identities", "second_factors", "recovery_codes"),
            *("sessions", "agent_keys", "confirmations"),
        ),
    ),
    Loss(
        sentence="devices, and registrations for push notifications: they register again",
        tables=("devices", "push_tokens", "push_subscriptions"),
    ),
    Loss(
        sentence="connections to Zoom accounts: people connect them again",
        tables=("call_accounts",),
    ),
    Loss(sentence="invitations, and reusable invitation links", tables=("invitations",)),
    Loss(sentence="pinned messages", tables=("pins",)),
    Loss(sentence="reminders of deleted messages"),
    Loss(sentence="banners", tables=("banners",)),
    Loss(sentence="quiet hours and pauses of notifications", tables=("quiet_times",)),
    Loss(sentence="default channel groups", tables=("default_channel_groups",)),
    Loss(sentence="feeds that bots follow", tables=("feeds",)),
    Loss(
        sentence="tokens of outgoing webhooks, settings of embedded bots, and templates and secrets"
        " of incoming webhooks",
        fields=(
            "users.bot.incoming",
            "users.bot.service.commands",
            "users.bot.service.token_sealed",
            "users.bot.embedded.settings_sealed",
        ),
    ),
    Loss(
        sentence="quotas, the public archive, and other settings that only Tertulia has: they get"
        " their defaults",
        fields=(*_EXTENSIONS, "users.upload_quota_mib"),
    ),
    Loss(sentence="when a status ends: it stays", fields=("user_statuses.ends_at",)),
    Loss(
        sentence="the lists of data exports and imports, and their files",
        tables=("data_exports", "data_imports"),
    ),
    Loss(
        sentence="previews of linked pages, until a message is edited",
        tables=("pending_previews",),
        fields=("messages.embeds",),
    ),
    Loss(
        sentence="mentions by former names in scheduled messages, reminders, profiles, and"
        " descriptions, which become text; messages keep theirs",
        fields=("scheduled_messages.rendered", "reminders.rendered", "profile_values.rendered"),
        is_internal=True,
    ),
    Loss(
        sentence="file names of avatars, emoji, and logos, which get new ones",
        fields=(
            *("users.avatar_file", "users.avatar_version", "custom_emoji.file"),
            *("custom_emoji.still", "realm.icon", "realm.logo", "realm.night_logo"),
        ),
        is_internal=True,
    ),
    Loss(
        sentence="IDs of reminders and direct conversations, and which IDs deleted things had",
        tables=("counters", "removed_files"),
        fields=("reminders.id", "direct_conversations.id"),
        is_internal=True,
    ),
    Loss(
        sentence="the server's internal records: the organization's UUID, whether people have"
        " signed in, what their invitations gave, and when roles and channels' activity were last"
        " updated",
        tables=("topic_moves",),
        fields=(
            *("realm.uuid", "realm.full_members_joined_by", "realm.waiting_period_applied"),
            *("users.awaits_arrival", "users.joined_elsewhere", "subscriptions.began"),
            *("users.invited_role", "users.invited_group_ids"),
            *("personal_settings.edited_by_owner", "reactions.neutral"),
            *("channels.read_until", "channels.last_message_at", "channels.is_recently_active"),
        ),
        is_internal=True,
    ),
)
"""All losses."""


def find(connection: Connection, state: State) -> list[str]:
    """Return sentences about the data that this organization loses. `state` is what the export
    reads, from the same snapshot as `connection`."""
    return [
        loss.sentence for loss in LOSSES if not loss.is_internal and _has(connection, state, loss)
    ]


def _has(connection: Connection, state: State, loss: Loss) -> bool:
    for table in loss.tables:
        # `table` is one of the names declared above.
        if next(iter(connection.query(f"SELECT 1 FROM {table} LIMIT 1")), None):  # noqa: S608
            return True
    return any(_differs(state, *field.split(".")) for field in loss.fields)


def _differs(state: State, table: str, *path: str) -> bool:
    """Whether a record has another value than the default in this table or field."""
    if table not in state.tables:
        return False
    return any(_is_set(record, path) for record in state.tables[table])


def _is_set(record: object, path: tuple[str, ...]) -> bool:
    for name in path[:-1]:
        record = getattr(record, name)
        if record is None:
            return False
    if not isinstance(record, Struct):
        return False
    value = getattr(record, path[-1])
    defaults = dict(
        zip(reversed(record.__struct_fields__), reversed(record.__struct_defaults__), strict=False)
    )
    return bool(value) and value != defaults.get(path[-1])
