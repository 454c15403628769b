"""`tertulia groups`: user groups, who is in them and what they are for."""

from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Annotated, Final

import msgspec
import typer

from tertulia.cli.accounts import account_called
from tertulia.cli.assignments import Shown, group_named, group_shown, group_typed
from tertulia.cli.commands import Printed, group
from tertulia.cli.errors import UsageError
from tertulia.cli.nouns import Noun, Verbs
from tertulia.domain.groups import groups
from tertulia.domain.groups.group_settings import GROUP_SETTINGS
from tertulia.domain.groups.groups import GroupEdit
from tertulia.model.groups import UserGroup
from tertulia.service.caller import Caller
from tertulia.state.organization import State
from tertulia.wire.api.resources.groups import (
    CreateUserGroup,
    OneUserGroup,
    UpdateUserGroup,
    create_user_group,
    deactivate_user_group,
    update_user_group,
)
from tertulia.wire.api.resources.memberships import UpdateMembers, update_group_members

app = group(
    "groups",
    "Manage user groups and their members.",
)

_ROLES: Final = "role:"
_PEOPLE: Final = "members"
_GROUPS: Final = "subgroups"


def _called(one: UserGroup) -> str:
    return one.name.removeprefix(_ROLES)


def _shown(state: State, one: UserGroup) -> dict[str, Shown]:
    status = "deactivated" if one.deactivated else "active"
    return {
        "name": _called(one),
        "status": "of a role" if one.is_system else status,
        "people": len(state.memberships.members(one.id)),
        "description": one.description,
        _PEOPLE: ",".join(_addresses(state, one)),
        _GROUPS: ",".join(_called(state.groups[inner]) for inner in one.subgroups),
        **{name: group_shown(state, getattr(one, name)) for name in GROUP_SETTINGS},
    }


def _addresses(state: State, one: UserGroup) -> list[str]:
    direct = sorted(state.memberships.direct_members(one))
    return [state.users[user_id].address for user_id in direct]


def _sent(state: State, before: UserGroup | None, typed: Mapping[str, str]) -> dict[str, str]:
    sent = dict(typed)
    for name in GROUP_SETTINGS.keys() & sent.keys():
        sent[name] = (group_named if before is None else group_typed)(state, sent[name])
    for name, ids in ((_PEOPLE, _user_ids), (_GROUPS, _group_ids)):
        if before is None and (name in sent or name == _PEOPLE):
            several = [one.strip() for one in sent.get(name, "").split(",") if one.strip()]
            sent[name] = msgspec.json.encode(ids(state, several)).decode()
    if before is None:
        sent.setdefault("description", "")
    return sent


def _user_ids(state: State, people: Sequence[str]) -> list[int]:
    return list(dict.fromkeys(account_called(state, one).id for one in people))


def _group_ids(state: State, several: Sequence[str]) -> list[int]:
    return list(dict.fromkeys(_verbs.found(state, one).id for one in several))


_verbs = Verbs(
    app,
    Noun(
        several="groups",
        one="group",
        records=lambda state: sorted(state.groups, key=attrgetter("id")),
        called=_called,
        shown=_shown,
        columns=("name", "status", "people", "description"),
        names={name: name for name in ("name", "description", _PEOPLE, _GROUPS, *GROUP_SETTINGS)},
        sent=_sent,
        takes={
            _PEOPLE: "email addresses or user IDs, separated by commas",
            _GROUPS: "groups whose members belong to this group, too, separated by commas",
            **dict.fromkeys(GROUP_SETTINGS, "the name of a group"),
        },
    ),
)
_verbs.list()
_verbs.show("baristas")
_verbs.make(
    "create",
    CreateUserGroup,
    create_user_group,
    attrgetter("group_id"),
    "name=baristas members=ann@example.com,ben@example.com can_manage_group=moderators",
)
_verbs.change(UpdateUserGroup, update_user_group, "baristas name=bar can_mention_group=members")

_Which = Annotated[str, typer.Argument(metavar="GROUP", help="Name or ID of the group.")]
_People = Annotated[
    list[str] | None,
    typer.Argument(metavar="[USER]…", help="Email addresses or user IDs of people or bots."),
]
_Groups = Annotated[
    list[str] | None,
    typer.Option("--group", metavar="GROUP", help="Name or ID of another group. Can be repeated."),
]


async def _edit(
    caller: Caller,
    which: str,
    people: Sequence[str] | None,
    several: Sequence[str] | None,
    names: tuple[str, str],
) -> Printed:
    state = caller.state
    found = _verbs.found(state, which)
    if not people and not several:
        raise UsageError("Name at least one person or bot, or use --group.")
    ids = (_user_ids(state, people or ()), _group_ids(state, several or ()))
    await update_group_members(
        caller, UpdateMembers(user_group_id=found.id, **dict(zip(names, ids, strict=True)))
    )
    return _verbs.printed(caller.state, caller.state.groups[found.id])


@_verbs.add("add", "baristas cleo@example.com --group moderators")
async def add(
    caller: Caller, which: _Which, people: _People = None, several: _Groups = None
) -> Printed:
    """Add people or other groups to a group. If one of them can't be added, none are."""
    return await _edit(caller, which, people, several, ("add", "add_subgroups"))


@_verbs.add("remove", "baristas cleo@example.com")
async def remove(
    caller: Caller, which: _Which, people: _People = None, several: _Groups = None
) -> Printed:
    """Remove people or other groups from a group. If one of them can't be removed, none are."""
    return await _edit(caller, which, people, several, ("delete", "delete_subgroups"))


_verbs.end(
    "deactivate",
    OneUserGroup,
    deactivate_user_group,
    "Deactivate a group. It can no longer be mentioned or get permissions.",
    "baristas",
)


@_verbs.add("reactivate", "baristas")
async def reactivate(caller: Caller, which: _Which) -> Printed:
    """Reactivate a group with its members."""
    found = _verbs.found(caller.state, which)
    await caller.submit(groups.change, found.id, GroupEdit(reactivate=True))
    return _verbs.printed(caller.state, caller.state.groups[found.id])
