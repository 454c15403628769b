"""The views and dialogs on the contact sheet, and how to open each."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from playwright.sync_api import Page, Route, ViewportSize
from tests.browser.driving import settled

OWNER: Final = "iris@cafe.example"
MEMBER: Final = "june@cafe.example"
GUEST: Final = "theo@cafe.example"
LESS: Final[ViewportSize] = {"width": 1024, "height": 768}
"""A window without room for the list of people."""
SETTINGS: Final = 'giphy_api_key = "nobody-knows-it"\n'
"""The server's configuration."""

Step = tuple[str, str] | str | Callable[[Page], None]
"""The role and name (a pattern) of the element to press, a key, or a function."""


@dataclass(frozen=True)
class View:
    """One view or dialog."""

    name: str
    at: str
    """A fragment, with names of channels in braces; with a leading slash, a path."""
    steps: tuple[Step, ...] = ()
    who: str | None = OWNER
    """The email address of the user who is signed in. Signed out for None."""
    on: tuple[str, ...] = ("wide", "phone")
    size: Mapping[str, int] | None = None
    """The window's size, if the view exists only in that size."""


def take(page: Page, step: Step) -> None:
    """Take a step, and wait until the view is idle."""
    if callable(step):
        step(page)
    elif isinstance(step, str):
        page.keyboard.press(step)
    else:
        role, name = step
        every = page.get_by_role(role, name=re.compile(name)).locator("visible=true")
        every.last.click(timeout=8_000)
    settled(page)


def last_message(page: Page) -> None:
    """Select the last message."""
    page.get_by_role("region", name="Messages", exact=True).focus()
    page.keyboard.press("k")


def menu_of_message(page: Page) -> None:
    """Open the menu of the last message."""
    last_message(page)
    page.locator("article.selected [data-more]").click(timeout=8_000)


def written(text: str) -> Callable[[Page], None]:
    """Return a step that writes text without sending it."""

    def write(page: Page) -> None:
        page.get_by_role("textbox", name=re.compile("^Message ")).last.fill(text)

    return write


def attached(page: Page) -> None:
    """Attach two files."""
    chooser = page.locator('input[type="file"]').first
    chooser.set_input_files(
        [
            {
                "name": "A rather long name of a file.pdf",
                "mimeType": "application/pdf",
                "buffer": b"%PDF-1.4",
            },
            {"name": "prices.csv", "mimeType": "text/csv", "buffer": b"a,b\n"},
        ]
    )


def away(page: Page) -> None:
    """Go offline."""
    page.context.set_offline(True)
    page.get_by_text(re.compile("reach the server")).first.wait_for()


def first_picture(page: Page) -> None:
    """Open a picture in the lightbox."""
    page.locator("main article a.picture, main article .message_inline_image a").first.click(
        timeout=8_000
    )


def pressed(selector: str, button: Literal["left", "right"] = "left") -> Callable[[Page], None]:
    """Return a step that clicks the last visible element that matches the selector."""

    def press(page: Page) -> None:
        page.locator(selector).locator("visible=true").last.click(button=button, timeout=8_000)

    return press


def tool(name: str) -> Callable[[Page], None]:
    """Return a step that uses a tool of the compose box, which may be in its menu."""

    def use(page: Page) -> None:
        buttons = page.get_by_role("button", name=re.compile(f"^{name}")).locator("visible=true")
        if buttons.count():
            buttons.last.click(timeout=8_000)
            return
        take(page, ("button", "^More$"))
        # Tools that stay on are radio items.
        items = page.locator("[role^=menuitem]").filter(has_text=re.compile(f"^\\s*{name}"))
        items.locator("visible=true").last.click(timeout=8_000)

    return use


def typed(text: str) -> Callable[[Page], None]:
    """Return a step that types into the focused field."""
    return lambda page: page.keyboard.type(text)


def people_over(page: Page) -> None:
    """Open the list of people in a narrow window, where it covers the view."""
    page.set_viewport_size(LESS)
    page.get_by_role("button", name="People", exact=True).click(timeout=8_000)


def animated_pictures(page: Page) -> None:
    """Answer requests to GIPHY with drawings."""

    def answer(route: Route) -> None:
        if "/media/" in route.request.url:
            number = int(route.request.url.rpartition("/")[2])
            height, hue = 90 + number * 37 % 120, number * 55 % 360
            route.fulfill(
                content_type="image/svg+xml",
                body=f'''<svg xmlns="http://www.w3.org/2000/svg" width="200" height="{height}">
                    <rect width="200" height="{height}" fill="hsl({hue} 40% 60%)"/></svg>''',
            )
            return
        found = [
            {
                "id": f"{number}",
                "title": f"Tea {number}",
                "images": {
                    kind: {
                        "url": f"https://media2.giphy.com/media/{number}",
                        "width": "200",
                        "height": f"{90 + number * 37 % 120}",
                    }
                    for kind in ("fixed_width", "downsized")
                },
            }
            for number in range(12)
        ]
        route.fulfill(json={"data": found}, headers={"Access-Control-Allow-Origin": "*"})

    page.route("https://*.giphy.com/**", answer)


