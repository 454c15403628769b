"""Previews of linked pages: fetched after sending, and then added to the message."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from tertulia.domain.messages import editing
from tertulia.jobs.previews import Previewer
from tertulia.model.messages import PendingPreview
from tertulia.model.users import Role
from tertulia.service.config import Config
from tertulia.service.messages import preconditions
from tests.external_web import PNG, ExternalWeb, Page, external_web
from tests.pictures import picture
from tests.support import Listener, Organization, new_organization, open_organization, row

PAGE = Page(
    b'<title>T</title><meta name="description" content="D">'
    b'<meta property="og:image" content="/p.png">'
)


@pytest.fixture
async def there() -> AsyncIterator[ExternalWeb]:
    async with external_web() as served:
        served.pages["/page"] = PAGE
        served.pages["/p.png"] = Page(PNG, "image/png")
        yield served


@pytest.fixture
async def org(config: Config, there: ExternalWeb) -> AsyncIterator[Organization]:
    """`ann` (owner), `ben`, and `gus` (a guest), in an organization with previews, on a node that
    can reach the external server."""
    async with new_organization(config, web=there.web()) as organization:
        await organization.add("ben")
        await organization.add("gus", Role.GUEST)
        await organization.channel("tea", "ann", "ben")
        (await organization["ann"].patch("/realm", inline_url_embed_preview=True)).ok
        yield organization


async def updated(listener: Listener) -> dict[str, Any]:
    """The next event that updates a message's rendering."""
    while True:
        for event in await listener.events(block=True):
            if event["type"] == "update_message":
                return event


async def none_awaited(org: Organization) -> None:
    """Return when no message waits for previews."""
    seen = asyncio.Event()
    org.node.log.subscribers.followers.append(lambda _: seen.set())
    async with asyncio.timeout(60):
        while len(org.node.state.pending_previews):
            seen.clear()
            await seen.wait()


async def content(org: Organization, message_id: int) -> str:
    return str((await org["ben"].get(f"/messages/{message_id}")).ok["message"]["content"])


async def test_a_message_is_updated_with_previews_of_its_links(
    org: Organization, there: ExternalWeb
) -> None:
    url = there.url("/page")
    listener = await org["ben"].register(apply_markdown=True)
    sent = await org["ann"].send("tea", "x", url)
    (first,) = await listener.events()
    assert first["message"]["content"] == f'<p><a href="{url}">{url}</a></p>'
    event = await updated(listener)
    image = org.node.links.external(there.url("/p.png"))
    shown = (
        f'<p><a href="{url}">{url}</a></p>\n<div class="message_embed">'
        f'<a class="message_embed_image" href="{url}"'
        f' style="background-image: url(&quot;{image}&quot;)"></a>'
        '<div class="data-container"><div class="message_embed_title">'
        f'<a href="{url}" title="T">T</a></div>'
        '<div class="message_embed_description">D</div></div></div>'
    )
    event.pop("id")
    assert event.pop("edit_timestamp") > 0
    assert event == {
        "type": "update_message",
        "user_id": None,
        "rendering_only": True,
        "message_id": sent,
        "message_ids": [sent],
        "flags": [],
        "stream_id": first["message"]["stream_id"],
        "stream_name": "tea",
        "content": url,
        "rendered_content": shown,
    }
    assert await content(org, sent) == shown
    assert (await org["ben"].open(image)).content == PNG


async def test_a_preview_does_not_count_as_an_edit(org: Organization, there: ExternalWeb) -> None:
    listener = await org["ben"].register()
    sent = await org["ann"].send("tea", "x", f"@**Ben** {there.url('/page')}")
    event = await updated(listener)
    assert event["flags"] == ["mentioned"]
    message = (await org["ben"].get(f"/messages/{sent}")).ok["message"]
    assert "last_edit_timestamp" not in message
    assert message["flags"] == ["mentioned"]
    history = (await org["ben"].get(f"/messages/{sent}/history")).ok["message_history"]
    assert len(history) == 1


async def test_a_direct_message_has_previews(org: Organization, there: ExternalWeb) -> None:
    listener = await org["ben"].register()
    await org["ann"].write([org["ben"].user_id], there.url("/page"))
    event = await updated(listener)
    assert "message_embed" in event["rendered_content"]
    assert "stream_id" not in event


NOTHING: list[Page] = [
    Page(b"<title>no picture</title>"),
    Page(PNG, "image/png"),
    Page(b"{}", "application/json"),
    Page(b"", status=404),
    Page(b"<html>" + b"x" * 600_000 + PAGE.body),
]


