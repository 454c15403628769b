"""Invitations: creating, listing, resending, and revoking; permissions and events."""

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from tertulia.model.changes import ChannelChanged, UserGroupCreated
from tertulia.model.groups import Members, SystemGroup, UserGroup
from tertulia.model.invitations import Invitation
from tertulia.model.users import Role
from tertulia.service.config import Config
from tests.emails import due_emails, link_path, no_email_job
from tests.support import Organization, TestClock, new_organization, open_organization, row

pytestmark = pytest.mark.usefixtures(no_email_job.__name__)

NOBODY, ADMINISTRATORS, MEMBERS = (
    group.value for group in (SystemGroup.NOBODY, SystemGroup.ADMINISTRATORS, SystemGroup.MEMBERS)
)
ZOE = {"invitee_emails": "zoe@example.com", "stream_ids": []}
MINUTE, DAY = 60, 86400


def last(org: Organization) -> Invitation:
    return list(org.node.state.invitations)[-1]


@pytest.fixture
async def aged(config: Config) -> AsyncIterator[tuple[Organization, TestClock]]:
    """An organization of ann, ben, and cleo, with a clock that tests set."""
    clock = TestClock()
    async with new_organization(config, clock=clock) as org:
        await org.add("ben")
        await org.add("cleo")
        yield org, clock


# Creating: parameters


SEPARATED: list[tuple[str, list[str]]] = [
    ("zoe@example.com", ["zoe@example.com"]),
    ("zoe@example.com,yan@example.com", ["zoe@example.com", "yan@example.com"]),
    ("zoe@example.com\nyan@example.com", ["zoe@example.com", "yan@example.com"]),
    (" zoe@example.com ,\r\n\n, yan@example.com,", ["zoe@example.com", "yan@example.com"]),
    ("zoe@example.com, ZOE@example.com", ["zoe@example.com"]),
    ("Zoe <zoe@example.com>", ["zoe@example.com"]),
    ("zoë@exämple.org", ["zoë@exämple.org"]),
]
"""What is sent, and who is invited."""


async def test_addresses_are_separated_by_commas_or_newlines(org: Organization) -> None:
    for text, invited in SEPARATED:
        with row(text):
            before = len(org.node.state.invitations)
            reply = await org["ben"].post("/invites", invitee_emails=text, stream_ids=[])
            assert set(reply.ok) == {"result", "msg"}
            made = [*org.node.state.invitations][before:]
            assert [one.address for one in made] == invited
            assert sorted(letter.to for letter in await due_emails(org)) == sorted(invited)
            for one in (await org["ben"].get("/invites")).ok["invites"]:
                assert (await org["ben"].delete(f"/invites/{one['id']}")).ok


@pytest.mark.parametrize("text", ["", " ", ",", "\n,\n"], ids=repr)
async def test_an_invitation_without_an_address_is_refused(
    readonly_org: Organization, text: str
) -> None:
    (await readonly_org["ann"].post("/invites", invitee_emails=text, stream_ids=[])).refused()
    assert not len(readonly_org.node.state.invitations)


DEFAULTS: dict[str, Any] = {
    "role": Role.MEMBER,
    "channel_ids": (),
    "group_ids": (),
    "default_channels": False,
    "tell_inviter": True,
    "welcome_text": None,
}


PARAMETERS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({}, {}),
    ({"invite_as": 100}, {"role": Role.OWNER}),
    ({"invite_as": 200}, {"role": Role.ADMINISTRATOR}),
    ({"invite_as": 300}, {"role": Role.MODERATOR}),
    ({"invite_as": 400}, {"role": Role.MEMBER}),
    ({"invite_as": 600}, {"role": Role.GUEST}),
    ({"include_realm_default_subscriptions": True}, {"default_channels": True}),
    ({"notify_referrer_on_join": False}, {"tell_inviter": False}),
    ({"welcome_message_custom_text": "null"}, {"welcome_text": None}),
    ({"welcome_message_custom_text": ""}, {"welcome_text": ""}),
    ({"welcome_message_custom_text": "Hi *you*"}, {"welcome_text": "Hi *you*"}),
    ({"welcome_message_custom_text": "😀" * 8000}, {"welcome_text": "😀" * 8000}),
]
"""What is sent, and what is stored instead of the default."""


