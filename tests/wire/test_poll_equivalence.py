"""Polls (GET /events) are answered in two ways, with equal results."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from tertulia.model.changes import RealmChanged
from tertulia.service.config import Config
from tests.browsers import FIREFOX, session_cookie, signed_in_browser
from tests.support import Organization, Person, TestClock, new_organization
from tests.wire.loopback import WAYS, Answer, Loopback, request, serving

pytestmark = pytest.mark.usefixtures("no_logged_errors")


@dataclass
class Both:
    """An organization that is served in both ways."""

    org: Organization
    below: Loopback
    endpoint: Loopback
    words: dict[str, Any] = field(default_factory=dict)
    """Values for the names in braces in targets and headers."""

    async def ask(
        self, target: str, person: Person | None, *headers: str, **how: Any
    ) -> tuple[Answer, bool]:
        """The response, which must be the same in both ways, and whether it came from the fast
        path."""
        more = [header.format(**self.words) for header in headers]
        data = request(target.format(**self.words), person, *more, **how)
        method = how.get("method", "GET")
        closes = how.get("version") == "1.0" or "Connection: close" in headers
        assert self.below.polls is not None
        before = self.below.polls.started
        answers = []
        for server in (self.below, self.endpoint):
            line = await server.connect()
            answers.append(await line.ask(data, method))
            if closes:
                assert await line.ended() == b""
            else:
                assert (await line.ask(data, method)) == answers[-1]
        below, endpoint = answers
        assert below == endpoint
        return below, self.below.polls.started > before


@asynccontextmanager
async def served(org: Organization) -> AsyncIterator[Both]:
    """Ann's queues, one with events and one without, and one of ben's."""
    await org.channel("lounge", "ann", "ben")
    idle = await org["ann"].register(event_types=["realm_bot"])
    busy, other = await org["ann"].register(), await org["ben"].register()
    for number in range(3):
        await org["ben"].send("lounge", "t", f"m{number} ☕")
    queue = org.node.delivery.queues.get(busy.queue_id)
    assert queue is not None
    head = queue.numbering.begin_of(org.node.state.seq)
    ann = org["ann"]
    words = {
        "idle": idle.queue_id,
        "queue": busy.queue_id,
        "other": other.queue_id,
        "last": busy.last_event_id,
        "second": (await busy.events(acknowledge=False))[0]["id"],
        "head": head,
        "key": ann.api_key,
        "email": ann.email,
    }
    async with AsyncExitStack() as stack:
        below, endpoint = [await stack.enter_async_context(serving(org, way)) for way in WAYS]
        yield Both(org, below, endpoint, words)


@pytest.fixture
async def both(org: Organization) -> AsyncIterator[Both]:
    async with served(org) as both:
        yield both


@pytest.fixture(scope="module")
async def kept_both(shared_org: Organization) -> AsyncIterator[Both]:
    async with served(shared_org) as both:
        yield both


@pytest.fixture
def asking(kept_both: Both) -> Iterator[Both]:
    """`both`, for tests that only read: a queue's fast path is found by what the client says it
    knows, and remains for the next one that says the same."""
    before = kept_both.org.node.state.seq
    yield kept_both
    assert kept_both.org.node.state.seq == before, "something was changed"


PLAIN = [
    "queue_id={queue}&last_event_id={last}",
    "queue_id={queue}&last_event_id={second}",
    "queue_id={queue}&last_event_id=-1",
    "last_event_id=-1&queue_id={queue}",
    "queue_id={queue}&last_event_id=-1&dont_block=true",
    "queue_id={queue}&last_event_id=-1&dont_block=false",
    "queue_id={idle}&last_event_id=-1&dont_block=true",
    "queue_id={idle}&last_event_id={last}&dont_block=true",
    "queue_id={queue}&last_event_id={head}&dont_block=true",
    "queue_id={other}&queue_id={queue}&last_event_id=-1",
    "queue_id={queue}&last_event_id=+1&last_event_id=-1",
]


@pytest.mark.parametrize("query", PLAIN)
async def test_a_plain_poll_takes_the_fast_path_with_equal_bytes(asking: Both, query: str) -> None:
    answer, is_below = await asking.ask(f"/events?{query}", asking.org["ann"])
    assert answer.told["result"] == "success"
    assert is_below


AFTER_IT = [
    ("queue_id={queue}&last_event_id={last}", True),
    ("queue_id={queue}&last_event_id={second}", True),
    ("queue_id={queue}&last_event_id=0", False),
    ("queue_id={queue}&last_event_id=-1", False),
    ("queue_id={queue}&last_event_id=", False),
    ("queue_id={queue}&last_event_id=0{last}", False),
    ("queue_id={queue}&last_event_id={last}0000000000000000", False),
    ("queue_id={queue}&last_event_id={last}x", False),
    ("queue_id={queue}&last_event_id={last}&last_event_id=-1", False),
    ("queue_id={queue}&last_event_id={last}&dont_block=true", False),
    ("queue_id={other}&last_event_id={last}", False),
    ("last_event_id={last}&queue_id={queue}", False),
]


@pytest.mark.parametrize(("query", "is_usual"), AFTER_IT)
async def test_a_poll_like_the_previous_one_is_not_parsed_again(
    asking: Both, query: str, is_usual: bool
) -> None:
    before, data, other = (
        request(f"/events?{one}".format(**asking.words), person)
        for one, person in (
            (PLAIN[0], asking.org["ann"]),
            (query, asking.org["ann"]),
            (PLAIN[0], asking.org["ben"]),
        )
    )
    polls = asking.below.polls
    assert polls is not None
    found = []
    for server in (asking.below, asking.endpoint):
        line = await server.connect()
        answers = [await line.ask(before)]
        usual = polls.usual
        answers.append(await line.ask(data))
        assert polls.usual - usual == (is_usual and server is asking.below)
        # In two parts, with data behind it, and from someone else, it's parsed.
        usual = polls.usual
        line.write(data[:50])
        await server.settle()
        answers.append(await line.ask(data[50:]))
        line.write(before + before)
        answers += [await line.read(), await line.read(), await line.ask(other)]
        assert polls.usual == usual
        found.append(answers)
    assert found[0] == found[1]


UNUSUAL = [
    # Queues
    ("queue_id=00000000-0000-4000-8000-000000000000&last_event_id=-1", 400),
    ("queue_id={other}&last_event_id=-1", 400),
    ("queue_id={queue}&queue_id={other}&last_event_id=-1", 400),
    ("queue_id=&last_event_id=-1", 400),
    ("queue_id&last_event_id=-1", 400),
    ("queue_id=%00&last_event_id=-1", 400),
    ("queue_id=%ff&last_event_id=-1", 400),
    ("queue_id=%22{queue}%22&last_event_id=-1&dont_block=true", 400),
    ("queue_id=a%2Db&last_event_id=-1", 400),
    ("last_event_id=-1", 400),
    ("", 400),
    # IDs
    *(
        (f"queue_id={{queue}}&dont_block=true&last_event_id={number}", status)
        for number, status in [
            ("", 400),
            ("0", 400),
            ("1", 400),
            ("01", 400),
            ("+1", 400),
            ("%2B1", 400),
            ("1e3", 400),
            ("1.0", 400),
            ("-0", 400),
            ("-2", 400),
            ("-01", 400),
            (f"{2**53}", 400),
            (f"{2**53 + 1}", 400),
            (f"{2**54}", 400),
            ("9" * 17, 400),
            ("9" * 5000, 400),
            ("null", 400),
            ("%2D1", 200),
            ("%201", 400),
            ("%D9%A1", 400),
            ("-1%20", 200),
            ("-1%00", 400),
            ("[-1]", 400),
            ("-1#x", 200),
        ]
    ),
    ("queue_id={queue}", 400),
    # Waiting
    *(
        (f"queue_id={{queue}}&last_event_id=-1&dont_block={value}", status)
        for value, status in [
            ("", 400),
            ("True", 400),
            ("1", 400),
            ("%22true%22", 400),
            ("null", 200),
            ("tru%65", 200),
            ("yes", 400),
        ]
    ),
    # Unknown parameters
    ("queue_id={queue}&last_event_id=-1&client=me", 200),
    ("queue_id={queue}&last_event_id=-1&colour=red", 200),
    ("queue_id={queue}&last_event_id=-1&", 200),
    ("queue_id={queue}&&last_event_id=-1", 200),
    ("queue%5Fid={queue}&last_event_id=-1", 200),
    ("queue_id={queue};last_event_id=-1", 400),
]


@pytest.mark.parametrize(("query", "status"), UNUSUAL)
async def test_unusual_queries_get_equal_responses(asking: Both, query: str, status: int) -> None:
    answer, _ = await asking.ask(f"/events?{query}", asking.org["ann"])
    assert answer.status == status, answer.body


POLL = "/events?queue_id={queue}&last_event_id=-1"
HEADERS: list[tuple[list[str], int]] = [
    ([], 401),
    (["Authorization: "], 401),
    (["Authorization: Basic"], 401),
    (["Authorization: Basic ====", f"User-Agent: {FIREFOX}"], 401),
    (["Authorization: Basic YW5uQGV4YW1wbGUuY29tOndyb25n"], 401),
    (["Authorization: Basic \xff"], 401),
    (["Authorization: Bearer {key}"], 400),
    (["Sec-Fetch-Mode: cors"], 401),
    (["Cookie: tertulia_session=none"], 401),
]


@pytest.mark.parametrize(("headers", "status"), HEADERS)
async def test_unknown_clients_get_equal_responses(
    asking: Both, headers: list[str], status: int
) -> None:
    answer, is_below = await asking.ask(POLL, None, *headers)
    assert answer.status == status, answer.body
    assert not is_below


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        (["User-Agent: ZulipMobile/1.0"], 200),
        ([f"User-Agent: {FIREFOX}", "Sec-Fetch-Mode: cors"], 200),
        (["Cookie: tertulia_session=none"], 200),
        (["Connection: keep-alive"], 200),
        (["Connection: close"], 200),
        (["Host: [::1]:9991"], 200),
        (["Origin: http://elsewhere.test"], 200),
        (["Accept-Encoding: gzip"], 200),
        (["Content-Type: application/json"], 200),
        (["X-Forwarded-Proto: https", "X-Forwarded-For: 10.0.0.1"], 200),
    ],
)
async def test_other_headers_make_no_difference(
    asking: Both, headers: list[str], status: int
) -> None:
    answer, _ = await asking.ask(POLL, asking.org["ann"], *headers)
    assert answer.status == status, answer.body


@pytest.mark.parametrize(
    ("how", "headers", "status"),
    [
        ({"method": "HEAD"}, [], 200),
        ({"method": "POST"}, [], 405),
        ({"method": "PUT"}, [], 405),
        ({"method": "OPTIONS"}, [], 204),
        ({"version": "1.0"}, [], 200),
        ({"body": "last_event_id=5"}, ["Content-Length: 15"], 200),
        ({"body": "1\r\nx\r\n0\r\n\r\n"}, ["Transfer-Encoding: chunked"], 200),
        ({}, ["Content-Length: 0"], 200),
        ({}, ["Upgrade: h2c", "Connection: Upgrade"], 200),
    ],
)
async def test_unusual_requests_get_equal_responses(
    asking: Both, how: dict[str, Any], headers: list[str], status: int
) -> None:
    answer, is_below = await asking.ask(POLL, asking.org["ann"], *headers, **how)
    assert answer.status == status, answer.body
    assert not is_below


# The state of the account


async def deactivated(both: Both) -> Person:
    (await both.org["ann"].delete(f"/users/{both.org['ben'].user_id}")).ok
    return both.org["ben"]


async def closed(both: Both) -> Person:
    await both.org.do(RealmChanged(values={"deactivated": True}))
    return both.org["ann"]


async def webhook(both: Both) -> Person:
    bot = (await both.org["ann"].post("/bots", full_name="Hook", short_name="hook", bot_type=2)).ok
    user = both.org.node.state.users[bot["user_id"]]
    return both.org.person_of("hook", user)


@pytest.mark.parametrize(
    ("setting", "status", "code"),
    [
        (deactivated, 401, "USER_DEACTIVATED"),
        (closed, 401, "REALM_DEACTIVATED"),
        (webhook, 400, "BAD_REQUEST"),
    ],
)
async def test_clients_without_permission_get_equal_responses(
    both: Both, setting: Callable[[Both], Awaitable[Person]], status: int, code: str
) -> None:
    data = request(f"/events?{PLAIN[0]}".format(**both.words), both.org["ann"])
    lines = [await server.connect() for server in (both.below, both.endpoint)]
    assert [(await line.ask(data)).status for line in lines] == [200, 200]
    person = await setting(both)
    answer, is_below = await both.ask(POLL, person)
    assert (answer.status, answer.told["code"]) == (status, code)
    assert not is_below
    # The same for a request equal to the previous one.
    again = [await line.ask(data) for line in lines]
    assert again[0] == again[1]
    assert again[0].status == (status if person is both.org["ann"] and setting is closed else 200)


async def test_a_session_works_like_a_key(both: Both) -> None:
    browser = await signed_in_browser(both.org)
    cookie = f"Cookie: tertulia_session={session_cookie(browser)}"
    answer, is_below = await both.ask(POLL, None, cookie, f"User-Agent: {FIREFOX}")
    assert answer.told["result"] == "success"
    assert is_below
    # Also for repeated requests, until it ends.
    assert both.below.polls is not None
    data = request(f"/events?{PLAIN[0]}".format(**both.words), None, cookie)
    lines = [await server.connect() for server in (both.below, both.endpoint)]
    for _ in range(2):
        below, endpoint = [await line.ask(data) for line in lines]
        assert below == endpoint
        assert below.status == 200
    assert both.below.polls.usual == 1
    (session,) = both.org.node.state.sessions
    (await both.org["ann"].delete(f"/sessions/{session.id}")).ok
    below, endpoint = [await line.ask(data) for line in lines]
    assert below == endpoint
    assert below.status == 401


@pytest.mark.parametrize("way", WAYS)
async def test_a_session_that_polls_is_renewed(config: Config, way: str) -> None:
    clock = TestClock()
    async with new_organization(config, clock=clock) as org, serving(org, way) as server:
        browser = await signed_in_browser(org)
        listener = await browser.register(event_types=["realm_bot"])
        clock.ahead = 2 * 86400
        line = await server.connect()
        target = f"/events?queue_id={listener.queue_id}&last_event_id=-1&dont_block=true"
        data = request(target, None, f"Cookie: tertulia_session={session_cookie(browser)}")
        cookies = [
            [name for name, _ in (await line.ask(data)).headers].count("set-cookie")
            for _ in range(2)
        ]
        assert cookies == [3, 0]
