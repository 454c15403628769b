"""Random histories of an organization, and the invariants that always hold. Hypothesis doesn't run
event loops, so a test draws a seed and a length, and runs one itself.

Each step is a request that a client could send. A refusal is a valid response.
"""

import asyncio
import io
import os
import random
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from typing import Any

import anyio
import msgspec
from PIL import Image

from tertulia.domain.accounts import navigation
from tertulia.log.log import Log
from tertulia.model.changes import RealmChanged
from tertulia.model.channels import Channel
from tertulia.model.groups import SystemGroup, UserGroup
from tertulia.model.users import Role
from tertulia.service.config import Config
from tertulia.state.folds import fold
from tertulia.state.state import State
from tertulia.store import log_entries, queries
from tertulia.store.database import Connection
from tests.property.people_steps import PEOPLE_STEPS
from tests.property.personal_steps import OWN_STEPS
from tests.property.web_steps import WEB_STEPS, SilentWeb
from tests.support import Organization, Reply, TestClock, new_organization, until

PEOPLE = ("ann", "ben", "cleo", "gus", "robo")
TOPICS = ("", "lunch", "Lunch", "✔ lunch", "plans")
TEXTS = (
    "hello",
    "@**Ben** look",
    "@**all** everybody",
    "@**topic** you",
    "@_**Cleo** quietly",
    "@**Ann** and @**all** and @**topic**",
    "/me waves",
    "https://example.com",
    "@**Ben** see https://example.com and https://example.com/x.png",
    "/poll When?\n- now\n- later",
    "/todo Today\neat: well",
    "@*Group 0* and @_*Group 1*, @*Group 2*",
    "> @**Ben** said\n\nabout #12 :tada:",
    "LUNCH, somebody?",
)


@cache
def picture() -> bytes:
    """A small image file."""
    file = io.BytesIO()
    Image.new("RGB", (8, 8), "red").save(file, "PNG")
    return file.getvalue()


HISTORIES = float(os.environ.get("HISTORIES", 1))
"""The number of histories relative to the default. Above 1, they are random (`make histories`);
otherwise the same every time."""

Step = Callable[["History"], Awaitable[None]]


@dataclass
class History:
    """An organization in which random things happen."""

    org: Organization
    rng: random.Random
    sent: list[int] = field(default_factory=list)
    done: list[str] = field(default_factory=list)
    """The steps, for reading when a test fails."""
    clock: TestClock = field(default_factory=TestClock)

    @property
    def state(self) -> State:
        return self.org.node.state

    async def step(self) -> None:
        """Do one more random step."""
        (step,) = self.rng.choices(list(STEPS), list(STEPS.values()))
        self.done.append(step.__name__)
        await step(self)

    async def run(self, steps: int) -> None:
        """Do this many random steps."""
        for _ in range(steps):
            await self.step()

    # Subjects of the steps

    def who(self) -> str:
        """Someone with an active account."""
        return self.rng.choice(
            [n for n in PEOPLE if self.state.users[self.org[n].user_id].is_active]
        )

    def channel(self) -> Channel | None:
        channels = list(self.state.channels)
        return self.rng.choice(channels) if channels else None

    def groups(self) -> list[UserGroup]:
        """Groups that people created."""
        return [group for group in self.state.groups if not group.is_system]

    def holder(self) -> Any:
        """A person or a group that may hold a permission."""
        rng = self.rng
        people = [self.org[name].user_id for name in rng.sample(PEOPLE, rng.randint(0, 2))]
        own = [group.id for group in self.groups()]
        some = rng.sample(own, min(len(own), rng.randint(0, 2)))
        return rng.choice(
            [
                *own,
                *own,
                SystemGroup.FULL_MEMBERS.value,
                SystemGroup.MODERATORS.value,
                {"direct_members": people, "direct_subgroups": some},
            ]
        )

    def some_messages(self) -> list[int]:
        return sorted(self.rng.sample(self.sent, min(len(self.sent), self.rng.randint(1, 4))))

    def text(self) -> str:
        """Random message text, sometimes with a link to a file."""
        files = list(self.state.attachments)
        if files and self.rng.random() < 0.3:
            return f"see [a file](/user_uploads/{self.rng.choice(files).path})"
        return self.rng.choice(TEXTS)

    def accepted(self, reply: Reply) -> bool:
        """Accept a success or a refusal; fail on an internal error."""
        assert reply.status < 500, (self.done, reply.body)
        return reply.status == 200


