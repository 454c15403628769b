"""Do not disturb: no notifications in any window until it ends, and a status that expires."""

from datetime import UTC, datetime
from typing import Any

from playwright.sync_api import expect

from tests.browser.conftest import Open
from tests.browser.driving import PHONE, Window
from tests.e2e.conftest import Site
from tests.e2e.people import client_of, ok

NOTED = """
window.noted = [];
window.Notification = class {
    static permission = "granted";
    static requestPermission = async () => "granted";
    constructor(title, { body }) { window.noted.push(body); }
    close() {}
};
window.tones = 0;
const node = () => {
    const made = { connect: () => made, frequency: {}, start() { window.tones += 1; }, stop() {} };
    made.gain = { setValueAtTime() {}, exponentialRampToValueAtTime() {} };
    return made;
};
window.AudioContext = class {
    state = "running";
    currentTime = 0;
    createOscillator = node;
    createGain = node;
};
// Whoever looks at the window is not called.
Document.prototype.hasFocus = () => false;
"""


def noted(window: Window, bodies: list[str]) -> None:
    """Exactly these notifications were shown, each with two tones."""
    both = "(count) => noted.length >= count && tones >= 2 * count"
    window.page.wait_for_function(both, arg=len(bodies))
    assert window.page.evaluate("[noted, tones]") == [bodies, 2 * len(bodies)]


def test_a_pause_applies_to_every_window_and_can_be_ended(
    sqlite_site: Site, new_page: Open
) -> None:
    town = sqlite_site

    def write(text: str) -> None:
        sent: dict[str, Any] = {"type": "direct", "to": [town.ann.user_id], "content": text}
        with client_of(town.ben, town.server) as ben:
            ok(ben.send_message(sent))
        for window in (laptop, phone):
            expect(window.message(text)).to_be_attached()

    laptop = new_page(town.server, town.ann)
    phone = new_page(town.server, town.ann, viewport=PHONE)
    for window in (laptop, phone):
        window.page.add_init_script(NOTED)
        # By now it's known whether a notification sounds.
        with window.page.expect_response("**/quiet_times"):
            window.go(f"narrow/dm/{town.ben.user_id}")
    menu, name = laptop.page.get_by_role("menu"), laptop.page.locator("#own-menu")
    expect(name).to_be_visible()
    write("first")
    noted(laptop, ["first"])
    name.click()
    menu.get_by_role("menuitem", name="1 hour").click()
    expect(name).to_contain_text("Notifications paused until")
    expect(phone.page.locator("#own-menu")).to_contain_text("Notifications paused until")
    write("second")
    name.click()
    menu.get_by_role("menuitem", name="Resume notifications").click()
    expect(phone.page.locator("#own-menu")).not_to_contain_text("paused")
    write("third")
    noted(laptop, ["first", "third"])
    noted(phone, ["first", "third"])
    name.click()
    menu.get_by_role("menuitem", name="Custom…").click()
    laptop.page.get_by_label("Pause until").fill("2030-01-01T00:00")
    laptop.page.get_by_role("button", name="Pause", exact=True).click()
    expect(laptop.page.get_by_role("alert")).to_contain_text("at most a year")
    laptop.page.keyboard.press("Escape")
    # Quiet hours, and the notification overview.
    laptop.go("settings/notifications")
    page = laptop.page
    page.get_by_role("button", name="Add quiet hours").click()
    expect(page.get_by_label("from")).to_have_value("22:00")
    page.get_by_label("from").fill("00:00")
    page.get_by_label("from").press("Tab")
    expect(page.get_by_text("the next day")).to_have_count(0)
    # Of two concurrent choices, the second doesn't revert the first.
    page.evaluate("""() => ["Monday", "Tuesday"].forEach((day) =>
        document.querySelector(`[aria-label="${day}"]`).click())""")
    phone.go("settings/notifications")
    for day in ("Tuesday", "Monday"):
        # (Messages are labeled with their day.)
        expect(phone.page.get_by_label(day, exact=True)).not_to_be_checked()
    page.get_by_role("link", name="Notification overview").last.click()
    row = page.get_by_role("listitem").filter(has_text="#general")
    expect(row).to_contain_text("Desktop: off")
    expect(row).to_contain_text("your setting for all channels")
    page.get_by_label("Message type").select_option("mention")
    expect(row).to_contain_text("Desktop: on")
    expect(row).to_contain_text("your setting for mentions")
    # The other window shows a status with its end.
    name.click()
    menu.get_by_role("menuitem", name="Set status").click()
    page.get_by_role("button", name="At lunch").click()
    page.get_by_label("Clear after").select_option("hour")
    page.get_by_role("button", name="Save").click()
    expect(phone.page.locator("#own-menu")).to_contain_text("At lunch")
    name.click()
    menu.get_by_role("menuitem", name="Set status").click()
    expect(page.get_by_label("Clear after")).to_have_value("kept")


def test_quiet_hours_of_a_channel_leave_others_on(sqlite_site: Site, new_page: Open) -> None:
    town = sqlite_site
    hour = datetime.now(UTC).hour
    with client_of(town.ben, town.server) as ben, client_of(town.ann, town.server) as ann:
        ok(ann.call_endpoint("settings", method="PATCH", request={"timezone": "UTC"}))
        for name in ("evening", "daytime"):
            ok(ben.add_subscriptions([{"name": name}], principals=[town.ann.user_id]))
        ids = {name: ok(ben.get_stream_id(name))["stream_id"] for name in ("evening", "daytime")}
        hours = {
            "days": list(range(7)),
            "begin": (hour - 1) % 24 * 60,
            "end": (hour + 1) % 24 * 60 or 1440,
            "channel_ids": [ids["daytime"]],
        }
        request = {"hours": [hours]}
        ok(ann.call_endpoint("quiet_times", method="PATCH", request=request))
    laptop = new_page(town.server, town.ann)
    laptop.page.add_init_script(NOTED)
    laptop.go("settings/notifications")
    page = laptop.page
    channels = page.get_by_role("combobox", name="Quiet channels")
    item = page.get_by_role("listitem").filter(has=channels)
    expect(item).to_contain_text("daytime")
    with page.expect_response("**/quiet_times"):
        channels.fill("even")
        page.get_by_role("option", name="evening").click()
    with page.expect_response("**/quiet_times"):
        item.get_by_role("button", name="daytime").click()
    page.reload()
    expect(item).to_contain_text("evening")
    expect(item).not_to_contain_text("daytime")
    expect(page.locator("#own-menu")).not_to_contain_text("Quiet hours until")
    with client_of(town.ben, town.server) as ben:
        for to in ("evening", "daytime"):
            content = f"@**Ann** in the {to}"
            ok(ben.send_message({"type": "stream", "to": to, "topic": "tea", "content": content}))
    noted(laptop, ["@Ann in the daytime"])
    # The inbox folds the channel, and shows it on request.
    laptop.go("inbox")
    rows = page.locator("main [data-row]")
    expect(rows.filter(has_text="in the daytime")).to_be_visible()
    expect(rows.filter(has_text="in the evening")).to_have_count(0)
    fold = page.get_by_role("main").get_by_role("button", name="Quiet hours")
    expect(fold).to_have_attribute("aria-expanded", "false")
    fold.click()
    expect(rows.filter(has_text="in the evening")).to_be_visible()
    page.reload()
    expect(rows.filter(has_text="in the evening")).to_be_visible()
