"""Exports in Zulip's format: tables, rows, and files."""

import asyncio
import json
import threading
from pathlib import Path
from typing import Any

import pytest

from tertulia.exports import zulip_messages
from tertulia.model.exports import ExportKind
from tests.exports.exporting import MadeExport, export_of
from tests.support import Organization, until

pytestmark = pytest.mark.anyio


def recipients(made: MadeExport) -> dict[int, tuple[int, int]]:
    """Return the kind and the ID of the object that each recipient stands for."""
    return {row["id"]: (row["type"], row["type_id"]) for row in made.rows("zerver_recipient")}


async def full(org: Organization, directory: Path) -> MadeExport:
    return await export_of(org.node.config, directory, ExportKind.FULL)


async def test_messages_have_recipients_readers_and_history(
    org: Organization, tmp_path: Path
) -> None:
    ann, ben, cleo = org["ann"], org["ben"], org["cleo"]
    square = await org.channel("square", "ann", "ben")
    first = await ann.send("square", "plans", "first *words*")
    assert (await ann.patch(f"/messages/{first}", content="second words")).ok
    assert (await ann.patch(f"/messages/{first}", topic="better plans")).ok
    assert (await ben.post(f"/messages/{first}/reactions", emoji_name="tada")).ok
    pair = await ann.write([ben.user_id], "two of us")
    three = await ann.write([ben.user_id, cleo.user_id], "three of us")
    alone = await ann.write([ann.user_id], "a note")
    assert (await ben.post("/messages/flags", messages=[pair], op="add", flag="read")).ok
    made = await full(org, tmp_path)
    rows = {row["id"]: row for row in made.rows("zerver_message")}
    known = recipients(made)
    assert known[rows[first]["recipient"]] == (2, square)
    assert known[rows[pair]["recipient"]] == (1, ben.user_id)
    assert known[rows[alone]["recipient"]] == (1, ann.user_id)
    kind, group = known[rows[three]["recipient"]]
    assert kind == 3
    (huddle,) = made.rows("zerver_huddle")
    assert huddle["id"] == group
    members = {
        row["user_profile"]
        for row in made.rows("zerver_subscription")
        if row["recipient"] == huddle["recipient"]
    }
    assert members == {ann.user_id, ben.user_id, cleo.user_id}
    assert rows[first]["subject"] == "better plans"
    assert rows[pair]["subject"] == "\x07"
    assert not rows[pair]["is_channel_message"]
    moved, edited = json.loads(rows[first]["edit_history"])
    assert (moved["prev_topic"], moved["topic"]) == ("plans", "better plans")
    assert edited["prev_content"] == "first *words*"
    assert "<em>" in edited["prev_rendered_content"]
    (reaction,) = made.rows("zerver_reaction")
    assert (reaction["message"], reaction["emoji_name"]) == (first, "tada")
    masks: dict[tuple[int, int], int] = {
        (row["message"], row["user_profile"]): row["flags_mask"]
        for row in made.rows("zerver_usermessage")
    }
    assert masks[first, ben.user_id] == 0
    assert masks[pair, ben.user_id] == 2049
    assert masks[three, cleo.user_id] == 2048
    assert len({row["id"] for row in made.rows("zerver_usermessage")}) == len(masks)


async def test_each_person_has_read_other_messages(org: Organization, tmp_path: Path) -> None:
    ann, ben, cleo = org["ann"], org["ben"], org["cleo"]
    await org.channel("square", "ann", "ben", "cleo")
    ids = [await ann.send("square", "t", f"number {n}") for n in range(4)]
    for who, read in ((ben, ids[:2]), (cleo, [ids[0], ids[2]])):
        assert (await who.post("/messages/flags", messages=read, op="add", flag="read")).ok
    assert (await cleo.post("/messages/flags", messages=[ids[3]], op="add", flag="starred")).ok
    rows: list[Any] = (await full(org, tmp_path)).rows("zerver_usermessage")
    for who, masks in ((ann, [0, 0, 0, 0]), (ben, [1, 1, 0, 0]), (cleo, [1, 0, 1, 2])):
        by_message = {
            row["message"]: row["flags_mask"] for row in rows if row["user_profile"] == who.user_id
        }
        assert [by_message[message_id] for message_id in ids] == masks, who.user_id
    assert len({row["id"] for row in rows}) == len(rows)