async def send_to_channel(history: History) -> None:
    channel = history.channel()
    if channel is None:
        return
    rng = history.rng
    reply = await history.org[history.who()].post(
        "/messages",
        type="channel",
        to=channel.id,
        topic=rng.choice(TOPICS),
        content=history.text(),
        read_by_sender=rng.choice([True, False]),
    )
    if history.accepted(reply):
        history.sent.append(reply.body["id"])


async def send_directly(history: History) -> None:
    rng = history.rng
    to = [history.org[name].user_id for name in rng.sample(PEOPLE, rng.randint(1, 3))]
    reply = await history.org[history.who()].post(
        "/messages",
        type="direct",
        to=to,
        content=history.text(),
        read_by_sender=rng.choice([True, False]),
    )
    if history.accepted(reply):
        history.sent.append(reply.body["id"])


async def send_concurrently(history: History) -> None:
    """Send several messages and other requests concurrently, so they're committed together."""
    steps = [send_to_channel, send_directly, flag, send_to_channel]
    await asyncio.gather(*(step(history) for step in history.rng.sample(steps, 3)))


async def flag(history: History) -> None:
    if not history.sent:
        return
    rng = history.rng
    who = history.who()
    name = rng.choice(["read", "read", "read", "starred", "collapsed"])
    # A request with one unreadable message is refused as a whole.
    for ids in (history.some_messages(), [rng.choice(history.sent)], [rng.choice(history.sent)]):
        reply = await history.org[who].post(
            "/messages/flags", messages=ids, op=rng.choice(["add", "remove"]), flag=name
        )
        history.accepted(reply)


async def edit_message(history: History) -> None:
    if not history.sent:
        return
    mid = history.rng.choice(history.sent)
    message = await history.org["ann"].get(f"/messages/{mid}")
    who = history.who()
    if message.status == 200:
        sender = message.body["message"]["sender_id"]
        who = next((n for n in PEOPLE if history.org[n].user_id == sender), who)
        if not history.state.users[history.org[who].user_id].is_active:
            return
    text = history.rng.choice(TEXTS)
    history.accepted(await history.org[who].patch(f"/messages/{mid}", content=text))


async def move_messages(history: History) -> None:
    channel, rng = history.channel(), history.rng
    if not history.sent or channel is None:
        return
    where: dict[str, Any] = rng.choice(
        [
            {"topic": rng.choice(TOPICS)},
            {"stream_id": channel.id},
            {"stream_id": channel.id, "topic": rng.choice(TOPICS)},
        ]
    )
    mid = rng.choice(history.sent)
    mode = rng.choice(["change_one", "change_later", "change_all"])
    history.done[-1] += f" {mid} {where} {mode}"
    reply = await history.org[rng.choice(["ann", history.who()])].patch(
        f"/messages/{mid}",
        **where,
        propagate_mode=mode,
        send_notification_to_old_thread=rng.random() < 0.3,
        send_notification_to_new_thread=rng.random() < 0.3,
    )
    history.accepted(reply)


async def delete_message(history: History) -> None:
    if not history.sent:
        return
    mid = history.rng.choice(history.sent)
    history.done[-1] += f" {mid}"
    who = history.rng.choice(["ann", history.who()])
    if history.accepted(await history.org[who].delete(f"/messages/{mid}")):
        history.sent.remove(mid)


async def create_channel(history: History) -> None:
    state, rng = history.state, history.rng
    if len(state.channels) >= 6:
        return
    others = [history.org[name].user_id for name in rng.sample(PEOPLE, rng.randint(1, 4))]
    reply = await history.org[history.who()].post(
        "/users/me/subscriptions",
        subscriptions=[{"name": f"Channel {len(state.channels)}"}],
        principals=others,
        invite_only=rng.random() < 0.4,
        history_public_to_subscribers=rng.random() < 0.5,
    )
    history.accepted(reply)


async def subscribe(history: History) -> None:
    channel, rng = history.channel(), history.rng
    if channel is None:
        return
    own = history.who()
    others = [history.org[rng.choice(PEOPLE)].user_id] if rng.random() < 0.6 else None
    reply = await history.org[own].post(
        "/users/me/subscriptions", subscriptions=[{"name": channel.name}], principals=others
    )
    history.accepted(reply)


