"""Reading `realm.json` and `attachment.json`: small tables into memory, large ones into the
scratch file."""

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final

from tertulia.imports.report import ImportReport
from tertulia.imports.source import SourceError
from tertulia.imports.zulip.rows import Row, flag, number, numbers, seconds, text
from tertulia.imports.zulip.scratch import Scratch
from tertulia.imports.zulip.settings import USER_SETTINGS, user_settings
from tertulia.imports.zulip.tables import tables
from tertulia.model.attachments import linked_paths

SUBSCRIBED: Final = frozenset({301, 302})
"""Events in the audit log: a subscription was created, or reactivated."""
UNSUBSCRIBED: Final = 303
REMINDER: Final = 2
"""The delivery type of a scheduled message that reminds its author of another message."""
REALM_FILES: Final = ("realm.json", "attachment.json")
"""The files with everything except messages."""
_KEPT: Final = frozenset(
    {
        *("zerver_realm", "zerver_realmuserdefault", "zerver_realmdomain", "zerver_realmemoji"),
        *("zerver_realmfilter", "zerver_realmplayground", "zerver_client", "zerver_userprofile"),
        *("zerver_userprofile_mirrordummy", "zerver_userprofile_crossrealm", "zerver_recipient"),
        *("zerver_stream", "zerver_defaultstream", "zerver_channelfolder", "zerver_usergroup"),
        *("zerver_namedusergroup", "zerver_usergroupmembership", "zerver_groupgroupmembership"),
        *("zerver_customprofilefield", "zerver_customprofilefieldvalue", "zerver_service"),
        *("zerver_botconfigdata", "zerver_botstoragedata", "zerver_alertword"),
        *("zerver_muteduser", "zerver_userstatus", "zerver_usertopic", "zerver_savedsnippet"),
        *("zerver_onboardingstep", "zerver_userhotspot", "zerver_scheduledmessage"),
        *("zerver_draft", "zerver_navigationview"),
    }
)
_NOT_NEEDED: Final = frozenset(
    {
        # Event logs and data that only that server needs.
        *("zerver_huddle", "zerver_userpresence", "zerver_useractivity", "zerver_realmexport"),
        *("zerver_useractivityinterval", "zerver_presencesequence", "zerver_onboardingusermessage"),
        *("zerver_realmauthenticationmethod", "zerver_imageattachment", "zerver_externalauthid"),
    }
)
_HEAVY: Final = frozenset(
    {"rendered_content", "rendered_description", "rendered_value", "extra_data", "edit_history"}
)
_USER_FIELDS: Final = frozenset(
    {
        *("id", "email", "delivery_email", "full_name", "role", "is_active", "is_bot", "bot_type"),
        *("bot_owner", "date_joined", "timezone", "avatar_source", "is_mirror_dummy"),
        *("default_sending_stream", "default_events_register_stream"),
        *("default_all_public_streams", "recipient", "is_imported_stub"),
    }
)
_OTHER_USER_FIELDS: Final = frozenset(
    {
        *("realm", "last_login", "is_superuser", "is_staff", "is_billing_admin", "tos_version"),
        *("long_term_idle", "last_active_message_id", "can_forge_sender", "can_create_users"),
        *("can_change_user_emails", "last_reminder", "rate_limits", "avatar_version"),
        *("avatar_hash", "zoom_token", "groups", "user_permissions", "password", "api_key"),
        *("uuid", "tutorial_status", "onboarding_steps", "short_name", "third_party_api_state"),
        *("is_realm_admin", "is_guest", "is_api_super_user", "pointer"),
    }
)
_CHANNEL_FIELDS: Final = frozenset(
    {
        *("id", "name", "realm", "date_created", "creator", "deactivated", "description"),
        *("rendered_description", "recipient", "invite_only", "history_public_to_subscribers"),
        *("is_web_public", "stream_post_policy", "is_in_zephyr_realm", "message_retention_days"),
        *("first_message_id", "is_recently_active", "topics_policy", "folder", "email_token"),
        *("subscriber_count", "is_announcement_only"),
    }
)
_CUSTOM_HOST: Final = re.compile(r"user([0-9]{1,16})@([A-Za-z0-9.-]{1,253})")