async def test_the_parameters_of_an_invitation_have_defaults(org: Organization) -> None:
    for sent, kept in PARAMETERS:
        with row(sent):
            assert (await org["ann"].post("/invites", **ZOE, **sent)).ok
            assert kept_of(last(org)) == DEFAULTS | kept
            more = {name: one for name, one in sent.items() if name != "notify_referrer_on_join"}
            assert (await org["ann"].post("/invites/multiuse", **more)).ok
            assert kept_of(last(org)) == DEFAULTS | kept | {"tell_inviter": False}


def kept_of(invitation: Invitation) -> dict[str, Any]:
    values = msgspec.structs.asdict(invitation)
    return {name: values[name] for name in DEFAULTS}


async def test_a_link_has_no_addressees_and_does_not_notify_the_inviter(org: Organization) -> None:
    reply = await org["ann"].post(
        "/invites/multiuse", invitee_emails="x@example.com", notify_referrer_on_join=True
    )
    assert set(reply.ok["ignored_parameters_unsupported"]) == {
        "invitee_emails",
        "notify_referrer_on_join",
    }
    assert await due_emails(org) == []


MINUTES: list[tuple[dict[str, Any], int | None]] = [
    ({}, 14400),
    ({"invite_expires_in_minutes": 1}, 1),
    ({"invite_expires_in_minutes": 1440}, 1440),
    ({"invite_expires_in_minutes": "null"}, None),
]
"""What is sent, and the invitation's lifetime in minutes."""


async def test_an_invitation_expires_after_its_minutes_or_never_or_by_default_in_ten_days(
    org: Organization,
) -> None:
    for sent, minutes in MINUTES:
        for path in ["/invites", "/invites/multiuse"]:
            with row(path, sent):
                (await org["ann"].post(path, **(ZOE if path == "/invites" else {}), **sent)).ok
                (shown,) = (await org["ann"].get("/invites")).ok["invites"]
                expected = None if minutes is None else shown["invited"] + minutes * MINUTE
                assert shown["expiry_date"] == expected
                assert (await org["ann"].delete(f"{path}/{shown['id']}")).ok


async def test_the_default_expiry_is_configurable(config: Config) -> None:
    own = msgspec.structs.replace(config, invitation_link_validity_minutes=7)
    async with new_organization(own) as org:
        (await org["ann"].post("/invites/multiuse")).ok
        (shown,) = (await org["ann"].get("/invites")).ok["invites"]
        assert shown["expiry_date"] == shown["invited"] + 7 * MINUTE


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("invite_expires_in_minutes", value)
        for value in ("0", "-5", "1.5", '"10"', "soon", "[]", str(2**63), str(10**30))
    ]
    + [("invite_as", value) for value in ("0", "500", "null ", '"400"', "[400]", "member")]
    + [
        (name, value)
        for name in ("stream_ids", "group_ids")
        for value in ("1", "{}", '["1"]', "[null]", "[1.5]", "[[1]]", f"[{2**63}]", "[1", "x")
    ]
    + [
        (name, value)
        for name in ("include_realm_default_subscriptions", "notify_referrer_on_join")
        for value in ("1", "yes", '"true"', "[]")
    ]
    + [("welcome_message_custom_text", value) for value in ("x" * 8001, "a\0b")]
    + [("invitee_emails", "zoe@example.com\0")],
    ids=lambda value: str(value)[:40],
)
async def test_invalid_values_are_refused(sqlite_org: Organization, name: str, value: str) -> None:
    body = (await sqlite_org["ann"].post("/invites", **(ZOE | {name: value}))).refused(
        "REQUEST_VARIABLE_INVALID"
    )
    assert body["var_name"] == name
    assert not len(sqlite_org.node.state.invitations)


@pytest.mark.parametrize("name", ["invitee_emails", "stream_ids"])
async def test_addressees_and_channels_are_required(sqlite_org: Organization, name: str) -> None:
    sent = {other: value for other, value in ZOE.items() if other != name}
    body = (await sqlite_org["ann"].post("/invites", **sent)).refused("REQUEST_VARIABLE_MISSING")
    assert body["var_name"] == name


# Creating: permissions