async def unsubscribe(history: History) -> None:
    channel, rng = history.channel(), history.rng
    if channel is None:
        return
    others = [history.org[rng.choice(PEOPLE)].user_id] if rng.random() < 0.5 else None
    reply = await history.org[history.who() if others is None else "ann"].delete(
        "/users/me/subscriptions", subscriptions=[channel.name], principals=others
    )
    history.accepted(reply)


async def change_subscription(history: History) -> None:
    channel, rng = history.channel(), history.rng
    if channel is None:
        return
    name, value = rng.choice(
        [("color", "#f00f00"), ("is_muted", True), ("is_muted", False), ("pin_to_top", True)]
    )
    data = [{"stream_id": channel.id, "property": name, "value": value}]
    person = history.org[history.who()]
    history.accepted(
        await person.post("/users/me/subscriptions/properties", subscription_data=data)
    )


async def change_channel(history: History) -> None:
    channel, rng = history.channel(), history.rng
    if channel is None:
        return
    values: dict[str, Any] = rng.choice(
        [
            {"description": rng.choice(["", "for *all*", "other"])},
            {"new_name": f"{channel.name.split('.')[0]}.{rng.randint(1, 99)}"},
            {"is_private": True, "history_public_to_subscribers": rng.random() < 0.5},
            {"is_private": False},
            {"topics_policy": "disable_empty_topic"},
            {"folder_id": rng.choice([None, 1, 2, 3])},
            {"is_archived": False},
            {"can_send_message_group": {"new": rng.choice([3, 7])}},
            {"can_add_subscribers_group": {"new": rng.choice([1, 6])}},
            {"can_subscribe_group": {"new": history.holder()}},
            {"can_administer_channel_group": {"new": history.holder()}},
        ]
    )
    history.done[-1] += f" {channel.id} {values}"
    history.accepted(await history.org["ann"].patch(f"/streams/{channel.id}", **values))


async def archive(history: History) -> None:
    channel = history.channel()
    if channel is not None and history.rng.random() < 0.5:
        history.accepted(await history.org["ann"].delete(f"/streams/{channel.id}"))


async def arrange_folders(history: History) -> None:
    state, rng, ann = history.state, history.rng, history.org["ann"]
    ids = [folder.id for folder in state.folders]
    number = rng.randint(1, 99)
    if len(ids) < 3:
        history.accepted(
            await ann.post("/channel_folders/create", name=f"Folder {number}", description="")
        )
        return
    values: dict[str, Any] = rng.choice(
        [
            {"name": f"Folder {number}"},
            {"description": f"about *{number}*"},
            {"is_archived": True},
            {"is_archived": False},
        ]
    )
    history.accepted(await ann.patch(f"/channel_folders/{rng.choice(ids)}", **values))
    rng.shuffle(ids)
    history.accepted(await ann.patch("/channel_folders", order=ids))


async def set_topic(history: History) -> None:
    channel, rng = history.channel(), history.rng
    if channel is not None:
        reply = await history.org[history.who()].post(
            "/user_topics",
            stream_id=channel.id,
            topic=rng.choice(TOPICS),
            visibility_policy=rng.randint(0, 3),
        )
        history.accepted(reply)


async def change_role(history: History) -> None:
    user_id = history.org[history.rng.choice(["ben", "cleo", "gus", "robo"])].user_id
    role = history.rng.choice([Role.MEMBER, Role.MODERATOR, Role.ADMINISTRATOR, Role.GUEST])
    history.done[-1] += f" {user_id} {role}"
    history.accepted(await history.org["ann"].patch(f"/users/{user_id}", role=int(role)))


async def rename(history: History) -> None:
    user_id = history.org[history.rng.choice(["ben", "cleo", "gus"])].user_id
    name = f"Name {history.rng.randint(1, 99)}"
    history.accepted(await history.org["ann"].patch(f"/users/{user_id}", full_name=name))


async def deactivate_or_reactivate(history: History) -> None:
    user = history.state.users[history.org["ben"].user_id]
    if user.is_active:
        reply = await history.org["ann"].delete(f"/users/{user.id}")
    else:
        reply = await history.org["ann"].post(f"/users/{user.id}/reactivate")
        credential = history.state.credentials[user.id]
        history.org["ben"].api_key = history.org.node.vault.api_key(credential)
    history.accepted(reply)


