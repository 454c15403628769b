"""Feeds that bots follow: who can add them, and that each entry is posted once."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest

from tertulia.domain.accounts import feeds as verbs
from tertulia.outbound import feed_work
from tertulia.outbound.feeds import FeedEntry
from tertulia.service.config import Config
from tertulia.service.webhooks import feeds as reading
from tertulia.service.webhooks.feeds import FeedReader
from tertulia.store import feeds
from tests.conftest import OTHERS
from tests.external_web import ExternalWeb, Page, external_web
from tests.support import (
    Organization,
    Person,
    TestClock,
    new_organization,
    open_organization,
    rows,
    until,
)
from tests.wire.test_webhooks import create_webhook


@dataclass
class Blog:
    """A feed on this machine."""

    served: ExternalWeb
    entries: list[tuple[str, str]] = field(default_factory=list)
    """IDs and texts, newest first."""
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return self.served.url("/feed", "127.0.0.1")

    def write(self, *entries: tuple[str, str]) -> None:
        """Put these entries before the others."""
        self.entries[:0] = entries
        items = "".join(
            f"<item><guid>{key}</guid><title>{key}</title><link>/{key}</link>"
            f"<description>{text}</description></item>"
            for key, text in self.entries
        )
        self.says(f'<rss version="2.0"><channel><title>The blog</title>{items}</channel></rss>')

    def says(self, document: str, status: int = 200) -> None:
        kind = "application/rss+xml"
        self.served.pages["/feed"] = Page(document.encode(), kind, status, self.headers)


@pytest.fixture
async def blog() -> AsyncIterator[Blog]:
    async with external_web() as served:
        found = Blog(served)
        found.write(("one", "First."))
        yield found


@pytest.fixture
async def org(config: Config, clock: TestClock) -> AsyncIterator[Organization]:
    """The organization, whose server may contact this machine."""
    config = msgspec.structs.replace(config, outgoing_webhook_networks="127.0.0.1")
    async with new_organization(config, clock=clock, others=OTHERS) as organization:
        await organization.channel("news", "ben")
        yield organization


_once = FeedReader.once


@pytest.fixture(autouse=True)
def _no_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nodes read no feeds by themselves; use `read`."""

    async def idle(self: FeedReader) -> float:
        return 3600.0

    monkeypatch.setattr(FeedReader, "once", idle)


async def read(org: Organization, clock: TestClock | None = None) -> None:
    """Read the feeds that are due. With the clock, until all have been read."""
    if clock is not None:
        clock.ahead += 2 * reading.LONGEST_PAUSE
    reader = FeedReader(org.node)
    await _once(reader)
    await reader.tasks.settled()


async def followed(org: Organization, bot: Person, url: str, **more: Any) -> dict[str, Any]:
    asked = {"url": url, "stream": "news", **more}
    found: dict[str, Any] = (await org["ben"].post(f"/bots/{bot.user_id}/feeds", **asked)).ok
    return dict(found["feed"])


async def feed_messages(org: Organization) -> list[tuple[str, str]]:
    """The topics and texts of all messages in the channel, oldest first."""
    asked = {"anchor": "oldest", "num_before": 0, "num_after": 100, "apply_markdown": False}
    narrow = [{"operator": "channel", "operand": "news"}]
    found = (await org["ben"].get("/messages", **asked, narrow=narrow)).ok["messages"]
    return [(one["subject"], one["content"]) for one in found if one["client"] == "Feed"]


async def standing(org: Organization, bot: Person) -> dict[str, Any]:
    (found,) = (await org["ben"].get(f"/bots/{bot.user_id}/feeds")).ok["feeds"]
    return dict(found)


async def test_new_entries_are_posted_once_starting_with_the_newest(
    org: Organization, blog: Blog, clock: TestClock
) -> None:
    bot = await create_webhook(org)
    blog.headers = {"ETag": '"v1"', "Last-Modified": "Sun, 01 Nov 2026 00:00:00 GMT"}
    blog.write(("two", "See &lt;b&gt;this&lt;/b&gt;, @**all**."))
    feed = await followed(org, bot, blog.url)
    assert (feed["title"], feed["last_read"], feed["next_read"]) == ("", None, None)
    await read(org)
    second = f"**[two]({blog.served.url('/two', '127.0.0.1')})**\nSee **this**, @\u200b**all**."
    assert await feed_messages(org) == [("The blog", second)]
    found = await standing(org, bot)
    assert (found["title"], found["failures"], found["reason"]) == ("The blog", 0, "")
    assert found["last_told"] >= found["last_read"] > 0
    await read(org)
    assert len(blog.served.heads) == 1  # It isn't due.
    blog.write(("four", "4"), ("three", "3"))
    await read(org, clock)
    await read(org, clock)
    assert [text[:8] for _, text in await feed_messages(org)] == [
        "**[two](",
        "**[three",
        "**[four]",
    ]
    first, second_head, _ = blog.served.heads
    assert "if-none-match" not in first.lower()
    assert 'if-none-match: "v1"' in second_head.lower()
    assert "if-modified-since: sun, 01 nov 2026 00:00:00 gmt" in second_head.lower()
    blog.says("", 304)
    await read(org, clock)
    assert (await standing(org, bot))["failures"] == 0
    lines = (await org["ben"].get(f"/bots/{bot.user_id}/deliveries")).ok["deliveries"]
    assert [(one["integration"], one["event"], one["outcome"]) for one in lines] == [
        ("feed", "four", "sent"),
        ("feed", "three", "sent"),
        ("feed", "two", "sent"),
    ]