async def test_a_page_without_metadata_changes_nothing(
    org: Organization, there: ExternalWeb
) -> None:
    listener = await org["ben"].register()
    for number, page in enumerate(NOTHING):
        with row(number):
            path = f"/nothing/{number}"
            there.pages[path] = page
            sent = await org["ann"].send("tea", "x", there.url(path))
            await none_awaited(org)
            assert [event["type"] for event in await listener.events()] == ["message"]
            assert "message_embed" not in await content(org, sent)
            assert there.asked == [path]
            there.asked.clear()


async def test_only_public_addresses_are_contacted(org: Organization, there: ExternalWeb) -> None:
    there.others["inside.example"] = [["192.168.1.1"]]
    await org["ann"].send(
        "tea", "x", f"http://10.0.0.1/ http://[::1]/ {there.url('/', 'inside.example')}"
    )
    await none_awaited(org)
    assert there.asked == []


async def test_previews_are_off_by_default(org: Organization, there: ExternalWeb) -> None:
    (await org["ann"].patch("/realm", inline_url_embed_preview=False)).ok
    await org["ann"].send("tea", "x", there.url("/page"))
    assert len(org.node.state.pending_previews) == 0
    assert there.asked == []


async def test_a_server_can_disable_previews(config: Config, there: ExternalWeb) -> None:
    off = msgspec.structs.replace(config, link_previews=False)
    async with new_organization(off, web=there.web()) as org:
        await org.channel("tea", "ann")
        (await org["ann"].patch("/realm", inline_url_embed_preview=True)).ok
        await org["ann"].send("tea", "x", there.url("/page"))
        assert len(org.node.state.pending_previews) == 0
        data = (await org["ann"].register()).data
        assert data["server_inline_url_embed_preview"] is False
        assert data["realm_inline_url_embed_preview"] is True


async def test_register_says_that_previews_are_available(org: Organization) -> None:
    data = (await org["ben"].register()).data
    assert data["server_inline_url_embed_preview"] is True
    assert data["server_inline_image_preview"] is True


@pytest.fixture
async def held(there: ExternalWeb) -> AsyncIterator[tuple[asyncio.Event, asyncio.Event]]:
    """The page `/slow`, whose response waits for the second of these events. The first is set when
    it's requested."""
    asked, go = asyncio.Event(), asyncio.Event()

    async def slow(writer: asyncio.StreamWriter) -> None:
        asked.set()
        await go.wait()
        writer.write(b"HTTP/1.1 200 X\r\nContent-Type: text/html\r\n\r\n" + PAGE.body)

    there.pages["/slow"] = slow
    yield asked, go
    go.set()


async def test_a_preview_of_an_edited_message_is_discarded(
    org: Organization, there: ExternalWeb, held: tuple[asyncio.Event, asyncio.Event]
) -> None:
    asked, go = held
    sent = await org["ann"].send("tea", "x", there.url("/slow"))
    await asked.wait()
    (await org["ann"].patch(f"/messages/{sent}", content="nothing to see")).ok
    assert len(org.node.state.pending_previews) == 0
    listener = await org["ben"].register()
    go.set()
    other = await org["ann"].send("tea", "x", there.url("/page"))
    event = await updated(listener)
    assert event["message_id"] == other
    assert await content(org, sent) == "<p>nothing to see</p>"


async def test_an_edited_message_has_previews_of_its_current_links(
    org: Organization, there: ExternalWeb, held: tuple[asyncio.Event, asyncio.Event]
) -> None:
    asked, go = held
    sent = await org["ann"].send("tea", "x", there.url("/slow"))
    await asked.wait()
    (await org["ann"].patch(f"/messages/{sent}", content=there.url("/page"))).ok
    await none_awaited(org)
    go.set()
    shown = await content(org, sent)
    assert shown.count('class="message_embed"') == 1
    assert there.url("/slow") not in shown


async def test_a_message_moved_in_the_meantime_gets_its_preview(
    org: Organization, there: ExternalWeb, held: tuple[asyncio.Event, asyncio.Event]
) -> None:
    asked, go = held
    sent = await org["ann"].send("tea", "x", there.url("/slow"))
    await asked.wait()
    (await org["ann"].patch(f"/messages/{sent}", topic="y")).ok
    go.set()
    await none_awaited(org)
    assert "message_embed" in await content(org, sent)


