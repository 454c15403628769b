"""Recent messages can be read without the server, but only by the person who read them."""

from collections.abc import Callable

import httpx
from playwright.sync_api import Page, Route, expect

from tests.browser.conftest import Open
from tests.browser.driving import Window, eventually, sign_in
from tests.e2e.conftest import Site

PLACE = "narrow/channel/general/topic/tides"

RECORDS = """async () => {
    const known = await indexedDB.databases();
    if (!known.some((one) => one.name === "tertulia-offline")) return [];
    const done = (request) => new Promise((resolve, reject) => {
        request.onsuccess = () => resolve(request.result);
        request.onerror = () => reject(request.error);
    });
    const database = await done(indexedDB.open("tertulia-offline"));
    const found = database.objectStoreNames.contains("records")
        ? await done(database.transaction("records").objectStore("records").getAll()) : [];
    const text = new TextDecoder("latin1");
    const all = found.map((one) => text.decode(one.sealed));
    database.close();
    return all;
}"""


def records(page: Page) -> list[str]:
    """The records in the browser's storage."""
    found: list[str] = page.evaluate(RECORDS)
    return found


def records_once(page: Page, hold: Callable[[list[str]], bool]) -> list[str]:
    """The records in the browser's storage, once they match."""
    eventually(page, lambda: hold(records(page)))
    return records(page)


def only_what_is_opened(window: Window) -> Window:
    """Have the browser ask to save data, so that the client loads nothing that isn't opened."""
    window.page.add_init_script(
        "Object.defineProperty(NetworkInformation.prototype, 'saveData', { get: () => true })"
    )
    return window


def test_recent_messages_are_readable_offline_and_deleted_with_the_session(
    sqlite_site: Site, new_page: Open
) -> None:
    server = sqlite_site.server
    auth = (sqlite_site.ben.email, sqlite_site.ben.api_key)
    with httpx.Client(base_url=f"{server.url}/api/v1", auth=auth, timeout=60) as http:
        where = {"type": "stream", "to": "general"}
        for said in ("tides: High at nine", "winds: Calm", "tides: Low at three"):
            topic, text = said.split(": ")
            about = {**where, "topic": topic, "content": text}
            sent = http.post("/messages", data=about).raise_for_status().json()["id"]
        ann = only_what_is_opened(new_page(server, sqlite_site.ann, service_workers="allow"))
        page = ann.page
        ann.go("narrow/channel/general/topic/winds")
        expect(ann.message("Calm")).to_be_visible()
        ann.go(PLACE)
        expect(ann.message("Low at three")).to_be_visible()
        page.evaluate("navigator.serviceWorker.ready.then(() => true)")
        page.wait_for_function("() => navigator.serviceWorker.controller !== null")
        # Two conversations, and the data a client starts with.
        found = records_once(page, lambda found: len(found) == 3)
        assert not any("High at nine" in one for one in found)

    # Deleted content isn't kept anywhere; the record of two messages now has one.
    ann.go("inbox")
    larger = sorted(map(len, found))[1]
    auth = (sqlite_site.ann.email, sqlite_site.ann.api_key)
    httpx.delete(f"{server.url}/api/v1/messages/{sent}", auth=auth).raise_for_status()
    records_once(page, lambda found: sorted(map(len, found))[1] < larger)
    ann.away = True
    ann.context.set_offline(True)
    page.reload()
    expect(page.get_by_text("Showing messages as of")).to_be_visible()
    ann.go(PLACE)
    expect(ann.message("High at nine")).to_be_visible()
    expect(ann.message("Low at three")).to_have_count(0)
    ann.say("Written at sea")
    expect(ann.pending("Written at sea")).to_be_visible()
    ann.context.set_offline(False)
    expect(page.get_by_text("Showing messages as of")).to_have_count(0)
    expect(page.get_by_text("Sending")).to_have_count(0)
    expect(ann.message("Written at sea")).to_have_count(1)
    ann.away = False

    # When the session ends, all of it is deleted.
    page.locator("#own-menu").click()
    page.get_by_role("menuitem", name="Sign out").click()
    expect(page.get_by_label("Password")).to_be_visible()
    records_once(page, lambda found: not found)


def test_a_session_ended_elsewhere_leaves_no_data(sqlite_site: Site, new_page: Open) -> None:
    server = sqlite_site.server
    ben = only_what_is_opened(new_page(server, sqlite_site.ben, service_workers="allow"))
    ben.go("narrow/channel/general/topic/notes")
    ben.say("To be forgotten")
    expect(ben.message("To be forgotten")).to_be_visible()
    records_once(ben.page, lambda found: len(found) == 2)
    ben.page.evaluate("navigator.serviceWorker.ready.then(() => true)")
    ben.page.goto("about:blank")
    ben.context.clear_cookies()
    ben.page.goto(server.url)
    expect(ben.page.get_by_label("Password")).to_be_visible()
    records_once(ben.page, lambda found: not found)


def test_earlier_messages_are_shown_until_a_slow_server_responds(
    sqlite_site: Site, new_page: Open
) -> None:
    server = sqlite_site.server
    ann = new_page(server, sqlite_site.ann)
    page = ann.page
    place = "narrow/channel/general/topic/ferries"
    ann.go(place)
    ann.say("The first one leaves at six")
    expect(ann.message("leaves at six")).to_be_visible()
    page.wait_for_function("() => localStorage.getItem('tertulia:offline-session')?.length > 2")
    # An open page would read it.
    page.goto("about:blank")
    auth = (sqlite_site.ben.email, sqlite_site.ben.api_key)
    sent = {"type": "stream", "to": "general", "topic": "ferries", "content": "It is late"}
    httpx.post(f"{server.url}/api/v1/messages", data=sent, auth=auth).raise_for_status()

    held: list[Route] = []
    page.route("**/api/v1/register", lambda route: held.append(route))
    ann.go(place)
    updating = page.get_by_text("Updating…")
    expect(updating).to_be_visible()
    expect(ann.message("leaves at six")).to_be_visible()
    expect(ann.message("It is late")).to_have_count(0)
    held.pop().continue_()
    expect(ann.message("It is late")).to_be_visible()
    expect(updating).to_have_count(0)
    expect(page.get_by_text("New from here")).to_be_visible()

    # The data of another session may be someone else's.
    page.goto("about:blank")
    ann.context.clear_cookies()
    sign_in(ann.context, server, sqlite_site.ben)
    ann.go(place)
    eventually(page, lambda: bool(held))
    # Longer than the client waits for the server.
    page.wait_for_timeout(1000)
    expect(page.get_by_role("article")).to_have_count(0)
    held.pop().continue_()
    expect(ann.message("It is late")).to_be_visible()