async def test_a_feed_can_have_its_own_topic_and_skip_old_entries(
    org: Organization, blog: Blog, clock: TestClock
) -> None:
    bot = await create_webhook(org)
    feed = await followed(org, bot, blog.url, topic="reading")
    blog.says(
        '<feed xmlns="http://www.w3.org/2005/Atom"><title>Atom</title>'
        "<entry><id>urn:1</id><title>Now</title><updated>2020-01-02T00:00:00Z</updated></entry>"
        "<entry><id>urn:0</id><title>Before</title><updated>2020-01-01T00:00:00Z</updated></entry>"
        "</feed>"
    )
    await read(org)
    assert await feed_messages(org) == [("reading", "**Now**")]
    blog.says(
        '<feed xmlns="http://www.w3.org/2005/Atom"><title>Atom</title>'
        "<entry><id>urn:2</id><title>Ages ago</title><updated>2019-01-01T00:00:00Z</updated>"
        "</entry></feed>"
    )
    await read(org, clock)
    assert len(await feed_messages(org)) == 1
    place = f"/bots/{bot.user_id}/feeds/{feed['id']}"
    changed = (await org["ben"].patch(place, topic="", url=blog.url + "?all")).ok["feed"]
    assert (changed["topic"], changed["title"]) == ("", "")
    blog.served.pages["/feed?all"] = blog.served.pages["/feed"]
    blog.says("")
    await read(org)  # Immediately, although it was just read.
    assert (await standing(org, bot))["title"] == "Atom"
    (await org["ben"].delete(place)).ok
    await read(org, clock)
    assert (await org["ben"].get(f"/bots/{bot.user_id}/feeds")).ok["feeds"] == []
    (await org["ben"].delete(place)).refused("BAD_REQUEST", 404)


async def test_many_entries_are_posted_gradually_and_none_is_lost(
    org: Organization, blog: Blog, clock: TestClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "MAX_POSTED", 3)
    monkeypatch.setattr(verbs, "KEPT", 4)
    blog.headers = {"ETag": '"v"'}
    blog.write()
    bot = await create_webhook(org)
    await followed(org, bot, blog.url)
    await read(org)
    blog.write(*((f"n{number}", "") for number in range(6, 0, -1)))
    for _ in range(3):
        await read(org, clock)
    # While some were left, the feed wasn't read again.
    assert ["if-none-match" in head.lower() for head in blog.served.heads] == [
        False,
        True,
        False,
        True,
    ]
    assert [text[3:5] for _, text in await feed_messages(org)][1:] == [f"n{n}" for n in range(1, 7)]
    (feed,) = org.node.state.feeds
    assert len(feed.seen) == 7  # All are still in it.
    blog.entries.clear()
    blog.write(("new", ""))
    await read(org, clock)
    assert len(org.node.state.feeds[feed.id].seen) == 4


async def test_private_addresses_are_refused_unless_they_are_listed(
    org: Organization, blog: Blog
) -> None:
    bot = await create_webhook(org)
    feed = await followed(org, bot, blog.url)
    path = f"/bots/{bot.user_id}/feeds"
    for url in ("http://127.0.0.2/", "feed://10.0.0.1/rss", "http://[::1]/"):
        for reply in (
            await org["ben"].post(path, url=url, stream="news"),
            await org["ben"].patch(f"{path}/{feed['id']}", url=url),
        ):
            reason = reply.refused()["msg"]
            assert "isn't on the public internet" in reason
            assert "outgoing_webhook_networks" in reason
    assert (await standing(org, bot))["url"] == blog.url


