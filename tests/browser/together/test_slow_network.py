"""Acting before the previous action is done, on a slow or broken network."""

import re
from collections.abc import Callable

from playwright.sync_api import Page, Route, expect

from tests.browser.conftest import Open
from tests.browser.driving import HeldAnswers, Window
from tests.e2e.conftest import Site
from tests.e2e.people import client_of, ok
from tests.e2e.server import Server

PASTE = """
(field, html) => {
    window.inputs = 0;
    field.addEventListener("input", () => (window.inputs += 1));
    const data = new DataTransfer();
    data.setData("text/html", html);
    data.setData("text/plain", "Pears");
    const about = {bubbles: true, cancelable: true, clipboardData: data};
    field.dispatchEvent(new ClipboardEvent("paste", about));
}
"""


def held_back(page: Page, what: str) -> Callable[[], None]:
    """Hold the response to the page's next request to such an address until the result is
    called."""
    held: list[Route] = []
    asked = re.compile(what)
    page.route(asked, lambda route: held.append(route))

    def release() -> None:
        for route in held:
            route.continue_()
        page.unroute(asked)

    return release


def start_anew(window: Window, fragment: str) -> None:
    """Start the client at this address, in a window that may already have started it."""
    window.page.goto("about:blank")
    window.go(fragment)


def edit(ann: Window, text: str) -> None:
    ann.message(text).hover()
    ann.message(text).get_by_role("button", name="More").click()
    ann.page.get_by_role("menuitem", name="Edit").click()


