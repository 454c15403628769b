"""What things may be called, and how long texts may be."""

import re
import unicodedata
from collections.abc import Iterable

from tertulia.domain import lookalikes
from tertulia.model.errors import Refused

MAX_MESSAGE = 10_000
MAX_TOPIC = 60
MAX_CHANNEL_NAME = 60
MAX_CHANNEL_DESCRIPTION = 1024
MAX_FULL_NAME = 100
MIN_FULL_NAME = 2
MAX_REALM_NAME = 40
MAX_REALM_DESCRIPTION = 1000
EMPTY_TOPIC_NAME = "general chat"
MAX_FOLDER_NAME = 100
MAX_FOLDER_DESCRIPTION = 1024
MAX_REMINDER_NOTE = 1000
MAX_GROUP_NAME = 100
MAX_GROUP_DESCRIPTION = 1024
MAX_SNIPPET_TITLE = 60
MAX_VIEW_NAME = 100
MAX_VIEW_FRAGMENT = 1000
MAX_CODE_LANGUAGE = 40
MAX_WELCOME_TEXT = 8000

_NO_NAME = re.compile(r'[*`\\>"@]')
_RESERVED_FOR_GROUPS = ("@", "role:", "user:", "stream:", "channel:")
_NAME_AND_ID = re.compile(r"\|\d+$")
_CODE_LANGUAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_+\-./#]*")
_LEXER = re.compile(r"[a-zA-Z0-9 '()_+#,./-]+")
_ADDRESS = re.compile(r"[^@\s\0<>()\[\],;:\"\\]+@[^@\s\0<>()\[\],;:\"\\]+")


def is_printable(text: str) -> bool:
    """Whether there is no control, surrogate, private or unassigned character in it."""
    # What Python calls printable is less: neither format characters nor other spaces than one.
    return text.isprintable() or not any(
        unicodedata.category(character) in {"Cc", "Cs", "Co", "Cn"} for character in text
    )


def is_plain(text: str) -> bool:
    """The same, and whether nothing in it is invisible or changes the direction: for names."""
    return is_printable(text) and lookalikes.is_visible(text)


def full_name(text: str) -> str:
    """A person's or bot's name in its final form. Refused when it cannot be one."""
    name = text.strip()
    if not MIN_FULL_NAME <= len(name) <= MAX_FULL_NAME:
        raise Refused(f"Names must have {MIN_FULL_NAME} to {MAX_FULL_NAME} characters.")
    if _NO_NAME.search(name) or _NAME_AND_ID.search(name) or not is_plain(name):
        raise Refused(
            "Names can't contain *, `, \\, >, \", @, or invisible characters, or end with | and"
            " a number."
        )
    return name


def require_unlike(name: str, reserved: Iterable[str]) -> None:
    """Refuse a name that could be read as a reserved one."""
    for one in reserved:
        if lookalikes.keys(one).resembles(lookalikes.keys(name)):
            raise Refused(f"The name '{one}' is reserved.")


def address(text: str) -> str:
    """An e-mail address in its final form. Refused when it cannot be one."""
    found = text.strip()
    if len(found) > 254 or not _ADDRESS.fullmatch(found) or not is_printable(found):
        raise Refused(f"'{found[:100]}' isn't a valid email address.")
    return found


def channel_name(text: str) -> str:
    """A channel's name in its final form. Refused when it cannot be one."""
    name = text.strip()
    if not name:
        raise Refused("Channel names can't be empty.")
    if len(name) > MAX_CHANNEL_NAME:
        raise Refused(f"Channel names can have at most {MAX_CHANNEL_NAME} characters.")
    if not is_plain(name):
        raise Refused("Channel names can't contain invisible characters.")
    return name


def channel_description(text: str) -> str:
    """A channel's description in its final form. Refused when it cannot be one."""
    description = text.strip().replace("\n", " ")
    if len(description) > MAX_CHANNEL_DESCRIPTION:
        raise Refused(f"Descriptions can have at most {MAX_CHANNEL_DESCRIPTION} characters.")
    if "\0" in description:
        raise Refused("Descriptions can't contain null bytes.")
    return description


def folder_name(text: str) -> str:
    """A channel folder's name in its final form. Refused when it cannot be one."""
    name = text.strip()
    if not name:
        raise Refused("Channel folder names can't be empty.")
    if len(name) > MAX_FOLDER_NAME:
        raise Refused(f"Channel folder names can have at most {MAX_FOLDER_NAME} characters.")
    if not is_plain(name):
        raise Refused("Channel folder names can't contain invisible characters.")
    return name


