"""Quotas of lasting things per person: see `tertulia.domain.quotas`."""

import asyncio
from collections import namedtuple
from collections.abc import Awaitable, Callable
from itertools import count
from typing import NamedTuple

import msgspec
import pytest

from tertulia.domain import quotas
from tertulia.model.organization import Realm
from tertulia.model.settings import declared_settings
from tests.support import Organization, Person, Reply, row
from tests.wire.test_tus import ask, create_upload, piece, refused

_numbers = count(1)
Make = Callable[[Person], Awaitable[Reply]]


async def _channel(who: Person) -> Reply:
    return await who.post(
        "/users/me/subscriptions", subscriptions=[{"name": f"channel {next(_numbers)}"}]
    )


async def _group(who: Person) -> Reply:
    name = f"group {next(_numbers)}"
    return await who.post("/user_groups/create", name=name, description="", members=[])


async def _bot(who: Person) -> Reply:
    name = f"b{next(_numbers)}"
    return await who.post("/bots", full_name=name, short_name=name)


async def _draft(who: Person) -> Reply:
    note = {"type": "", "to": [], "topic": "", "content": "x"}
    return await who.post("/drafts", drafts=[note])


class Kind(NamedTuple):
    """A quota, and how to create one more of what it counts."""

    setting: str
    make: Make
    binds_administrators: bool
    has: int = 0
    """How many ben has at first."""


KINDS = (
    Kind("max_channels_per_user", _channel, binds_administrators=False),
    Kind("max_groups_per_user", _group, binds_administrators=False),
    Kind("max_bots_per_user", _bot, binds_administrators=False, has=1),
    Kind("max_drafts_per_user", _draft, binds_administrators=True),
)


def assert_quota_error(reply: Reply, setting: str, limit: int) -> None:
    """The error names the setting and the limit, and says what to do."""
    body = reply.refused("QUOTA_REACHED")
    assert (body["quota"], body["limit"]) == (setting, limit)
    assert f"at most {limit} " in body["msg"]
    assert body["msg"].endswith("or ask an administrator to raise the limit.")


async def test_a_person_can_have_as_many_as_the_quota_allows(org: Organization) -> None:
    ann, ben, cleo = org["ann"], org["ben"], org["cleo"]
    for kind in KINDS:
        with row(kind.setting):
            (await ann.patch("/realm", **{kind.setting: kind.has + 2})).ok
            (await kind.make(ben)).ok
            # Of three concurrent requests, one gets the last place.
            tries = await asyncio.gather(*(kind.make(ben) for _ in range(3)))
            assert sorted(one.status for one in tries) == [200, 400, 400]
            assert_quota_error(
                next(one for one in tries if one.status == 400), kind.setting, kind.has + 2
            )
            (await kind.make(cleo)).ok
            for _ in range(kind.has + 2):
                (await kind.make(ann)).ok
            if kind.binds_administrators:
                assert_quota_error(await kind.make(ann), kind.setting, kind.has + 2)
            else:
                (await kind.make(ann)).ok
            # A lower quota removes nothing.
            (await ann.patch("/realm", **{kind.setting: 1})).ok
            assert_quota_error(await kind.make(ben), kind.setting, 1)
            (await ann.patch("/realm", **{kind.setting: "unlimited"})).ok
            (await kind.make(ben)).ok


async def test_a_bot_s_things_count_for_its_owner(org: Organization) -> None:
    ann, ben, robo = org["ann"], org["ben"], org["robo"]
    for kind in KINDS[0], KINDS[3]:
        with row(kind.setting):
            (await ann.patch("/realm", **{kind.setting: 2})).ok
            (await kind.make(ben)).ok
            (await kind.make(robo)).ok
            assert_quota_error(await kind.make(robo), kind.setting, 2)
            assert_quota_error(await kind.make(ben), kind.setting, 2)


async def test_deleting_makes_room_and_deactivating_does_not(org: Organization) -> None:
    ann, ben = org["ann"], org["ben"]
    limits = {kind.setting: kind.has + 1 for kind in KINDS}
    (await ann.patch("/realm", **limits)).ok
    (draft_id,) = (await _draft(ben)).ok["ids"]
    (await ben.delete(f"/drafts/{draft_id}")).ok
    (await _draft(ben)).ok

    bot_id = (await _bot(ben)).ok["user_id"]
    (await ben.delete(f"/bots/{bot_id}")).ok
    (await _bot(ben)).refused("QUOTA_REACHED")
    group_id = (await _group(ben)).ok["group_id"]
    (await ben.post(f"/user_groups/{group_id}/deactivate")).ok
    (await _group(ben)).refused("QUOTA_REACHED")
    (await _channel(ben)).ok
    (channel,) = (one for one in org.node.state.channels if one.creator_id == ben.user_id)
    (await ben.delete(f"/streams/{channel.id}")).ok
    (await _channel(ben)).refused("QUOTA_REACHED")


