"""Bringing a source's names, texts, times, and settings into a form that is allowed here."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from tertulia.domain import names
from tertulia.domain.accounts import personal_settings
from tertulia.domain.accounts.invitations import MAX_MINUTES
from tertulia.domain.groups import group_settings
from tertulia.domain.groups.group_settings import PermissionSetting
from tertulia.domain.names import lookalike_keys
from tertulia.domain.organization import settings
from tertulia.imports.identifiers import Identifiers
from tertulia.imports.records import Holders
from tertulia.imports.report import ImportReport
from tertulia.markup.render import Renderer
from tertulia.model.errors import Refused
from tertulia.model.groups import GroupSetting, Members, normalized
from tertulia.model.messages import Rendered
from tertulia.state.decision import CommandContext
from tertulia.state.state import State

_DAY: Final = 86400
_FARTHEST: Final = MAX_MINUTES * 60
"""The farthest time in the future, in seconds from now."""


def storable(text: str) -> str:
    """Return the text without null bytes and unpaired surrogates, which databases reject."""
    if text.isascii() and "\0" not in text:
        return text
    return text.replace("\0", "").encode(errors="ignore").decode()


def plausible(at: int, now: int) -> int:
    """Return the time, or now if it's in the future or before 1970."""
    return at if 0 < at <= now + _DAY else now


class TakenNames:
    """Names of one kind of record. Names that look the same count as equal."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._ascii: set[str] = set()
        self._all: tuple[set[str], set[str]] = (set(), set())
        self._others: tuple[set[str], set[str]] = (set(), set())
        self._numbers: dict[str, int] = {}
        for name in taken:
            self.add(name)

    def add(self, name: str) -> None:
        keys = lookalike_keys(name)
        if name.isascii():
            self._ascii.add(keys.plain)
        for n, skeleton in enumerate(keys.skeletons):
            self._all[n].add(skeleton)
            if not name.isascii():
                self._others[n].add(skeleton)

    def has(self, name: str) -> bool:
        """Whether a name that looks the same is taken."""
        keys = lookalike_keys(name)
        if name.isascii() and keys.plain in self._ascii:
            return True
        among = self._others if name.isascii() else self._all
        return any(text in some for text, some in zip(keys.skeletons, among, strict=True))

    def free(self, name: str, longest: int) -> str:
        """Reserve the name, with a number if it's taken, and return it."""
        result, key = name, lookalike_keys(name).plain
        while self.has(result):
            number = self._numbers[key] = self._numbers.get(key, 1) + 1
            end = f" ({number})"
            result = name[: longest - len(end)] + end
        self.add(result)
        return result