async def test_one_persons_slow_feeds_do_not_delay_others(org: Organization, blog: Blog) -> None:
    slow, answered = (
        [f"/slow/{number}" for number in range(reading.MAX_CONCURRENT)],
        asyncio.Event(),
    )

    async def answer(writer: asyncio.StreamWriter) -> None:
        await answered.wait()
        writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")

    bot = await create_webhook(org)
    for path in slow:
        blog.served.pages[path] = answer
        await followed(org, bot, blog.served.url(path, "127.0.0.1"))
    other = await create_webhook(org, "ann", "other")
    asked = {"url": blog.url, "stream": "news"}
    (await org["ann"].post(f"/bots/{other.user_id}/feeds", **asked)).ok
    reader = FeedReader(org.node)
    await _once(reader)
    await until(lambda: len(reader.tasks) == reading.PER_OWNER)
    assert len(await feed_messages(org)) == 1
    # Feeds that wait for a free slot aren't queried again and again.
    assert await _once(reader) > 1
    answered.set()
    while len(blog.served.asked) < len(slow) + 1:
        await reader.tasks.settled()
        await _once(reader)
    assert set(blog.served.asked) == {*slow, "/feed"}
    await reader.tasks.settled()


async def test_entries_are_posted_once_despite_crashes_and_other_nodes(
    org: Organization, blog: Blog, clock: TestClock
) -> None:
    bot = await create_webhook(org)
    await followed(org, bot, blog.url)
    store, now = org.node.store, org.node.clock()
    known = reading.followed(org.node.state)
    (lost,) = await store.write(lambda c: feeds.lease(c, known, now, 60.0, known))
    assert await store.write(lambda c: feeds.lease(c, known, now, 60.0, known)) == []
    # It sent the message and was killed before it could record that.
    await FeedReader(org.node)._told(org.node.state.feeds[lost.feed_id], lost.standing)
    assert len(await feed_messages(org)) == 1
    clock.ahead += 61
    async with open_organization(org.node.config, clock=clock) as again:
        await asyncio.gather(read(again), FeedReader(again.node)._read(lost))
        assert len(await feed_messages(again)) == 1
        assert (await standing(again, bot))["failures"] == 0
        # Two nodes at the same time.
        blog.write(("two", ""))
        feed = again.node.state.feeds[lost.feed_id]
        reader = FeedReader(again.node)
        await asyncio.gather(*(reader._told(feed, lost.standing) for _ in range(3)))
        assert len(await feed_messages(again)) == 2


@pytest.mark.parametrize(
    ("page", "reason"),
    [
        (
            Page(b"<p>gone</p>", status=410),
            "Couldn't fetch the feed: the server responded with status 410.",
        ),
        (Page(b"<html><p>Not one.</p></html>"), "Couldn't read the feed: it isn't a feed."),
        (Page(b""), "Couldn't read the feed: it isn't a feed."),
        (Page(b"x" * 5_000_000), "Couldn't fetch the feed: it is too large."),
        (
            Page(status=301, headers={"Location": "http://169.254.169.254/"}),
            "Couldn't fetch the feed: 169.254.169.254 isn't on the public internet.",
        ),
    ],
)
async def test_failures_are_reported_to_the_owner(
    org: Organization, blog: Blog, clock: TestClock, page: Page, reason: str
) -> None:
    bot = await create_webhook(org)
    await followed(org, bot, blog.url)
    blog.served.pages["/feed"] = page
    pauses = []
    for _ in range(3):
        await read(org)
        found = await standing(org, bot)
        pauses.append(found["next_read"] - org.node.clock())
        clock.ahead += pauses[-1] + 1
    assert (found["failures"], found["reason"], found["last_read"]) == (3, reason, None)
    assert pauses[0] * 1.2 < pauses[1] < pauses[2] / 1.2
    (line,) = (await org["ben"].get(f"/bots/{bot.user_id}/deliveries")).ok["deliveries"]
    assert (line["outcome"], line["reason"]) == ("failed", reason)
    blog.write()
    await read(org)
    assert (await standing(org, bot))["failures"] == 0
    assert len(await feed_messages(org)) == 1


async def test_a_bot_posts_only_where_it_may(
    org: Organization, blog: Blog, clock: TestClock
) -> None:
    bot = await create_webhook(org)
    await followed(org, bot, blog.url)
    news = org.node.state.channel_named("news")
    assert news is not None
    assert (await org["ann"].delete(f"/streams/{news.id}")).ok
    await read(org)
    found = await standing(org, bot)
    assert "couldn't be sent" in found["reason"]
    assert (await org["ann"].patch(f"/streams/{news.id}", is_archived=False)).ok
    assert (await org["ben"].delete(f"/bots/{bot.user_id}")).ok
    await read(org, clock)
    assert len(blog.served.asked) == 1  # Deactivated bots follow no feeds.
    assert (await org["ben"].post(f"/users/{bot.user_id}/reactivate")).ok
    await read(org, clock)
    assert len(await feed_messages(org)) == 1


