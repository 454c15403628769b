"""Two people in a conversation, each in their own browser."""

import re
from collections.abc import Callable
from urllib.parse import parse_qs, urlsplit

import httpx
from playwright.sync_api import expect

from tests.browser.conftest import Open
from tests.browser.driving import Window, holding
from tests.e2e.conftest import Site
from tests.support import row

PLACE = "narrow/channel/general/topic"


def both(site: Site, shared_page: Open, topic: str) -> tuple[Window, Window]:
    """Ann and Ben, viewing the same topic."""
    ann, ben = shared_page(site.server, site.ann), shared_page(site.server, site.ben)
    for one in (ann, ben):
        one.go(f"{PLACE}/{topic}")
        expect(one.box).to_be_visible()
    return ann, ben


def asks_for(topic: str) -> Callable[[str], bool]:
    return lambda url: topic in url


def test_two_people_talk(shared_site: Site, shared_page: Open) -> None:
    ann, ben = both(shared_site, shared_page, "greetings")

    ann.say("Good **morning**, Ben")
    said = ben.message("Good morning, Ben")
    expect(said.locator("strong", has_text="morning")).to_be_visible()
    expect(ann.box).to_have_value("")

    ben.box.press_sequentially("Morning")
    expect(ann.page.get_by_text("Ben is typing")).to_be_visible()
    ben.say("Morning, Ann")
    expect(ann.message("Morning, Ann")).to_be_visible()
    expect(ann.page.get_by_text("Ben is typing")).to_be_hidden()

    answer = ann.message("Morning, Ann")
    answer.hover()
    answer.get_by_role("button", name="React with +1").click()
    expect(ben.message("Morning, Ann").get_by_role("button", name="Ann reacted")).to_be_visible()

    ben.box.press("ArrowUp")
    editor = ben.page.get_by_role("textbox", name="Edit message")
    expect(editor).to_have_value("Morning, Ann")
    editor.fill("Good morning to you, Ann")
    editor.press("Control+Enter")
    expect(ann.message("Good morning to you, Ann").get_by_text("edited")).to_be_visible()

    changed = ann.message("Good morning to you")
    changed.hover()
    changed.get_by_role("button", name="More").click()
    ann.page.get_by_role("menuitem", name="Quote message").click()
    # An attachment appears next to the text, not as Markdown. Once removed it's gone, and it
    # survives a reload.
    quotes = ann.page.get_by_role("list", name="Quotes")
    expect(quotes).to_contain_text("Good morning to you")
    expect(ann.box).to_have_value("")
    # Suggestions depend on what is typed, not on what is quoted.
    ann.box.press_sequentially("So I")
    expect(ann.page.get_by_role("option")).to_have_count(0)
    ann.box.press_sequentially(" said to @Be")
    expect(ann.page.get_by_role("option", name="Ben")).to_be_visible()
    ann.box.press("Enter")
    expect(ann.box).to_have_value("So I said to @**Ben** ")
    ann.page.reload()
    expect(quotes.get_by_role("button", name="Remove quote from")).to_be_visible()
    expect(ann.box).to_have_value("So I said to @**Ben** ")
    ann.box.press("Control+Enter")
    expect(quotes).to_be_hidden()
    expect(ben.page.locator("blockquote", has_text="Good morning to you")).to_be_visible()


def test_messages_typed_while_offline_are_sent_once(shared_site: Site, shared_page: Open) -> None:
    ann, ben = both(shared_site, shared_page, "storm")
    ann.say("Before")
    expect(ben.message("Before")).to_be_visible()

    ann.away = ben.away = True
    shared_site.server.kill()
    expect(ann.page.get_by_text("Can’t reach the server")).to_be_visible()
    ann.say("While it was away")
    expect(ann.pending("While it was away")).to_be_visible()
    shared_site.server.start()

    expect(ben.message("While it was away")).to_have_count(1)
    ben.say("After")
    expect(ann.message("After")).to_be_visible()
    expect(ann.page.get_by_text("Can’t reach the server")).to_be_hidden()
    for one in (ann, ben):
        expect(one.message("While it was away")).to_have_count(1)
        one.away = False


def test_a_client_with_an_expired_queue_starts_again(shared_site: Site, shared_page: Open) -> None:
    ann, ben = both(shared_site, shared_page, "queue")
    with ann.page.expect_request(lambda request: "/api/v1/events?" in request.url) as poll:
        ben.say("Are you there?")
    ann.box.fill("Not sent yet")
    [queue_id] = parse_qs(urlsplit(poll.value.url).query)["queue_id"]
    cookies = {one["name"]: one["value"] for one in ann.context.cookies()}

    gone = ann.context.request.delete(
        "/api/v1/events",
        form={"queue_id": queue_id},
        headers={"X-CSRF-Token": cookies["tertulia_csrf"]},
    )
    assert gone.ok, gone.text()
    ben.say("Are you still there?")

    expect(ann.message("Are you still there?")).to_be_visible()
    expect(ann.box).to_have_value("Not sent yet")
    ann.box.fill("")


