"""Rate limits shared by several nodes."""

import asyncio
from collections import Counter
from collections.abc import Hashable
from typing import Any, cast

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tertulia.delivery.peer_messages import PeerMessages
from tertulia.model.peer_messages import LimitsCharged, PeerMessage, SignedInFrom
from tertulia.service.credentials import Vault
from tertulia.wire.http import limiters as shared_limits
from tertulia.wire.http.limiters import MAX_SENT, Limiters, RateLimiter, SharedLimiter
from tests.support import TestClock, until

SECONDS = 60.0
WHO = 7


def _same(who: Hashable) -> Any:
    return who


class Nodes:
    """Rate limiters of several nodes, which announce what is due at each interval."""

    def __init__(self, count: int, limit: int, least: int, interval: float = 0.1) -> None:
        self.clock = TestClock(stopped_at=1000.0)
        self.interval = interval
        self.admitted: list[float] = []
        """When requests passed that other nodes have to learn about."""
        self.each = [
            SharedLimiter(
                limit, SECONDS, self.clock, 100, least=least, mark=_same, due=lambda: None
            )
            for _ in range(count)
        ]
        self._told = 0.0

    def ask(self, node: int, count: int = 1) -> None:
        """Send this many requests, or until one is refused."""
        for _ in range(count):
            if not self.each[node].admits(WHO):
                return
            self.admitted.append(self.clock.ahead)

    def wait(self, seconds: float) -> None:
        """Let time pass. Nodes announce at the end of the current interval."""
        ends = self.clock.ahead + seconds
        if ends >= self._told + self.interval:
            self.clock.ahead = max(self.clock.ahead, self._told + self.interval)
            self.tell()
            self._told = ends - (ends % self.interval)
        self.clock.ahead = ends

    def tell(self) -> None:
        told = [limiter.take(MAX_SENT) for limiter in self.each]
        for number, limiter in enumerate(self.each):
            for other, attempts in enumerate(told):
                if other != number:
                    for who, count in attempts:
                        limiter.absorb(who, count)


@given(
    count=st.integers(2, 4),
    limit=st.integers(1, 60),
    least=st.integers(1, 5),
    steps=st.lists(
        st.tuples(
            st.sampled_from([0.0, 0.03, 0.3, 1.0, 7.0, 40.0]),
            st.sets(st.integers(0, 3), min_size=1),
            st.sampled_from([1, 2, 100]),
        ),
        max_size=25,
    ),
)
@settings(max_examples=150, deadline=None)
def test_no_more_requests_pass_than_documented(
    count: int, limit: int, least: int, steps: list[tuple[float, set[int], int]]
) -> None:
    """The limit, what recovers in that time, what wasn't announced, and the requests of the last
    interval: whether a client alternates between nodes or uses all of them concurrently."""
    nodes = Nodes(count, limit, least)
    for seconds, at, asked in steps:
        nodes.wait(seconds)
        for node in at:
            nodes.ask(node % count, asked)
    admitted = Counter(nodes.admitted)
    untold = (count - 1) * (least - 1)
    for began in admitted:
        for ended in (time for time in admitted if time >= began):
            within = {time: n for time, n in admitted.items() if began <= time <= ended}
            late = sum(n for time, n in within.items() if time >= ended - nodes.interval - 1e-6)
            bound = limit + (ended - began) * limit / SECONDS + untold + late
            assert sum(within.values()) <= bound * 1.01


@given(
    st.integers(1, 50),
    st.lists(st.tuples(st.floats(0, 30), st.integers(1, 20)), max_size=30),
)
@settings(max_examples=50, deadline=None)
def test_a_client_of_one_node_has_the_whole_limit(
    limit: int, steps: list[tuple[float, int]]
) -> None:
    nodes = Nodes(3, limit, least=2)
    alone = RateLimiter(limit, SECONDS, nodes.clock)
    for seconds, asked in steps:
        nodes.wait(seconds)
        nodes.each[1].admits("somebody else")
        for _ in range(asked):
            assert nodes.each[0].admits(WHO) is alone.admits(WHO)
        assert nodes.each[0].ahead(WHO) == alone.ahead(WHO)


def test_excess_requests_are_paid_back() -> None:
    """Otherwise a client that uses all nodes concurrently would always have a multiple of the
    limit."""
    nodes = Nodes(3, 10, least=1)
    for node in range(3):
        nodes.ask(node, 100)
    assert len(nodes.admitted) == 30
    for _ in range(600):
        nodes.wait(6.0)
        for node in range(3):
            nodes.ask(node, 5)
    hour = 3600.0
    assert len(nodes.admitted) <= 10 + 10 * hour / SECONDS + 30
    assert len(nodes.admitted) >= 10 * hour / SECONDS * 0.9


def test_the_remaining_limit_includes_use_at_other_nodes() -> None:
    nodes = Nodes(2, 10, least=1)
    nodes.ask(0, 4)
    nodes.tell()
    limiter = nodes.each[1]
    assert limiter.left(limiter.charge(WHO)) == 5
    for node in range(2):
        nodes.ask(node, 20)
    nodes.tell()
    ahead = limiter.charge(WHO)
    assert limiter.left(ahead) == 0
    assert limiter.excess(ahead) == pytest.approx(42)
    assert limiter.whole_in(ahead) == pytest.approx(96)
    nodes.clock.ahead += limiter.excess(ahead)
    assert limiter.admits(WHO)


