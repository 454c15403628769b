"""A conversation's words are shown before the client's script has arrived."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Page, Request, Route, expect

from tests.browser.conftest import Open
from tests.browser.driving import Window
from tests.e2e.conftest import Site
from tests.e2e.people import client_of, ok

CLIENT = re.compile(r"/app/assets/client-[\w-]+\.js$")
HOSTILE = """
<img src=x onerror="window.ran = 1"> <script>window.ran = 1</script>

```spoiler The end
The butler
```

[out](https://elsewhere.example/) and [in](/#narrow/dm/1)
"""


@contextmanager
def without_client(page: Page) -> Iterator[None]:
    """Hold the client's script until the end."""
    held: list[Route] = []
    page.route(CLIENT, lambda route: held.append(route))
    yield
    for route in held:
        route.continue_()
    page.unroute(CLIENT)


def go(window: Window, fragment: str) -> None:
    """Open the client at a fragment, without waiting for its script."""
    window.page.goto(f"{window.site}/#{fragment}", wait_until="commit")


def write(site: Site, topic: str, *texts: str) -> list[int]:
    with client_of(site.ben, site.server) as client:
        about = {"type": "stream", "to": "general", "topic": topic}
        return [ok(client.send_message({**about, "content": text}))["id"] for text in texts]


def first_requests(window: Window) -> list[str]:
    """The requests that a client starts with, as they are sent."""
    sent: list[str] = []

    def note(request: Request) -> None:
        found = re.search(r"/api/v1/(register|messages(?=.*&num_before=20\b))", request.url)
        if found:
            sent.append(found[1])

    window.page.on("request", note)
    return sent


def test_words_come_before_the_client_and_stay(sqlite_site: Site, new_page: Open) -> None:
    ids = write(sqlite_site, "early. birds?", *(f"Word {number}" for number in range(60)))
    ann = new_page(sqlite_site.server, sqlite_site.ann)
    page = ann.page
    sent = first_requests(ann)
    opening = page.locator("#opening")
    with without_client(page):
        go(ann, "narrow/channel/general/topic/early")
        # Only fragments with IDs are known before the client.
        expect(opening).to_have_attribute("aria-hidden", "true")
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    sent.clear()

    with client_of(sqlite_site.ann, sqlite_site.server) as client:
        flags = {"messages": ids[:30], "op": "add", "flag": "read"}
        ok(client.update_message_flags(flags))
        query = {"anchor": ids[0], "num_before": 0, "num_after": 0}
        (message,) = ok(client.get_messages(query))["messages"]
    place = f"narrow/channel/{message['stream_id']}/topic/early.2E.20birds.3F"
    page.goto("about:blank")
    with without_client(page):
        go(ann, place)
        # At the first unread message, as the client opens it.
        expect(opening.get_by_text("Word 30", exact=True)).to_be_in_viewport()
        expect(opening.get_by_text("Word 10", exact=True)).not_to_be_in_viewport()
        expect(opening.get_by_role("heading")).to_have_text(
            re.compile("^#general . early. birds[?]$")
        )
        expect(opening.get_by_text("Ben").first).to_be_visible()
    shown = page.get_by_role("main").get_by_role("article").filter(has_text="Word 30")
    expect(shown).to_be_in_viewport()
    expect(opening).to_have_count(0)
    # The client continues what the page asked for.
    assert sent == ["register", "messages"]

    # At the linked message, and with what was said in the meantime.
    page.goto("about:blank")
    with without_client(page):
        go(ann, f"{place}/near/{ids[5]}")
        expect(opening.get_by_text("Word 5", exact=True)).to_be_in_viewport()
        write(sqlite_site, "early. birds?", "Just now")
    expect(page.get_by_role("main").get_by_text("Word 5", exact=True)).to_be_in_viewport()
    ann.go(place)
    expect(ann.message("Just now")).to_have_count(1)


def test_early_words_run_nothing_and_load_nothing(sqlite_site: Site, new_page: Open) -> None:
    write(sqlite_site, "hostile", HOSTILE, "/me waves")
    ann = new_page(sqlite_site.server, sqlite_site.ann)
    page = ann.page
    with client_of(sqlite_site.ann, sqlite_site.server) as client:
        query = {"anchor": "newest", "num_before": 1, "num_after": 0}
        (message,) = ok(client.get_messages(query))["messages"]
    with without_client(page):
        go(ann, f"narrow/channel/{message['stream_id']}/topic/hostile")
        opening = page.locator("#opening")
        expect(opening).to_contain_text("The end")
        expect(opening).not_to_contain_text("butler")
        expect(opening.get_by_text("waves", exact=True)).to_be_visible()
        link = opening.get_by_role("link", name="out")
        expect(link).to_have_attribute("rel", "noopener noreferrer")
        assert page.evaluate("window.ran") is None
        # Another conversation replaces it.
        page.evaluate("location.hash = 'inbox'")
        expect(opening).to_have_count(0)
    expect(page.get_by_role("heading", name="Inbox")).to_be_visible()


def test_without_words_the_client_starts_as_before(sqlite_site: Site, new_page: Open) -> None:
    ann = new_page(sqlite_site.server, sqlite_site.ann)
    ann.page.route("**/api/v1/messages?*", lambda route: route.abort(), times=1)
    ann.away = True
    write(sqlite_site, "late", "In the end")
    with client_of(sqlite_site.ann, sqlite_site.server) as client:
        query = {"anchor": "newest", "num_before": 1, "num_after": 0}
        (message,) = ok(client.get_messages(query))["messages"]
    ann.go(f"narrow/channel/{message['stream_id']}/topic/late")
    expect(ann.message("In the end")).to_be_visible()