@pytest.mark.parametrize(
    ("path", "setting"),
    [
        ("/invites", "can_invite_users_group"),
        ("/invites/multiuse", "create_multiuse_invite_group"),
    ],
)
async def test_people_outside_of_the_permission_s_group_cannot_invite(
    org: Organization, path: str, setting: str
) -> None:
    sent = ZOE if path == "/invites" else {}
    other = {"can_invite_users_group", "create_multiuse_invite_group"} - {setting}
    await org.change_realm(**{setting: ADMINISTRATORS}, **dict.fromkeys(other, MEMBERS))
    (await org["ann"].post(path, **sent)).ok
    (await org["ben"].post(path, **sent)).refused()
    await org.change_realm(**{setting: Members((org["ben"].user_id, org["gus"].user_id), ())})
    (await org["ben"].post(path, **sent, invite_as=600)).ok
    for who in ("ann", "cleo"):
        (await org[who].post(path, **sent, invite_as=600)).refused()
    # Guests never have this permission, whatever group they are in. Bots invite nobody.
    (await org["gus"].post(path, **sent, invite_as=600)).refused()
    await org.change_realm(**{setting: MEMBERS})
    (await org["robo"].post(path, **sent)).refused()
    await org.change_realm(**{setting: NOBODY})
    (await org["ann"].post(path, **sent)).refused()


async def test_by_default_members_invite_by_email_and_administrators_create_links(
    org: Organization,
) -> None:
    await org.add("ada", Role.ADMINISTRATOR)
    await org.add("mo", Role.MODERATOR)
    for who, by_mail, by_link in (
        ("ann", True, True),
        ("ada", True, True),
        ("mo", True, False),
        ("ben", True, False),
        ("gus", False, False),
    ):
        mail = await org[who].post("/invites", **ZOE, invite_as=600)
        link = await org[who].post("/invites/multiuse", invite_as=600)
        assert (mail.status == 200, link.status == 200) == (by_mail, by_link), who


@pytest.mark.parametrize("path", ["/invites", "/invites/multiuse"])
async def test_people_invite_to_their_own_role_and_lower_ones(org: Organization, path: str) -> None:
    await org.change_realm(create_multiuse_invite_group=MEMBERS)
    sent = ZOE if path == "/invites" else {}
    for role, allowed in (
        (Role.OWNER, {100, 200, 300, 400, 600}),
        (Role.ADMINISTRATOR, {200, 300, 400, 600}),
        (Role.MODERATOR, {300, 400, 600}),
        (Role.MEMBER, {400, 600}),
    ):
        person = await org.add(f"pat-{role}", role)
        done = set()
        for number in (100, 200, 300, 400, 600):
            reply = await person.post(path, **sent, invite_as=number)
            if reply.status == 200:
                done.add(number)
            else:
                reply.refused()
        assert done == allowed, role


@pytest.mark.parametrize("path", ["/invites", "/invites/multiuse"])
async def test_channels_are_default_ones_or_those_to_which_the_inviter_can_subscribe_others(
    org: Organization, path: str
) -> None:
    await org.change_realm(create_multiuse_invite_group=MEMBERS)
    default = await org.channel("everybody", is_default=True)
    public = await org.channel("public")
    hidden = await org.channel("hidden", "ann", is_private=True)
    own = await org.channel(
        "own", "ben", can_add_subscribers_group=Members((org["ben"].user_id,), ())
    )
    sent = {"invitee_emails": "zoe@example.com"} if path == "/invites" else {}

    async def attempt(*channel_ids: int) -> bool:
        reply = await org["ben"].post(path, **sent, stream_ids=list(channel_ids))
        if reply.status != 200:
            reply.refused()
            return False
        assert last(org).channel_ids == channel_ids
        return True

    assert await attempt(default, public, own)
    assert not await attempt(public, hidden)
    assert not await attempt(public, 999)
    await org.change_realm(can_add_subscribers_group=ADMINISTRATORS)
    # Without permission to subscribe others, no channels can be named, not even default ones.
    assert not await attempt(public)
    assert not await attempt(default)
    assert await attempt()
    # With permission for one channel, default channels may be named, too.
    assert await attempt(own)
    assert await attempt(default, own)
    assert not await attempt(public, own)
    assert (
        await org["ben"].post(path, **sent, stream_ids=[], include_realm_default_subscriptions=True)
    ).ok
    await org.do(
        ChannelChanged(channel_id=own, values={"is_archived": True}, was={"is_archived": False})
    )
    assert not await attempt(own)


async def test_an_invalid_channel_refuses_the_whole_invitation(org: Organization) -> None:
    body = (
        await org["ann"].post("/invites", invitee_emails="zoe@example.com", stream_ids=[404])
    ).refused()
    assert "404" in body["msg"]
    assert not len(org.node.state.invitations)
    assert await due_emails(org) == []