async def create_group(history: History) -> None:
    own, rng = history.groups(), history.rng
    if len(own) >= 5:
        return
    reply = await history.org[history.who()].post(
        "/user_groups/create",
        name=f"Group {len(own)}",
        description="",
        members=[history.org[name].user_id for name in rng.sample(PEOPLE, rng.randint(0, 2))],
        subgroups=[group.id for group in rng.sample(own, min(len(own), rng.randint(0, 1)))],
        can_manage_group=history.holder(),
        can_join_group=SystemGroup.MEMBERS.value,
    )
    history.accepted(reply)


async def change_group(history: History) -> None:
    own, rng = history.groups(), history.rng
    if not own:
        return
    group = rng.choice(own)
    values: dict[str, Any] = rng.choice(
        [
            {"description": rng.choice(["", "of cooks"])},
            {"name": f"{group.name.split('.')[0]}.{rng.randint(1, 99)}"},
            {"deactivated": False},
            {"can_join_group": {"new": history.holder()}, "deactivated": False},
            {"can_manage_group": {"new": history.holder()}},
            {},
        ]
    )
    history.done[-1] += f" {group.id} {values}"
    if values:
        reply = await history.org["ann"].patch(f"/user_groups/{group.id}", **values)
    else:
        reply = await history.org["ann"].post(f"/user_groups/{group.id}/deactivate")
    history.accepted(reply)


async def change_members(history: History) -> None:
    own, rng = history.groups(), history.rng
    if not own:
        return
    group = rng.choice(own)
    user_id = history.org[rng.choice(PEOPLE)].user_id
    other = rng.choice([*(one.id for one in own), SystemGroup.FULL_MEMBERS.value])
    values = {
        "delete" if user_id in group.members else "add": [user_id],
        "delete_subgroups" if other in group.subgroups else "add_subgroups": [other],
    }
    values = rng.choice([values, dict([rng.choice(list(values.items()))])])
    history.done[-1] += f" {group.id} {values}"
    reply = await history.org[rng.choice(["ann", history.who()])].post(
        f"/user_groups/{group.id}/members", **values
    )
    history.accepted(reply)


async def change_waiting_period(history: History) -> None:
    """All people are as old as the organization, so either all of them wait or nobody does."""
    await history.org.do(
        RealmChanged(values={"waiting_period_threshold": history.rng.choice([0, 1, 3])})
    )
    await history.org.tick()


async def change_realm(history: History) -> None:
    rng = history.rng
    ben = history.org["ben"].user_id
    values: dict[str, Any] = rng.choice(
        [
            {"name": f"Name {rng.randint(1, 9)}", "description": rng.choice(["", "for *all*"])},
            {"default_language": rng.choice(["en", "de"]), "digest_weekday": rng.randint(0, 6)},
            {"message_content_edit_limit_seconds": rng.choice(["unlimited", 60])},
            {"message_edit_history_visibility_policy": rng.choice(["all", "moves", "none"])},
            {"topics_policy": rng.choice(["allow_empty_topic", "disable_empty_topic"])},
            {"jitsi_server_url": rng.choice(["default", "https://meet.example.com"])},
            {"waiting_period_threshold": rng.choice([0, 1])},
            {"can_create_public_channel_group": {"new": rng.choice([3, 6])}},
            {
                "can_create_groups": {
                    "new": {"direct_members": [ben], "direct_subgroups": rng.choice([[], [3]])}
                }
            },
        ]
    )
    history.done[-1] += f" {values}"
    history.accepted(await history.org["ann"].patch("/realm", **values))


async def limit_guests(history: History) -> None:
    """Change whether guests can see everyone, or only people they share a channel with."""
    group = history.rng.choice([SystemGroup.EVERYONE, SystemGroup.MEMBERS, SystemGroup.MEMBERS])
    history.done[-1] += f" {group.name}"
    reply = await history.org["ann"].patch(
        "/realm", can_access_all_users_group={"new": group.value}
    )
    history.accepted(reply)


async def change_default_settings(history: History) -> None:
    rng = history.rng
    values: dict[str, int] = rng.choice(
        [{"enter_sends": rng.random() < 0.5}, {"color_scheme": rng.randint(1, 3)}]
    )
    history.accepted(await history.org["ann"].patch("/realm/user_settings_defaults", **values))