def folder_description(text: str) -> str:
    """A channel folder's description in its final form. Refused when it cannot be one."""
    description = text.strip()
    if len(description) > MAX_FOLDER_DESCRIPTION:
        raise Refused(f"Descriptions can have at most {MAX_FOLDER_DESCRIPTION} characters.")
    if "\0" in description:
        raise Refused("Descriptions can't contain null bytes.")
    return description


def realm_name(text: str) -> str:
    """An organization's name in its final form. Refused when it cannot be one."""
    name = text.strip()
    if not 0 < len(name) <= MAX_REALM_NAME:
        raise Refused(f"An organization's name must have 1 to {MAX_REALM_NAME} characters.")
    if not is_plain(name):
        raise Refused("An organization's name can't contain invisible characters.")
    return name


def realm_description(text: str) -> str:
    """An organization's description in its final form. Refused when it cannot be one."""
    description = text.strip()
    if len(description) > MAX_REALM_DESCRIPTION:
        raise Refused(f"Descriptions can have at most {MAX_REALM_DESCRIPTION} characters.")
    return description


def code_language(text: str) -> str:
    """A programming language as Pygments may call it. Refused when it cannot be one."""
    name = text.strip()
    if len(name) > MAX_CODE_LANGUAGE or not _CODE_LANGUAGE.fullmatch(name):
        raise Refused("This isn't a valid name of a programming language.")
    return name


def lexer_name(text: str) -> str:
    """The name by which Pygments lists a lexer, as `Common Lisp`. Refused when it cannot be one."""
    name = text.strip()
    if len(name) > MAX_CODE_LANGUAGE or not _LEXER.fullmatch(name):
        raise Refused("This isn't a valid name of a programming language.")
    return name


def group_name(text: str) -> str:
    """A user group's name in its final form. Refused when it cannot be one."""
    name = text.strip()
    if not name:
        raise Refused("Group names can't be empty.")
    if len(name) > MAX_GROUP_NAME:
        raise Refused(f"Group names can have at most {MAX_GROUP_NAME} characters.")
    for prefix in _RESERVED_FOR_GROUPS:
        if lookalikes.plain(name).startswith(prefix):
            raise Refused(f"Group names can't begin with '{prefix}'.")
    if not is_plain(name):
        raise Refused("Group names can't contain invisible characters.")
    return name


def group_description(text: str) -> str:
    """A user group's description in its final form. Refused when it cannot be one."""
    description = text.strip()
    if len(description) > MAX_GROUP_DESCRIPTION:
        raise Refused(f"Descriptions can have at most {MAX_GROUP_DESCRIPTION} characters.")
    if "\0" in description:
        raise Refused("Descriptions can't contain null bytes.")
    return description


def topic_name(text: str) -> str:
    """A topic's name as it is stored: the general chat's aliases are the empty topic, and what is
    too long is cut. Refused for invisible characters."""
    name = text.strip()
    if not is_printable(name):
        raise Refused("Topic names can't contain invisible characters.")
    if name in {"(no topic)", EMPTY_TOPIC_NAME}:
        return ""
    if len(name) <= MAX_TOPIC:
        return name
    # What joins is not left without what it joined.
    return name[: MAX_TOPIC - 3].rstrip("\u200c\u200d") + "..."


def check_new_topic(name: str) -> None:
    """Refused for a topic that nobody should begin: one with something invisible in it. Those that
    there are stay, and are found."""
    if not is_plain(name):
        raise Refused("Topic names can't contain invisible characters.")


def message_content(text: str) -> str:
    """A message's content as it is stored. Refused when nothing is left, or for null bytes."""
    if "\0" in text:
        raise Refused("Messages can't contain null bytes.")
    content = text.lstrip("\n").rstrip()
    if not content.strip():
        raise Refused("Messages can't be empty.")
    if len(content) > MAX_MESSAGE:
        end = "\n[message truncated]"
        content = content[: MAX_MESSAGE - len(end)] + end
    return content


def snippet_title(text: str) -> str:
    """A snippet's title in its final form. Refused when it cannot be one."""
    return _short(text, "A snippet's title", MAX_SNIPPET_TITLE)


def snippet_content(text: str) -> str:
    """A snippet's text in its final form. Refused when it cannot be one: it is not cut."""
    return _short(text, "A snippet", MAX_MESSAGE)


def view_fragment(text: str) -> str:
    """A navigation view's address in its final form. Refused when it cannot be one."""
    return _short(text, "A view's address", MAX_VIEW_FRAGMENT)


def view_name(text: str) -> str:
    """A navigation view's name in its final form. Refused when it cannot be one."""
    return _short(text, "A view's name", MAX_VIEW_NAME)


def _short(text: str, what: str, longest: int) -> str:
    stripped = text.strip()
    if not stripped:
        raise Refused(f"{what} can't be empty.")
    if len(stripped) > longest:
        raise Refused(f"{what} can have at most {longest} characters.")
    return stripped