async def test_people_who_left_and_came_back_received_what_was_between(
    org: Organization, tmp_path: Path
) -> None:
    ann, ben = org["ann"], org["ben"]
    await org.channel("square", "ann", "ben")
    before = await ann.send("square", "t", "one")
    assert (await ben.delete("/users/me/subscriptions", subscriptions=["square"])).ok
    missed = await ann.send("square", "t", "two")
    assert (await ben.post("/users/me/subscriptions", subscriptions=[{"name": "square"}])).ok
    after = await ann.send("square", "t", "three")
    assert (await ben.post("/messages/flags", messages=[missed], op="add", flag="starred")).ok
    made = await full(org, tmp_path)
    masks = {
        row["message"]: row["flags_mask"]
        for row in made.rows("zerver_usermessage")
        if row["user_profile"] == ben.user_id
    }
    assert masks[before] & 1, "what was received before the subscription counts as read"
    assert masks[missed] & (1024 | 2) == 1024 | 2
    assert masks[after] == 0
    events = [
        (row["event_type"], row["event_last_message_id"])
        for row in made.rows("zerver_realmauditlog")
        if row["modified_user"] == ben.user_id
    ]
    assert [kind for kind, _ in events] == [301, 303, 302]
    assert [last for _, last in events][1] < missed <= [last for _, last in events][2]