def test_forgiven_requests_are_forgiven_everywhere() -> None:
    nodes = Nodes(2, 10, least=1)
    nodes.ask(0, 3)
    nodes.tell()
    nodes.each[0].forgive(WHO)
    nodes.tell()
    assert nodes.each[1].left(nodes.each[1].charge(WHO)) == 7
    # A request forgiven before its announcement isn't announced.
    nodes.ask(0)
    nodes.each[0].forgive(WHO)
    assert nodes.each[0].take(MAX_SENT) == []


def test_unannounced_requests_are_bounded() -> None:
    clock = TestClock(stopped_at=1000.0)
    limiter = SharedLimiter(100, 60, clock, 50, least=5, mark=_same, due=lambda: None)
    for number in range(2000):
        limiter.admits(number % 400)
        assert len(limiter._untold) <= 100
        assert len(limiter._recent) + len(limiter._before) <= 100


# Announcements


class Bus:
    """One node's announcements."""

    def __init__(self) -> None:
        self.said: list[PeerMessage] = []
        self.is_stuck = False
        self.listeners: dict[type, Any] = {}

    def waits(self, _: PeerMessage) -> bool:
        return self.is_stuck

    def add(self, announcement: PeerMessage) -> None:
        self.said.append(announcement)

    def listen(self, kind: type, listener: Any) -> None:
        self.listeners[kind] = listener

    @property
    def charged(self) -> list[dict[str, list[tuple[int | str, int]]]]:
        """Announced uses of limits."""
        return [one.attempts for one in self.said if isinstance(one, LimitsCharged)]


@pytest.fixture
def bus() -> Bus:
    return Bus()


@pytest.fixture
def limiters(bus: Bus) -> Limiters:
    clock = TestClock(stopped_at=1000.0)
    return Limiters(clock, cast(PeerMessages, bus), Vault("a secret").mark)


async def turn() -> None:
    """Let other tasks run."""
    for _ in range(3):
        await asyncio.sleep(0)


async def test_requests_with_rare_limits_are_announced_immediately(
    bus: Bus, limiters: Limiters
) -> None:
    limiter = limiters.limiter("codes", 20, 600)
    for _ in range(3):
        limiter.admits(WHO)
    limiter.admits(8)
    limiter.forgive(8)
    assert bus.said == []
    await turn()
    assert bus.charged == [{"codes": [(WHO, 3)]}]
    limiter.forgive(WHO)
    await turn()
    assert bus.charged[1:] == [{"codes": [(WHO, -1)]}]


async def test_requests_with_other_limits_are_sent_in_batches(
    bus: Bus, limiters: Limiters, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_limits, "SEND_SECONDS", 0.001)
    limiter = limiters.limiter("requests", 1000, 60, is_rare=False)
    for _ in range(19):
        limiter.admits(WHO)
    assert limiters._timer is None
    for _ in range(5):
        limiter.admits(WHO)
    await until(lambda: bool(bus.said))
    assert bus.charged == [{"requests": [(WHO, 24)]}]
    limiter.admits(WHO)
    assert limiters._timer is None


async def test_many_networks_do_not_flood_the_other_nodes(
    bus: Bus, limiters: Limiters, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The most active clients are announced, in one notification at a time."""
    monkeypatch.setattr(shared_limits, "SEND_SECONDS", 0.01)
    limiter = limiters.limiter("anonymous", 10**6, 60, 10_000, is_rare=False)
    monkeypatch.setattr(limiter, "_least", 2)
    codes = limiters.limiter("codes", 20, 600)
    for number in range(1000):
        for _ in range(20 if number >= 900 else 3):
            limiter.admits(f"192.0.2.{number}")
    codes.admits("192.0.2.1")
    await turn()
    (first,) = bus.charged
    assert {name: len(told) for name, told in first.items()} == {
        "codes": 1,
        "anonymous": MAX_SENT // 2,
    }
    assert [n for _, n in first["anonymous"]].count(20) == 100
    # Nothing is sent while the last announcement waits.
    bus.is_stuck = True
    await asyncio.sleep(0.03)
    assert len(bus.said) == 1
    bus.is_stuck = False
    await until(lambda: len(bus.said) == 5)
    told = [who for one in bus.charged for who, _ in one.get("anonymous", ())]
    assert len(told) == len(set(told)) == 1000
    assert "192.0.2" not in repr(bus.said)


@pytest.mark.parametrize("secret", ["a secret", "another"])
def test_equal_secrets_give_equal_marks(secret: str) -> None:
    same = secret == "a secret"  # Not a mark.
    assert (Vault(secret).mark("192.0.2.1") == Vault("a secret").mark("192.0.2.1")) is same


def test_the_longest_announcement_fits_into_a_notification() -> None:
    attempts: dict[str, list[tuple[int | str, int]]] = {"sign-ins to one account": []}
    for number in range(MAX_SENT):
        attempts["sign-ins to one account"].append((f"{number:016x}", -100_000))
    names = [f"sign-ins of kind {number}" for number in range(10)]
    message = LimitsCharged(attempts={**attempts, **{name: [] for name in names}})
    assert len(msgspec.json.encode(("0" * 16, message))) < 7999


async def test_valid_announcements_count_and_others_are_ignored(
    bus: Bus, limiters: Limiters
) -> None:
    limiter = limiters.limiter("requests", 10, 60, is_rare=False)
    assert limiters.limiter("requests", 10, 60, is_rare=False) is limiter
    known: list[str] = []
    limiters.on_signed_in(known.append)
    bus.listeners[LimitsCharged](LimitsCharged(attempts={"requests": [(WHO, 6)], "else": [(1, 1)]}))
    bus.listeners[SignedInFrom](SignedInFrom(mark="m"))
    assert limiter.left(limiter.ahead(WHO)) == 4
    assert known == ["m"]
    # Received announcements aren't repeated.
    await turn()
    assert bus.said == []
