"""Pages, polls, histories, and caches are limited in bytes, not only in items."""

import asyncio
import json
from collections.abc import MutableMapping, Sequence
from typing import Any

import msgspec
import pytest
from starlette.requests import Request

from tertulia.delivery import recent_entries
from tertulia.model.changes import MessageSent
from tertulia.model.errors import Refused
from tertulia.model.narrow import Matches, Term
from tertulia.model.tokenizer import Phrase, phrases_of
from tertulia.model.users import Bot, BotKind
from tertulia.store import editing, installation, log_entries, message_details, message_search
from tertulia.wire.api import highlighting
from tertulia.wire.api.messages import pages as resources_history
from tertulia.wire.http import responses
from tertulia.wire.http.errors import TooMuchUnread
from tertulia.wire.http.responses import IN_PROGRESS, PART_BYTES, JsonResponse, UnreadResponses
from tests.support import Organization, Turns, until

LONG = "x" * 9000


async def test_a_page_of_long_messages_ends_early_and_says_so(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(message_search, "PAGE_BYTES", 100_000)
    monkeypatch.setattr(message_search, "_FIRST_PAGE_STEP", 4)
    await org.channel("lounge", "ann")
    ids = [await org["ann"].send("lounge", "t", LONG) for _ in range(20)]
    narrow = json.dumps([{"operator": "channel", "operand": "lounge"}])

    async def page(anchor: str | int, before: int, after: int) -> tuple[list[int], bool, bool]:
        asked = {"anchor": str(anchor), "num_before": before, "num_after": after}
        found = (await org["ann"].get("/messages", narrow=narrow, **asked)).ok
        shown = [one["id"] for one in found["messages"]]
        return shown, found["found_oldest"], found["found_newest"]

    newest, found_oldest, found_newest = await page("newest", 20, 0)
    assert newest == ids[-len(newest) :]
    assert (len(newest), found_oldest, found_newest) == (5, False, True)
    oldest, found_oldest, found_newest = await page("oldest", 0, 20)
    assert oldest == ids[: len(oldest)]
    assert (len(oldest), found_oldest, found_newest) == (5, True, False)
    around, *ends = await page(ids[10], 20, 20)
    assert around == ids[5:15]
    assert ends == [False, False]
    # Further pages contain all of them.
    read, ends = list(newest), [False]
    while not ends[0]:
        some, *ends = await page(read[0], 20, 0)
        read = some[:-1] + read
    assert read == ids
    monkeypatch.setattr(message_search, "PAGE_BYTES", 10)
    assert await page("newest", 5, 0) == ([ids[-1]], False, True)


async def test_a_poll_of_long_messages_takes_several_responses(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recent_entries, "PAGE_BYTES", 50_000)
    monkeypatch.setattr(recent_entries, "RECENT_BYTES", 60_000)
    monkeypatch.setattr(recent_entries, "_LOOK_AFTER", 1)
    await org.channel("lounge", "ann", "ben")
    listener = await org["ben"].register(event_types=json.dumps(["message"]))
    ids = [await org["ann"].send("lounge", "t", LONG) for _ in range(20)]
    recent = org.node.delivery.recent
    assert sum(cached.size for cached in recent) <= 60_000
    told: list[list[int]] = []
    while sum(map(len, told)) < len(ids):
        told.append([event["message"]["id"] for event in await listener.events()])
    assert [one for some in told for one in some] == ids
    assert all(0 < len(some) <= 8 for some in told)


async def test_events_encoded_later_count_too(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recent_entries, "RECENT_BYTES", 400_000)
    await org.channel("lounge", "ann", "ben")
    listeners = [
        await org["ben"].register(apply_markdown=is_html, client_gravatar=has_gravatar)
        for is_html in (True, False)
        for has_gravatar in (True, False)
    ]
    for _ in range(12):
        await org["ann"].send("lounge", "t", LONG)
    for listener in listeners:
        assert sum(event["type"] == "message" for event in await listener.events()) == 12
    # There was room at each check, and later events are a small part.
    assert sum(cached.size for cached in org.node.delivery.recent) <= 400_000 * 9 // 8


async def test_the_log_is_read_in_parts_limited_in_bytes(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_entries, "TAIL_BYTES", 50_000)
    head = await org.node.store.read(installation.head_position)
    await org.channel("lounge", "ann")
    for _ in range(5):
        await org["ann"].send("lounge", "t", LONG)
    after, parts = installation.Position(head.history, head.seq, head.batch), []
    while True:
        part = await org.node.store.read(log_entries.read_tail, after, 100)
        parts.append(sum(isinstance(one.change, MessageSent) for one in part.entries))
        if part.is_all:
            break
        after = part.position
    assert parts == [2, 2, 1]


async def test_an_edit_history_is_limited(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(editing, "KEPT_EDITS", 10)
    monkeypatch.setattr(message_details, "EDITS_BYTES", 60_000)
    await org.channel("lounge", "ann")
    sent = await org["ann"].send("lounge", "t", "the first")
    for number in range(20):
        (await org["ann"].patch(f"/messages/{sent}", content=f"{number} {LONG}")).ok
    for message in (
        (await org["ann"].get(f"/messages/{sent}")).ok["message"],
        (await org["ann"].get("/messages", anchor="newest", num_before=1, num_after=0)).ok[
            "messages"
        ][0],
    ):
        edits = message["edit_history"]
        assert len(edits) == 10
        assert [edit["prev_content"][:3] for edit in edits[:3]] == ["18 ", "17 ", "16 "]
        assert not any("prev_content" in edit for edit in edits[3:])
        assert message["last_edit_timestamp"]
    history = (await org["ann"].get(f"/messages/{sent}/history")).ok
    versions = history["message_history"]
    assert len(versions) == 11
    assert (versions[0]["content"], versions[1]["prev_content"]) == ("the first", "the first")
    assert [one["content"][:3] for one in versions[1:]] == [f"{n} "[:3] for n in range(10, 20)]
    assert "next_before" not in history
    # Pages of messages contain the same.
    monkeypatch.setattr(editing, "HISTORY_BYTES", 60_000)
    pages = [(await org["ann"].get(f"/messages/{sent}/history")).ok]
    while "next_before" in pages[-1]:
        before = pages[-1]["next_before"]
        pages.append((await org["ann"].get(f"/messages/{sent}/history", before=before)).ok)
    assert [len(page["message_history"]) for page in pages] == [3, 3, 5]
    assert [one for page in pages[::-1] for one in page["message_history"]] == versions
    # They are limited in bytes, too.
    monkeypatch.setattr(editing, "KEPT_BYTES", 60_000)
    monkeypatch.setattr(editing, "HISTORY_BYTES", 1_000_000)
    (await org["ann"].patch(f"/messages/{sent}", content="the last")).ok
    history = (await org["ann"].get(f"/messages/{sent}/history")).ok["message_history"]
    assert [one["content"][:3] for one in history] == ["the", "17 ", "18 ", "19 ", "the"]


class _Client:
    """A client that reads a response part by part."""

    def __init__(self, address: str) -> None:
        self.scope: dict[str, Any] = {
            "type": "http",
            "method": "GET",
            "headers": [],
            "client": (address, 1),
        }
        self.sent: list[MutableMapping[str, Any]] = []
        self.takes = asyncio.Semaphore(0)

    async def ask(self, body: bytes) -> None:
        await JsonResponse(body)(self.scope, Request(self.scope).receive, self._send)

    async def _send(self, message: MutableMapping[str, Any]) -> None:
        await self.takes.acquire()
        self.sent.append(message)

    @property
    def status(self) -> int:
        return int(self.sent[0]["status"])

    @property
    def body(self) -> bytes:
        return b"".join(one.get("body", b"") for one in self.sent)


async def test_dropped_versions_merge_into_one_edit(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(editing, "KEPT_EDITS", 3)
    await org.channel("lounge", "ann")
    sent = await org["ann"].send("lounge", "first", "one")
    path = f"/messages/{sent}"
    for change in (
        {"topic": "second"},
        {"content": "two"},
        {"topic": "third"},
        {"topic": ""},
        {"topic": "last"},
        {"content": "three"},
        {"content": "four"},
    ):
        (await org["ann"].patch(path, **change)).ok
    history = (await org["ann"].get(f"{path}/history", allow_empty_topic_name=True)).ok
    versions = [(one["topic"], one["content"]) for one in history["message_history"]]
    assert versions == [
        ("first", "one"),
        ("first", "two"),
        ("last", "two"),
        ("last", "three"),
        ("last", "four"),
    ]


async def test_a_topic_renamed_between_dropped_edits_is_kept(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(editing, "KEPT_EDITS", 3)
    await org.channel("lounge", "ann")
    sent = await org["ann"].send("lounge", "first", "one")
    await org["ann"].send("lounge", "first", "stays")
    path = f"/messages/{sent}"
    for change in (
        {"topic": "second"},
        {"topic": "third", "propagate_mode": "change_all"},
        *({"content": text} for text in ("two", "three", "four", "five")),
    ):
        (await org["ann"].patch(path, **change)).ok
    history = (await org["ann"].get(f"{path}/history")).ok["message_history"]
    assert [(one["topic"], one["content"]) for one in history] == [
        ("first", "one"),
        ("second", "one"),
        ("third", "one"),
        ("third", "three"),
        ("third", "four"),
        ("third", "five"),
    ]


async def test_merged_edits_do_not_reveal_private_content(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(editing, "KEPT_EDITS", 3)
    await org.channel("den", "ann", is_private=True)
    lounge = await org.channel("lounge", "ann", "ben")
    sent = await org["ann"].send("den", "t", "secret")
    path = f"/messages/{sent}"
    (await org["ann"].patch(path, content="redacted")).ok
    (await org["ann"].patch(path, stream_id=lounge)).ok
    for number in range(6):
        (await org["ann"].patch(path, content=f"public {number}")).ok
    for name, first in (("ann", "secret"), ("ben", "redacted")):
        history = (await org[name].get(f"{path}/history")).ok["message_history"]
        assert history[0]["content"] == first
        assert ("secret" in str(history)) == (name == "ann")


async def test_bots_count_for_their_owner_and_everyone_for_their_network(
    org: Organization,
) -> None:
    room = UnreadResponses(60, of_network=50, of_one=30)
    ann, ben = (org.node.state.users[org[name].user_id] for name in ("ann", "ben"))
    bot = msgspec.structs.replace(ben, id=99, bot=Bot(kind=BotKind.GENERIC, owner_id=ann.id))
    releases = [room.take(ann, "192.0.2.1", 25)]
    with pytest.raises(TooMuchUnread):
        room.take(bot, "192.0.2.2", 10)
    releases.append(room.take(ben, "192.0.2.1", 25))
    with pytest.raises(TooMuchUnread):
        room.take(None, "192.0.2.1", 1)
    with pytest.raises(TooMuchUnread):
        room.take(None, "192.0.2.2", 11)
    releases.append(room.take(None, "192.0.2.2", 10))
    for release in releases:
        release()
    assert (room.taken, dict(room.taken_by)) == (0, {})


def test_clients_without_accounts_leave_room_for_members() -> None:
    room = UnreadResponses(100, of_network=50, of_one=30)
    releases = [room.take(None, f"2001:db8:0:{n}::/64", 25) for n in range(2)]
    with pytest.raises(TooMuchUnread):
        room.take(None, "2001:db8:0:2::/64", 25)
    for release in releases:
        release()
    assert (room.taken, dict(room.taken_by)) == (0, {})


async def test_many_concurrent_large_responses_are_refused_before_they_are_built(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    room = UnreadResponses(9 * IN_PROGRESS, 9 * IN_PROGRESS, 3 * IN_PROGRESS)
    monkeypatch.setattr(responses, "unread_responses", room)
    reads, go_on = [], asyncio.Event()

    async def find(*_: object) -> None:
        reads.append(1)
        await go_on.wait()
        raise Refused("Enough.")

    monkeypatch.setattr(resources_history, "find_messages", find)
    asked = {"anchor": "newest", "num_before": 1, "num_after": 0}
    replies = asyncio.gather(*(org["ann"].get("/messages", **asked) for _ in range(5)))
    await until(lambda: len(reads) == 3)
    go_on.set()
    statuses = sorted(reply.status for reply in await replies)
    assert (statuses, len(reads)) == ([400, 400, 400, 503, 503], 3)
    assert (room.taken, dict(room.taken_by)) == (0, {})


async def test_messages_by_id_that_are_too_large_together_are_refused(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    await org.channel("lounge", "ann")
    ids = [await org["ann"].send("lounge", "t", LONG) for _ in range(4)]
    monkeypatch.setattr(message_search, "PAGE_BYTES", 30_000)
    reply = await org["ann"].get("/messages", message_ids=json.dumps(ids))
    assert (reply.status, "Request fewer" in reply.body["msg"]) == (400, True)
    some = (await org["ann"].get("/messages", message_ids=json.dumps(ids[:3]))).ok["messages"]
    assert [one["id"] for one in some] == ids[:3]


async def test_a_slow_reader_uses_up_only_its_own_room(monkeypatch: pytest.MonkeyPatch) -> None:
    room = UnreadResponses(6 * PART_BYTES, 5 * PART_BYTES, 3 * PART_BYTES)
    monkeypatch.setattr(responses, "unread_responses", room)
    large = b"x" * (2 * PART_BYTES)
    slow, other = _Client("192.0.2.1"), _Client("192.0.2.2")
    waiting = asyncio.create_task(slow.ask(large))
    await asyncio.sleep(0)
    assert room.taken == len(large)
    again = _Client("192.0.2.1")
    again.takes = other.takes = asyncio.Semaphore(100)
    await again.ask(large)
    assert again.status == 503
    assert b"haven't been read yet" in again.body
    await other.ask(large)
    assert (other.status, other.body) == (200, large)
    assert [len(one.get("body", b"")) for one in other.sent] == [0, PART_BYTES, PART_BYTES]
    for _ in range(3):
        slow.takes.release()
    await waiting
    assert slow.body == large
    assert (room.taken, dict(room.taken_by)) == (0, {})
    # Without other open responses, one of any size is allowed, and a disconnect frees it.
    whole = asyncio.create_task(slow.ask(b"x" * (5 * PART_BYTES)))
    await asyncio.sleep(0)
    assert room.taken == 5 * PART_BYTES
    whole.cancel()
    await asyncio.gather(whole, return_exceptions=True)
    assert room.taken == 0


async def test_a_page_of_matches_is_highlighted_in_steps_up_to_a_limit(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    await org.channel("lounge", "ann")
    for text in ("tea", "thé " * 100 + "tea", "tea " * 100, "tea at last"):
        await org["ann"].send("lounge", "tea", text)
    searched = json.dumps([{"operator": "search", "operand": "tea"}])
    work: list[int] = []
    marked = highlighting.marked

    def counted(text: str, phrases: Sequence[Phrase]) -> str:
        work.append(len(text))
        return marked(text, phrases)

    monkeypatch.setattr(highlighting, "marked", counted)

    async def shown() -> list[bool]:
        page = await org["ann"].get(
            "/messages", anchor="newest", num_before=9, num_after=0, narrow=searched
        )
        ids = [one["id"] for one in page.ok["messages"]]
        matches = await org["ann"].get("/messages/matches_narrow", msg_ids=ids, narrow=searched)
        found = [one["match_content"] for one in page.ok["messages"]]
        assert found == [one["match_content"] for one in matches.ok["messages"].values()]
        return ["highlight" in one for one in found]

    assert await shown() == [True, True, True, True]
    # The French message costs twenty times as much as the later ones: all but that fit.
    monkeypatch.setattr(highlighting, "PAGE_WORK", 5000)
    work.clear()
    assert await shown() == [True, False, True, True]
    assert sum(work) < 2 * 5000


async def test_highlighting_a_page_yields_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(highlighting, "STEP_WORK", 1000)
    condition = Matches(phrases=phrases_of("tea"))
    highlighter = highlighting.Highlighter([Term(condition=condition)])
    async with Turns() as turns:
        for _ in range(50):
            assert "highlight" in await highlighter.content("tea " * 100, is_html=True)
    assert turns.count >= 50 * 400 // 1000 - 1


def test_of_a_long_search_the_first_words_are_highlighted() -> None:
    words = [f"w{n}x" for n in range(highlighting.MAX_WORDS + 1)]
    condition = Matches(phrases=phrases_of(" ".join(words)))
    highlighter = highlighting.Highlighter([Term(condition=condition)])
    shown = asyncio.run(highlighter.content(" ".join(words), is_html=False))
    assert shown.count("highlight") == highlighting.MAX_WORDS
    assert shown.endswith(words[-1])