async def test_files_have_a_thousand_messages(
    org: Organization, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(zulip_messages, "PER_FILE", 4)
    await org.channel("square", "ann", "ben")
    ids = [await org["ann"].send("square", "t", f"number {n}") for n in range(9)]
    made = await full(org, tmp_path)
    names = sorted(name for name in made.files if name.startswith("messages-"))
    assert names[:2] == ["messages-000001.json", "messages-000002.json"]
    sizes = [len(made.json(name)["zerver_message"]) for name in names]
    assert set(sizes[:-1]) == {4}
    assert [row["id"] for row in made.rows("zerver_message")][-9:] == ids
    stats = made.json("stats.json")
    for name in names:
        counts = {table: len(rows) for table, rows in made.json(name).items()}
        assert stats[name.removesuffix(".json")] == counts


async def test_permissions_of_several_have_unnamed_groups(
    org: Organization, tmp_path: Path
) -> None:
    ann, ben = org["ann"], org["ben"]
    square = await org.channel("square", "ann")
    group = (
        await ann.post("/user_groups/create", name="cooks", description="", members=[ben.user_id])
    ).ok["group_id"]
    holders = {"direct_members": [ben.user_id], "direct_subgroups": [group]}
    given = {"can_administer_channel_group": {"new": holders}}
    assert (await ann.patch(f"/streams/{square}", **given)).ok
    made = await full(org, tmp_path)
    named = {row["id"]: row["name"] for row in made.rows("zerver_namedusergroup")}
    (channel,) = (row for row in made.rows("zerver_stream") if row["id"] == square)
    number = channel["can_administer_channel_group"]
    assert number not in named
    assert number in {row["id"] for row in made.rows("zerver_usergroup")}
    people: dict[int, set[int]] = {}
    for row in made.rows("zerver_usergroupmembership"):
        people.setdefault(row["user_group"], set()).add(row["user_profile"])
    groups = [
        row["subgroup"]
        for row in made.rows("zerver_groupgroupmembership")
        if row["supergroup"] == number
    ]
    assert (people[number], groups) == ({ben.user_id}, [group])
    assert named[channel["can_send_message_group"]] == "role:everyone"
    by_name = {name: number for number, name in named.items()}
    assert people[by_name["role:owners"]] == {ann.user_id}
    assert people[group] == {ben.user_id}


async def test_an_unlinked_message_has_rows_of_nobody(org: Organization, tmp_path: Path) -> None:
    """Channels can have messages without recipients. The file is still valid."""
    ann = org["ann"]
    await org.channel("square", "ann")
    await ann.send("square", "t", "nobody else")
    assert (await ann.delete("/users/me/subscriptions", subscriptions=["square"])).ok
    lonely = await ann.send("square", "t", "nobody at all")
    made = await full(org, tmp_path)
    rows: list[Any] = made.rows("zerver_usermessage")
    assert lonely not in {row["message"] for row in rows if row["user_profile"] != ann.user_id}


async def test_what_changes_meanwhile_is_as_it_was_at_the_beginning(
    org: Organization, tmp_path: Path
) -> None:
    ann, ben = org["ann"], org["ben"]
    await org.channel("square", "ann", "ben")
    path = await ann.upload("gone.txt", b"gone")
    edited = await ann.send("square", "t", "as it was")
    deleted = await ann.send("square", "t", f"[gone](/user_uploads/{path})")
    moved = await ann.send("square", "t", "stays there")
    erased = await ben.send("square", "t", "from someone")
    (attachment,) = org.node.state.attachments
    begun, changed = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def wait(what: str, *_: object) -> None:
        loop.call_soon_threadsafe(begun.set)
        assert changed.wait(60)

    making = asyncio.create_task(
        export_of(org.node.config, tmp_path, ExportKind.FULL, progress=wait)
    )
    await begun.wait()
    assert (await ann.patch(f"/messages/{edited}", content="as it is now")).ok
    assert (await ann.patch(f"/messages/{moved}", topic="elsewhere")).ok
    assert (await ann.delete(f"/messages/{deleted}")).ok
    assert (await ann.delete(f"/attachments/{attachment.id}")).ok
    await until(lambda: not len(org.node.state.removed_files))
    later = await ben.send("square", "t", "too late")
    assert (await ann.delete(f"/users/{ben.user_id}", actions={"delete_profile": True})).ok
    changed.set()
    made = await making
    rows = {row["id"]: row for row in made.rows("zerver_message")}
    assert len(rows) == len(made.rows("zerver_message"))
    assert rows[edited]["content"] == "as it was"
    assert rows[moved]["subject"] == "t"
    assert deleted in rows
    assert later not in rows
    assert rows[erased]["content"] == "from someone"
    assert ben.email in {row["delivery_email"] for row in made.rows("zerver_userprofile")}
    # Files have no snapshot, so the report lists missing ones.
    assert made.result.missing == [path]
    assert [row["path_id"] for row in made.rows("zerver_attachment")] == [path]


async def test_scheduled_messages_keep_their_files(org: Organization, tmp_path: Path) -> None:
    ann = org["ann"]
    square = await org.channel("square", "ann")
    path = await ann.upload("later.txt", b"later")
    reply = await ann.post(
        "/scheduled_messages",
        type="channel",
        to=square,
        topic="t",
        content=f"[later](/user_uploads/{path})",
        scheduled_delivery_timestamp=int(org.node.clock()) + 86400,
    )
    made = await export_of(org.node.config, tmp_path, ExportKind.FULL)
    (scheduled,) = made.rows("zerver_scheduledmessage")
    (attachment,) = made.rows("zerver_attachment")
    assert scheduled["id"] == reply.ok["scheduled_message_id"]
    assert scheduled["has_attachment"]
    assert (attachment["path_id"], attachment["scheduled_messages"]) == (path, [scheduled["id"]])
    public = await export_of(org.node.config, tmp_path, ExportKind.PUBLIC)
    assert public.rows("zerver_attachment") == public.rows("zerver_scheduledmessage") == []