@pytest.mark.parametrize("path", ["/invites", "/invites/multiuse"])
async def test_groups_are_those_to_which_the_inviter_can_add_members(
    org: Organization, path: str
) -> None:
    await org.change_realm(create_multiuse_invite_group=MEMBERS)
    ben = Members((org["ben"].user_id,), ())
    kinds: dict[int, tuple[bool, dict[str, Any]]] = {
        101: (True, {"can_add_members_group": ben}),
        102: (True, {"can_manage_group": ben}),
        103: (False, {"can_join_group": ben, "can_remove_members_group": ben}),
        104: (False, {"can_add_members_group": ben, "deactivated": True}),
    }
    for group_id, (_, settings) in kinds.items():
        group = UserGroup(id=group_id, name=f"group {group_id}", **settings)
        await org.do(UserGroupCreated(group=group))
    sent = ZOE if path == "/invites" else {}
    for group_id, (allowed, _) in kinds.items():
        reply = await org["ben"].post(path, **sent, group_ids=[group_id])
        assert (reply.status == 200) is allowed, group_id
        if not allowed:
            reply.refused()
    for group_id in (SystemGroup.MEMBERS.value, SystemGroup.NOBODY.value, 999, -1):
        (await org["ben"].post(path, **sent, group_ids=[group_id])).refused()
    await org.change_realm(can_manage_all_groups=MEMBERS)
    (await org["ben"].post(path, **sent, group_ids=[103])).ok
    assert last(org).group_ids == (103,)


@pytest.mark.parametrize("path", ["/invites", "/invites/multiuse"])
async def test_only_administrators_set_a_welcome_text(org: Organization, path: str) -> None:
    await org.change_realm(create_multiuse_invite_group=MEMBERS)
    await org.add("ada", Role.ADMINISTRATOR)
    sent = ZOE if path == "/invites" else {}
    for who, kept in (("ann", "Hi"), ("ada", "Hi"), ("ben", None)):
        (await org[who].post(path, **sent, welcome_message_custom_text="Hi")).ok
        assert last(org).welcome_text == kept, who


# Addressees who can't be invited


async def test_existing_accounts_are_skipped_and_the_others_are_invited(org: Organization) -> None:
    (await org["ann"].delete(f"/users/{org['cleo'].user_id}")).ok
    reply = await org["ann"].post(
        "/invites",
        invitee_emails="BEN@example.com, zoe@example.com, cleo@example.com",
        stream_ids=[],
    )
    body = reply.refused("INVITATION_FAILED")
    assert {address: gone for address, _, gone in body["errors"]} == {
        "BEN@example.com": False,
        "cleo@example.com": True,
    }
    assert all(isinstance(reason, str) and reason for _, reason, _ in body["errors"])
    assert body["sent_invitations"] is True
    assert body["daily_limit_reached"] is False
    assert body["license_limit_reached"] is False
    assert [letter.to for letter in await due_emails(org)] == ["zoe@example.com"]
    assert [one["email"] for one in (await org["ann"].get("/invites")).ok["invites"]] == [
        "zoe@example.com"
    ]


@pytest.mark.parametrize(
    "addresses",
    [
        "ben@example.com",
        "not an address, zoe@example.com",
        "zoe@example.com, zoe@",
        "zoe@example.com, me@mailinator.com",
        "zoe@example.com, me@sub.mailinator.com",
        f"zoe@example.com, {'x' * 250}@example.com",
    ],
    ids=lambda value: value[:60],
)
async def test_nobody_is_invited_if_an_address_is_invalid_or_none_is_left(
    readonly_org: Organization, addresses: str
) -> None:
    reply = await readonly_org["ann"].post("/invites", invitee_emails=addresses, stream_ids=[])
    body = reply.refused("INVITATION_FAILED")
    assert body["sent_invitations"] is False
    assert len(body["errors"]) == 1
    assert not len(readonly_org.node.state.invitations)


async def test_disposable_addresses_are_accepted_if_the_organization_allows_them(
    org: Organization,
) -> None:
    await org.change_realm(disallow_disposable_email_addresses=False)
    (await org["ann"].post("/invites", invitee_emails="a@mailinator.com", stream_ids=[])).ok


