"""`tertulia groups`: user groups, their members, and their permissions."""

from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Annotated, Final

import msgspec
import typer

from tertulia.cli.accounts import user_ids
from tertulia.cli.assignments import Shown, group_named, group_shown, group_typed
from tertulia.cli.commands import Printed
from tertulia.cli.errors import UsageError
from tertulia.cli.nouns import ManagedNoun, by_id
from tertulia.domain.groups import groups as verbs
from tertulia.domain.groups.group_settings import GROUP_SETTINGS
from tertulia.model.groups import UserGroup
from tertulia.service.node import Caller
from tertulia.state.state import State
from tertulia.wire.api.groups.endpoints import (
    create_user_group,
    deactivate_user_group,
    update_group_members,
    update_user_group,
)

_ROLES: Final = "role:"


def _called(group: UserGroup) -> str:
    return group.name.removeprefix(_ROLES)


def _shown(state: State, group: UserGroup) -> dict[str, Shown]:
    status = "deactivated" if group.deactivated else "active"
    direct = sorted(state.memberships.direct_members(group))
    return {
        "name": _called(group),
        "status": "of a role" if group.is_system else status,
        "people": len(state.memberships.members(group.id)),
        "description": group.description,
        "members": ",".join(state.users[user_id].address for user_id in direct),
        "subgroups": ",".join(_called(state.groups[inner]) for inner in group.subgroups),
        **{name: group_shown(state, getattr(group, name)) for name in GROUP_SETTINGS},
    }


def _sent(state: State, before: UserGroup | None, typed: Mapping[str, str]) -> dict[str, str]:
    sent = dict(typed)
    for name in GROUP_SETTINGS.keys() & sent.keys():
        sent[name] = (group_named if before is None else group_typed)(state, sent[name])
    if before is None:
        sent = {"description": "", "members": "", **sent}
        for name, ids in (("members", user_ids), ("subgroups", _group_ids)):
            if name in sent:
                several = [text.strip() for text in sent[name].split(",") if text.strip()]
                sent[name] = msgspec.json.encode(ids(state, several)).decode()
    return sent


def _group_ids(state: State, several: Sequence[str]) -> list[int]:
    return list(dict.fromkeys(_groups.found(state, text).id for text in several))


_groups = ManagedNoun(
    "groups",
    "Manage user groups and their members.",
    singular="group",
    records=by_id("groups"),
    called=_called,
    shown=_shown,
    columns=("name", "status", "people", "description"),
    settings=("name", "description", "members", "subgroups", *GROUP_SETTINGS),
    sent=_sent,
    takes={
        "members": "email addresses or user IDs, separated by commas",
        "subgroups": "groups whose members belong to this group, too, separated by commas",
        **dict.fromkeys(GROUP_SETTINGS, "the name of a group"),
    },
)
groups = _groups.app
_groups.list()
_groups.show("baristas")
_groups.create(
    "create",
    create_user_group,
    "name=baristas members=ann@example.com,ben@example.com can_manage_group=moderators",
    attrgetter("group_id"),
)
_groups.change(update_user_group, "baristas name=bar can_mention_group=members")

_Which = Annotated[str, typer.Argument(metavar="GROUP", help="Name or ID of the group.")]
_People = Annotated[
    list[str] | None,
    typer.Argument(metavar="[USER]…", help="Email addresses or user IDs of people or bots."),
]
_Groups = Annotated[
    list[str] | None,
    typer.Option("--group", metavar="GROUP", help="Name or ID of another group. Can be repeated."),
]


@_groups.add("add", "baristas cleo@example.com --group moderators")
async def add(
    caller: Caller, which: _Which, people: _People = None, several: _Groups = None
) -> Printed:
    """Add people or other groups to a group. If one of them can't be added, none are."""
    return await _edit(caller, which, people, several, ("add", "add_subgroups"))


@_groups.add("remove", "baristas cleo@example.com")
async def remove(
    caller: Caller, which: _Which, people: _People = None, several: _Groups = None
) -> Printed:
    """Remove people or other groups from a group. If one of them can't be removed, none are."""
    return await _edit(caller, which, people, several, ("delete", "delete_subgroups"))


async def _edit(
    caller: Caller,
    which: str,
    people: Sequence[str] | None,
    several: Sequence[str] | None,
    names: tuple[str, str],
) -> Printed:
    state = caller.state
    group = _groups.found(state, which)
    if not people and not several:
        raise UsageError("Name at least one person or bot, or use --group.")
    ids = (user_ids(state, people or ()), _group_ids(state, several or ()))
    await update_group_members(caller, group.id, **dict(zip(names, ids, strict=True)))
    return _groups.printed(caller.state, caller.state.groups[group.id])


_groups.end(
    "deactivate",
    deactivate_user_group,
    "Deactivate a group. It can no longer be mentioned or get permissions.",
    "baristas",
)


@_groups.add("reactivate", "baristas")
async def reactivate(caller: Caller, which: _Which) -> Printed:
    """Reactivate a group with its members."""
    group = _groups.found(caller.state, which)
    await caller.submit(verbs.change, group.id, verbs.GroupEdit(reactivate=True))
    return _groups.printed(caller.state, caller.state.groups[group.id])
