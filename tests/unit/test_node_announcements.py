"""Announcements between nodes that aren't in the log."""

import asyncio
import threading
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from tertulia.delivery import announcements
from tertulia.delivery.announcements import BATCH, MAX_WAITING, Announcements
from tertulia.model.announcements import Announcement, LimitsCharged, SignedInFrom
from tertulia.model.transients import EditTyping, PresenceChanged, QueueGone, Typing
from tertulia.service.config import Config
from tertulia.store.store import Store, database_at
from tests.support import Organization, until


def typing(sender: int, *, started: bool = True, topic: str = "t") -> Typing:
    return Typing(sender_id=sender, started=started, channel_id=1, topic=topic)


def presence(user: int, at: int, *, notable: bool = False) -> PresenceChanged:
    return PresenceChanged(user_id=user, active_at=at, idle_at=at, update_id=at, notable=notable)


def encoded(transient: Announcement) -> str:
    return msgspec.json.encode(("another node", transient)).decode()


class Road:
    """Collects announcements. Each is delivered when a test allows it."""

    def __init__(self) -> None:
        self.told: list[list[Announcement]] = []
        self.open = asyncio.Event()
        self.announcements = Announcements(self._send)
        self._elsewhere = Announcements(self._send)

    async def _send(self, texts: Sequence[str]) -> None:
        received = [self._elsewhere.received(text) for text in texts]
        self.told.append([transient for transient in received if transient is not None])
        assert self.announcements.received(texts[0]) is None
        await self.open.wait()

    async def busy(self) -> None:
        """Return once an announcement is in progress, so that the next ones wait."""
        self.announcements.add(typing(999))
        await until(lambda: len(self.told) == 1)

    async def all_told(self) -> list[Announcement]:
        """The announcements sent after that."""
        self.open.set()
        await until(lambda: self.announcements._task is None)
        return [one for batch in self.told[1:] for one in batch]


@pytest.fixture
async def road() -> Road:
    return Road()


async def test_an_announcement_to_an_idle_node_is_sent_immediately(road: Road) -> None:
    road.announcements.add(typing(1))
    for _ in range(3):
        await asyncio.sleep(0)
    assert road.told == [[typing(1)]]
    road.open.set()
    await until(lambda: road.announcements._task is None)


@pytest.mark.parametrize(
    ("added", "told"),
    [
        ([typing(1), typing(1, started=False)], [typing(1, started=False)]),
        ([typing(1), typing(2), typing(1, topic="u")], None),
        ([presence(1, 5), presence(2, 6), presence(1, 7)], [presence(1, 7), presence(2, 6)]),
        ([SignedInFrom(mark="a"), SignedInFrom(mark="b")], None),
        # The earlier announcement isn't lost.
        ([presence(1, 5, notable=True), presence(1, 7)], [presence(1, 7, notable=True)]),
        (
            [
                EditTyping(sender_id=1, started=True, at=1, message_id=5),
                EditTyping(sender_id=1, started=False, at=2, message_id=5),
                EditTyping(sender_id=1, started=True, at=2, message_id=6),
            ],
            [
                EditTyping(sender_id=1, started=False, at=2, message_id=5),
                EditTyping(sender_id=1, started=True, at=2, message_id=6),
            ],
        ),
    ],
)
async def test_of_waiting_announcements_about_one_subject_the_latest_is_sent(
    road: Road, added: list[Announcement], told: list[Announcement] | None
) -> None:
    await road.busy()
    for one in added:
        road.announcements.add(one)
    assert await road.all_told() == (added if told is None else told)


async def test_whether_an_announcement_waits_is_known(road: Road) -> None:
    charged = LimitsCharged(attempts={"requests": [(7, 20)]})
    await road.busy()
    assert not road.announcements.waits(charged)
    road.announcements.add(charged)
    assert road.announcements.waits(LimitsCharged(attempts={}))
    assert await road.all_told() == [charged]
    assert not road.announcements.waits(charged)


async def test_listeners_for_a_kind_get_other_nodes_announcements(road: Road) -> None:
    heard: list[Announcement] = []
    road.announcements.listen(SignedInFrom, heard.append)
    for one in (typing(1), SignedInFrom(mark="a")):
        road.announcements.on_text(encoded(one))
    # As a newer version may announce it.
    road.announcements.on_text('["another node", {"type": "not_known_yet", "x": 1}]')
    await road.busy()
    assert heard == [SignedInFrom(mark="a")]
    assert await road.all_told() == []


