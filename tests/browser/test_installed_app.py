"""The client as an installed app: installability, offline start, and its service worker with a
delivered push: showing, replying, marking as read, and removing notifications. (The browser's push
service isn't tested.)"""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, CDPSession, Worker, expect

from tests.browser.conftest import Open
from tests.browser.driving import Window, eventually
from tests.e2e.conftest import Site
from tests.e2e.people import client_of, ok

NOTES = """async () => (await self.registration.getNotifications()).map(
    ({title, body, tag, actions}) => ({title, body, tag, actions: actions.map((a) => a.action)}))"""
# A browser without windows can't click notifications, so create the event and wait for its end.
CLICK = """async ([action, reply]) => {
    const [notification] = await self.registration.getNotifications();
    let done;
    ExtendableEvent.prototype.waitUntil = (promise) => (done = promise);
    self.dispatchEvent(new NotificationEvent("notificationclick", {notification, action, reply}));
    await done;
}"""


WINDOWS = """async () => (await self.clients.matchAll({ includeUncontrolled: true })).map(
    ({url, focused, visibilityState}) => ({url, focused, visibilityState}))"""


class Phone:
    """A browser with the client in the background, and its service worker."""

    def __init__(self, window: Window) -> None:
        self.window = window
        self.told: dict[str, Any] | None = None
        """The last push, until its effect is checked."""
        self.devtools: CDPSession = window.context.new_cdp_session(window.page)
        found: list[dict[str, Any]] = []
        self.devtools.on(
            "ServiceWorker.workerRegistrationUpdated",
            lambda event: found.extend(event["registrations"]),
        )
        self.devtools.send("ServiceWorker.enable")
        window.page.wait_for_function("() => navigator.serviceWorker.controller !== null")
        eventually(window.page, lambda: bool(found))
        self.registration = found[-1]["registrationId"]
        window.page.goto("about:blank")
        # The browser closes the client's page some time later. Until then, it's visible.
        self._until(WINDOWS, lambda windows: not windows)

    @property
    def worker(self) -> Worker:
        """The newest worker. An older one ends when its client isn't visible."""
        return self.window.context.service_workers[-1]

    def deliver(self, told: dict[str, Any]) -> None:
        """Deliver a push."""
        self.told = told
        self.devtools.send(
            "ServiceWorker.deliverPushMessage",
            {
                "origin": self.window.site,
                "registrationId": self.registration,
                "data": json.dumps(told),
            },
        )

    def notes(self, until: Callable[[list[dict[str, Any]]], bool]) -> list[dict[str, Any]]:
        """Return the notifications, once they match."""
        shown: list[dict[str, Any]] = self._until(NOTES, until)
        self.told = None
        return shown

    def _until(self, look: str, until: Callable[[Any], bool]) -> Any:
        """Return the worker's clients, once they match."""
        for turn in range(1, 601):
            seen = self.worker.evaluate(look)
            if until(seen):
                return seen
            self.window.page.wait_for_timeout(50)
            # On a busy machine, the browser's tools occasionally lose a push without an error.
            if self.told and turn % 200 == 0:
                self.deliver(self.told)
        windows = self.worker.evaluate(WINDOWS)
        raise AssertionError(f"seen after half a minute: {seen}; open windows: {windows}")


@pytest.fixture(scope="module")
def browser(full_browser: Browser) -> Browser:
    return full_browser


@pytest.fixture
def shared_org(sqlite_site: Site, shared_page: Open) -> Window:
    """A window whose service worker has cached the client."""
    ann = shared_page(sqlite_site.server, sqlite_site.ann, service_workers="allow")
    ann.go("inbox")
    ann.page.evaluate("navigator.serviceWorker.ready.then(() => true)")
    ann.page.wait_for_function("() => navigator.serviceWorker.controller !== null")
    return ann


@pytest.fixture
def phone(shared_org: Window) -> Iterator[Phone]:
    shared_org.context.grant_permissions(["notifications"])
    yield Phone(shared_org)
    shared_org.go("inbox")


def test_the_browser_considers_the_client_installable(shared_org: Window) -> None:
    devtools = shared_org.context.new_cdp_session(shared_org.page)

    manifest: dict[str, Any] = devtools.send("Page.getAppManifest")
    found = devtools.send("Page.getInstallabilityErrors")

    assert manifest["url"].endswith("/manifest.webmanifest")
    assert not manifest["errors"]
    assert not [e for e in found["installabilityErrors"] if e["errorId"] != "in-incognito"]


