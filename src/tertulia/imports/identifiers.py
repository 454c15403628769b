"""The IDs that records of the source get."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from tertulia.domain.organization import lifecycle
from tertulia.imports.records import Holders, Key, SourceOrganization
from tertulia.imports.report import ImportReport
from tertulia.model.groups import SYSTEM_GROUPS, GroupSetting, Members, normalized
from tertulia.state.state import State

SYSTEM_GROUP_IDS: Final[Mapping[str, int]] = {group.name: group.id for group in SYSTEM_GROUPS}
MAX_KEPT: Final = 2**31 - 2**24
"""The largest ID that is kept. Higher IDs would leave too little room for new ones in clients and
bitmaps."""
_SYSTEM_BOTS: Final = {
    "notification": lifecycle.NOTIFICATION_BOT,
    "welcome": lifecycle.WELCOME_BOT,
    "email": lifecycle.EMAIL_GATEWAY,
}
_NONE: Final[Mapping[Key, int]] = {}

MATCHED: Final = (
    "They have an account here with this email address, so their messages in the export appear as"
    " sent by it."
)


class Identifiers:
    """IDs by kind of record and key.

    They are assigned when the organization is imported, and stored with it: a resumed import
    continues with the same ones.
    """

    def __init__(self, ids: Mapping[str, Mapping[str, int]] | None = None) -> None:
        self._ids: dict[str, dict[Key, int]] = {
            kind: {key_of(name): number for name, number in some.items()}
            for kind, some in (ids or {}).items()
        }
        self.is_changed = False
        """Whether there are new IDs that aren't stored yet."""

    def stored(self) -> Mapping[str, Mapping[str, int]]:
        """Return all IDs, in the form that `__init__` takes."""
        return {
            kind: {name_of(key): number for key, number in some.items()}
            for kind, some in self._ids.items()
        }

    def put(self, kind: str, key: Key, number: int) -> None:
        """Give a record an ID."""
        self._ids.setdefault(kind, {})[key] = number
        self.is_changed = True

    def assign(self, kind: str, keys: Iterable[Key], *, taken: set[int], keep: bool) -> list[Key]:
        """Assign IDs to the records without one, and add them to `taken`. With `keep`, an integer
        key becomes the ID unless it's taken; otherwise, the ID is the next number above all. Return
        the integer keys that got another ID."""
        ids = self._ids.setdefault(kind, {})
        self.is_changed = True
        waiting: list[Key] = []
        for key in keys:
            if key in ids:
                continue
            if keep and isinstance(key, int) and 0 < key <= MAX_KEPT and key not in taken:
                ids[key] = key
                taken.add(key)
            else:
                waiting.append(key)
        last = max(taken, default=0)
        for key in waiting:
            last += 1
            ids[key] = last
            taken.add(last)
        return [key for key in waiting if isinstance(key, int)]

    def find(self, kind: str, key: Key | None) -> int | None:
        """Return the record's ID, or None if it wasn't imported."""
        return None if key is None else self._ids.get(kind, _NONE).get(key)

    def all(self, kind: str) -> tuple[int, ...]:
        """Return the IDs of all records of a kind, ascending."""
        return tuple(sorted(set(self._ids.get(kind, {}).values())))

    def several(self, kind: str, keys: Iterable[Key]) -> tuple[int, ...]:
        """Return the IDs of the imported records among `keys`, ascending."""
        ids = map(self._ids.get(kind, _NONE).get, keys)
        return tuple(sorted({record_id for record_id in ids if record_id is not None}))

    def group(self, key: Key) -> int | None:
        """Return the ID of a group: a system group by its name, or an imported one."""
        if isinstance(key, str) and key in SYSTEM_GROUP_IDS:
            return SYSTEM_GROUP_IDS[key]
        return self.find("group", key)

    def holders(self, holders: Holders) -> GroupSetting:
        """Return the value of a permission. People and groups that weren't imported are left
        out."""
        groups = (self.group(key) for key in holders.groups)
        return normalized(
            Members(
                self.several("user", holders.people),
                tuple(group for group in groups if group is not None),
            )
        )


def assign_ids(
    state: State,
    source: SourceOrganization,
    ids: Identifiers,
    *,
    keep: bool,
    matches_accounts: bool,
    report: ImportReport,
) -> None:
    """Assign an ID to every record. With `matches_accounts`, people whose email address has an
    account here are matched to it. People with the same address always become one account."""
    tables: Mapping[str, tuple[str, str, Iterable[Any]]] = {
        "user": ("users", "people", source.users),
        "group": ("user_groups", "groups", source.groups),
        "folder": ("channel_folders", "folders", source.folders),
        "channel": ("channels", "channels", source.channels),
        "emoji": ("custom_emoji", "custom emoji", source.emoji),
        "field": ("profile_fields", "profile fields", source.profile_fields),
        "linkifier": ("linkifiers", "linkifiers", source.linkifiers),
        "playground": ("playgrounds", "playgrounds", source.playgrounds),
        "draft": ("drafts", "drafts", source.drafts),
        "snippet": ("snippets", "saved snippets", source.snippets),
        "scheduled": ("scheduled_messages", "scheduled messages", source.scheduled),
        "view": ("navigation_views", "views", source.views),
    }
    people = {user.key for user in source.users}
    for key, bot in source.system_bots.items():
        if key not in people:
            ids.put("user", key, _SYSTEM_BOTS[bot])
    for kind, (table, noun, records) in tables.items():
        taken = {int(key) for key in state.tables[table].rows} | {state.tables[table].highest}
        if kind == "user":
            taken |= set(_SYSTEM_BOTS.values())
            if matches_accounts:
                _match_accounts(state, source, ids, report)
            _match_people(source, ids, taken, keep=keep, report=report)
        if kind == "group":
            taken |= set(SYSTEM_GROUP_IDS.values())
        changed = ids.assign(kind, [record.key for record in records], taken=taken, keep=keep)
        for key in changed if keep else ():
            report.change(noun, "The ID is already used here, so it got a new one.", key)


def _match_accounts(
    state: State, source: SourceOrganization, ids: Identifiers, report: ImportReport
) -> None:
    for user in source.users:
        account = state.user_with_address(user.address) if user.address else None
        if account is None or account.is_system_bot or ids.find("user", user.key) is not None:
            continue
        ids.put("user", user.key, account.id)
        ids.put("matched", user.key, account.id)
        report.change("people", MATCHED, user.address)


def _match_people(
    source: SourceOrganization,
    ids: Identifiers,
    taken: set[int],
    *,
    keep: bool,
    report: ImportReport,
) -> None:
    by_address: dict[str, Key] = {}
    for user in source.users:
        address = user.address.strip().casefold()
        if not address or ids.find("user", user.key) is not None:
            continue
        if (first := by_address.setdefault(address, user.key)) != user.key:
            # The first person gets the ID now, so that the others with this address share it.
            ids.assign("user", [first], taken=taken, keep=keep)
            ids.put("user", user.key, ids.find("user", first) or 0)
            ids.put("matched", user.key, ids.find("user", first) or 0)
            report.change(
                "people", "Someone else has this address, so they share an account.", user.address
            )


def name_of(key: Key) -> str:
    """Return a key as a text. Integers and texts never give the same text."""
    return f"#{key}" if isinstance(key, int) else key


def key_of(name: str) -> Key:
    """Return the key whose text is `name`."""
    is_number = name.startswith("#") and name[1:].removeprefix("-").isdecimal()
    return int(name[1:]) if is_number else name
