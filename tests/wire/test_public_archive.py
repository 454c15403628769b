"""The public archive: web-public channels as plain HTML."""

import itertools
import re
from collections.abc import AsyncIterator

import httpx
import msgspec
import pytest

from tertulia.model.messages import Message
from tertulia.service.config import Config
from tertulia.store import queries
from tertulia.store.codec import OF_TOPIC
from tertulia.store.database import Connection
from tertulia.wire.pages import archive
from tests.support import Organization, new_organization
from tests.wire.personal_data import OTHERS


@pytest.fixture
async def org(config: Config) -> AsyncIterator[Organization]:
    async with new_organization(config, others=OTHERS) as org:
        await org.change_realm(enable_spectator_access=True, public_archive="indexed")
        yield org


async def seen(org: Organization, path: str, status: int = 200) -> str:
    response = await org.http.get(path)
    assert response.status_code == status, response.text
    return response.text


def links(page: str) -> list[str]:
    return re.findall(r'href="(/archive[^"]*)"', page)


async def web_public(org: Organization, name: str = "town square") -> int:
    return await org.channel(name, "ann", "ben", is_web_public=True)


async def test_archive_leads_from_channels_to_topics_to_messages(org: Organization) -> None:
    square = await web_public(org)
    await org["ann"].send("town square", "a/b? <i>&", "hello **world**")
    await org["ben"].send("town square", "", "in the general chat")
    index = await seen(org, "/archive")
    path = f"/archive/{square}-town-square"
    assert path in links(index)
    channel = await seen(org, path)
    topics = [one for one in links(channel) if "/topic/" in one]
    assert len(topics) == 2
    pages = [await seen(org, one) for one in topics]
    assert "in the general chat" in pages[0]
    assert "hello <strong>world</strong>" in pages[1]
    assert "a/b? &lt;i&gt;&amp;" in pages[1]
    for page, own in zip([index, channel, *pages], ["/archive", path, *topics], strict=True):
        assert f'<link rel="canonical" href="http://localhost{own}">' in page or own in page
        assert "<script" not in page
    response = await org.http.get(topics[1])
    policy = response.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script" not in policy
    assert "x-robots-tag" not in response.headers
    again = await org.http.get(topics[1], headers={"If-None-Match": response.headers["etag"]})
    assert again.status_code == 304
    assert response.headers["cache-control"] == "no-cache"
    other = await org.http.get(f"/archive/{square}-old-name", follow_redirects=False)
    assert (other.status_code, other.headers["location"]) == (301, path)


async def test_archive_exists_only_if_the_owner_wants_it(org: Organization) -> None:
    square = await web_public(org)
    await org["ann"].send("town square", "t", "hello")
    paths = ["/archive", f"/archive/{square}-town-square"]
    paths += [f"/archive/{square}-town-square/topic/t"]
    for path in (*paths, "/sitemap.xml", f"/sitemap-{square}-0.xml"):
        await seen(org, path)
    assert "Sitemap: " in await seen(org, "/robots.txt")
    (await org["ben"].patch("/realm", public_archive="off")).refused("UNAUTHORIZED_PRINCIPAL")
    assert (await org["ann"].patch("/realm", public_archive="readable")).ok
    for path in paths:
        response = await org.http.get(path)
        assert (response.status_code, response.headers["x-robots-tag"]) == (200, "noindex")
    for path in ("/sitemap.xml", f"/sitemap-{square}-0.xml"):
        await seen(org, path, 404)
    assert await seen(org, "/robots.txt") == "User-agent: *\nDisallow: /\n"
    for setting in ({"public_archive": "off"}, {"enable_spectator_access": False}):
        await org.change_realm(public_archive="indexed", enable_spectator_access=True)
        assert (await org["ann"].patch("/realm", **setting)).ok
        for path in (*paths, "/sitemap.xml"):
            await seen(org, path, 404)
        assert "Sitemap" not in await seen(org, "/robots.txt")


