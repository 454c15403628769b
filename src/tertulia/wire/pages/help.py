"""Help: the manual where the package has it, and short pages of our own where clients link those of
elsewhere."""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from tertulia.wire.http.node import HttpNode
from tertulia.wire.http.responses import unless_known
from tertulia.wire.pages.form_flow import Link, note_page
from tertulia.wire.pages.html import ENGLISH
from tertulia.wire.pages.web_client import BuiltFiles

HELP: Final = "/help"
_MANUAL: Final = BuiltFiles("manual")
_FIRST: Final = "index.html"
_HEADERS: Final = {
    # Their names are the same in every release.
    "Cache-Control": "no-cache",
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self';"
        " connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "Referrer-Policy": "same-origin",
}
_SHOWN: Final = ("text/html", "text/css", "text/javascript", "image/")


def is_built() -> bool:
    """Whether there is a manual: a package of a release has it."""
    return _FIRST in _MANUAL.names


def manual_answer(request: Request, name: str) -> Response | None:
    """What the manual has at that path below `/help/`; None where it has nothing there."""
    if not is_built():
        return None
    if not name:
        if request.url.path == HELP:  # Links on the page begin from a folder.
            return RedirectResponse(f"{HELP}/", status_code=302)
        name = _FIRST
    if (found := _MANUAL.file(name)) is not None:
        content, headers = found.encoded(request)
        is_shown = found.media_type.startswith(_SHOWN)
        media_type = found.media_type if is_shown else "text/plain"
        return unless_known(request, content, media_type, {**headers, **_HEADERS})
    if f"{name}.html" in _MANUAL.names:
        return RedirectResponse(f"{HELP}/{name}.html", status_code=302)
    return None


class Topic(Struct, frozen=True):
    """What a page says."""

    title: str
    paragraphs: tuple[str, ...]


_GENERAL: Final = Topic(
    "Introduction to topics",
    (
        "A channel is for a team or a subject. Each conversation in a channel has a topic, like"
        " the subject line of an email, so you can read the topics that concern you and skip"
        " the rest. Direct messages are between one or a few people.",
        "The inbox lists your conversations, with unread ones first. Follow a topic to get"
        " notified of every message in it, or mute it to get no notifications. Resolve a topic"
        " when it's settled.",
        "In the browser, press ? to see all keyboard shortcuts, and Ctrl K to search or jump to"
        " anything.",
    ),
)
_WRITING: Final = Topic(
    "Writing messages",
    (
        "Messages are written in Markdown: **bold**, *italic*, `code`, ~~strikethrough~~, >"
        " quotes, lists, tables, [links](https://example.com), and $$formulas$$. Three"
        " backticks start a code block, or a ```quote, ```spoiler, or ```math block.",
        "Type @ to mention people and groups, # to link channels and topics, : to add emoji,"
        " and / for commands such as /poll, /todo, and /me. <time:2030-01-31T18:00> shows a"
        " time in each reader's time zone.",
        "To attach files, paste them, drop them, or choose them with the paperclip. Unsent"
        " messages are saved as drafts. To schedule a message, use the arrow next to Send.",
    ),
)
_SEARCHING: Final = Topic(
    "Searching for messages",
    (
        "Words find messages that contain all of them. Words in quotation marks find the exact"
        " phrase.",
        "Narrow down a search with filters such as channel:kitchen, topic:grinder, sender:june,"
        " dm:marco, is:starred, is:unread, is:mentioned, has:link, or has:attachment. A minus"
        " sign excludes matches, as in -has:link.",
    ),
)
_KEYS: Final = Topic(
    "Keyboard shortcuts",
    (
        "In the browser, press ? to see all shortcuts. j and k go to the next and previous"
        " message, n goes to the next unread topic, r replies, c starts a new message, Ctrl K"
        " searches or jumps to anything, and Esc goes to the home view.",
    ),
)
_READING: Final = Topic(
    "Reading messages",
    (
        "Unread messages are counted for each channel and topic until you see them or mark them"
        " as read. Star a message to find it again. A message's menu lets you copy a link to"
        " it, see who read it, and set a reminder.",
        "The sender of a message can edit, move, or delete it, and so can others, if the"
        " organization's permissions allow it. The edit history shows earlier versions.",
    ),
)
_NOTICES: Final = Topic(
    "Notifications",
    (
        "Choose in your settings which messages you get notifications for, in general and for"
        " each channel: direct messages, mentions, followed topics, and alert words.",
        "On a phone, open this site in the browser and add it to the home screen. There, and in"
        " any other browser, select “Turn on notifications on this device” in your settings."
        " Apps that need their vendor's push service don't get notifications.",
    ),
)
_SELF: Final = Topic(
    "Your account and settings",
    (
        "Select your name at the bottom of the sidebar to change your profile, appearance, and"
        " notifications, see your active sessions, get your API key, or set a status.",
    ),
)
_PEOPLE: Final = Topic(
    "Roles and permissions",
    (
        "What people can do depends on their role (owner, administrator, moderator, member, or"
        " guest) and on the groups that each permission is given to. The organization's"
        " settings list all permissions.",
        "Guests see only channels that they're subscribed to. Administrators can invite people,"
        " change their roles, and deactivate accounts.",
    ),
)
_CHANNELS: Final = Topic(
    "Channels",
    (
        "Everyone except guests can find public channels and subscribe to them. Only"
        " subscribers can see private channels. A channel's settings define who can post,"
        " subscribe others, and administer it.",
        "Archive a channel that's no longer needed. Its messages are kept.",
    ),
)
_PROGRAMS: Final = Topic(
    "Bots and integrations",
    (
        "A bot is an account for a program. Create one in your settings, and sign the program"
        " in with the bot's email address and API key. The API is documented at /api.",
    ),
)

