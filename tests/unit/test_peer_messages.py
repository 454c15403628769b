"""Messages between nodes that aren't in the log."""

import asyncio
import threading
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from tertulia.delivery import peer_messages
from tertulia.delivery.peer_messages import BATCH, MAX_WAITING, PeerMessages
from tertulia.model.peer_messages import LimitsCharged, PeerMessage, SignedInFrom
from tertulia.model.transients import EditTyping, PresenceChanged, QueueGone, Typing
from tertulia.service.config import Config
from tertulia.store.store import Store, database_at
from tests.support import Organization, until


def typing(sender: int, *, started: bool = True, topic: str = "t") -> Typing:
    return Typing(sender_id=sender, started=started, channel_id=1, topic=topic)


def presence(user: int, at: int, *, notable: bool = False) -> PresenceChanged:
    return PresenceChanged(user_id=user, active_at=at, idle_at=at, update_id=at, notable=notable)


def encoded(transient: PeerMessage) -> str:
    return msgspec.json.encode(("another node", transient)).decode()


class Road:
    """Collects messages. Each is delivered when a test allows it."""

    def __init__(self) -> None:
        self.told: list[list[PeerMessage]] = []
        self.open = asyncio.Event()
        self.messages = PeerMessages(self._send)
        self._elsewhere = PeerMessages(self._send)

    async def _send(self, texts: Sequence[str]) -> None:
        received = [self._elsewhere.received(text) for text in texts]
        self.told.append([transient for transient in received if transient is not None])
        assert self.messages.received(texts[0]) is None
        await self.open.wait()

    async def busy(self) -> None:
        """Return once a message is in progress, so that the next ones wait."""
        self.messages.add(typing(999))
        await until(lambda: len(self.told) == 1)

    async def all_told(self) -> list[PeerMessage]:
        """The messages sent after that."""
        self.open.set()
        await until(lambda: self.messages._task is None)
        return [one for batch in self.told[1:] for one in batch]


@pytest.fixture
async def road() -> Road:
    return Road()


async def test_a_message_to_an_idle_node_is_sent_immediately(road: Road) -> None:
    road.messages.add(typing(1))
    for _ in range(3):
        await asyncio.sleep(0)
    assert road.told == [[typing(1)]]
    road.open.set()
    await until(lambda: road.messages._task is None)


