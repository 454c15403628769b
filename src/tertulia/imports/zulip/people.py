"""The people and bots of a Zulip export."""

import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from tertulia.imports.records import (
    Key,
    SourceBot,
    SourceFile,
    SourceStatus,
    SourceUser,
)
from tertulia.imports.zulip.realm import ExportedRealm
from tertulia.imports.zulip.rows import (
    EMOJI_KINDS,
    Row,
    flag,
    number,
    seconds,
    text,
    valid,
)
from tertulia.imports.zulip.tables import records
from tertulia.model.profiles import FieldKind
from tertulia.model.reactions import EmojiKind
from tertulia.model.users import BotKind, Role

_NO_ADDRESS: Final = re.compile(r"exported-user-[0-9a-f]+@.*")
"""The placeholder addresses of people whose addresses aren't in the export."""
SLACK_FORMAT: Final = 2


class ZulipPeople:
    """Makes the records of people and bots from the export's tables."""

    def __init__(self, realm: ExportedRealm, directory: Path) -> None:
        self._realm = realm
        self._rows = realm.rows
        self._report = realm.report
        self._directory = directory

    def users(self) -> Iterator[SourceUser]:
        """Yield the accounts, active ones first."""
        by_user = _ByUser(self._realm)
        avatars = self._avatars()
        rows = [
            *valid(self._rows("zerver_userprofile"), "people", (), self._report),
            *valid(self._rows("zerver_userprofile_mirrordummy"), "people", (), self._report),
        ]
        # If two accounts have the same address, the importer takes the first, which is the active
        # one.
        for row in sorted(rows, key=lambda row: (not flag(row, "is_active", True), row["id"])):
            key: int = row["id"]
            address = text(row, "delivery_email") or text(row, "email")
            if _NO_ADDRESS.fullmatch(address):
                address = ""
            picture = avatars.get(key) if text(row, "avatar_source") == "U" else None
            role = number(row, "role")
            if role not in {role.value for role in Role}:
                self._report.change(
                    "people", "The role is unknown, so they became a member.", address
                )
                role = Role.MEMBER
            name = text(row, "full_name")
            if len(name) < 2:
                name = f"User {key}" if not name else f"{name} ({key})"
            is_placeholder = flag(row, "is_mirror_dummy")
            yield SourceUser(
                key=key,
                full_name=name,
                address=address,
                role=Role(role),
                is_active=flag(row, "is_active", True) and not is_placeholder,
                is_placeholder=is_placeholder or flag(row, "is_imported_stub"),
                joined_at=seconds(row, "date_joined"),
                timezone=text(row, "timezone"),
                avatar=picture,
                uses_gravatar=text(row, "avatar_source") == "G",
                bot=self._bot(row, by_user) if flag(row, "is_bot") else None,
                settings=row.get("settings", {}),
                profile=by_user.profiles.get(key, {}),
                alert_words=tuple(dict.fromkeys(by_user.words.get(key, ()))),
                muted=by_user.muted.get(key, {}),
                status=by_user.statuses.get(key),
                onboarding_steps=tuple(dict.fromkeys(by_user.steps.get(key, ()))),
                invitable=not is_placeholder,
            )

    def _bot(self, row: Row, by_user: "_ByUser") -> SourceBot:
        key = row["id"]
        service: Row = by_user.services.get(key, {})
        kind = number(row, "bot_type")
        if kind not in {kind.value for kind in BotKind}:
            name = text(row, "full_name")
            self._report.change("bots", "The type is unknown, so it became a generic bot.", name)
            kind = BotKind.GENERIC
        return SourceBot(
            kind=BotKind(kind),
            owner=number(row, "bot_owner"),
            service_url=text(service, "base_url"),
            service_is_slack=service.get("interface") == SLACK_FORMAT,
            program=text(service, "name"),
            token=text(service, "token"),
            default_channel=number(row, "default_sending_stream"),
            default_events_channel=number(row, "default_events_register_stream"),
            default_all_public_channels=flag(row, "default_all_public_streams"),
            config=by_user.config.get(key, {}),
            storage=by_user.storage.get(key, {}),
        )

    def _avatars(self) -> dict[int, SourceFile]:
        """Return the pictures by user, in their original size if the export has it."""
        files: dict[int, SourceFile] = {}
        for row in records(self._directory / "avatars" / "records.json"):
            key, path = number(row, "user_profile_id"), text(row, "path")
            if key is None or not path or path.endswith("-medium.png"):
                continue
            if key not in files or path.endswith(".original"):
                files[key] = SourceFile(place=f"avatars/{path}")
        return files


class _ByUser:
    """Rows of small tables, by user."""

    def __init__(self, realm: ExportedRealm) -> None:
        rows = realm.rows
        self.words: dict[int, list[str]] = defaultdict(list)
        self.muted: dict[int, dict[Key, int]] = defaultdict(dict)
        self.steps: dict[int, list[str]] = defaultdict(list)
        self.statuses: dict[int, SourceStatus] = {}
        self.profiles: dict[int, dict[int | str, str]] = defaultdict(dict)
        self.services: dict[int, Row] = {}
        self.config: dict[int, dict[str, str]] = defaultdict(dict)
        self.storage: dict[int, dict[str, str]] = defaultdict(dict)
        for row in rows("zerver_alertword"):
            if (user := number(row, "user_profile")) is not None and text(row, "word"):
                self.words[user].append(text(row, "word"))
        for row in rows("zerver_muteduser"):
            user, other = number(row, "user_profile"), number(row, "muted_user")
            if user is not None and other is not None:
                self.muted[user][other] = seconds(row, "date_muted")
        for row in (*rows("zerver_onboardingstep"), *rows("zerver_userhotspot")):
            step = text(row, "onboarding_step") or text(row, "hotspot")
            if (user := number(row, "user")) is not None and step:
                self.steps[user].append(step)
        for row in rows("zerver_userstatus"):
            status = SourceStatus(
                text=text(row, "status_text"),
                emoji=text(row, "emoji_name"),
                kind=EMOJI_KINDS.get(text(row, "reaction_type"), EmojiKind.UNICODE),
                code=text(row, "emoji_code"),
            )
            if (user := number(row, "user_profile")) is not None and (status.text or status.emoji):
                self.statuses[user] = status
        people = {
            number(row, "id")
            for row in rows("zerver_customprofilefield")
            if row.get("field_type") == FieldKind.PEOPLE
        }
        for row in rows("zerver_customprofilefieldvalue"):
            user, field = number(row, "user_profile"), number(row, "field")
            value = text(row, "value")
            if user is None or field is None or not value:
                continue
            if field in people and not _is_list_of_numbers(value):
                realm.report.skip("profile values", "It isn't a list of people.", value)
                continue
            self.profiles[user][field] = value
        for row in rows("zerver_service"):
            if (user := number(row, "user_profile")) is not None:
                self.services.setdefault(user, row)
        for table, values in (
            ("zerver_botconfigdata", self.config),
            ("zerver_botstoragedata", self.storage),
        ):
            for row in rows(table):
                if (user := number(row, "bot_profile")) is not None and text(row, "key"):
                    values[user][text(row, "key")] = text(row, "value")


def _is_list_of_numbers(value: str) -> bool:
    try:
        msgspec.json.decode(value, type=list[int])
    except msgspec.DecodeError:
        return False
    return True