PAGES: Final[Mapping[str, Topic]] = {
    "general": _GENERAL,
    "writing": _WRITING,
    "searching": _SEARCHING,
    "keys": _KEYS,
    "reading": _READING,
    "notices": _NOTICES,
    "you": _SELF,
    "people": _PEOPLE,
    "channels": _CHANNELS,
    "programs": _PROGRAMS,
}
_WORDS: Final[tuple[tuple[str, Topic], ...]] = (
    ("keyboard", _KEYS),
    ("shortcut", _KEYS),
    ("search", _SEARCHING),
    ("format", _WRITING),
    ("markdown", _WRITING),
    ("compos", _WRITING),
    ("emoji", _WRITING),
    ("mention", _WRITING),
    ("quote", _WRITING),
    ("poll", _WRITING),
    ("draft", _WRITING),
    ("schedule", _WRITING),
    ("share-and-upload", _WRITING),
    ("latex", _WRITING),
    ("code", _WRITING),
    ("global-times", _WRITING),
    ("notification", _NOTICES),
    ("mobile", _NOTICES),
    ("alert-words", _NOTICES),
    ("mute", _NOTICES),
    ("follow", _NOTICES),
    ("bot", _PROGRAMS),
    ("integration", _PROGRAMS),
    ("api", _PROGRAMS),
    ("webhook", _PROGRAMS),
    ("role", _PEOPLE),
    ("guest", _PEOPLE),
    ("invite", _PEOPLE),
    ("user-group", _PEOPLE),
    ("users", _PEOPLE),
    ("permission", _PEOPLE),
    ("status", _SELF),
    ("profile", _SELF),
    ("avatar", _SELF),
    ("password", _SELF),
    ("email", _SELF),
    ("theme", _SELF),
    ("logging", _SELF),
    ("channel", _CHANNELS),
    ("stream", _CHANNELS),
    ("read", _READING),
    ("star", _READING),
    ("edit", _READING),
    ("delete", _READING),
    ("move", _READING),
    ("message", _READING),
    ("topic", _GENERAL),
    ("inbox", _GENERAL),
    ("recent", _GENERAL),
)
"""What a page is about whose name has the word, the first of them: clients link a hundred names."""


def topic_for(name: str) -> Topic:
    """What helps where a client links the page of this name."""
    if name in PAGES:
        return PAGES[name]
    return next((topic for word, topic in _WORDS if word in name), _GENERAL)


def help_pages(node: HttpNode) -> tuple[BaseRoute, ...]:
    """The pages of a node."""

    async def page(request: Request) -> Response:
        name = str(request.path_params.get("name", "")).rstrip("/")
        if (found := manual_answer(request, name)) is not None:
            return found
        topic = topic_for(name.strip("/").lower())
        others = {one.title: f"{HELP}/{name}" for name, one in PAGES.items() if one is not topic}
        if is_built():
            others = {"Full manual": f"{HELP}/", **others}
        return note_page(
            node,
            ENGLISH,
            topic.title,
            *topic.paragraphs,
            status=200,
            links=others,
            back=Link(path="/", words="Back to Tertulia"),
        )

    return (Route(HELP, page), Route(HELP + "/{name:path}", page))