async def test_archive_shows_nothing_that_spectators_can_not_read(org: Organization) -> None:
    square = await web_public(org)
    office = await org.channel("office", "ann", is_private=True)
    lounge = await org.channel("lounge", "ann")
    ann = org["ann"]
    for name in ("office", "lounge"):
        await ann.send(name, "t", "hidden words")
    for channel in (office, lounge, 999, "x", "9" * 30, f"{office}-office"):
        await seen(org, f"/archive/{channel}", 404)
        await seen(org, f"/archive/{channel}/topic/t", 404)
    for channel in (office, lounge):
        await seen(org, f"/sitemap-{channel}-0.xml", 404)
    assert "office" not in await seen(org, "/archive")
    # Links to other conversations become text.
    text = "see #**office** and #**lounge>t** and #**town square>t**"
    await ann.send("town square", "t", text)
    page = await seen(org, f"/archive/{square}-town-square/topic/t")
    assert f"/archive/{office}" not in page
    assert f"/archive/{lounge}" not in page
    assert f"/archive/{square}-town-square/topic/t" in page


async def test_channel_that_is_closed_leaves_the_archive(org: Organization) -> None:
    square = await web_public(org)
    ann = org["ann"]
    await ann.send("town square", "t", "hello")
    path = f"/archive/{square}-town-square"
    first = await org.http.get(f"{path}/topic/t")
    assert (await ann.patch(f"/streams/{square}", is_private=True, is_web_public=False)).ok
    known = {"If-None-Match": first.headers["etag"]}
    for one in (path, f"{path}/topic/t"):
        assert (await org.http.get(one, headers=known)).status_code == 404
    assert "town" not in await seen(org, "/archive")
    assert "town" not in await seen(org, "/sitemap.xml")


async def test_moved_and_deleted_messages_leave_the_archive(org: Organization) -> None:
    square = await web_public(org)
    office = await org.channel("office", "ann", is_private=True)
    ann = org["ann"]
    first = await ann.send("town square", "t", "first words")
    second = await ann.send("town square", "t", "second words")
    path = f"/archive/{square}-town-square/topic/t"
    assert "second words" in await seen(org, path)
    moved = {"stream_id": office, "propagate_mode": "change_one"}
    assert (await ann.patch(f"/messages/{second}", **moved)).ok
    page = await seen(org, path)
    assert "second words" not in page
    assert "first words" in page
    assert (await ann.delete(f"/messages/{first}")).ok
    await seen(org, path, 404)


