"""Joining: the pages that invitations and confirmations lead to, and the accounts that they
create."""

import asyncio
import logging
import re
import time
from typing import Any

import httpx
import msgspec
import pytest

from tertulia.domain.organization.lifecycle import WELCOME_BOT
from tertulia.model.changes import (
    ChannelChanged,
    RealmChanged,
    UserGroupCreated,
)
from tertulia.model.groups import SystemGroup, UserGroup
from tertulia.model.users import Role
from tertulia.service.config import Config
from tertulia.wire.http.request_head import SESSION_COOKIE
from tertulia.wire.pages import form_flow
from tests.browsers import page_text
from tests.emails import due_emails, link_path, no_email_job
from tests.support import Organization, Person, TestClock, new_organization, open_organization, row

pytestmark = pytest.mark.usefixtures(no_email_job.__name__)

PASSWORD = "a few good words"
FILLED = {"full_name": "Zoe Zander", "password": PASSWORD}
DAY = 86400


async def invited(org: Organization, who: str = "ann", **terms: Any) -> str:
    """The link of an invitation for zoe@example.com."""
    sent = {"invitee_emails": "zoe@example.com", "stream_ids": [], **terms}
    (await org[who].post("/invites", **sent)).ok
    (letter,) = await due_emails(org)
    return link_path(letter)


async def opened(org: Organization, **terms: Any) -> str:
    """The path of a reusable link."""
    link = (await org["ann"].post("/invites/multiuse", **terms)).ok["invite_link"]
    return str(link.removeprefix("http://chat.test"))


async def send(org: Organization, path: str, **fields: str) -> httpx.Response:
    return await org.http.post(path, data=fields)


async def joined(org: Organization, path: str, **fields: str) -> Person:
    """Someone who submits the form and gets an account."""
    response = await send(org, path, **(FILLED | fields))
    assert (response.status_code, response.headers["location"]) == (303, "/"), response.text
    assert SESSION_COOKIE in org.http.cookies
    org.http.cookies.clear()
    user = max(org.node.state.users, key=lambda user: user.id)
    assert fields.get("full_name", "Zoe Zander") == user.full_name
    return org.person_of(user.address.partition("@")[0], user)


async def test_a_welcome_email_is_sent_if_the_organization_wants_it(
    org: Organization,
) -> None:
    await joined(org, await invited(org))
    (welcome,) = await due_emails(org)
    assert (welcome.to, welcome.subject) == ("zoe@example.com", "Welcome to Example")
    await org.change_realm(send_welcome_emails=False)
    await joined(org, await opened(org), email="yan@example.com", full_name="Yan")
    assert await due_emails(org) == []


# The pages


async def test_the_form_names_the_organization_and_the_address(org: Organization) -> None:
    await org.change_realm(name="Tea & <Talk>")
    page = await org.http.get(await invited(org))
    assert page.status_code == 200
    assert "Join Tea & <Talk>" in page_text(page)
    assert "<Talk>" not in page.text
    assert 'value="zoe@example.com"' in page.text
    assert re.search(r'name="email"[^>]* readonly', page.text)
    for name in ("full_name", "password"):
        assert f'<label for="{name}">' in page.text
        assert re.search(rf'id="{name}" name="{name}"[^>]* required', page.text)
    assert "<script" not in page.text


async def test_the_pages_cannot_be_framed_or_cached(org: Organization) -> None:
    path = await invited(org)
    for response in (
        await org.http.get(path),
        await send(org, path, full_name="", password=""),
        await org.http.get("/join"),
        await org.http.get("/join/i1-wrong"),
        await org.http.get("/confirm/c1-wrong"),
    ):
        policy = response.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "script" not in policy
        assert response.headers["cache-control"] == "no-store"
        assert response.headers["referrer-policy"] == "same-origin"
        assert response.headers["x-content-type-options"] == "nosniff"
    assert (await org.http.head(path)).status_code == 200
    styles = re.findall(r'stylesheet" href="([^"]+)"', (await org.http.get(path)).text)
    assert styles
    for one in styles:
        assert (await org.http.get(one)).headers["content-type"].startswith("text/css")


TOKENS = (
    *("x", "i1", "i1-", "1-abc", "i999-{proof}", "c1-{proof}", "i2-{proof}", "i01-{proof}"),
    *("i1-{proof}x", "i1-{other}", "I1-{proof}", "i1-{proof}/", "%00", "i1-%F0%9F%98%80"),
    "i99999999999999999999-{proof}",
)