async def test_addresses_can_be_restricted_to_the_organization_s_domains(
    org: Organization,
) -> None:
    (await org["ann"].post("/realm/domains", domain="home.org", allow_subdomains=False)).ok
    (await org["ann"].patch("/realm", emails_restricted_to_domains=True)).ok
    body = (await org["ann"].post("/invites", **ZOE)).refused("INVITATION_FAILED")
    assert body["sent_invitations"] is False
    (await org["ann"].post("/invites", invitee_emails="zoe@home.org", stream_ids=[])).ok
    (await org["ben"].patch("/settings", email="ben@away.org")).refused()
    (await org["ben"].patch("/settings", email="ben@home.org")).ok


async def test_invitation_emails_have_a_daily_limit(config: Config) -> None:
    clock = TestClock()
    own = msgspec.structs.replace(config, invitations_per_day=3)
    async with new_organization(own, clock=clock) as org:
        await org.add("ben")
        (await org["ann"].post("/invites", invitee_emails="a@x.org,b@x.org", stream_ids=[])).ok
        reply = await org["ben"].post("/invites", invitee_emails="c@x.org,d@x.org", stream_ids=[])
        body = reply.refused("INVITATION_FAILED")
        assert body["daily_limit_reached"] is True
        assert body["sent_invitations"] is False
        assert body["errors"] == []
        first = (await org["ann"].get("/invites")).ok["invites"][0]["id"]
        # Revoking an invitation doesn't restore the limit, and resending counts.
        (await org["ann"].delete(f"/invites/{first + 1}")).ok
        (await org["ann"].post(f"/invites/{first}/resend")).ok
        (await org["ann"].post(f"/invites/{first}/resend")).refused()
        (await org["ben"].post("/invites", invitee_emails="c@x.org", stream_ids=[])).refused(
            "INVITATION_FAILED"
        )
        # Links send no emails.
        (await org["ann"].post("/invites/multiuse")).ok
        clock.ahead = DAY + 1
        (await org["ben"].post("/invites", invitee_emails="c@x.org", stream_ids=[])).ok


async def test_concurrent_inviters_share_the_daily_limit(config: Config) -> None:
    own = msgspec.structs.replace(config, invitations_per_day=3)
    async with new_organization(own) as org:
        replies = await asyncio.gather(
            *(
                org["ann"].post("/invites", invitee_emails=f"{n}@x.org,{n}@y.org", stream_ids=[])
                for n in range(3)
            )
        )
        assert sorted(reply.status for reply in replies) == [200, 400, 400]
        assert len(org.node.state.invitations) == 2


# Listing


async def test_an_invitation_is_listed_with_all_details(org: Organization) -> None:
    (await org["ben"].post("/invites", **ZOE, invite_as=600, notify_referrer_on_join=False)).ok
    link = (await org["ann"].post("/invites/multiuse", invite_expires_in_minutes="null")).ok
    found = (await org["ann"].get("/invites")).ok
    assert found["mail_is_sent"] is False
    by_mail, by_link = found["invites"]
    # Without email, the inviter passes on the link.
    assert by_mail.pop("link_url").startswith("http://chat.test/join/")
    now = int(org.node.clock())
    assert now - 60 <= by_mail.pop("invited") <= now
    by_mail.pop("expiry_date")
    assert by_mail == {
        "id": 1,
        "invited_by_user_id": org["ben"].user_id,
        "invited_as": 600,
        "email": "zoe@example.com",
        "notify_referrer_on_join": False,
        "is_multiuse": False,
    }
    by_link.pop("invited")
    assert by_link == {
        "id": 2,
        "invited_by_user_id": org["ann"].user_id,
        "expiry_date": None,
        "invited_as": 400,
        "link_url": link["invite_link"],
        "notify_referrer_on_join": False,
        "is_multiuse": True,
    }
    assert link["invite_link"].startswith("http://chat.test/join/")
    assert link["qr_code"].startswith("data:image/svg+xml")


async def test_the_link_of_an_emailed_invitation_is_shown_only_to_its_addressee(
    config: Config,
) -> None:
    own = msgspec.structs.replace(config, smtp_host="mail.test")
    async with new_organization(own) as org:
        (await org["ann"].post("/invites", **ZOE)).ok
        found = (await org["ann"].get("/invites")).ok
        assert found["mail_is_sent"] is True
        assert [one.get("link_url") for one in found["invites"]] == [None]


