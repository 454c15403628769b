"""`/Groups`: the user groups that people made, without system groups and deactivated ones."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from tertulia.domain.groups import groups
from tertulia.domain.groups.groups import GroupEdit, NewGroup
from tertulia.model.groups import UserGroup
from tertulia.model.users import User
from tertulia.state.state import State
from tertulia.wire.scim import lists
from tertulia.wire.scim.call import ScimAnswer, ScimCall, ScimRefused
from tertulia.wire.scim.requests import (
    GROUP,
    AttributePath,
    attributes_of,
    conditions_of,
    items_of,
    operations_of,
    text_of,
)

_MOST_MEMBERS: Final = 20_000
"""The most members in one response. A single group is never cut."""

_BATCH_SIZE: Final = 1000
"""The number of members that are described in one turn of the event loop."""


class _SentGroup(Struct):
    """The content of a request about a group. `add` and `remove` are IDs of accounts."""

    name: str = ""
    add: set[int] = set()
    remove: set[int] = set()


async def find(call: ScimCall, _: str) -> ScimAnswer:
    conditions = conditions_of(text) if (text := call.query.get("filter", "")) else {}
    candidates = _candidates(call.state, conditions)
    groups = [
        candidate
        for candidate in candidates
        if _is_shown(candidate) and _matches(call.state, candidate, conditions)
    ]
    groups.sort(key=lambda group: group.id)
    page = lists.page_of(call.query)
    with_members = lists.wants(call.query, "members")
    shown = [
        await _object(call, group, with_members) for group in _bounded(groups[page], with_members)
    ]
    return ScimAnswer(lists.listed(shown, len(groups), page.start))


def _candidates(state: State, conditions: Mapping[str, str]) -> Iterable[UserGroup]:
    """Return the groups that may fulfill the conditions."""
    if "displayname" not in conditions:
        return state.groups
    group_id = state.groups.by_name.get(conditions["displayname"].casefold())
    return [] if group_id is None else [state.groups[group_id]]


def _bounded(page: Sequence[UserGroup], with_members: bool) -> Iterable[UserGroup]:
    """Yield the first groups, up to the size that a response may have."""
    total = 0
    for group in page:
        total += len(group.members) if with_members else 0
        if total > _MOST_MEMBERS and group is not page[0]:
            return
        yield group


async def read(call: ScimCall, resource_id: str) -> ScimAnswer:
    return await _answer(call, _existing(call.state, resource_id))


async def create(call: ScimCall, _: str) -> ScimAnswer:
    sent = _of_resource(call.state, call.body)
    if not sent.name:
        raise ScimRefused(400, "A group needs a displayName.", "invalidValue")
    groups_by_name = call.state.groups.by_name
    before = call.state.groups.get(groups_by_name.get(sent.name.casefold()))
    if before is not None and not before.deactivated:
        raise ScimRefused(409, f"A group named '{before.name}' already exists.", "uniqueness")
    if before is not None and not before.is_system:
        await call.submit(groups.change, before.id, GroupEdit(reactivate=True))
        group_id = before.id
        sent.remove = set(before.members) - sent.add
    else:
        new = NewGroup(name=sent.name, description="", members=())
        group_id = (await call.submit(groups.create, new)).id
    await call.submit(groups.sync_members, group_id, sent.add, sent.remove)
    group = call.state.groups[group_id]
    return ScimAnswer(await _object(call, group, lists.wants(call.query, "members")), 201)


async def replace(call: ScimCall, resource_id: str) -> ScimAnswer:
    group = _existing(call.state, resource_id)
    sent = _of_resource(call.state, call.body)
    if any(name.lower() == "members" for name in call.body):
        sent.remove = set(group.members) - sent.add
    await _apply(call, group, sent)
    return await _answer(call, call.state.groups[group.id])


async def update(call: ScimCall, resource_id: str) -> ScimAnswer:
    group = _existing(call.state, resource_id)
    sent = _SentGroup()
    for kind, path, value in operations_of(call.body):
        _take(call.state, group, sent, kind, path, value)
    await _apply(call, group, sent)
    # There can be many members, so the changed group isn't returned, which the standard allows.
    return ScimAnswer()


async def delete(call: ScimCall, resource_id: str) -> ScimAnswer:
    group = _existing(call.state, resource_id)
    await call.submit(groups.deactivate, group.id)
    return ScimAnswer()


async def _apply(call: ScimCall, group: UserGroup, sent: _SentGroup) -> None:
    if sent.name and sent.name != group.name:
        await call.submit(groups.change, group.id, GroupEdit(name=sent.name))
    await call.submit(groups.sync_members, group.id, sent.add, sent.remove)


def _of_resource(state: State, body: Mapping[str, Any]) -> _SentGroup:
    sent = _SentGroup()
    for path, value in attributes_of(body):
        _take(state, None, sent, "add", path, value)
    return sent


def _take(
    state: State,
    group: UserGroup | None,
    sent: _SentGroup,
    kind: str,
    path: AttributePath,
    value: Any,
) -> None:
    """Apply one attribute or operation to `sent`."""
    if path.attribute == "displayname":
        sent.name = "" if kind == "remove" else text_of(value, "displayName")
        if not sent.name:
            wrong = "mutability" if kind == "remove" else "invalidValue"
            raise ScimRefused(400, "A group needs a displayName.", wrong)
    if path.attribute != "members":
        return
    if path.selector is not None:
        by, member = path.selector
        if by != "value" or path.sub:
            raise ScimRefused(400, "Members can only be selected by their value.", "invalidPath")
        value = [{"value": member}]
    if kind == "remove":
        # Members that don't exist are already gone.
        named = {
            int(fields["value"])
            for fields in items_of(value, "members")
            if _is_number(fields.get("value"))
        }
        if value is None:
            named = sent.add.union(group.members if group is not None else ())
        sent.remove |= named
        sent.add -= named
        return
    named = {_user_id(state, fields.get("value")) for fields in items_of(value, "members")}
    if kind == "replace":
        sent.remove = set(group.members if group is not None else ()) - named
        sent.add = set()
    sent.add |= named
    sent.remove -= named


def _user_id(state: State, value: Any) -> int:
    user = state.users.get(int(value)) if _is_number(value) else None
    if user is None or user.is_bot:
        raise ScimRefused(400, f"No user with ID {str(value)[:50]} exists.", "invalidValue")
    return user.id


def _is_number(value: Any) -> bool:
    return isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 16


def _is_shown(group: UserGroup) -> bool:
    return not group.is_system and not group.deactivated


def _existing(state: State, resource_id: str) -> UserGroup:
    group = state.groups.get(int(resource_id)) if _is_number(resource_id) else None
    if group is None or not _is_shown(group):
        raise ScimRefused(404, "This group doesn't exist.")
    return group


def _matches(state: State, group: UserGroup, conditions: Mapping[str, str]) -> bool:
    for name, value in conditions.items():
        match name:
            case "id":
                fits = value == str(group.id)
            case "displayname":
                fits = value.casefold() == group.name.casefold()
            case "members" | "members.value":
                is_known = _is_number(value)
                fits = is_known and int(value) in state.groups.named_members[group.id]
            case _:
                raise ScimRefused(400, f"Groups can't be filtered by {name}.", "invalidFilter")
        if not fits:
            return False
    return True


async def _answer(call: ScimCall, group: UserGroup) -> ScimAnswer:
    return ScimAnswer(await _object(call, group, lists.wants(call.query, "members")))


async def _object(call: ScimCall, group: UserGroup, with_members: bool) -> dict[str, Any]:
    result: dict[str, Any] = {
        "schemas": [GROUP],
        "id": str(group.id),
        "displayName": group.name,
        "meta": {"resourceType": "Group", "location": f"{call.base}/Groups/{group.id}"},
    }
    if with_members:
        result["members"] = members = list[Any]()
        for number, user_id in enumerate(group.members):
            if number % _BATCH_SIZE == 0:
                await asyncio.sleep(0)
            user = call.state.users[user_id]
            if user.is_active and not user.is_bot:
                members.append(_member(call, user))
    return result


def _member(call: ScimCall, user: User) -> dict[str, str]:
    return {
        "value": str(user.id),
        "display": user.full_name,
        "$ref": f"{call.base}/Users/{user.id}",
    }