async def test_an_image_deleted_in_the_meantime_is_not_found(
    org: Organization, there: ExternalWeb, held: tuple[asyncio.Event, asyncio.Event]
) -> None:
    asked, go = held
    ann = org["ann"]
    path = await ann.upload("p.png", picture(8, 8), "image/png")
    sent = await ann.send("tea", "x", f"[p](/user_uploads/{path})\n\n{there.url('/slow')}")
    page = {"anchor": sent, "num_before": 0, "num_after": 0}
    narrow = [{"operator": "has", "operand": "image"}]
    assert (await ann.get("/messages", **page, narrow=narrow)).ok["messages"]
    await asked.wait()
    (file,) = (await ann.get("/attachments")).ok["attachments"]
    (await ann.delete(f"/attachments/{file['id']}")).ok
    go.set()
    await none_awaited(org)
    shown = await content(org, sent)
    assert "message_embed" in shown
    assert "message_inline_image" not in shown
    assert (await ann.get("/messages", **page, narrow=narrow)).ok["messages"] == []


async def test_a_deleted_message_waits_for_no_preview(
    org: Organization, there: ExternalWeb, held: tuple[asyncio.Event, asyncio.Event]
) -> None:
    asked, go = held
    sent = await org["ann"].send("tea", "x", there.url("/slow"))
    await asked.wait()
    (await org["ann"].delete(f"/messages/{sent}")).ok
    assert len(org.node.state.pending_previews) == 0
    go.set()
    await none_awaited(org)


async def test_pending_previews_are_fetched_after_a_restart(
    config: Config, there: ExternalWeb, held: tuple[asyncio.Event, asyncio.Event]
) -> None:
    asked, go = held
    async with new_organization(config, web=there.web()) as org:
        await org.add("ben")
        await org.channel("tea", "ann", "ben")
        (await org["ann"].patch("/realm", inline_url_embed_preview=True)).ok
        sent = await org["ann"].send("tea", "x", there.url("/slow"))
        await asked.wait()
    go.set()
    async with open_organization(config, web=there.web()) as org:
        await none_awaited(org)
        assert "message_embed" in await content(org, sent)


async def test_two_nodes_add_a_preview_once(org: Organization, there: ExternalWeb) -> None:
    url = there.url("/page")
    listener = await org["ben"].register()
    sent = await org["ann"].send("tea", "x", url)
    (pending,) = org.node.state.pending_previews
    await none_awaited(org)
    await Previewer(org.node).show(pending)
    kinds = [event["type"] for event in await listener.events()]
    assert kinds == ["message", "update_message"]
    assert "message_embed" in await content(org, sent)


async def test_a_preview_no_longer_pending_changes_nothing(org: Organization) -> None:
    await org["ann"].send("tea", "x", "http://nowhere.example/")
    await none_awaited(org)
    found = await preconditions.to_edit(org.node.log, 1)
    gone = msgspec.structs.replace(found, seq=0)
    pending = PendingPreview(message_id=1, seq=1)
    rendered = org.node.render("x", None)
    before = org.node.state.seq
    await org.node.log.submit(None, editing.show_preview, pending, gone, rendered)
    await org.node.log.submit(None, editing.give_up, pending)
    assert org.node.state.seq == before


async def test_a_page_is_fetched_once_for_many_messages(
    org: Organization, there: ExternalWeb
) -> None:
    for _ in range(3):
        await org["ann"].send("tea", "x", there.url("/page"))
        await none_awaited(org)
    assert there.asked == ["/page"]


async def test_of_many_pages_the_first_are_fetched(org: Organization, there: ExternalWeb) -> None:
    urls = [there.url(f"/page?{n}") for n in range(8)]
    for n in range(8):
        there.pages[f"/page?{n}"] = PAGE
    sent = await org["ann"].send("tea", "x", " ".join(urls))
    await none_awaited(org)
    assert sorted(there.asked) == [f"/page?{n}" for n in range(5)]
    assert (await content(org, sent)).count('class="message_embed"') == 5


async def test_system_bots_messages_have_no_previews(org: Organization, there: ExternalWeb) -> None:
    channel_id = org.node.state.channels.by_name["tea"]
    (await org["ann"].patch(f"/streams/{channel_id}", description=there.url("/page"))).ok
    assert len(org.node.state.pending_previews) == 0
    await none_awaited(org)
    assert there.asked == []


async def test_previews_are_not_sent_to_people_who_cannot_read_the_message(
    org: Organization, there: ExternalWeb
) -> None:
    listener = await org["gus"].register()
    await org["ann"].send("tea", "x", there.url("/page"))
    await none_awaited(org)
    assert await listener.events() == []