@pytest.mark.parametrize("tokens", [TOKENS[:8], TOKENS[8:]], ids=["first", "rest"])
async def test_a_forged_link_opens_nothing(org: Organization, tokens: tuple[str, ...]) -> None:
    """(After ten attempts, the client is blocked.)"""
    await invited(org)
    proof = org.node.links.invitation("", org.node.state.invitations[1]).partition("-")[2]
    (await org["ann"].post("/invites/multiuse")).ok
    other = ("B" if proof[0] != "B" else "C") + proof[1:]
    for token in tokens:
        path = "/join/" + token.format(proof=proof, other=other)
        for response in (await org.http.get(path), await send(org, path, **FILLED)):
            assert response.status_code == 404, path
        assert org.node.state.user_with_address("zoe@example.com") is None, path


async def test_secrets_are_not_logged(org: Organization, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    path = await invited(org)
    await org.http.get(path)
    await joined(org, path)
    told = " ".join(
        f"{r.getMessage()} {getattr(r, 'fields', '')}"
        for r in caplog.records
        if r.name.startswith("tertulia")
    )
    assert "/join/…" in told
    assert path.partition("-")[2] not in told
    assert PASSWORD not in told


IMPOSSIBLE: list[tuple[dict[str, str], str]] = [
    ({"full_name": "Z"}, "Names must have"),
    ({"full_name": ""}, "Names must have"),
    ({"full_name": "z" * 101}, "Names must have"),
    ({"full_name": "Zoe *"}, "can't contain"),
    ({"full_name": "Zoe\0Z"}, "can't contain"),
    ({"password": "short"}, "Passwords must have"),
    ({"password": ""}, "Passwords must have"),
    ({"password": "x" * 101}, "Passwords must have"),
]
"""A form and the error for it."""


async def test_an_error_is_shown_and_the_name_is_kept(org: Organization) -> None:
    path = await invited(org)
    for fields, said in IMPOSSIBLE:
        with row(fields):
            page = await send(org, path, **(FILLED | fields))
            assert page.status_code == 400
            assert said in page_text(page)
            assert 'role="alert"' in page.text
            assert PASSWORD not in page.text
            if "password" in fields:
                assert 'value="Zoe Zander"' in page.text
            assert org.node.state.user_with_address("zoe@example.com") is None


async def test_a_used_name_is_refused_if_names_must_be_unique(org: Organization) -> None:
    await org.change_realm(require_unique_names=True)
    path = await invited(org)
    assert (await send(org, path, full_name="ben", password=PASSWORD)).status_code == 400
    await joined(org, path)


async def test_a_name_that_looks_like_a_system_s_or_another_person_s_is_refused(
    org: Organization,
) -> None:
    path = await invited(org)
    for name in ("Notification Bot", "\u0412\u0435n"):
        assert (await send(org, path, full_name=name, password=PASSWORD)).status_code == 400
    await joined(org, path)


async def test_a_body_that_is_no_form_or_too_large_is_refused(org: Organization) -> None:
    path = await invited(org)
    for body, kind, status in (
        (b"{}", "application/json", 400),
        (b"full_name=%FF", "application/x-www-form-urlencoded", 400),
        (b"a=" + b"x" * 70_000, "application/x-www-form-urlencoded", 413),
    ):
        response = await org.http.post(path, content=body, headers={"Content-Type": kind})
        assert response.status_code == status
        assert response.headers["content-type"].startswith("text/html")
    assert (await org.http.delete(path)).status_code == 405


async def test_repeated_attempts_are_blocked(
    config: Config,
) -> None:
    clock = TestClock(stopped_at=time.time())
    async with new_organization(config, clock=clock) as org:
        path = await invited(org)
        for _ in range(form_flow.TRIES):
            assert (await send(org, path, full_name="", password="")).status_code == 400
        assert (await send(org, path, **FILLED)).status_code == 429
        assert (await org.http.get(path)).status_code == 200
        clock.ahead = form_flow.TRIES_SECONDS / form_flow.TRIES
        assert (await send(org, path, **FILLED)).status_code == 303


# Joining by invitation


async def test_a_new_user_signs_in_with_their_password(org: Organization) -> None:
    await joined(org, await invited(org), email="other@example.com")
    reply = await org.nobody.post("/fetch_api_key", username="zoe@example.com", password=PASSWORD)
    zoe = Person(org.http, reply.ok["user_id"], "zoe@example.com", reply.ok["api_key"])
    own = (await zoe.get("/users/me")).ok
    assert (own["full_name"], own["role"], own["delivery_email"]) == (
        "Zoe Zander",
        400,
        "zoe@example.com",
    )


@pytest.mark.parametrize("role", list(Role))
async def test_the_account_has_the_invitation_s_role(org: Organization, role: Role) -> None:
    person = await joined(org, await invited(org, invite_as=int(role)))
    assert (await person.get("/users/me")).ok["role"] == role


async def test_the_account_is_in_the_invitation_s_channels_and_groups(
    org: Organization,
) -> None:
    default = await org.channel("everybody", "ben", is_default=True)
    public = await org.channel("public")
    hidden = await org.channel("hidden", "ann", is_private=True)
    gone = await org.channel("gone")
    await org.do(
        UserGroupCreated(group=UserGroup(id=101, name="bakers", members=(org["ben"].user_id,))),
        UserGroupCreated(group=UserGroup(id=102, name="drivers")),
        RealmChanged(values={"can_manage_all_groups": 6}),
    )
    path = await invited(org, stream_ids=[public, hidden, gone], group_ids=[101, 102])
    await org.do(
        ChannelChanged(channel_id=gone, values={"is_archived": True}, was={"is_archived": False})
    )
    listener = await org["ben"].register()
    zoe = await joined(org, path)
    subscriptions = (await zoe.get("/users/me/subscriptions")).ok["subscriptions"]
    assert {one["stream_id"] for one in subscriptions} == {public, hidden}
    assert len({one["color"] for one in subscriptions}) == 2
    groups = {g["id"]: g["members"] for g in (await zoe.get("/user_groups")).ok["user_groups"]}
    assert groups[101] == [org["ben"].user_id, zoe.user_id]
    assert groups[102] == [zoe.user_id]
    events = await listener.events()
    kinds = [(event["type"], event.get("op")) for event in events]
    assert kinds[0] == ("realm_user", "add")
    assert ("subscription", "peer_add") in kinds
    added = {e["group_id"] for e in events if e.get("op") == "add_members"}
    assert {101, 102} <= added
    assert default not in {i for e in events for i in e.get("stream_ids", ())}


async def test_default_channels_are_joined_if_the_invitation_says_so(
    org: Organization,
) -> None:
    first = await org.channel("first", is_default=True)
    path = await invited(org, include_realm_default_subscriptions=True)
    later = await org.channel("later", is_default=True)
    zoe = await joined(org, path)
    subscriptions = (await zoe.get("/users/me/subscriptions")).ok["subscriptions"]
    assert {one["stream_id"] for one in subscriptions} == {first, later}


async def received(person: Person, sender_id: int) -> list[str]:
    """The bot's message to someone, as Markdown."""
    messages = (
        await person.get(
            "/messages", anchor="newest", num_before=50, num_after=0, apply_markdown=False
        )
    ).ok["messages"]
    return [
        m["content"] for m in messages if m["sender_id"] == sender_id and m["type"] == "private"
    ]


@pytest.mark.parametrize(
    ("organization", "invitation", "said", "unsaid"),
    [
        ("", None, [], []),
        ("of all", None, ["of all"], []),
        ("of all", "", [], ["of all"]),
        ("of all", "for you", ["for you"], ["of all"]),
        ("", "😀" * 8000, ["😀" * 8000], []),
    ],
    ids=lambda value: str(value)[:20],
)
async def test_the_welcome_bot_sends_the_text_of_the_invitation_or_organization(
    org: Organization, organization: str, invitation: str | None, said: list[str], unsaid: list[str]
) -> None:
    await org.change_realm(welcome_message_custom_text=organization)
    zoe = await joined(org, await invited(org, welcome_message_custom_text=invitation))
    (text,) = await received(zoe, WELCOME_BOT)
    assert "Welcome to **Example**!" in text
    assert all(part in text for part in said)
    assert not any(part in text for part in unsaid)


@pytest.mark.parametrize("wanted", [True, False])
async def test_the_inviter_is_notified_if_they_want_to_be(org: Organization, wanted: bool) -> None:
    zoe = await joined(org, await invited(org, "ben", notify_referrer_on_join=wanted))
    told = await received(org["ben"], 1)
    assert len(told) == int(wanted)
    assert all(f"@_**Zoe Zander|{zoe.user_id}**" in text for text in told)
    await joined(org, await opened(org), email="yan@example.com", full_name="Yan")
    assert await received(org["ann"], 1) == []


async def test_new_accounts_are_announced_if_the_organization_wants_it(
    org: Organization,
) -> None:
    board = await org.channel("board", "ben")
    await org.change_realm(signup_announcements_channel_id=board)
    zoe = await joined(org, await invited(org))
    (message,) = (await org["ben"].get("/messages", anchor="newest", num_before=9, num_after=0)).ok[
        "messages"
    ]
    assert (message["subject"], message["stream_id"]) == ("signups", board)
    assert f'data-user-id="{zoe.user_id}"' in message["content"]


async def test_an_emailed_invitation_is_used_once(org: Organization) -> None:
    path = await invited(org)
    again = await invited(org, "ben")
    listeners = [await org[who].register(event_types=["invites_changed"]) for who in ("ann", "ben")]
    await joined(org, path)
    for listener in listeners:
        assert [event["type"] for event in await listener.events()] == ["invites_changed"]
    assert (await org["ann"].get("/invites")).ok["invites"] == []
    for used in (path, again):
        for response in (await org.http.get(used), await send(org, used, **FILLED)):
            assert response.status_code == 410
            assert "already been used" in page_text(response)


async def test_of_two_concurrent_uses_one_succeeds(org: Organization) -> None:
    path = await invited(org)
    responses = await asyncio.gather(*(send(org, path, **FILLED) for _ in range(3)))
    statuses = sorted(response.status_code for response in responses)
    assert statuses[0] == 303
    assert set(statuses[1:]) <= {409, 410}
    assert sum(user.full_name == "Zoe Zander" for user in org.node.state.users) == 1


async def test_a_revoked_invitation_says_so(org: Organization) -> None:
    path, link = await invited(org), await opened(org)
    (await org["ann"].delete("/invites/1")).ok
    (await org["ann"].delete("/invites/multiuse/2")).ok
    for one in (path, link):
        for response in (await org.http.get(one), await send(org, one, **FILLED, email="y@x.org")):
            assert response.status_code == 410
            assert "revoked" in page_text(response)


async def test_an_expired_invitation_says_so(config: Config) -> None:
    clock = TestClock()
    async with new_organization(config, clock=clock) as org:
        path, link = await invited(org), await opened(org, invite_expires_in_minutes=10 * 1440)
        ever = await opened(org, invite_expires_in_minutes="null")
        clock.ahead = 10 * DAY - 60
        assert (await org.http.get(path)).status_code == 200
        clock.ahead = 10 * DAY + 60
        for one in (path, link):
            for response in (await org.http.get(one), await send(org, one, **FILLED)):
                assert response.status_code == 410
                assert "has expired" in page_text(response)
        clock.ahead = 4000 * DAY
        assert (await org.http.get(ever)).status_code == 200


@pytest.mark.parametrize("by", ["a new account", "a new address"])
async def test_an_invitation_of_an_existing_account_leads_to_sign_in(
    org: Organization, by: str
) -> None:
    path, link = await invited(org), await opened(org)
    if by == "a new account":
        who = {"email": "Zoe@example.com", "full_name": "Zoe", "password": PASSWORD}
        (await org["ann"].post("/users", **who)).ok
    else:
        changed = f"/users/{org['ben'].user_id}"
        (await org["ann"].patch(changed, new_email="Zoe@example.com")).ok
    assert (await org["ann"].get("/invites")).ok["invites"][0]["is_multiuse"]
    for response in (await org.http.get(path), await send(org, path, **FILLED)):
        assert response.status_code == 410
    response = await send(org, link, **FILLED, email="ZOE@example.com")
    assert response.status_code == 409
    assert "already" in page_text(response)


async def test_a_link_can_be_used_repeatedly(org: Organization) -> None:
    path = await opened(org, invite_as=600)
    for name in ("Xaver", "Yan"):
        person = await joined(org, path, full_name=name, email=f"{name.lower()}@example.com")
        assert org.node.state.users[person.user_id].role is Role.GUEST
    assert len((await org["ann"].get("/invites")).ok["invites"]) == 1


NOT_TAKEN = ["", "nobody", "a b@x.org", "me@mailinator.com", "a@b\0.org"]


async def test_a_link_accepts_valid_and_permitted_addresses(org: Organization) -> None:
    for email in NOT_TAKEN:
        with row(email):
            page = await send(org, await opened(org), **FILLED, email=email)
            assert page.status_code == 400
            assert 'role="alert"' in page.text


async def test_an_invitation_ends_if_the_inviter_loses_its_role(
    org: Organization,
) -> None:
    path, link = await invited(org, invite_as=100), await opened(org, invite_as=100)
    fine = await opened(org, invite_as=400)
    (await org["ann"].patch(f"/users/{org['cleo'].user_id}", role=100)).ok
    (await org["cleo"].patch(f"/users/{org['ann'].user_id}", role=400)).ok
    for one in (path, link):
        assert (await send(org, one, **FILLED, email="y@x.org")).status_code == 410
    assert len((await org["ann"].get("/invites")).ok["invites"]) == 1
    await joined(org, fine, email="y@x.org")


async def test_a_guest_s_invitations_are_invalid(org: Organization) -> None:
    (await org["ann"].patch(f"/users/{org['cleo'].user_id}", role=200)).ok
    path = await invited(org, "cleo", invite_as=600)
    (await org["ann"].patch(f"/users/{org['cleo'].user_id}", role=600)).ok
    assert (await send(org, path, **FILLED)).status_code == 410


async def test_channels_and_groups_are_limited_to_those_the_inviter_may_still_grant(
    org: Organization,
) -> None:
    await org.change_realm(can_manage_all_groups=SystemGroup.ADMINISTRATORS.value)
    await org.do(UserGroupCreated(group=UserGroup(id=101, name="bakers")))
    kept = await org.channel("kept", "cleo", is_private=True)
    left = await org.channel("left", "cleo", is_private=True)
    shut = await org.channel("shut", "cleo", is_default=True)
    (await org["ann"].patch(f"/users/{org['cleo'].user_id}", role=200)).ok
    path = await invited(org, "cleo", stream_ids=[kept, left, shut], group_ids=[101])
    (await org["ann"].patch(f"/users/{org['cleo'].user_id}", role=400)).ok
    assert (await org["cleo"].delete("/users/me/subscriptions", subscriptions=["left"])).ok
    assert (await org["cleo"].delete("/users/me/subscriptions", subscriptions=["shut"])).ok
    private = {"is_private": True, "is_default": False}
    public = {"is_private": False, "is_default": True}
    await org.do(ChannelChanged(channel_id=shut, values=private, was=public))
    zoe = await joined(org, path)
    assert org.node.state.channel_ids_of(zoe.user_id) == [kept]
    assert org.node.state.groups.named_members[101] == frozenset()


async def test_a_channel_that_the_inviter_cannot_read_is_not_joined(
    org: Organization,
) -> None:
    hidden = await org.channel("hidden", "ben", is_private=True)
    asked = {"invitee_emails": "zoe@example.com", "stream_ids": [hidden]}
    (await org["ann"].post("/invites", **asked)).refused()


async def test_a_link_works_after_a_restart(org: Organization, config: Config) -> None:
    path = await invited(org)
    async with open_organization(config) as again:
        await joined(again, path)


# With a mail server, addresses are confirmed


@pytest.fixture
async def posting(config: Config) -> Any:
    """An organization with a mail server, and a clock that tests set."""
    clock = TestClock()
    own = msgspec.structs.replace(config, smtp_host="mail.test")
    async with new_organization(own, clock=clock) as org:
        await org.add("ben")
        yield org, clock


async def confirmed(org: Organization, path: str, email: str) -> str:
    """The link that is emailed to the address."""
    response = await send(org, path, email=email)
    assert response.status_code == 200
    assert "Check your email" in page_text(response)
    (letter,) = await due_emails(org)
    assert letter.to == email
    return link_path(letter)


async def test_with_a_reusable_link_the_address_is_confirmed_first(posting: Any) -> None:
    org, _ = posting
    path = await opened(org, invite_as=600)
    assert 'name="password"' not in (await org.http.get(path)).text
    link = await confirmed(org, path, "zoe@example.com")
    person = await joined(org, link, email="other@example.com")
    assert person.email == "zoe@example.com"
    assert org.node.state.users[person.user_id].role is Role.GUEST
    assert (await org.http.get(link)).status_code == 404
    assert not len(org.node.state.confirmations)


async def test_a_confirmation_expires_with_its_link_and_after_a_day(posting: Any) -> None:
    org, clock = posting
    path = await opened(org)
    link = await confirmed(org, path, "zoe@example.com")
    clock.ahead = DAY + 60
    assert (await org.http.get(link)).status_code == 410
    newer = await confirmed(org, path, "zoe@example.com")
    assert len(org.node.state.confirmations) == 1
    assert (await org.http.get(link)).status_code == 404
    (await org["ann"].delete("/invites/multiuse/1")).ok
    assert (await send(org, newer, **FILLED)).status_code == 410


async def test_only_the_address_learns_whether_it_has_an_account(posting: Any) -> None:
    org, _ = posting
    path = await opened(org)
    one = await send(org, path, email="ben@example.com")
    other = await send(org, path, email="nob@example.com")
    assert one.status_code == other.status_code == 200
    assert page_text(one).replace("ben@", "nob@") == page_text(other)
    letters = {letter.to: letter for letter in await due_emails(org)}
    assert "it already has an account" in letters["ben@example.com"].text
    assert "/join/" not in letters["ben@example.com"].text
    assert "/join/" in letters["nob@example.com"].text


async def test_confirmation_emails_are_limited(posting: Any) -> None:
    org, clock = posting
    path = await opened(org)
    await confirmed(org, path, "zoe@example.com")
    assert (await send(org, path, email="zoe@example.com")).status_code == 200
    assert await due_emails(org) == []  # One is pending.
    clock.ahead = 61
    await confirmed(org, path, "zoe@example.com")
    for number in range(form_flow.MAILS - 2):
        assert (await send(org, path, email=f"{number}@x.org")).status_code == 200
    assert (await send(org, path, email="more@x.org")).status_code == 429


# Without an invitation


async def test_nobody_joins_a_closed_organization(org: Organization) -> None:
    path = await invited(org)
    (await org["ann"].post("/realm/deactivate", deletion_delay_days="null")).ok
    for response in (await org.http.get(path), await send(org, path, **FILLED)):
        assert response.status_code == 401
        assert "deactivated" in page_text(response)
    assert org.node.state.user_with_address("zoe@example.com") is None


async def test_joining_without_a_required_invitation_is_refused(org: Organization) -> None:
    page = await org.http.get("/join")
    assert page.status_code == 403
    assert "invitation" in page_text(page)
    assert 'href="/login"' in page.text
    assert (await send(org, "/join", email="zoe@example.com")).status_code == 403
    assert await due_emails(org) == []


async def test_with_open_sign_up_the_address_is_confirmed(org: Organization) -> None:
    await org.change_realm(invite_required=False)
    default = await org.channel("everybody", is_default=True)
    page = await org.http.get("/join")
    assert 'type="email"' in page.text
    # Existing users find the sign-in page.
    assert 'Already have an account? <a href="/login">Sign in</a>' in page.text
    assert (await send(org, "/join", email="nobody")).status_code == 400
    link = await confirmed(org, "/join", "zoe@example.com")
    early = await confirmed(org, "/join", "yan@example.com")
    zoe = await joined(org, link)
    assert (await zoe.get("/users/me")).ok["role"] == 400
    subscriptions = (await zoe.get("/users/me/subscriptions")).ok["subscriptions"]
    assert [one["stream_id"] for one in subscriptions] == [default]
    assert len(await received(zoe, WELCOME_BOT)) == 1
    await org.change_realm(invite_required=True)
    assert (await send(org, early, **FILLED)).status_code == 410


async def test_a_deactivated_inviter_s_links_are_invalid(org: Organization) -> None:
    path = await invited(org, "ben")
    (await org["ann"].delete(f"/users/{org['ben'].user_id}")).ok
    assert (await org.http.get(path)).status_code == 410
    (await org["ann"].post(f"/users/{org['ben'].user_id}/reactivate")).ok
    assert (await send(org, path, **FILLED)).status_code == 410
