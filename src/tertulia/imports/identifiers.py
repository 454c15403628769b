"""Which ID a record of the source gets."""

from collections.abc import Iterable, Mapping
from typing import Final

from tertulia.imports.records import Holders, Key
from tertulia.model.groups import SYSTEM_GROUPS, GroupSetting, Members, normalized

SYSTEM_GROUP_IDS: Final[Mapping[str, int]] = {group.name: group.id for group in SYSTEM_GROUPS}


class Identifiers:
    """IDs by kind of record and key.

    They are assigned when the organization is imported, and stored with it: a resumed import
    continues with the same ones.
    """

    def __init__(self, ids: Mapping[str, Mapping[str, int]] | None = None) -> None:
        self._ids = {kind: dict(some) for kind, some in (ids or {}).items()}

    def stored(self) -> Mapping[str, Mapping[str, int]]:
        """Return all of them, as `__init__` takes them."""
        return self._ids

    def put(self, kind: str, key: Key, number: int) -> None:
        """Give a record an ID."""
        self._ids.setdefault(kind, {})[_name(key)] = number

    def assign(self, kind: str, keys: Iterable[Key], *, taken: set[int], keep: bool) -> list[Key]:
        """Give the records without an ID theirs: with `keep`, an integer key itself unless it is
        taken, otherwise the next number above all. Add them to `taken`. Return the keys whose ID
        differs from an integer key."""
        ids = self._ids.setdefault(kind, {})
        waiting: list[Key] = []
        for key in keys:
            if _name(key) in ids:
                continue
            if keep and isinstance(key, int) and key > 0 and key not in taken:
                ids[_name(key)] = key
                taken.add(key)
            else:
                waiting.append(key)
        last = max(taken, default=0)
        for key in waiting:
            last += 1
            ids[_name(key)] = last
            taken.add(last)
        return [key for key in waiting if isinstance(key, int)]

    def find(self, kind: str, key: Key | None) -> int | None:
        """Return the record's ID, or None if it wasn't imported."""
        return None if key is None else self._ids.get(kind, {}).get(_name(key))

    def all(self, kind: str) -> tuple[int, ...]:
        """Return the IDs of all records of a kind, ascending."""
        return tuple(sorted(set(self._ids.get(kind, {}).values())))

    def several(self, kind: str, keys: Iterable[Key]) -> tuple[int, ...]:
        """Return the IDs of those that were imported, ascending."""
        return tuple(sorted({one for key in keys if (one := self.find(kind, key)) is not None}))

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
                tuple(one for one in groups if one is not None),
            )
        )


def _name(key: Key) -> str:
    """Keys are stored as JSON, whose names are texts. An integer and a text never meet."""
    return f"#{key}" if isinstance(key, int) else key
