"""The user groups of a Zulip export, and the holders of permissions."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from tertulia.imports.records import (
    Holders,
    SourceGroup,
)
from tertulia.imports.zulip.realm import ExportedRealm
from tertulia.imports.zulip.rows import (
    Row,
    flag,
    number,
    seconds,
    text,
)
from tertulia.imports.zulip.settings import (
    group_permissions,
)


class ZulipGroups:
    """User groups. The value of a permission is also a group: one without a name if no named group
    has the same members."""

    def __init__(self, realm: ExportedRealm) -> None:
        self._report = realm.report
        self._known: set[int] = set()
        self._named: dict[int, Row] = {}
        self._system: dict[int, str] = {}
        # Until 2024, the groups themselves had names.
        for row in (*realm.rows("zerver_usergroup"), *realm.rows("zerver_namedusergroup")):
            key = number(row, "usergroup_ptr")
            key = number(row, "id") if key is None else key
            if key is None:
                realm.report.skip("groups", "A row of the export doesn't have an ID.", row)
                continue
            self._known.add(key)
            name = text(row, "name").removeprefix("@")
            if flag(row, "is_system_group") and name.startswith("role:"):
                self._system[key] = name
            elif name:
                self._named[key] = row
        self._members: dict[int, list[int]] = defaultdict(list)
        self._subgroups: dict[int, list[int]] = defaultdict(list)
        for row in realm.rows("zerver_usergroupmembership"):
            group, user = number(row, "user_group"), number(row, "user_profile")
            if group is not None and user is not None and group not in self._system:
                self._members[group].append(user)
        for row in realm.rows("zerver_groupgroupmembership"):
            group, below = number(row, "supergroup"), number(row, "subgroup")
            if group is not None and below is not None and group not in self._system:
                self._subgroups[group].append(below)
        self._break_circles()

    def _break_circles(self) -> None:
        done: set[int] = set()
        for start in tuple(self._subgroups):
            # Depth first, with the path from the start.
            path: list[int] = []
            on_path: set[int] = set()
            stack: list[tuple[int, bool]] = [(start, True)]
            while stack:
                group, is_arriving = stack.pop()
                if not is_arriving:
                    path.pop()
                    on_path.discard(group)
                    done.add(group)
                    continue
                if group in on_path:
                    above = path[-1]
                    self._subgroups[above].remove(group)
                    self._report.change(
                        "groups", "A group contained itself; it no longer does.", group
                    )
                    continue
                if group in done:
                    continue
                path.append(group)
                on_path.add(group)
                stack.append((group, False))
                stack += [(subgroup, True) for subgroup in self._subgroups.get(group, ())]

    def _keys(self, groups: list[int]) -> tuple[int | str, ...]:
        return tuple(
            self._system.get(group_id, group_id)
            for group_id in groups
            if group_id in self._system or group_id in self._named
        )

    def holders(self, value: Any) -> Holders | None:
        """Return the members of a group."""
        if not isinstance(value, int) or isinstance(value, bool) or value not in self._known:
            if value is not None:
                self._report.change(
                    "permissions", "Its group isn't in the export, so the default is used.", value
                )
            return None
        if value in self._system or value in self._named:
            return Holders(groups=self._keys([value]))
        return Holders(
            people=tuple(self._members.get(value, ())),
            groups=self._keys(self._subgroups.get(value, [])),
        )

    def named(self) -> Iterator[SourceGroup]:
        """Yield the groups with a name."""
        for key, row in sorted(self._named.items()):
            yield SourceGroup(
                key=key,
                name=text(row, "name"),
                description=text(row, "description"),
                created_at=seconds(row, "date_created") or None,
                creator=number(row, "creator"),
                members=tuple(self._members.get(key, ())),
                subgroups=self._keys(self._subgroups.get(key, [])),
                deactivated=flag(row, "deactivated"),
                permissions=group_permissions(row, self.holders),
            )