def test_text_survives_haste(sqlite_site: Site, shared_page: Open) -> None:
    ann = shared_page(sqlite_site.server, sqlite_site.ann)
    page = ann.page

    # A user who isn't loaded yet is shown as loading, and then by name.
    def with_few(route: Route) -> None:
        answer = route.fetch()
        told = answer.json()
        told["realm_users"] = [one for one in told["realm_users"] if one["full_name"] != "Ben"]
        route.fulfill(response=answer, json={**told, "realm_users_incomplete": True})

    page.route("**/api/v1/register", with_few)
    everybody = held_back(page, r"/api/v1/users\?.*after=")
    start_anew(ann, "narrow/channel/general/topic/haste")
    ann.box.press_sequentially("@Be")
    coming = page.get_by_text("Loading more people")
    expect(coming).to_be_visible()
    everybody()
    page.get_by_role("option", name="Ben").click()
    expect(ann.box).to_have_value("@**Ben** ")
    expect(coming).to_have_count(0)

    # Many lines arrive in one paste, because typing them would take too long.
    ann.box.fill("For: jam")
    for _ in "jam":
        ann.box.press("ArrowLeft")
    items = "<li>Plums &amp; 2 kg</li><li>a &lt;jar&gt;</li><li>x</li>"
    ann.box.evaluate(PASTE, f"<ul>{items}</ul><p>-</p>")
    expect(ann.box).to_have_value("For: * Plums & 2 kg\n* a <jar>\n* x\n\n-jam")
    assert page.evaluate("inputs") == 1
    ann.box.press("Control+z")
    expect(ann.box).to_have_value("For: jam")
    ann.box.fill("")
    for text in ("First word", "Second word"):
        ann.say(text)
    expect(page.get_by_text("Sending")).to_have_count(0)

    # Starting another message or leaving keeps the edit for later.
    editor = page.get_by_role("textbox", name="Edit message")
    notes = page.locator(".toasts")
    edit(ann, "First word")
    editor.fill("First word, and more of it")
    edit(ann, "Second word")
    expect(editor).to_have_value("Second word")
    expect(notes).to_contain_text("Your changes weren’t saved")
    notes.get_by_role("button", name="Continue writing").click()
    expect(editor).to_have_value("First word, and more of it")
    editor.press("Escape")
    expect(editor).to_have_count(0)
    notes.get_by_role("button", name="Continue writing").last.click()
    editor.press("Control+Enter")
    expect(ann.message("First word, and more of it").get_by_text("edited")).to_be_visible()

    # Even if the message has been deleted by then.
    edit(ann, "Second word")
    editor.fill("Second thought")
    with client_of(sqlite_site.ann, sqlite_site.server) as client:
        narrow = [["channel", "general"], ["topic", "haste"]]
        query = {"anchor": "newest", "num_before": 1, "num_after": 0, "narrow": narrow}
        (second,) = ok(client.get_messages(query))["messages"]
        ok(client.delete_message(second["id"]))
    expect(editor).to_have_count(0)
    notes.get_by_role("button", name="Continue writing").last.click()
    expect(ann.box).to_have_value("Second thought")
    ann.say("Second thought")
    expect(page.get_by_text("Sending")).to_have_count(0)

    # A quotation that arrives late goes where it was requested, and nowhere else.
    held: list[Route] = []
    source = re.compile(r"/api/v1/messages/\d+\b")
    page.route(source, lambda route: held.append(route))
    ann.message("Second thought").hover()
    with page.expect_request(source):
        ann.message("Second thought").get_by_role("button", name="Quote message").click()
    expect(ann.box).to_be_focused()
    ann.go("inbox")
    expect(page.get_by_role("heading", name="Inbox")).to_be_visible()
    with page.expect_event("requestfinished", lambda request: bool(source.search(request.url))):
        held.pop().continue_()
    page.unroute(source)
    page.evaluate("new Promise((done) => setTimeout(done))")
    expect(page.get_by_role("heading", name="Inbox")).to_be_visible()
    expect(ann.box).to_have_count(0)

    # Late messages don't affect the view that was left.
    asked = re.compile(r"/api/v1/messages\?.*passed")
    page.route(asked, lambda route: held.append(route))
    with page.expect_request(asked):
        ann.go("narrow/channel/general/topic/passed")
    ann.go("inbox")
    with client_of(sqlite_site.ben, sqlite_site.server) as client:
        news = {"type": "stream", "to": "general", "topic": "haste", "content": "Is it late?"}
        ok(client.send_message(news))
    expect(page.get_by_role("main").get_by_text("Is it late?").first).to_be_visible()
    with page.expect_event("requestfinished", lambda request: bool(asked.search(request.url))):
        held.pop().continue_()
    page.unroute(asked)
    ann.go("narrow/channel/general/topic/haste")

    # Pressing several times sends one request, and text typed in the meantime stays.
    page.route("**/api/v1/scheduled_messages", lambda route: held.append(route))
    ann.box.fill("Good morning")
    page.get_by_role("button", name="Schedule message").click()
    with page.expect_request("**/api/v1/scheduled_messages"):
        page.get_by_role("menuitem", name="Tomorrow morning").click()
    page.get_by_role("button", name="Schedule message").click()
    expect(page.get_by_role("menuitem", name="Tomorrow morning")).to_be_disabled()
    page.keyboard.press("Escape")
    ann.box.fill("Good morning, and good night")
    for route in held:
        route.continue_()
    page.unroute("**/api/v1/scheduled_messages")
    expect(notes).to_contain_text("Scheduled for")
    expect(ann.box).to_have_value("Good morning, and good night")
    ann.box.fill("")
    with client_of(sqlite_site.ann, sqlite_site.server) as client:
        kept = ok(client.call_endpoint("scheduled_messages", method="GET"))["scheduled_messages"]
    waiting = [one["content"] for one in kept if one["topic"] == "haste"]
    assert waiting == ["Good morning"]

    # The network fails at the worst moment: one message keeps waiting, the other is sent once.
    ann.away = True
    sending = "**/api/v1/scheduled_messages/*/send"
    page.route(sending, lambda route: route.abort())
    ann.go("scheduled")
    item = page.get_by_role("listitem").filter(has_text="Good morning")
    send = item.get_by_role("button", name="Send now")
    send.click()
    expect(notes).to_contain_text("reach the server")
    expect(page.locator("main")).to_contain_text("Good morning")
    page.unroute(sending)

    def lost(route: Route) -> None:
        route.fetch()
        route.abort()

    page.route(sending, lost)
    send.click()
    expect(send).to_have_count(0)
    page.unroute(sending)
    ann.go("narrow/channel/general/topic/haste")
    expect(ann.message("Good morning")).to_have_count(1)
    ann.away = False