async def test_administrators_see_all_invitations_and_others_their_own(org: Organization) -> None:
    await org.change_realm(create_multiuse_invite_group=MEMBERS)
    await org.add("ada", Role.ADMINISTRATOR)
    for who, role in (("ann", 100), ("ann", 200), ("ben", 400), ("cleo", 600)):
        (await org[who].post("/invites/multiuse", invite_as=role)).ok
    for who, ids in (
        ("ann", [1, 2, 3, 4]),
        ("ada", [2, 3, 4]),  # Invitations of owners are for owners.
        ("ben", [3]),
        ("cleo", [4]),
        ("gus", []),
        ("robo", []),
    ):
        shown = (await org[who].get("/invites")).ok["invites"]
        assert [one["id"] for one in shown] == ids, who
    (await org.nobody.get("/invites")).refused("UNAUTHORIZED", 401)


async def test_expired_and_used_invitations_are_not_listed(
    aged: tuple[Organization, TestClock],
) -> None:
    org, clock = aged
    (await org["ben"].post("/invites", **ZOE, invite_expires_in_minutes=10)).ok
    (await org["ann"].post("/invites/multiuse", invite_expires_in_minutes=20)).ok
    clock.ahead = 10 * MINUTE + 1
    (one,) = (await org["ann"].get("/invites")).ok["invites"]
    assert one["is_multiuse"]
    (await org["ann"].delete("/invites/1")).refused()
    (await org["ann"].post("/invites/1/resend")).refused()
    clock.ahead = 20 * MINUTE + 1
    assert (await org["ann"].get("/invites")).ok["invites"] == []
    (await org["ann"].delete("/invites/multiuse/2")).refused()


# Revoking and resending

CALLS = (
    ("DELETE", "/invites/{mail}"),
    ("DELETE", "/invites/multiuse/{link}"),
    ("PATCH", "/invites/multiuse/{link}"),
    ("POST", "/invites/{mail}/resend"),
)


async def create_invitations(org: Organization, who: str, role: int = 400) -> dict[str, int]:
    """The IDs of an emailed invitation and a link by this person."""
    (await org[who].post("/invites", **ZOE, invite_as=role)).ok
    by_mail = last(org).id
    (await org[who].post("/invites/multiuse", invite_as=role)).ok
    return {"mail": by_mail, "link": last(org).id}


@pytest.mark.parametrize(("method", "path"), CALLS)
async def test_the_inviter_and_administrators_manage_an_invitation(
    org: Organization, method: str, path: str
) -> None:
    await org.change_realm(create_multiuse_invite_group=MEMBERS)
    await org.add("ada", Role.ADMINISTRATOR)
    await org.add("mo", Role.MODERATOR)
    for inviter, role, allowed, refused in (
        ("ben", 400, ("ben",), ("cleo", "mo", "gus", "robo")),
        ("ben", 400, ("ada",), ()),
        ("ben", 400, ("ann",), ()),
        ("ann", 100, ("ann",), ("ada", "ben")),
    ):
        ids = await create_invitations(org, inviter, role)
        for who in refused:
            (await org[who].request(method, path.format(**ids))).refused()
        for who in allowed:
            (await org[who].request(method, path.format(**ids))).ok


async def test_the_terms_of_a_link_change_for_those_who_use_it_later(
    aged: tuple[Organization, TestClock],
) -> None:
    org, clock = aged
    clock.stopped_at = time.time()
    ann, ben = org["ann"], org["ben"]
    await org.change_realm(create_multiuse_invite_group=MEMBERS)
    channel = (await ann.post("/channels/create", name="team", subscribers=[])).ok["id"]
    link = (await ben.post("/invites/multiuse", invite_expires_in_minutes=5)).ok["invite_link"]
    place, before = f"/invites/multiuse/{last(org).id}", last(org)
    queue = await ben.register(event_types=["invites_changed"])
    new = {"invite_as": 600, "stream_ids": [channel], "invite_expires_in_minutes": 10}
    (await ann.patch(place, **new, include_realm_default_subscriptions=True)).ok
    clock.ahead += 60
    (await ann.patch(place, **{**new, "invite_expires_in_minutes": 10})).ok
    assert [event["type"] for event in await queue.events()] == ["invites_changed"] * 2
    assert last(org) == msgspec.structs.replace(
        before,
        role=Role.GUEST,
        channel_ids=(channel,),
        expires_at=int(clock()) + 10 * MINUTE,
        default_channels=True,
    )
    (listed,) = (await ben.get("/invites")).ok["invites"]
    assert (listed["link_url"], listed["invited_as"]) == (link, 600)
    (await ann.patch(place, invite_as=200)).refused()  # More than ben, who created it, may offer.
    (await ben.patch(place, welcome_message_custom_text="Hi")).refused("UNAUTHORIZED_PRINCIPAL")
    (await ben.patch(place, stream_ids=[999])).refused()
    (await ann.patch(place, welcome_message_custom_text="Hi", invite_expires_in_minutes="null")).ok
    assert (last(org).welcome_text, last(org).expires_at) == ("Hi", None)
    (await ann.patch(place, welcome_message_custom_text="Hi")).ok
    assert len(await queue.events()) == 1