@pytest.mark.parametrize(
    ("added", "told"),
    [
        ([typing(1), typing(1, started=False)], [typing(1, started=False)]),
        ([typing(1), typing(2), typing(1, topic="u")], None),
        ([presence(1, 5), presence(2, 6), presence(1, 7)], [presence(1, 7), presence(2, 6)]),
        ([SignedInFrom(mark="a"), SignedInFrom(mark="b")], None),
        # The earlier message isn't lost.
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
async def test_of_waiting_messages_about_one_subject_the_latest_is_sent(
    road: Road, added: list[PeerMessage], told: list[PeerMessage] | None
) -> None:
    await road.busy()
    for one in added:
        road.messages.add(one)
    assert await road.all_told() == (added if told is None else told)


async def test_whether_a_message_waits_is_known(road: Road) -> None:
    charged = LimitsCharged(attempts={"requests": [(7, 20)]})
    await road.busy()
    assert not road.messages.waits(charged)
    road.messages.add(charged)
    assert road.messages.waits(LimitsCharged(attempts={}))
    assert await road.all_told() == [charged]
    assert not road.messages.waits(charged)


async def test_listeners_for_a_kind_get_other_nodes_messages(road: Road) -> None:
    heard: list[PeerMessage] = []
    road.messages.listen(SignedInFrom, heard.append)
    for one in (typing(1), SignedInFrom(mark="a")):
        road.messages.on_text(encoded(one))
    # As a newer version may send it.
    road.messages.on_text('["another node", {"type": "not_known_yet", "x": 1}]')
    await road.busy()
    assert heard == [SignedInFrom(mark="a")]
    assert await road.all_told() == []


async def test_thousands_of_messages_are_few_notifications_and_the_oldest_are_dropped(
    road: Road,
) -> None:
    await road.busy()
    for sender in range(2 * MAX_WAITING):
        road.messages.add(typing(sender))
    assert len(road.messages) == MAX_WAITING
    assert await road.all_told() == [typing(n) for n in range(MAX_WAITING, 2 * MAX_WAITING)]
    assert len(road.told) == 1 + MAX_WAITING // BATCH


async def test_an_outdated_message_is_not_sent(road: Road, monkeypatch: pytest.MonkeyPatch) -> None:
    await road.busy()
    for sender in range(2 * BATCH):
        road.messages.add(typing(sender))
    road.messages.add(QueueGone(queue_id="q"))
    monkeypatch.setattr(peer_messages, "LATE_SECONDS", -1.0)
    assert await road.all_told() == [QueueGone(queue_id="q")]
    assert len(road.messages) == 0


async def test_a_message_that_cannot_be_sent_is_dropped(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def broken(_: Sequence[str]) -> None:
        raise OSError("on purpose")

    found = PeerMessages(broken)
    for _ in range(2):
        found.add(typing(1))
        await until(lambda: found._task is None)
    assert [record.message for record in caplog.records] == [
        "could not send messages to other nodes"
    ] * 2


async def test_a_stopping_node_does_not_wait_forever(road: Road) -> None:
    await road.busy()
    await road.messages.close(0.01)
    await until(lambda: road.messages._task is None)
    road.messages.add(typing(1))
    assert road.messages._task is None


@pytest.mark.usefixtures("several_nodes")
async def test_commits_do_not_wait_for_messages_to_peers(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long those take."""
    lasting, begun = threading.Event(), threading.Event()
    database: Any = org.node.store.database

    def stuck(_: Sequence[str]) -> None:
        begun.set()
        lasting.wait(60)

    monkeypatch.setattr(database, "send_to_peers", stuck)
    await org.channel("lounge", "ann", "ben")
    try:
        for sender in range(4000):
            org.node.delivery.publish(typing(sender))
        await until(begun.is_set)
        for number in range(5):
            await org["ben"].send("lounge", "t", f"m{number}")
        assert len(org.node.delivery.peer_messages) <= MAX_WAITING
    finally:
        lasting.set()


@pytest.mark.usefixtures("several_nodes")
async def test_other_nodes_get_everything_sent_together(org: Organization, config: Config) -> None:
    found: set[str] = set()
    ready = asyncio.Event()
    other = Store(database_at(config.data_path, config.database_url, config.bus))
    end = other.watch(lambda _: ready.set(), found.add)
    try:
        await ready.wait()
        names = [f"{number} 'ä'" for number in range(BATCH)]
        messages = [encoded(QueueGone(queue_id=name)) for name in names]
        await org.node.store.send_to_peers(messages)
        await until(lambda: len(found) == BATCH)
        assert found == set(messages)
        # Text that is too long for one notification is sent in pieces.
        found.clear()
        here, there = (
            PeerMessages(org.node.store.send_to_peers),
            PeerMessages(org.node.store.send_to_peers),
        )
        large = typing(1, topic='"ä€' * 20_000)
        here.add(large)
        heard: list[PeerMessage] = []
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


async def test_a_message_too_large_for_other_nodes_is_logged(
    road: Road, caplog: pytest.LogCaptureFixture
) -> None:
    await road.busy()
    road.messages.add(typing(1, topic="x" * 10**6))
    road.messages.add(typing(2))
    assert await road.all_told() == [typing(2)]
    assert "too large to be sent to other nodes" in caplog.text


async def test_incomplete_pieces_are_forgotten(road: Road, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peer_messages, "LATE_SECONDS", 0)
    first, *rest = road.messages._texts(typing(1, topic="x" * 10_000))
    assert road._elsewhere.received(first) is None
    await until(lambda: not road._elsewhere._incomplete)
    for text in rest:
        assert road._elsewhere.received(text) is None
    await until(lambda: not road._elsewhere._incomplete)


async def test_invalid_json_is_ignored(road: Road) -> None:
    assert road.messages.received('["another node", {"type": "typ') is None