async def set_up(history: History) -> None:
    """Change something that administrators configure, which may exist or not."""
    rng, ann = history.rng, history.org["ann"]
    place, domain = rng.randint(1, 4), rng.choice(["a.com", "b.com"])
    pattern, template = f"{rng.choice('abc')}(?P<id>[0-9]+)", "https://example.com/{id}"
    linkifier: dict[str, object] = {"pattern": pattern, "url_template": template}
    code = {"pygments_language": "C", "url_template": "https://example.com/{code}"}
    channel = history.channel()
    channels = [channel.name] if channel else []
    order = [one.id for one in history.state.linkifiers]
    rng.shuffle(order)
    requests: list[tuple[str, str, dict[str, object]]] = [
        ("POST", "/realm/domains", {"domain": domain, "allow_subdomains": False}),
        ("PATCH", f"/realm/domains/{domain}", {"allow_subdomains": rng.random() < 0.5}),
        ("DELETE", f"/realm/domains/{domain}", {}),
        ("POST", "/realm/filters", linkifier),
        ("PATCH", f"/realm/filters/{place}", linkifier),
        ("DELETE", f"/realm/filters/{place}", {}),
        ("PATCH", "/realm/linkifiers", {"ordered_linkifier_ids": order}),
        ("POST", "/realm/playgrounds", {"name": domain, **code}),
        ("DELETE", f"/realm/playgrounds/{place}", {}),
        (
            "POST",
            "/default_stream_groups/create",
            {"group_name": domain, "description": "", "stream_names": channels},
        ),
        (
            "PATCH",
            f"/default_stream_groups/{place}/streams",
            {"op": rng.choice(["add", "remove"]), "stream_names": channels},
        ),
        ("DELETE", f"/default_stream_groups/{place}", {}),
    ]
    method, path, values = rng.choice(requests)
    history.done[-1] += f" {method} {path}"
    history.accepted(await ann.request(method, path, **values))


async def take_onboarding_step(history: History) -> None:
    step = history.rng.choice(navigation.STEPS)
    person = history.org[history.who()]
    history.accepted(await person.post("/users/me/onboarding_steps", onboarding_step=step))


async def react(history: History) -> None:
    if not history.sent:
        return
    rng = history.rng
    message_id = rng.choice(history.sent[-6:])
    name = rng.choice(["heart", "tada", "zulip", "gopher"])
    path = f"/messages/{message_id}/reactions"
    person = history.org[history.who()]
    if rng.random() < 0.7:
        kind = {"reaction_type": "service_extra_emoji"} if name == "zulip" else {}
        history.accepted(await person.post(path, emoji_name=name, **kind))
    else:
        history.accepted(await person.delete(path, emoji_name=name))


async def pin(history: History) -> None:
    if not history.sent:
        return
    rng = history.rng
    message_id = rng.choice(history.sent)
    person = history.org[history.who()]
    how = person.post if rng.random() < 0.7 else person.delete
    history.accepted(await how(f"/messages/{message_id}/pin"))


async def react_concurrently(history: History) -> None:
    """Two people add the same emoji concurrently. One of them is first."""
    if not history.sent:
        return
    path = f"/messages/{history.rng.choice(history.sent)}/reactions"
    person = history.org[history.who()]
    one, other = await asyncio.gather(*(person.post(path, emoji_name="eyes") for _ in range(2)))
    assert not (history.accepted(one) and history.accepted(other))


async def use_widget(history: History) -> None:
    if not history.sent:
        return
    rng = history.rng
    content = rng.choice(
        [
            '{"type":"vote","key":"canned,0","vote":1}',
            '{"type":"new_option","option":"never","idx":0}',
            '{"type":"strike","key":"canned,0"}',
        ]
    )
    for message_id in rng.sample(history.sent, min(len(history.sent), 5)):
        reply = await history.org[history.who()].post(
            "/submessage", message_id=message_id, msg_type="widget", content=content
        )
        history.accepted(reply)


async def change_emoji(history: History) -> None:
    person = history.org[history.who()]
    if "gopher" in history.state.custom_emoji.by_name:
        history.accepted(await person.delete("/realm/emoji/gopher"))
    else:
        files = {"file": ("gopher.png", picture(), "image/png")}
        history.accepted(await person.raw("POST", "/realm/emoji/gopher", files=files))


async def change_alert_words(history: History) -> None:
    rng = history.rng
    words = rng.sample(["hello", "lunch", "Look", "/me", "c++"], 2)
    person = history.org[history.who()]
    method = person.post if rng.random() < 0.7 else person.delete
    history.accepted(await method("/users/me/alert_words", alert_words=words))