@pytest.mark.parametrize(("method", "path"), CALLS)
async def test_an_unknown_revoked_or_wrong_kind_of_invitation_is_refused(
    org: Organization, method: str, path: str
) -> None:
    ids = await create_invitations(org, "ann")
    other = {"mail": ids["link"], "link": ids["mail"]}
    for wrong in (other, {"mail": 999, "link": 999}, {"mail": 2**52, "link": 2**52}):
        (await org["ann"].request(method, path.format(**wrong))).refused()
    (await org["ann"].delete(f"/invites/{ids['mail']}")).ok
    (await org["ann"].delete(f"/invites/multiuse/{ids['link']}")).ok
    (await org["ann"].request(method, path.format(**ids))).refused()
    assert (await org["ann"].get("/invites")).ok["invites"] == []


async def test_an_invitation_is_resent_with_the_same_link(org: Organization) -> None:
    (await org["ben"].post("/invites", **ZOE)).ok
    (first,) = await due_emails(org)
    before = (await org["ben"].get("/invites")).ok["invites"]
    (await org["ben"].post("/invites/1/resend")).ok
    (second,) = await due_emails(org)
    assert link_path(first) == link_path(second)
    assert second.to == "zoe@example.com"
    assert (await org["ben"].get("/invites")).ok["invites"] == before


async def test_a_revoked_invitation_is_not_emailed(org: Organization) -> None:
    (await org["ben"].post("/invites", **ZOE)).ok
    (await org["ben"].delete("/invites/1")).ok
    assert await due_emails(org) == []


async def test_deactivation_revokes_a_person_s_invitations(org: Organization) -> None:
    ids = await create_invitations(org, "ann")
    (await org["ben"].post("/invites", **ZOE)).ok
    listener = await org["ann"].register(event_types=["invites_changed"])
    (await org["ann"].delete(f"/users/{org['ben'].user_id}")).ok
    assert [event["type"] for event in await listener.events()] == ["invites_changed"]
    shown = (await org["ann"].get("/invites")).ok["invites"]
    assert {one["id"] for one in shown} == set(ids.values())


async def test_invitations_survive_a_restart(org: Organization, config: Config) -> None:
    ids = await create_invitations(org, "ann")
    before = (await org["ann"].get("/invites")).ok["invites"]
    async with open_organization(config) as again:
        assert (await again["ann"].get("/invites")).ok["invites"] == before
        (await again["ann"].delete(f"/invites/{ids['mail']}")).ok


# Events


async def test_administrators_and_the_inviter_get_an_event_when_the_list_changes(
    org: Organization,
) -> None:
    await org.change_realm(create_multiuse_invite_group=MEMBERS)
    listeners = {
        who: await org[who].register(event_types=["invites_changed"])
        for who in ("ann", "ben", "cleo", "gus", "robo")
    }

    async def heard() -> dict[str, int]:
        found = {}
        for who, listener in listeners.items():
            events = await listener.events()
            assert all(set(event) == {"id", "type"} for event in events)
            if events:
                found[who] = len(events)
        return found

    for method, path, parameters in (
        ("POST", "/invites", ZOE | {"invitee_emails": "a@x.org,b@x.org"}),
        ("POST", "/invites/1/resend", {}),
        ("DELETE", "/invites/1", {}),
        ("POST", "/invites/multiuse", {}),
        ("DELETE", "/invites/multiuse/3", {}),
    ):
        (await org["ben"].request(method, path, **parameters)).ok
        assert await heard() == {"ann": 1, "ben": 1}, path
    (await org["ben"].post("/invites", invitee_emails="cleo@example.com", stream_ids=[])).refused(
        "INVITATION_FAILED"
    )
    assert await heard() == {}