async def test_a_request_beyond_the_quota_does_nothing(org: Organization) -> None:
    ann, ben = org["ann"], org["ben"]
    (await ann.patch("/realm", max_channels_per_user=60, max_drafts_per_user=2)).ok
    before = org.node.state.seq
    for names in (61, 300):  # In one part and in several.
        new = [{"name": f"new {number}"} for number in range(names)]
        assert_quota_error(
            await ben.post("/users/me/subscriptions", subscriptions=new),
            "max_channels_per_user",
            60,
        )
    note = {"type": "", "to": [], "topic": "", "content": "x"}
    assert_quota_error(await ben.post("/drafts", drafts=[note] * 3), "max_drafts_per_user", 2)
    assert org.node.state.seq == before
    new = [{"name": f"new {number}"} for number in range(60)]
    assert len((await ben.post("/users/me/subscriptions", subscriptions=new)).ok["subscribed"]) == 1
    assert_quota_error(
        await ben.post("/channels/create", name="more", subscribers=[]), "max_channels_per_user", 60
    )


async def test_a_bot_is_not_given_to_a_person_at_the_quota(org: Organization) -> None:
    ann, ben, cleo, robo = org["ann"], org["ben"], org["cleo"], org["robo"]
    (await ann.patch("/realm", max_bots_per_user=1)).ok
    (await _bot(cleo)).ok
    path = f"/bots/{robo.user_id}"
    assert_quota_error(await ben.patch(path, bot_owner_id=cleo.user_id), "max_bots_per_user", 1)
    (await ben.patch(path, bot_owner_id=ben.user_id)).ok
    (await ann.patch(path, bot_owner_id=cleo.user_id)).ok
    (await _bot(ben)).ok


async def test_unfinished_uploads_of_a_person_and_their_bots_count_together(
    org: Organization,
) -> None:
    ann, ben, robo = org["ann"], org["ben"], org["robo"]
    (await ann.patch("/realm", max_unfinished_uploads_per_user=2)).ok
    first = await create_upload(robo, 1)
    tries = [ask(who, "POST", Upload_Length="1") for who in (ben, robo, ben)]
    answers = await asyncio.gather(*tries)
    assert sorted(one.status_code for one in answers) == [201, 400, 400]
    (worst, _) = (one for one in answers if one.status_code == 400)
    refused(worst, 400, "QUOTA_REACHED")
    assert "at most 2 unfinished uploads" in worst.json()["msg"]
    await create_upload(org["cleo"], 1)
    assert (await ask(robo, "DELETE", first)).status_code == 204
    second = await create_upload(ben, 1)
    refused(await ask(ben, "POST", Upload_Length="1"), 400, "QUOTA_REACHED")
    await piece(ben, second, 0, b"x")
    await create_upload(ben, 1)


async def test_members_cannot_change_quotas_and_other_clients_are_not_sent_them(
    org: Organization,
) -> None:
    ann, ben = org["ann"], org["ben"]
    knowing = await ben.register(client_capabilities={"server_extensions": True})
    other = await ben.register()
    defaults = {field.name: field.default for field in msgspec.structs.fields(Realm)}
    defaults["upload_quota_per_user_mib"] = 10_240  # Set when an organization is created.
    settings = {"upload_quota_per_user_mib", *(quota.setting for quota in quotas.QUOTAS)}
    assert settings < {n for n, one in declared_settings(Realm).items() if one.setting.extension}
    for setting in sorted(settings):
        with row(setting):
            assert knowing.data[f"realm_{setting}"] == defaults[setting] > 0
            assert f"realm_{setting}" not in other.data
            (await ben.patch("/realm", **{setting: 5})).refused("UNAUTHORIZED_PRINCIPAL")
            (await ann.patch("/realm", **{setting: 0})).refused("REQUEST_VARIABLE_INVALID")
            (await ann.patch("/realm", **{setting: 5})).ok
            (event,) = await knowing.events()
            assert (event["property"], event["value"]) == (setting, 5)
    assert await other.events() == []


async def test_files_leave_disk_space_for_messages(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    ben = org["ben"]
    disk = namedtuple("disk", "total used free")
    gib = 2**30

    def with_free(free: int) -> None:
        usage = disk(100 * gib, 100 * gib - free, free)
        monkeypatch.setattr("shutil.disk_usage", lambda _: usage)

    with_free(gib + 5)
    where = await create_upload(ben, 5)
    refused(await ask(ben, "POST", Upload_Length="6"), 413, "REALM_UPLOAD_QUOTA")
    await ben.upload("small", b"12345")
    with_free(gib - 1)
    reply = await ben.raw("POST", "/user_uploads", files={"file": ("a", b"x")})
    assert "0.0 MiB are left" in reply.refused("REALM_UPLOAD_QUOTA")["msg"]
    refused(await piece(ben, where, 0, b"12345"), 413, "REALM_UPLOAD_QUOTA")
    with_free(2 * gib)
    assert (await piece(ben, where, 0, b"12345")).status_code == 200