async def mute_or_unmute(history: History) -> None:
    rng = history.rng
    user_id = history.org[rng.choice(PEOPLE)].user_id
    person = history.org[history.who()]
    method = person.post if rng.random() < 0.6 else person.delete
    history.accepted(await method(f"/users/me/muted_users/{user_id}"))


async def mark_as_read(history: History) -> None:
    channel, rng = history.channel(), history.rng
    person = history.org[history.who()]
    where = {"stream_id": channel.id if channel else 1}
    match rng.randint(0, 3):
        case 0:
            reply = await person.post("/mark_all_as_read")
        case 1:
            reply = await person.post("/mark_stream_as_read", **where)
        case 2:
            reply = await person.post("/mark_topic_as_read", topic_name=rng.choice(TOPICS), **where)
        case _:
            reply = await person.post(
                "/messages/flags/narrow",
                anchor=rng.choice(["newest", "oldest", "first_unread"]),
                num_before=3,
                num_after=3,
                narrow=rng.choice([[], [{"operator": "is", "operand": "unread"}]]),
                op=rng.choice(["add", "remove"]),
                flag=rng.choice(["read", "read", "starred"]),
            )
    history.accepted(reply)


async def upload(history: History) -> None:
    await history.org[history.who()].upload(f"{len(history.done)}.txt")


async def delete_file(history: History) -> None:
    files = list(history.state.attachments)
    if not files:
        return
    attachment = history.rng.choice(files)
    reply = await history.org[history.who()].delete(f"/attachments/{attachment.id}")
    history.accepted(reply)
    # The server deletes the file by itself and records that.
    await until(lambda: not len(history.state.removed_files))
    await history.org.node.log.durability.settled()


async def invite(history: History) -> None:
    rng, state = history.rng, history.state
    terms = {
        "invite_as": rng.choice([400, 600]),
        "stream_ids": [c.id for c in state.channels if rng.random() < 0.3],
        "include_realm_default_subscriptions": rng.random() < 0.5,
    }
    person = history.org[history.who()]
    if rng.random() < 0.5:
        history.accepted(await person.post("/invites/multiuse", **terms))
        return
    whom = ", ".join(f"new{rng.randint(1, 9)}@example.com" for _ in range(rng.randint(1, 3)))
    history.accepted(await person.post("/invites", invitee_emails=whom, **terms))


async def look_after_invitations(history: History) -> None:
    rng, person = history.rng, history.org[history.who()]
    if not len(history.state.invitations):
        return
    number = rng.randint(1, len(history.state.invitations))
    method, path = rng.choice(
        [
            ("DELETE", f"/invites/{number}"),
            ("DELETE", f"/invites/multiuse/{number}"),
            ("POST", f"/invites/{number}/resend"),
        ]
    )
    history.accepted(await person.request(method, path))


async def join(history: History) -> None:
    """Someone joins with one of the links, if it's still valid."""
    state, rng = history.state, history.rng
    if not len(state.invitations) or len(state.users) > 14:
        return
    invitation = rng.choice(list(state.invitations))
    response = await history.org.http.post(
        history.org.node.links.invitation("", invitation),
        data={
            "email": f"new{rng.randint(1, 9)}@example.com",
            "full_name": f"New {rng.randint(1, 9)}",
            "password": "a few good words",
        },
    )
    assert response.status_code < 500, (history.done, response.text)


async def change_address(history: History) -> None:
    """Someone requests a new email address, and may use an emailed link."""
    rng, state = history.rng, history.state
    name = history.who()
    # People are identified by the part before the @, here and after a restart.
    email = f"{name}@{rng.choice('xyz')}.example.com"
    history.accepted(await history.org[name].patch("/settings", email=email))
    waiting = [c for c in state.confirmations if c.user_id is not None]
    if not waiting or rng.random() < 0.5:
        return
    response = await history.org.http.post(history.org.node.links.address("", rng.choice(waiting)))
    assert response.status_code < 500, (history.done, response.text)
    for somebody in history.org.people.values():
        somebody.email = state.users[somebody.user_id].address