def test_keys_typed_ahead_reach_their_field(sqlite_site: Site, shared_page: Open) -> None:
    """On a slow network, text typed after a shortcut that opens a field isn't taken for more
    shortcuts."""
    ann = shared_page(sqlite_site.server, sqlite_site.ann)
    page, keys = ann.page, ann.page.keyboard
    names = ("NewMessage", "SearchBox", "EmojiPicker", "ShortcutCard", "People", "menus")
    release = {name: held_back(page, rf"/{name}-[\w-]+\.js") for name in names}
    ann.go("inbox")
    page.evaluate("localStorage.setItem('tertulia:people', 'false')")
    start_anew(ann, "narrow/channel/general/topic/ahead")
    ann.say("Pears are ripe")
    expect(page.get_by_text("Sending")).to_have_count(0)
    row = ann.message("Pears are ripe")
    main = page.locator("#main")

    # A canceled dialog doesn't open later.
    main.focus()
    keys.type("x")
    keys.press("Escape")
    keys.type("c")
    keys.type("dimples")
    keys.press("Backspace")
    keys.press("Enter")
    keys.type("eggs?")
    release["NewMessage"]()
    expect(page.get_by_role("combobox", name="Topic")).to_have_value("dimple")
    expect(ann.box).to_have_value("eggs?")
    expect(page.get_by_role("combobox", name="Channel")).to_have_value("general")
    ann.box.fill("")
    ann.box.press("Escape")

    # Also text typed in the message box, and the key that accepts the selection.
    ann.box.press("Control+k")
    keys.type("drafts")
    keys.press("Enter")
    expect(ann.box).to_have_value("")
    release["SearchBox"]()
    expect(page.get_by_role("heading", name="Drafts", exact=True)).to_be_visible()
    page.go_back()
    expect(row).to_be_visible()

    # The dialog's text loads first, then the picker's, which is in another part.
    source = held_back(page, r"/api/v1/messages/\d+\b")
    main.focus()
    keys.press("ArrowLeft")
    keys.type(" now")
    source()
    editor = page.get_by_role("textbox", name="Edit message")
    expect(editor).to_have_value("Pears are ripe now")
    editor.press("Escape")
    main.focus()
    keys.type("k")
    keys.type(":tada")
    expect(page.get_by_role("article")).to_have_count(1)
    release["EmojiPicker"]()
    search = page.get_by_role("combobox", name="Search emoji")
    expect(search).to_have_value("tada")
    search.press("Escape")

    # Views without a field take keys too; a field focused in the meantime gets its own.
    main.focus()
    keys.type("wd")
    ann.box.click()
    keys.type("Plums")
    release["People"]()
    expect(page.get_by_role("textbox", name="Search people")).to_have_value("")
    expect(ann.box).to_have_value("Plums")
    main.focus()
    keys.type("qdt")
    side = page.get_by_role("textbox", name="Filter channels and people")
    expect(side).to_have_value("dt")
    side.press("Escape")
    main.focus()
    keys.type("gdt")
    expect(row).to_be_visible()
    release["menus"]()
    expect(page.get_by_role("menuitem", name="Set status")).to_be_focused()
    keys.press("Escape")
    main.focus()
    keys.type("?di")
    release["ShortcutCard"]()
    expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_visible()
    expect(row).to_be_visible()
    keys.press("Escape")
    ann.box.fill("")


def test_visible_people_have_names_immediately_in_a_large_organization(
    demo_server: Server, shared_page: Open
) -> None:
    # Someone who hasn't sent a message yet.
    demo_server.add("nadia")
    iris = shared_page(demo_server, "iris@cafe.example")
    page = iris.page

    def few(route: Route) -> None:
        form = route.request.post_data
        assert form is not None
        assert "most_users=1000" in form
        route.continue_(post_data=form.replace("most_users=1000", "most_users=0"))

    page.route("**/api/v1/register", few)
    rest = HeldAnswers(iris, lambda address: "after=" in address)
    page.route("**/api/v1/users?*", rest.hold)
    start_anew(iris, "inbox")
    expect(page.locator("[data-row]").nth(5)).to_be_visible()
    rest.wait()
    expect(page.locator("main")).not_to_contain_text("Somebody:")
    people = page.get_by_role("region", name="People")
    expect(people.get_by_role("status")).to_have_text("Loading…")
    nobody = people.get_by_role("link", name="Nadia")
    expect(nobody).to_have_count(0)
    rest()
    expect(nobody).to_be_visible()
    expect(people.get_by_role("status")).to_have_count(0)


def test_a_quotation_survives_escape(sqlite_site: Site, new_page: Open) -> None:
    """While its compose box is loading, Escape closes it, and the quotation waits in its
    conversation."""
    with client_of(sqlite_site.ben, sqlite_site.server) as client:
        news = {"type": "stream", "to": "general", "topic": "quoted", "content": "Plums are sweet"}
        sent = ok(client.send_message(news))["id"]
    ann = new_page(sqlite_site.server, sqlite_site.ann)
    page = ann.page
    release = held_back(page, r"/NewMessage-[\w-]+\.js")
    ann.go(f"narrow/channel/general/near/{sent}")
    ann.message("Plums are sweet").hover()
    ann.message("Plums are sweet").get_by_role("button", name="Quote message").click()
    page.keyboard.press("Escape")
    release()
    ann.go("narrow/channel/general/topic/quoted")
    expect(page.locator(".compose")).to_contain_text("Plums are sweet")