async def test_who_can_manage_feeds_and_invalid_feeds_are_refused(
    org: Organization, blog: Blog
) -> None:
    bot = await create_webhook(org)
    place = f"/bots/{bot.user_id}/feeds"
    asked = {"url": blog.url, "stream": "news"}
    (await org["cleo"].post(place, **asked)).refused()
    (await org["cleo"].get(place)).refused()
    hidden = await org.channel("hidden", "ann", is_private=True)
    (await org["ben"].post(place, url=blog.url, stream=str(hidden))).refused(
        "STREAM_DOES_NOT_EXIST"
    )
    for wrong in ("", "x", "ftp://x.test/", "http://a:b@x.test/", "http://x.test/" + "x" * 2000):
        (await org["ben"].post(place, url=wrong, stream="news")).refused()
    found = (await org["ann"].post(place, url="feed://x.test/rss", stream="news")).ok["feed"]
    assert found["url"] == "https://x.test/rss"
    (await org["ben"].post(place, url="https://x.test/rss", stream="news")).refused()
    (await org["ben"].patch(f"{place}/99", topic="x")).refused("BAD_REQUEST", 404)
    other = await create_webhook(org, "cleo", "other")
    (await org["cleo"].delete(f"/bots/{other.user_id}/feeds/{found['id']}")).refused(
        "BAD_REQUEST", 404
    )
    generic = (await org["ben"].post("/bots", full_name="Gen", short_name="gen")).ok["user_id"]
    (await org["ben"].post(f"/bots/{generic}/feeds", **asked)).refused()
    for number in range(1, verbs.MAX_OF_BOT):
        (await org["ben"].post(place, **(asked | {"topic": f"t{number}"}))).ok
    (await org["ben"].post(place, **asked)).refused()


async def test_feeds_can_be_disabled(config: Config) -> None:
    config = msgspec.structs.replace(config, feed_minutes=0)
    async with new_organization(config, others=OTHERS) as org:
        await org.channel("news", "ben")
        place = f"/bots/{(await create_webhook(org)).user_id}/feeds"
        (await org["ben"].post(place, url="https://x.test/", stream="news")).refused()


def entry(document: bytes) -> FeedEntry:
    found = feed_work.parsed(document, "https://x.test/blog/feed", "")
    assert found is not None
    return found.entries[0]


@rows(
    ("html", "text"),
    [
        ("<p>One &amp; <i>two</i>.</p><p><a href='/x'>it</a></p>", "One & *two*.\n\n[it](x)"),
        ("<ul><li>a<li>b</ul><blockquote>q<p>r</blockquote>", "* a\n* b\n\n> q\n>\n> r"),
        ("<pre>a\n\n  b</pre>c<code>d</code>", "~~~\na\n\n  b\n~~~\n\nc`d`"),
        ("<pre>~~~\nx</pre>", "~~~\n\nx\n~~~"),
        ("<script>x</script><h2>T</h2>a<br>b", "**T**\n\na\nb"),
        ("<a href='javascript:x'>t</a><img src=/i.png alt=P>", "t[P](i.png)"),
        ("x" * 2000, "x" * 999 + "…"),
        ("<p>a</p><p>" + "x" * 1000, "a\n\n…"),
        ("<b>" * 2000 + "too deep", "too deep"),
    ],
)
def test_an_entry_becomes_markdown(html: str, text: str) -> None:
    text = text.replace("](", "](https://x.test/")
    document = f"<rss version='2.0'><channel><item><description><![CDATA[{html}]]>"
    ends = "</description></item></channel></rss>"
    assert entry((document + ends).encode()).text == text


def test_strange_documents_do_no_harm(tmp_path: Any) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    for entity in (f'<!ENTITY a SYSTEM "file://{secret}">', '<!ENTITY a "aaaaaaaaaa">'):
        bomb = "".join(f'<!ENTITY b{n} "{f"&b{n - 1};" * 10}">' for n in range(1, 12))
        found = feed_work.parsed(
            f'<!DOCTYPE x [{entity}<!ENTITY b0 "x">{bomb}]><rss version="2.0"><channel><item>'
            "<title>&a;&b11;</title></item></channel></rss>".encode(),
            "https://x.test/",
            "",
        )
        assert found is None or all("secret" not in one.title for one in found.entries)
        assert found is None or all(len(one.title) <= 200 for one in found.entries)
    far = b"<rss version='2.0'><channel><item><pubDate>Mon, 01 Jan 9999 00:00:00</pubDate></item>"
    assert entry(far).at is None