def test_viewed_messages_are_marked_as_read(
    shared_site: Site, shared_page: Open, new_page: Open
) -> None:
    town = shared_site
    auth = (town.ben.email, town.ben.api_key)
    httpx.post(f"{town.server.url}/api/v1/mark_all_as_read", auth=auth).raise_for_status()
    ann = shared_page(town.server, town.ann)
    ann.go(f"{PLACE}/numbers")
    for text in ("One", "Two", "Three"):
        ann.say(text)
        expect(ann.message(text)).to_be_visible()
        expect(ann.page.get_by_text("Sending")).to_be_hidden()
    ben = shared_page(town.server, town.ben)
    ben.go("inbox")
    expect(ben.link("Inbox")).to_contain_text("3")

    ben.page.get_by_role("main").get_by_role("link", name="numbers").click()
    expect(ben.message("Three")).to_be_visible()

    expect(ben.link("Inbox")).not_to_contain_text("3")
    elsewhere = new_page(town.server, town.ben)
    elsewhere.go("inbox")
    expect(elsewhere.page.get_by_role("heading", name="Inbox")).to_be_visible()
    row = elsewhere.page.get_by_role("main").get_by_role("link", name="numbers")
    expect(row).not_to_have_accessible_name(re.compile("unread"))


def test_a_late_page_of_messages_does_not_restore_old_content(
    sqlite_site: Site, new_page: Open
) -> None:
    server, auth = sqlite_site.server, (sqlite_site.ann.email, sqlite_site.ann.api_key)
    with httpx.Client(base_url=f"{server.url}/api/v1", auth=auth, timeout=60) as http:

        def send(topic: str, content: str) -> int:
            about = {"type": "stream", "to": "general", "topic": topic, "content": content}
            sent: int = http.post("/messages", data=about).json()["id"]
            return sent

        # Sent before the window opens, so it doesn't have to fetch them after an event.
        changed = {how: send(f"late {how}", "the old text") for how in ("edited", "deleted")}
        for how in changed:
            send(f"late {how}", f"another one, not {how}")
        ben = new_page(server, sqlite_site.ben)
        for how, sent in changed.items():
            with row(how):
                # Hold responses before sending anything: a request that starts at the same time as
                # the hold isn't intercepted.
                let_go = holding(ben, asks_for(f"late+{how}"))
                ben.go("inbox")
                ben.go(f"{PLACE}/late%20{how}")
                let_go.wait()
                # The response with the old text already exists, but the event arrives first.
                with ben.page.expect_response(lambda response: "/events" in response.url):
                    if how == "edited":
                        done = http.patch(f"/messages/{sent}", data={"content": "the new text"})
                    else:
                        done = http.delete(f"/messages/{sent}")
                    assert done.json()["result"] == "success"
                ben.page.wait_for_timeout(300)
                let_go()
                expect(ben.message(f"another one, not {how}")).to_be_visible()
                expect(ben.message("the old text")).to_have_count(0)
                if how == "edited":
                    expect(ben.message("the new text")).to_be_visible()


def test_two_windows_without_locks_send_pending_messages_once(
    shared_site: Site, shared_page: Open, new_page: Open
) -> None:
    """Pages without TLS can't use locks, so each window believes that the other one is closed."""
    town = shared_site
    ben = shared_page(town.server, town.ben)
    ben.go(f"{PLACE}/locks")
    ann = new_page(town.server, town.ann)
    ann.context.add_init_script("Object.defineProperty(Navigator.prototype, 'locks', {})")
    ann.context.add_init_script("delete Navigator.prototype.locks")
    ann.go(f"{PLACE}/locks")
    expect(ann.box).to_be_visible()
    # The request arrives, and its response is lost.
    ann.away = True
    ann.page.route("**/api/v1/messages", lambda route: (route.fetch(), route.abort())[1])
    ann.say("Only once")
    expect(ben.message("Only once")).to_have_count(1)
    second = Window(ann.context.new_page(), ann.site, away=True)
    second.go(f"{PLACE}/locks")
    expect(second.message("Only once").first).to_be_visible()
    ann.page.unroute("**/api/v1/messages")
    ann.page.wait_for_timeout(3000)
    expect(ben.message("Only once")).to_have_count(1)
    expect(second.message("Only once")).to_have_count(1)


def test_someone_who_reads_a_topic_sees_that_it_was_deleted(
    shared_site: Site, shared_page: Open
) -> None:
    ann, ben = both(shared_site, shared_page, "mistakes")
    ann.say("Wrong channel")
    expect(ben.message("Wrong channel")).to_be_visible()
    ben.box.fill("Which one is right?")
    ann.page.get_by_role("button", name="Topic actions").click()
    ann.page.get_by_role("menuitem", name="Delete topic").click()
    confirmation = ann.page.get_by_role("dialog")
    confirmation.get_by_role("textbox").fill("mistakes")
    confirmation.get_by_role("button", name="Delete").click()
    main = ben.page.get_by_role("main")
    expect(main.get_by_text("The messages in this topic were deleted or moved.")).to_be_visible()
    # What they were writing stays.
    expect(ben.box).to_have_value("Which one is right?")
    ben.box.fill("")
