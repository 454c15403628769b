"""Help: the manual where the package has it, and short pages of our own where clients link those of
elsewhere."""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from tertulia.wire.http.node import HttpNode
from tertulia.wire.pages import manual
from tertulia.wire.pages.form_flow import Link, note_page
from tertulia.wire.pages.manual import HELP
from tertulia.wire.pages.speaking import ENGLISH


class Topic(Struct, frozen=True):
    """What a page says."""

    title: str
    paragraphs: tuple[str, ...]


_GENERAL: Final = Topic(
    "How talk is arranged",
    (
        "A channel is a room for a team or a theme. Within it every conversation has a topic, like"
        " the subject of a letter: read the topics that you care about, and leave out the others."
        " Direct messages go to one person or a few.",
        "The inbox shows what is new, conversation by conversation. Follow a topic to hear of"
        " everything in it; mute it to hear of nothing. A topic that is settled can be marked as"
        " resolved.",
        "In the browser, ? shows all keys, and Ctrl K goes anywhere.",
    ),
)
_WRITING: Final = Topic(
    "Writing",
    (
        "Messages are Markdown: **bold**, *italic*, `code`, ~~struck~~, > quotes, lists, tables,"
        " [links](https://example.com), $$formulas$$. Three backticks in a line begin a block of"
        " code, ```quote, ```spoiler or ```math.",
        "@ finds people and groups, # channels and their topics, : emoji, / commands such as /poll,"
        " /todo and /me. <time:2030-01-31T18:00> shows a time in each reader's own zone.",
        "Files are pasted, dropped, or chosen. What you have typed is kept as a draft; the arrow"
        " beside Send sends it later.",
    ),
)
_SEARCHING: Final = Topic(
    "Searching",
    (
        "Words find messages that have all of them; words in quotation marks, just that phrase.",
        "channel:kitchen, topic:grinder, sender:june, dm:marco, is:starred, is:unread,"
        " is:mentioned, has:link, has:attachment and others narrow it down. A minus turns one"
        " round: -has:link.",
    ),
)
_KEYS: Final = Topic(
    "Keys",
    (
        "In the browser, ? shows every key. j and k go to the next and the last message, n to the"
        " next topic with something new, r replies, c begins a message, Ctrl K goes anywhere or"
        " searches, Esc goes home.",
    ),
)
_READING: Final = Topic(
    "Reading",
    (
        "What you have not read is counted at each channel and topic, until you have seen it or"
        " mark it as read. Star a message to find it again; its menu has a link to it, who has read"
        " it, and a reminder.",
        "A message can be edited, moved or deleted by who wrote it and by those whom the"
        " organization lets; its history shows what was there before.",
    ),
)
_NOTICES: Final = Topic(
    "Being told",
    (
        "Which messages you are told of is in your settings, in general and for each channel:"
        " direct messages, mentions, followed topics, words that you name.",
        "On a phone, open this site in the browser and add it to the home screen; there, and in"
        " any browser, select “Turn on notifications on this device” in the settings. Apps that"
        " need their vendor's push service don't get notifications.",
    ),
)
_SELF: Final = Topic(
    "You",
    (
        "Your settings have your name, picture and profile, where you are signed in, how things"
        " look, and your API key for programs. A status beside your name says what you are doing.",
    ),
)
_PEOPLE: Final = Topic(
    "People",
    (
        "Who may do what depends on a person's role (owner, administrator, moderator, member,"
        " guest) and on the groups that each permission is given to: the organization's settings"
        " show all of them.",
        "Guests see only the channels that they were let into. Administrators invite people,"
        " change their roles and deactivate accounts.",
    ),
)
_CHANNELS: Final = Topic(
    "Channels",
    (
        "Everybody but guests finds public channels and can subscribe to them; private ones are"
        " seen by those who were let in. A channel's settings say who may write, subscribe others,"
        " and administer it.",
        "A channel that is not needed any more is archived: what was said in it stays.",
    ),
)
_PROGRAMS: Final = Topic(
    "Bots and programs",
    (
        "A bot is an account for a program. Make one in your settings; its address and API key sign"
        " it in. The interface is described at /api.",
    ),
)

_PAGES: Final[Mapping[str, Topic]] = {
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
    if name in _PAGES:
        return _PAGES[name]
    return next((topic for word, topic in _WORDS if word in name), _GENERAL)


def help_pages(node: HttpNode) -> tuple[BaseRoute, ...]:
    """The pages of a node."""

    async def page(request: Request) -> Response:
        name = str(request.path_params.get("name", "")).rstrip("/")
        if (found := manual.manual_answer(request, name)) is not None:
            return found
        topic = topic_for(name.strip("/").lower())
        others = {one.title: f"{HELP}/{name}" for name, one in _PAGES.items() if one is not topic}
        if manual.is_built():
            others = {"The whole manual": f"{HELP}/", **others}
        return note_page(
            node,
            ENGLISH,
            topic.title,
            *topic.paragraphs,
            status=200,
            links=others,
            back=Link(path="/", words="Back to the conversations"),
        )

    return (Route(HELP, page), Route(HELP + "/{name:path}", page))
