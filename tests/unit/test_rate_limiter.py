"""Rate limits of attempts."""

import time
from types import SimpleNamespace
from typing import Any, cast

import pytest
from starlette.requests import Request

from tertulia.wire.http.errors import TooManyTries
from tertulia.wire.http.limiters import RateLimiter
from tertulia.wire.http.request_head import client_network
from tests.support import TestClock

NOW = 1_800_000_000.3


def limited(limit: int, seconds: float, known: int = 100) -> tuple[RateLimiter, TestClock]:
    clock = TestClock(stopped_at=NOW)
    return RateLimiter(limit, seconds, clock, known), clock


@pytest.mark.parametrize("limit", [1, 3, 7, 1000, 9999])
def test_the_limit_can_be_used_immediately_and_no_more(limit: int) -> None:
    limiter, _ = limited(limit, 60)
    assert [limiter.admits("ann") for _ in range(limit + 2)] == [True] * limit + [False] * 2
    assert limiter.admits("ben")


@pytest.mark.parametrize("limit", [1, 3, 7, 1000])
def test_attempts_recover_one_by_one(limit: int) -> None:
    limiter, clock = limited(limit, 60)
    while limiter.admits("ann"):
        pass
    for number in range(1, limit + 1):
        clock.ahead = number * 60 / limit
        assert limiter.admits("ann")
        assert not limiter.admits("ann")


def test_after_a_wait_the_full_limit_is_available_and_no_more() -> None:
    limiter, clock = limited(5, 60)
    while limiter.admits("ann"):
        pass
    clock.ahead = 86400
    assert [limiter.admits("ann") for _ in range(6)] == [True] * 5 + [False]


def test_refused_attempts_do_not_count() -> None:
    limiter, clock = limited(2, 60)
    for _ in range(50):
        limiter.admits("ann")
    clock.ahead = 30
    assert limiter.admits("ann")


def test_a_refusal_says_when_to_try_again() -> None:
    limiter, clock = limited(4, 60)
    for _ in range(4):
        limiter.require("ann")
    clock.ahead = 5
    with pytest.raises(TooManyTries) as refused:
        limiter.require("ann")
    assert refused.value.wait == 10
    clock.ahead += refused.value.wait
    limiter.require("ann")


def test_the_remaining_attempts_are_reported() -> None:
    limiter, clock = limited(3, 60)
    assert [limiter.left(limiter.charge("ann")) for _ in range(4)] == [2, 1, 0, 0]
    clock.ahead = 41
    assert [limiter.left(limiter.charge("ann")) for _ in range(3)] == [1, 0, 0]


def test_forgiven_attempts_do_not_count() -> None:
    limiter, _ = limited(2, 60)
    for _ in range(20):
        assert limiter.admits("ann")
        limiter.forgive("ann")
    assert [limiter.admits("ann") for _ in range(3)] == [True, True, False]


@pytest.mark.parametrize("back", [1, 3600, 10**9])
def test_a_clock_set_back_extends_no_block(back: float) -> None:
    limiter, clock = limited(3, 60)
    while limiter.admits("ann"):
        pass
    clock.ahead = -back
    assert not limiter.admits("ann")
    assert limiter.admits("ben")
    clock.ahead += 20
    assert limiter.admits("ann")


def test_nobody_with_all_attempts_is_remembered() -> None:
    limiter, clock = limited(3, 60)
    for number in range(50):
        limiter.admits(number)
    assert kept(limiter) == 50
    for who in ("ann", "ben"):
        clock.ahead += 60
        limiter.admits(who)
    assert kept(limiter) == 2


@pytest.mark.parametrize(("seconds", "left"), [(61, 0), (66, 0), (90, 4), (118, 8), (125, 9)])
def test_nobody_is_forgotten_before_all_attempts_have_recovered(seconds: float, left: int) -> None:
    limiter, clock = limited(10, 60)
    limiter.admits("ben")
    clock.ahead = 59  # Just before those of the last minute are archived.
    for _ in range(10):
        limiter.admits("ann")
    clock.ahead = 60
    limiter.admits("ben")
    clock.ahead = seconds
    limiter.admits("ben")
    assert limiter.left(limiter.charge("ann")) == left


@pytest.mark.parametrize("back", [0, 10**6])
def test_the_number_of_remembered_clients_is_limited(back: float) -> None:
    limiter, clock = limited(3, 60, known=20)
    limiter.admits("ann")
    clock.ahead = -back
    for number in range(1000):
        assert limiter.admits(number)
        assert kept(limiter) <= 40
    for number in range(980, 1000):
        assert limiter.left(limiter.charge(number)) == 1


def kept(limiter: RateLimiter) -> int:
    """The number of remembered clients."""
    return len(limiter._recent) + len(limiter._before)


@pytest.mark.parametrize(
    ("host", "counted"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:0db8:0001:0002::/64"),
        ("2001:db8:1:2:ffff::9", "2001:0db8:0001:0002::/64"),
        ("2001:db8:1:3::9", "2001:0db8:0001:0003::/64"),
        ("::1", "0000:0000:0000:0000::/64"),
        ("fe80::1%eth0", "fe80:0000:0000:0000::/64"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("no:address", "no:address"),
        ("x" * 1000, "x" * 64),
        (":" * 1000, ":" * 64),
        ("", ""),
        (None, None),
    ],
)
def test_a_client_is_counted_by_its_address_or_network(
    host: str | None, counted: str | None
) -> None:
    client = None if host is None else SimpleNamespace(host=host)
    assert client_network(cast("Request", cast("Any", SimpleNamespace(client=client)))) == counted


def test_the_test_clock_runs_unless_it_is_stopped() -> None:
    assert TestClock(stopped_at=5)() == TestClock(stopped_at=3, ahead=2)() == 5
    assert TestClock()() <= time.time()