FORMATTED: Final = """**Soup** today for @**topic**, see #**kitchen>staff lunch**

* leek and *barley*
  * [the recipe](https://recipes.example/soup), ~~without~~ with `cream`

> With bread?

```python
soup = ["leek", "barley"]
```

Yes. """
OWN_MENU: Final = ("button", "Your account|Iris")
TOPIC: Final = "narrow/channel/{workshop}/topic/sales.20by.20hour"
LUNCH, MILK, LIST, DOUGH, OVEN, CAKE, GRINDER, BAR = (
    f"narrow/channel/{{kitchen}}/topic/{topic}"
    for topic in (
        *("staff.20lunch", "oat.20milk", "shopping.20list"),
        *("proofing.20times", "oven.20is.20too.20keen", "almond.20cake"),
        *("grinder", "who.20ate.20the.20last.20lemon.20bar"),
    )
)
"""Topics for views that write: each keeps its draft."""

VIEWS: Final = (
    View("inbox", "inbox"),
    View("recent", "recent"),
    View("inbox-channels", "inbox", (("button", "^By channel"), "j", "j", "x")),
    View("catch-up", "catch-up"),
    View("file-list", "files"),
    View("feed", "feed"),
    View("mentions", "narrow/is/mentioned"),
    View("starred", "narrow/is/starred"),
    View("direct-messages", "narrow/is/dm"),
    View("direct", "narrow/dm/june@cafe.2Eexample"),
    View("search", "narrow/search/coffee"),
    View("search-nothing", "narrow/search/zeppelin"),
    View("drafts", "drafts"),
    View("scheduled", "scheduled"),
    View("later", "later"),
    View("unknown", "nowhere"),
    View("channel", "narrow/channel/{kitchen}"),
    View("topic", TOPIC),
    View("topic-new", "narrow/channel/{kitchen}/topic/something.20new"),
    View("topics", "topics/channel/{kitchen}"),
    View("pictures", "narrow/has/image"),
    # Menus, cards, and dialogs
    View("message-chosen", TOPIC, (last_message,)),
    View("message-menu", TOPIC, (menu_of_message,)),
    View("emoji", TOPIC, (last_message, ":")),
    View("person", TOPIC, (last_message, "u")),
    View("receipts", TOPIC, (last_message, "V")),
    View("move", TOPIC, (last_message, "m")),
    View("remove", TOPIC, (menu_of_message, ("menuitem", "^Delete"))),
    View("remind", TOPIC, (menu_of_message, ("menuitem", "Remind me"))),
    View("lightbox", "narrow/has/image", (first_picture,)),
    View("history", LUNCH, (last_message, "H")),
    View("edit", LUNCH, (last_message, "e")),
    View("group", LUNCH, (pressed(".user-group-mention"),)),
    View("pinned", "narrow/channel/{kitchen}", (("button", r"\d pinned"),)),
    View("pointer-message", TOPIC, (pressed("article .body", "right"),), on=("wide",)),
    View("pointer-channel", "inbox", (pressed("#side [data-side]", "right"),), on=("wide",)),
    View("told", TOPIC, (menu_of_message, ("menuitem", "^Copy link"))),
    View("topic-menu", TOPIC, (("button", "Topic actions"),)),
    View("beside", TOPIC, (("button", "Topic actions"), ("menuitem", "^Split view")), on=("wide",)),
    View("topic-policy", TOPIC, (("button", "Topic notifications"),)),
    View("channel-menu", "narrow/channel/{kitchen}", (("button", "Channel actions"),)),
    View("new-message", "inbox", (("button", "^New message"),)),
    View("writing", LUNCH, (written("**Soup** today: @**topic**\n\n- leek\n- barley"),)),
    View("files", MILK, (attached, written("The prices"))),
    View("preview", LIST, (written("**Soup**, `now`"), tool("Preview"))),
    View(
        "writing-menu",
        DOUGH,
        (
            written(""),
            ("button", "^More$"),
        ),
    ),
    View("send-later", OVEN, (written("Soup"), ("button", "^Schedule message"))),
    View(
        "schedule",
        CAKE,
        (written("Soup"), ("button", "^Schedule message"), ("menuitem", "Custom time")),
    ),
    View("poll", DOUGH, (written(""), tool("Poll"))),
    View("time", DOUGH, (written(""), tool("Time"))),
    View("snippets", DOUGH, (written(""), tool("Saved snippets"))),
    View(
        "voice-note",
        DOUGH,
        (
            written(""),
            tool("Record a voice note"),
        ),
    ),
    View("to-do", DOUGH, (written(""), tool("To-do"))),
    View("call-menu", DOUGH, (("button", "^Start a call"),)),
    View("gifs", DOUGH, (animated_pictures, written(""), tool("GIF"))),
    View("completions", GRINDER, (written("@ma"),)),
    View(
        "undo",
        BAR,
        (
            written("It was not me."),
            ("button", "^Schedule message"),
            ("menuitemradio", "20 seconds"),
            ("button", "^Send$"),
        ),
    ),
    View(
        "new-direct",
        "inbox",
        (
            ("button", "^New message"),
            ("button", "^Direct message$"),
            typed("mar"),
            "Enter",
            typed("ju"),
        ),
    ),
    View("scheduled-edit", "scheduled", (("button", "^Edit"),)),
    View("jump", "inbox", ("Control+k",)),
    View("jump-found", "inbox", ("Control+k", typed("ki"))),
    View("jump-search", "inbox", ("Control+k", typed("from:june has:image bread"))),
    View("people-over", "inbox", (people_over,), on=("wide",), size=LESS),
    View("keys", "inbox", ("?",), on=("wide",)),
    View("own-menu", "inbox", (OWN_MENU,), on=("wide",)),
    View(
        "status",
        "inbox",
        (OWN_MENU, ("menuitem", "Set status")),
        on=("wide",),
    ),
    View("pause", "inbox", (OWN_MENU, ("menuitem", "^Custom")), on=("wide",)),
    View(
        "invite",
        "inbox",
        (OWN_MENU, ("menuitem", "Invite people")),
        on=("wide",),
    ),
    View("drawer", "inbox", (("button", "^Menu$"),), on=("phone",)),
    View("suggested-channels", "inbox", (("button", "Create channels"),)),
    View("offline", DOUGH, (away,)),
    View("offline-writing", DOUGH, (away, written("Rye, 14 hours."), "Control+Enter")),
    # Dialogs of settings
    View("new-bot", "settings/your-bots", (("button", "New bot"),)),
    View("bot-key", "settings/your-bots", (("button", "^API key"),)),
    View("bot-webhook", "settings/your-bots", (("button", "^Webhook"),)),
    View("new-key", "settings/keys", (("button", "New key"),)),
    View("new-snippet", "settings/snippets", (("button", "New snippet"),)),
    View("leave-for-good", "settings/account", (("button", "Deactivate account"),)),
    View("edit-person", "organization/users", (("button", "^Edit "),)),
    View("invite-mail", "organization/invitations", (("button", "Email invitation"),)),
    View("invite-link", "organization/invitations", (("button", "Invitation link"),)),
    View("new-linkifier", "organization/linkifier-settings", (("button", "New linkifier"),)),
    View("new-field", "organization/profile-field-settings", (("button", "New field"),)),
    View("new-folder", "channels/folders", (("button", "New folder"),)),
    View("channel-new", "channels/new"),
    View("channel-general", "channels/{kitchen}"),
    View("channel-personal", "channels/{kitchen}/kitchen/personal"),
    View("channel-subscribers", "channels/{kitchen}/kitchen/subscribers"),
    View("group-new", "groups/new"),
    # The browser remembers the editor, so views after this one have it, too.
    View(
        "writing-formatted",
        LUNCH,
        (written(FORMATTED), tool("Rich text"), "Control+End"),
    ),
    # Other users, and visitors
    View("member", "inbox", who=MEMBER),
    View("guest", "inbox", who=GUEST),
    View("visitor", "channels", who=None),
    View("visitor-channel", "narrow/channel/{recipes}", who=None),
    View("visitor-topics", "topics/channel/{recipes}", who=None),
    View("visitor-closed", "narrow/channel/{kitchen}", who=None),
    View(
        "visitor-door",
        "narrow/channel/{recipes}",
        (pressed(".reactions button[aria-pressed]"),),
        who=None,
    ),
    View(
        "visitor-drawer",
        "narrow/channel/{recipes}",
        (("button", "^Public channels"),),
        who=None,
        on=("phone",),
    ),
    View("sign-in", "/login", who=None),
    View("new-password", "/reset", who=None),
    View("join", "/join", who=None),
    View("interface", "/api", who=None),
)
"""All views except the pages of settings, which `PARTS` finds."""

PARTS: Final = ("settings", "organization", "channels", "groups")
"""Settings whose pages are found by following their links."""
FEW: Final = {"channels": 3, "groups": 3}
"""The maximum number of pages of parts whose pages look alike."""