class ExportedRealm:
    """The tables of an export."""

    def __init__(
        self,
        directory: Path,
        scratch: Scratch,
        report: ImportReport,
        count: Callable[[int], None] = lambda _: None,
    ) -> None:
        """`count` is called with the number of bytes of each piece that is read."""
        self._directory = directory
        self._count = count
        self.scratch = scratch
        self.report = report
        self._rows: dict[str, list[Row]] = {}
        self.host = ""
        """The host of the other server, or empty if the export doesn't say."""
        self.has_submessages = False
        """Whether the export has the parts of polls and to-do lists: Zulip's own don't."""
        self._read_realm()
        self._read_attachments()
        scratch.finish()

    def rows(self, table: str) -> list[Row]:
        """Return the rows of a small table."""
        return self._rows.get(table, [])

    def _read_realm(self) -> None:
        large: Mapping[str, Callable[[Iterable[Row]], None]] = {
            "zerver_reaction": self._add_reactions,
            "zerver_submessage": self._add_submessages,
            "zerver_realmauditlog": self._add_events,
            "zerver_subscription": self._add_subscriptions,
        }
        unknown: dict[str, int] = {}
        if not (self._directory / "realm.json").exists():
            raise SourceError(
                "The export has no realm.json, so it isn't a Zulip export, or is incomplete."
                " Choose the archive that Zulip created, or its directory."
            )
        for table, rows in tables(self._directory / "realm.json", count=self._count):
            some = [row for row in rows if isinstance(row, dict)]
            if len(some) < len(rows):
                self.report.skip(
                    "rows", "It isn't an object with fields.", table, len(rows) - len(some)
                )
            if table in large:
                large[table](some)
                self.has_submessages = self.has_submessages or table == "zerver_submessage"
            elif table in _KEPT:
                kept = self._rows.setdefault(table, [])
                kept += map(self._light_user if "userprofile" in table else _light, some)
            elif table not in _NOT_NEEDED:
                unknown[table] = unknown.get(table, 0) + len(some)
        for table, count in unknown.items():
            self.report.skip("tables", "Tertulia doesn't know this table.", table, max(1, count))
        if not self.rows("zerver_realm"):
            raise SourceError(
                "realm.json has no organization, so the export is incomplete. Export or download"
                " it again."
            )
        self._report_fields("zerver_stream", _CHANNEL_FIELDS)

    def _light_user(self, row: Row) -> Row:
        """Return only the fields of an account that are needed, of about a hundred."""
        if "is_bot" in row:
            for name in row.keys() - USER_SETTINGS - _USER_FIELDS - _OTHER_USER_FIELDS:
                self._report_field("zerver_userprofile", name)
        if not self.host and (host := _CUSTOM_HOST.fullmatch(text(row, "email"))):
            self.host = host[2].lower() if int(host[1]) == row.get("id") else ""
        result = {name: row[name] for name in _USER_FIELDS & row.keys() if row[name] is not None}
        return {**result, "settings": user_settings(row)}

    def _report_fields(self, table: str, known: frozenset[str]) -> None:
        names: set[str] = set()
        for row in self.rows(table):
            names |= row.keys()
        for name in sorted(names - known):
            if not name.startswith("can_"):
                self._report_field(table, name)

    def _report_field(self, table: str, name: str) -> None:
        self.report.skip("fields", "Tertulia doesn't know this field.", f"{table}.{name}")

    # Large tables

    def _lacks(self, kind: str, row: Row) -> None:
        self.report.skip(kind, "A row of the export lacks a field, or has the wrong type.", row)

    def _add_reactions(self, rows: Iterable[Row]) -> None:
        add = self.scratch.add
        for row in rows:
            message, user = number(row, "message"), number(row, "user_profile")
            name, code = text(row, "emoji_name"), text(row, "emoji_code")
            if message is None or user is None or not name or not code:
                self._lacks("reactions", row)
                continue
            add("reactions", (message, user, text(row, "reaction_type"), code, name))

    def _add_submessages(self, rows: Iterable[Row]) -> None:
        for row in rows:
            message, user = number(row, "message"), number(row, "sender")
            if message is None or user is None:
                self._lacks("submessages", row)
                continue
            given = (message, user, text(row, "msg_type"), text(row, "content"))
            self.scratch.add("submessages", given)

    def _add_events(self, rows: Iterable[Row]) -> None:
        for row in rows:
            kind, channel = number(row, "event_type"), number(row, "modified_stream")
            if channel is None:
                continue
            message = number(row, "event_last_message_id")
            user = number(row, "modified_user")
            if user is None or message is None:
                continue
            if kind in SUBSCRIBED or kind == UNSUBSCRIBED:
                self.scratch.add("events", (channel, user, kind, message))

    def _add_subscriptions(self, rows: Iterable[Row]) -> None:
        for row in rows:
            recipient, user = number(row, "recipient"), number(row, "user_profile")
            if recipient is None or user is None:
                self._lacks("subscriptions", row)
                continue
            self.scratch.add(
                "subscriptions",
                (
                    recipient,
                    user,
                    flag(row, "active", default=True),
                    text(row, "color"),
                    flag(row, "is_muted"),
                    flag(row, "pin_to_top"),
                    _notifications(row),
                ),
            )

    def _read_attachments(self) -> None:
        for table, rows in tables(self._directory / "attachment.json", count=self._count):
            for row in rows if table == "zerver_attachment" else ():
                if not isinstance(row, dict):
                    continue
                key, owner = number(row, "id"), number(row, "owner")
                path = text(row, "path_id")
                if key is None or owner is None or not _is_path(path):
                    self._lacks("files", row)
                    continue
                file = (
                    *(key, owner, path, text(row, "file_name"), text(row, "content_type")),
                    number(row, "size") or 0,
                    seconds(row, "create_time"),
                )
                for message in dict.fromkeys(numbers(row, "messages")) or (0,):
                    self.scratch.add("attachments", (message, *file))


def _light(row: Row) -> Row:
    return {name: value for name, value in row.items() if name not in _HEAVY}


NOTIFICATIONS: Final = (
    *("desktop_notifications", "audible_notifications", "push_notifications"),
    *("email_notifications", "wildcard_mentions_notify"),
)


def _notifications(row: Row) -> str:
    """Return a person's notification settings for a channel as a text, with `1`, `0`, or `-` for
    each."""
    return "".join(
        "-" if row.get(name) is None else str(int(flag(row, name))) for name in NOTIFICATIONS
    )


def _is_path(path: str) -> bool:
    link = f"/user_uploads/{path}"
    return any(path in paths for paths in linked_paths(link)) and not path.endswith("/..")