STEPS: dict[Step, int] = {
    send_to_channel: 10,
    send_directly: 4,
    send_concurrently: 3,
    flag: 6,
    edit_message: 3,
    move_messages: 4,
    delete_message: 2,
    create_channel: 3,
    subscribe: 4,
    unsubscribe: 3,
    change_subscription: 1,
    change_channel: 3,
    archive: 1,
    arrange_folders: 2,
    set_topic: 2,
    change_role: 1,
    rename: 1,
    react: 6,
    react_concurrently: 1,
    pin: 4,
    use_widget: 2,
    change_emoji: 1,
    change_alert_words: 2,
    mute_or_unmute: 2,
    mark_as_read: 2,
    deactivate_or_reactivate: 1,
    create_group: 2,
    change_group: 2,
    change_members: 4,
    change_waiting_period: 1,
    change_realm: 3,
    limit_guests: 2,
    change_default_settings: 1,
    set_up: 4,
    take_onboarding_step: 1,
    invite: 2,
    look_after_invitations: 1,
    join: 2,
    change_address: 1,
    **PEOPLE_STEPS,
    **OWN_STEPS,
    **WEB_STEPS,
    upload: 2,
    delete_file: 1,
}


@asynccontextmanager
async def beginning(config: Config, seed: int) -> AsyncIterator[History]:
    """A new organization with `PEOPLE` and two channels."""
    clock = TestClock()
    # Queues don't expire on a slow machine.
    config = msgspec.structs.replace(config, queue_idle_seconds=86400)
    async with new_organization(config, clock=clock, web=SilentWeb()) as org:
        await org.do(RealmChanged(values={"inline_url_embed_preview": True}))
        await org.add("ben")
        await org.add("cleo", follows=True)
        await org.add("gus", Role.GUEST, follows=True)
        await org.add("robo", owner="cleo")
        await org.channel("lounge", "ann", "ben", "gus")
        await org.channel("den", "ben", "cleo", is_private=True, history_public=False)
        rng = random.Random(seed)
        if rng.random() < 0.5:
            members = SystemGroup.MEMBERS.value
            await org.do(RealmChanged(values={"can_access_all_users_group": members}))
        yield History(org, rng, clock=clock)


def on_a_new_database(
    url: str, seed: int, test: Callable[[History, Config], Awaitable[None]]
) -> None:
    """Run the test on a new organization, in a new event loop of the server's kind."""

    async def run(config: Config) -> None:
        async with beginning(config, seed) as history:
            try:
                await test(history, config)
            except BaseException as error:
                error.add_note(f"seed {seed}: {', '.join(history.done)}")
                raise

    with tempfile.TemporaryDirectory(prefix="tertulia-") as directory:
        config = Config(
            data_dir=directory,
            database_url=url,
            external_url="http://chat.test",
            rate_limits=False,
            feed_minutes=0,  # External pages aren't fetched.
        )
        anyio.run(run, config, backend_options={"use_uvloop": find_spec("uvloop") is not None})


async def assert_folds(log: Log) -> None:
    """Check that folding the log gives the state in the tables and in the node's memory."""

    def look(connection: Connection) -> tuple[int, Any, Any]:
        return (
            log_entries.head(connection),
            queries.records(connection),
            log_entries.entries(connection, 0, 2**31),
        )

    head, records, entries = await log.store.read(look)
    assert [entry.seq for entry in entries] == list(range(1, head + 1))
    loaded = State.load(head, records)
    folded = State()
    for entry in entries:
        fold(folded, entry)
    same(folded, loaded)
    same(log.state, loaded)


def same(one: State, other: State) -> None:
    """Fail and show the difference between two states."""
    assert one.seq == other.seq
    for name, table in one.tables.items():
        rows = other.tables[name].rows
        for key in table.rows.keys() | rows.keys():
            assert table.rows.get(key) == rows.get(key), (name, key)
            # Types count, too: 1 == True.
            assert repr(table.rows[key]) == repr(rows[key]), (name, key)
    for channel_id in one.channels.rows:
        assert list(one.subscribers(channel_id)) == list(other.subscribers(channel_id))
        since = [state.active_subscribers.newest_since(channel_id) for state in (one, other)]
        assert since[0] >= since[1]
    indexes = [
        name
        for name, value in vars(one).items()
        if isinstance(value, dict) and not name.startswith("_")
    ]
    for name in set(indexes) - {"tables"}:
        assert without_empty(getattr(one, name)) == without_empty(getattr(other, name)), name


def without_empty(index: dict[object, object]) -> dict[object, object]:
    """Remove empty sets, which an index may keep."""
    return {
        key: value for key, value in index.items() if value or not isinstance(value, set | dict)
    }