def test_without_the_server_the_client_opens_and_recovers(
    sqlite_site: Site, shared_org: Window
) -> None:
    server = sqlite_site.server
    # Once the browser has stored recent messages, which takes some seconds, the client opens with
    # them.
    shared_org.page.add_init_script("Object.defineProperty(window, 'indexedDB', { value: null })")
    shared_org.away = True
    server.stop()
    shared_org.page.reload()
    expect(shared_org.page.get_by_role("heading", name="reach the server")).to_be_visible()
    assert shared_org.page.evaluate("document.fonts.ready.then(() => true)")

    server.start()
    shared_org.page.get_by_role("button", name="Try again").click()
    expect(shared_org.page.get_by_role("navigation").first).to_be_visible()
    shared_org.away = False


def test_the_service_worker_caches_no_messages(shared_org: Window) -> None:
    addresses: list[str] = shared_org.page.evaluate(
        """async () => {
            const found = [];
            for (const name of await caches.keys())
                for (const request of await (await caches.open(name)).keys())
                    found.push(new URL(request.url).pathname);
            return found;
        }"""
    )

    assert addresses
    assert [one for one in addresses if not re.match(r"/app/(assets/[^/]+)?$", one)] == []


def push_payload(
    tag: str, to: dict[str, Any], message_ids: list[int], **more: Any
) -> dict[str, Any]:
    words = {"reply": "Reply", "read": "Read", "placeholder": "…", "failed": "Not sent: "}
    return {
        "type": "message",
        "tag": tag,
        "title": "Ben",
        "body": "Are you there?",
        "organization": "Example",
        "url": "/#inbox",
        "sent_at": 1_700_000_000,
        "message_ids": message_ids,
        "to": to,
        "words": words,
        "badge": 1,
        "open": [tag],
        **more,
    }


def test_a_push_is_shown_answered_and_removed(sqlite_site: Site, phone: Phone) -> None:
    ann, ben, server = sqlite_site.ann, sqlite_site.ben, sqlite_site.server
    with client_of(ben, server) as client:
        message = {"type": "direct", "to": [ann.user_id], "content": "Are you there?"}
        sent = ok(client.send_message(message))["id"]
    tag, to = f"d{ben.user_id}", {"user_ids": [ben.user_id]}

    phone.deliver(push_payload(tag, to, [sent]))
    (note,) = phone.notes(lambda shown: bool(shown))
    assert note == {
        "title": "Ben",
        "body": "Are you there?",
        "tag": tag,
        "actions": ["reply", "read"],
    }
    # One notification per conversation; it goes away when the messages are read.
    phone.deliver(push_payload(tag, to, [sent], body="Hello?"))
    (note,) = phone.notes(lambda shown: [one["body"] for one in shown] == ["Hello?"])
    phone.deliver(push_payload("c1/x", {"channel_id": 1, "topic": "x"}, [], open=["c1/x", tag]))
    assert len(phone.notes(lambda shown: len(shown) == 2)) == 2
    phone.deliver({"type": "read", "tag": "c1/x", "badge": 1, "open": [tag]})
    (note,) = phone.notes(lambda shown: len(shown) == 1)

    phone.worker.evaluate(CLICK, ["reply", "Here I am"])
    assert phone.notes(lambda shown: not shown) == []
    with client_of(ann, server) as client:
        narrow = [{"operator": "dm", "operand": [ben.user_id]}]
        asked = {"anchor": "newest", "num_before": 2, "num_after": 0, "narrow": narrow}
        found = ok(client.get_messages({**asked, "apply_markdown": False}))["messages"]
    assert [one["content"] for one in found] == ["Are you there?", "Here I am"]
    assert all("read" in one["flags"] for one in found)

    # A reply that's refused isn't lost.
    phone.deliver(push_payload(tag, {"user_ids": [987654]}, [sent]))
    phone.notes(lambda shown: bool(shown))
    phone.worker.evaluate(CLICK, ["reply", "To nobody"])
    kept = "Not sent: To nobody"
    assert phone.notes(lambda shown: [one["body"] for one in shown] == [kept])


def test_an_update_of_the_client_is_offered_and_loaded(shared_org: Window) -> None:
    # For the browser, another address is another worker, as is other content. (After the update,
    # the usual address counts as another one again, so what is offered next has no meaning.)
    shared_org.page.evaluate("navigator.serviceWorker.register('/worker.js?newer', {scope: '/'})")
    with shared_org.page.expect_event("load"):
        shared_org.page.get_by_role("button", name="Reload").click()
    expect(shared_org.page.get_by_role("navigation").first).to_be_visible()