async def test_thousands_of_announcements_are_few_notifications_and_the_oldest_are_dropped(
    road: Road,
) -> None:
    await road.busy()
    for sender in range(2 * MAX_WAITING):
        road.announcements.add(typing(sender))
    assert len(road.announcements) == MAX_WAITING
    assert await road.all_told() == [typing(n) for n in range(MAX_WAITING, 2 * MAX_WAITING)]
    assert len(road.told) == 1 + MAX_WAITING // BATCH


async def test_an_outdated_announcement_is_not_sent(
    road: Road, monkeypatch: pytest.MonkeyPatch
) -> None:
    await road.busy()
    for sender in range(2 * BATCH):
        road.announcements.add(typing(sender))
    road.announcements.add(QueueGone(queue_id="q"))
    monkeypatch.setattr(announcements, "LATE_SECONDS", -1.0)
    assert await road.all_told() == [QueueGone(queue_id="q")]
    assert len(road.announcements) == 0


async def test_an_announcement_that_cannot_be_sent_is_dropped(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def broken(_: Sequence[str]) -> None:
        raise OSError("on purpose")

    found = Announcements(broken)
    for _ in range(2):
        found.add(typing(1))
        await until(lambda: found._task is None)
    assert [record.message for record in caplog.records] == [
        "could not send announcements to other nodes"
    ] * 2


async def test_a_stopping_node_does_not_wait_forever(road: Road) -> None:
    await road.busy()
    await road.announcements.close(0.01)
    await until(lambda: road.announcements._task is None)
    road.announcements.add(typing(1))
    assert road.announcements._task is None


@pytest.mark.usefixtures("several_nodes")
async def test_commits_do_not_wait_for_announcements(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long those take."""
    lasting, begun = threading.Event(), threading.Event()
    database: Any = org.node.store.database

    def stuck(_: Sequence[str]) -> None:
        begun.set()
        lasting.wait(60)

    monkeypatch.setattr(database, "announce", stuck)
    await org.channel("lounge", "ann", "ben")
    try:
        for sender in range(4000):
            org.node.delivery.publish(typing(sender))
        await until(begun.is_set)
        for number in range(5):
            await org["ben"].send("lounge", "t", f"m{number}")
        assert len(org.node.delivery.announcements) <= MAX_WAITING
    finally:
        lasting.set()


@pytest.mark.usefixtures("several_nodes")
async def test_other_nodes_get_everything_announced_together(
    org: Organization, config: Config
) -> None:
    found: set[str] = set()
    ready = asyncio.Event()
    other = Store(database_at(config.data_path, config.database_url, config.bus))
    end = other.watch(lambda _: ready.set(), found.add)
    try:
        await ready.wait()
        names = [f"{number} 'ä'" for number in range(BATCH)]
        messages = [encoded(QueueGone(queue_id=name)) for name in names]
        await org.node.store.announce(messages)
        await until(lambda: len(found) == BATCH)
        assert found == set(messages)
        # Text that is too long for one notification is sent in pieces.
        found.clear()
        here, there = Announcements(org.node.store.announce), Announcements(org.node.store.announce)
        large = typing(1, topic='"ä€' * 20_000)
        here.add(large)
        heard: list[Announcement] = []
        seen: set[str] = set()

        def has_arrived() -> bool:
            new = found - seen
            seen.update(new)
            heard.extend(one for text in new if (one := there.received(text)) is not None)
            return bool(heard)

        await until(has_arrived)
        assert heard == [large]
        assert not there._incomplete
    finally:
        await asyncio.to_thread(end)
        await other.close()


async def test_an_announcement_too_large_for_other_nodes_is_logged(
    road: Road, caplog: pytest.LogCaptureFixture
) -> None:
    await road.busy()
    road.announcements.add(typing(1, topic="x" * 10**6))
    road.announcements.add(typing(2))
    assert await road.all_told() == [typing(2)]
    assert "too large to be sent to other nodes" in caplog.text


async def test_incomplete_pieces_are_forgotten(road: Road, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(announcements, "LATE_SECONDS", 0)
    first, *rest = road.announcements._texts(typing(1, topic="x" * 10_000))
    assert road._elsewhere.received(first) is None
    await until(lambda: not road._elsewhere._incomplete)
    for text in rest:
        assert road._elsewhere.received(text) is None
    await until(lambda: not road._elsewhere._incomplete)


async def test_invalid_json_is_ignored(road: Road) -> None:
    assert road.announcements.received('["another node", {"type": "typ') is None