async def test_message_moved_while_it_is_read_is_not_shown(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    square = await web_public(org)
    await org["ann"].send("town square", "t", "hello")

    def elsewhere(connection: Connection, ids: list[int]) -> list[Message]:
        found = read(connection, ids)
        return [msgspec.structs.replace(one, topic="another") for one in found]

    read = queries.messages
    monkeypatch.setattr(queries, "messages", elsewhere)
    await seen(org, f"/archive/{square}-town-square/topic/t", 404)


async def test_names_and_messages_are_escaped(org: Organization) -> None:
    square = await web_public(org)
    ann = org["ann"]
    evil = '<img src=x onerror=alert(1)>"'
    assert (await ann.patch("/settings", full_name="Eve '&")).ok
    await ann.send("town square", evil, f"{evil} [x](javascript:alert(1)) `<script>`")
    description = "</div><script>alert(1)</script>"
    assert (await ann.patch(f"/streams/{square}", description=description)).ok
    channel = await seen(org, f"/archive/{square}-town-square")
    path = next(one for one in links(channel) if "/topic/.3Cimg" in one)
    for page in (channel, await seen(org, path), await seen(org, "/archive")):
        assert "<script" not in page
        assert "<img" not in page
        assert 'href="javascript' not in page


async def test_long_topic_is_paged_at_equal_cost(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "PAGE", 3)
    square = await web_public(org)
    ann = org["ann"]
    for number in range(8):
        await ann.send("town square", "t", f"word{number}")
    path: str | None = f"/archive/{square}-town-square/topic/t"
    shown: list[list[str]] = []
    forth: list[str] = []
    while path is not None:
        page = await seen(org, path)
        forth.append(path)
        shown.append(re.findall(r"word\d", page))
        found = re.search(r'<a rel="next" href="([^"]+)"', page)
        path = found[1] if found else None
    assert shown == [
        ["word0", "word1", "word2"],
        ["word3", "word4", "word5"],
        ["word6", "word7"],
    ]
    for before, after in itertools.pairwise(forth):
        found = re.search(r'<a rel="prev" href="([^"]+)"', await seen(org, after))
        assert found
        assert found[1] == before
    # A page's bytes are bounded, too.
    monkeypatch.setattr(archive, "PAGE_BYTES", 10)
    assert len(re.findall(r"word\d", await seen(org, forth[0]))) == 1


async def test_page_of_a_huge_topic_reads_only_its_own_messages(org: Organization) -> None:
    """A topic of 100,000 messages: the database looks up the page in an index."""
    square = await web_public(org)
    first = await org["ann"].send("town square", "t", "hello")
    await org["ann"].send("town square", "other", "elsewhere")

    def fill(connection: Connection) -> None:
        columns = "sender_id, sent_at, channel_id, content, rendered, client, has_link, has_image"
        columns += ", has_attachment, is_me, mentions_all, topic_id, topic_since, topic_name"
        connection.run(
            f"INSERT INTO messages (id, {columns}) WITH RECURSIVE numbers (n) AS (SELECT 1 UNION"
            f" ALL SELECT n + 1 FROM numbers WHERE n < 100000) SELECT 1000 + n, {columns}"
            " FROM messages CROSS JOIN numbers WHERE messages.id = ?",
            (first,),
        )

    await org.node.store.write(fill)

    def plans(connection: Connection) -> str:
        found = []
        for more in ("id > 90000 ORDER BY id LIMIT 51", "id <= 90000 ORDER BY id DESC LIMIT 51"):
            query = f"SELECT id FROM messages WHERE {OF_TOPIC} AND {more}"
            explain = "EXPLAIN QUERY PLAN" if connection.dialect.name == "sqlite" else "EXPLAIN"
            found += connection.query(f"{explain} {query}", (square, "t"))
        return str(found)

    plan = await org.node.store.read(plans)
    assert plan.count("messages_by_topic") + plan.count("messages_pkey") >= 2
    assert "SCAN messages" not in plan
    assert "Seq Scan on messages" not in plan
    path = f"/archive/{square}-town-square/topic/t"
    page = await seen(org, f"{path}?after=90000")
    assert page.count("<article") == archive.PAGE
    assert f'rel="next" href="{path}?after={90000 + archive.PAGE}"' in page
    assert f'rel="prev" href="{path}?after={90000 - archive.PAGE}"' in page


async def test_browsers_without_scripts_go_to_the_archive(org: Organization) -> None:
    await web_public(org)
    page = await seen(org, "/")
    assert '<noscript><meta http-equiv="refresh" content="0; url=/archive"></noscript>' in page
    await org.change_realm(public_archive="off")
    assert "/archive" not in await seen(org, "/")


async def test_site_map_has_every_topic_in_parts(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "SITEMAP_PAGE", 2)
    square = await web_public(org)
    for number in range(5):
        await org["ann"].send("town square", f"t{number}", "x")
    parts = re.findall(r"<loc>(.*?)</loc>", await seen(org, "/sitemap.xml"))
    assert len(parts) == 3
    found: list[str] = []
    for part in parts:
        path = httpx.URL(part).path
        found += re.findall(r"<loc>(.*?)</loc>", await seen(org, path))
    paths = [httpx.URL(one).path for one in found]
    own = f"/archive/{square}-town-square"
    assert paths == [own, *(f"{own}/topic/t{number}" for number in range(5))]
    await seen(org, f"/sitemap-{square}-9.xml", 404)


async def test_network_has_a_rate_limit(config: Config) -> None:
    config = msgspec.structs.replace(config, rate_limits=True, anonymous_requests_per_minute=3)
    async with new_organization(config, others=OTHERS) as org:
        await org.change_realm(enable_spectator_access=True, public_archive="indexed")
        await web_public(org)
        statuses = [(await org.http.get("/archive")).status_code for _ in range(300)]
        assert statuses[0] == 200
        assert statuses[-1] == 429
