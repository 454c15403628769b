"""The state of the running Zulip, with the IDs here of its records."""

from typing import Any, Final

from msgspec import Struct, field

from tertulia.domain.organization import lifecycle
from tertulia.imports.zulip.rows import Row, number, numbers, text
from tertulia.model.groups import SYSTEM_GROUPS, GroupSetting, Members, normalized
from tertulia.state.state import State

_SYSTEM_GROUP_IDS: Final = {group.name: group.id for group in SYSTEM_GROUPS}
_SYSTEM_BOTS: Final = {
    "notification-bot": lifecycle.NOTIFICATION_BOT,
    "welcome-bot": lifecycle.WELCOME_BOT,
    "emailgateway": lifecycle.EMAIL_GATEWAY,
}


class PreviousState(Struct, kw_only=True):
    """The state of the running Zulip."""

    state: Row
    """The response of POST /register."""
    channels: list[Row]
    bots: dict[int, int] = field(default_factory=dict)
    """IDs here of the server's own bots."""
    system: dict[int, int] = field(default_factory=dict)
    """IDs here of its system groups."""

    def __post_init__(self) -> None:
        for row in rows(self.state, "cross_realm_bots"):
            known = _SYSTEM_BOTS.get(text(row, "email").partition("@")[0])
            if known is not None:
                self.bots[number(row, "user_id") or 0] = known
        for row in rows(self.state, "realm_user_groups"):
            known = _SYSTEM_GROUP_IDS.get(text(row, "name"))
            if known is not None:
                self.system[number(row, "id") or 0] = known

    @property
    def owner_id(self) -> int:
        """The ID of the account whose API key is used."""
        return number(self.state, "user_id") or 0

    def user(self, key: int | None) -> int | None:
        """Return the ID here of an account there, or None."""
        return None if key is None else self.bots.get(key, key)

    def setting(self, state: State, value: Any) -> GroupSetting | None:
        """Return the holders of a permission; None if the value isn't valid here."""
        if isinstance(value, int) and not isinstance(value, bool):
            group = self.system.get(value, value)
            return group if group in state.groups else None
        if not isinstance(value, dict):
            return None
        people = {self.user(user_id) or 0 for user_id in numbers(value, "direct_members")}
        below = {
            self.system.get(group_id, group_id) for group_id in numbers(value, "direct_subgroups")
        }
        return normalized(
            Members(
                tuple(sorted(person_id for person_id in people if person_id in state.users)),
                tuple(sorted(group_id for group_id in below if group_id in state.groups)),
            )
        )


def rows(row: Row, name: str) -> list[Row]:
    """Return the objects in a list of a response, or an empty list."""
    given = row.get(name)
    return [value for value in given if isinstance(value, dict)] if isinstance(given, list) else []