class ValueChecks:
    """Makes values valid, and reports those that it changes or drops."""

    def __init__(
        self,
        current_state: Callable[[], State],
        ids: Identifiers,
        report: ImportReport,
        now: int,
    ) -> None:
        self._current_state = current_state
        self._ids = ids
        self._report = report
        self._now = now
        self._renderer = Renderer()

    def seconds(self, at: int | None) -> int:
        """Return the time, or now if it's missing or implausible."""
        return plausible(at or 0, self._now)

    def due(self, at: int) -> int:
        """Return the time when something is due, limited to `_FARTHEST` from now."""
        return min(at, self._now + _FARTHEST)

    def render(self, context: CommandContext, text: str) -> Rendered:
        """Render a short text, such as a value of a profile."""
        return self._renderer.render(context, text)

    def html(self, text: str, user_id: int | None = None) -> str:
        """Return the HTML of a description, or of a text by this user."""
        context = CommandContext(self._current_state(), self._now, user_id)
        return self.render(context, text).html if text else ""

    def name(
        self,
        kind: str,
        text: str,
        checked: Callable[[str], str],
        longest: int,
        *,
        otherwise: str,
        taken: TakenNames | None = None,
    ) -> str:
        """Return the name in its final form: shortened, without characters that aren't allowed, and
        with a number if it's taken. If nothing remains, use `otherwise`."""
        name = otherwise
        visible = "".join(c for c in storable(text) if c.isprintable() and names.is_visible(c))
        plain = "".join(c for c in visible if c not in '*`\\>"@|')
        for attempt in (text, visible[:longest], plain[:longest]):
            try:
                name = checked(attempt)
                break
            except Refused:
                continue
        if name != text.strip():
            self._report.change(kind, "The name isn't allowed here, so it was changed.", text)
        if taken is None:
            return name
        free = taken.free(name, longest)
        if free != name:
            self._report.change(kind, "The name is already used here, so a number was added.", text)
        return free

    def text(self, kind: str, text: str, longest: int) -> str:
        """Return a description, shortened if it's too long."""
        final = storable(text).strip()
        if len(final) > longest:
            self._report.change(kind, f"It was shortened to {longest:,} characters.", final)
        return final[:longest].rstrip()

    def personal_settings(
        self, kind: str, given: Mapping[str, Any], sample: str = ""
    ) -> dict[str, Any]:
        """Return the valid settings among these personal settings."""
        return self._valid(
            kind, given, sample, personal_settings.RULES, personal_settings.checked_value
        )

    def realm_settings(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the valid settings among these settings of the organization."""
        kind = "settings of the organization"
        permissions = {n: v for n, v in given.items() if isinstance(v, Holders)}
        result = self.permissions(permissions, group_settings.REALM_SETTINGS, kind=kind)
        others = {}
        for name, value in given.items():
            if name in permissions:
                continue
            if name.endswith("_channel_id") and value != settings.NOWHERE:
                value = self._announced_in(value)
            others[name] = value
        return result | self._valid(kind, others, "", settings.CHECKED, settings.checked_value)

    def _announced_in(self, key: Any) -> int:
        channel_id = self._ids.find("channel", key) if isinstance(key, int | str) else None
        channel = self._current_state().channels.get(channel_id)
        return settings.NOWHERE if channel is None or channel.is_archived else channel.id

    def _valid(
        self,
        kind: str,
        given: Mapping[str, Any],
        sample: str,
        known: Iterable[str],
        checked: Callable[[str, Any], Any],
    ) -> dict[str, Any]:
        result = {}
        for name, value in given.items():
            if name not in known:
                self._report.skip(kind, f"There is no setting '{name}' here.", sample)
                continue
            try:
                result[name] = checked(name, storable(value) if isinstance(value, str) else value)
            except Refused:
                self._report.skip(kind, f"'{name}' can't have this value here.", repr(value))
        return result

    def permissions(
        self,
        given: Mapping[str, Holders],
        rules: Mapping[str, PermissionSetting],
        *,
        kind: str = "permissions",
        sample: str = "",
    ) -> dict[str, GroupSetting]:
        """Return the valid permissions among these."""
        permissions = {}
        for name, holders in given.items():
            rule = rules.get(name)
            if rule is None:
                self._report.skip(kind, f"There is no permission '{name}' here.", sample)
                continue
            value = self._ids.holders(holders)
            active = self._active(value)
            try:
                if active is not None:
                    group_settings.validated_setting(self._current_state(), name, rule, active)
            except Refused:
                self._report.skip(
                    kind, f"'{name}' can't have this value here, so the default is used.", sample
                )
            else:
                permissions[name] = value
        return permissions

    def _active(self, value: GroupSetting) -> GroupSetting | None:
        """Return the value without deactivated accounts and groups; None for a deactivated
        group."""
        if isinstance(value, int):
            group = self._current_state().groups.get(value)
            return None if group is not None and group.deactivated else value
        users = (self._current_state().users.get(member_id) for member_id in value.direct_members)
        groups = (self._current_state().groups.get(subgroup) for subgroup in value.direct_subgroups)
        return normalized(
            Members(
                tuple(u.id for u in users if u is not None and u.is_active and not u.is_system_bot),
                tuple(g.id for g in groups if g is not None and not g.deactivated),
            )
        )
