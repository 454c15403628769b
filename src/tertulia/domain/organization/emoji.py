"""Finding emoji by name, and custom emoji."""

import re
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from tertulia.domain import permissions
from tertulia.model.changes import CustomEmojiAdded, CustomEmojiDeactivated
from tertulia.model.emoji import client_name, codes_by_name, has_name
from tertulia.model.errors import NoSuchItem, Refused
from tertulia.model.reactions import EXTRA_NAMES, CustomEmoji, Emoji, EmojiKind
from tertulia.state.decision import CommandContext, Decision
from tertulia.state.state import State

MAX_NAME: Final = 100
MAX_OF_PERSON: Final = 500
"""The most emoji that one person and their bots can add, including deactivated ones, because all
clients load them. Administrators can add any number."""
_NAME: Final = re.compile(r"[0-9a-z_-]*[0-9a-z]")
_KINDS: Final[Sequence[EmojiKind]] = (EmojiKind.CUSTOM, EmojiKind.EXTRA, EmojiKind.UNICODE)
"""The order in which a name is looked up."""


def code_of(state: State, name: str, kind: EmojiKind) -> str | None:
    """Return the code of the active emoji of that kind and name, if it exists."""
    match kind:
        case EmojiKind.CUSTOM:
            emoji_id = state.custom_emoji.by_name.get(name)
            return None if emoji_id is None else str(emoji_id)
        case EmojiKind.EXTRA:
            return name if name in EXTRA_NAMES else None
        case EmojiKind.UNICODE:
            return codes_by_name().get(name)


def find_emoji(
    state: State, name: str, code: str | None = None, kind: EmojiKind | None = None
) -> Emoji:
    """Return the emoji with that name, and with that code and kind if given. A Unicode emoji whose
    name clients don't know gets its canonical name. Raise Refused if it doesn't exist."""
    for emoji_kind in _KINDS if kind is None else (kind,):
        result = code_of(state, name, emoji_kind)
        if emoji_kind is EmojiKind.UNICODE and code is not None and has_name(code, name):
            result = code
        if result is not None and code in {None, result}:
            is_unicode = emoji_kind is EmojiKind.UNICODE
            return Emoji(
                kind=emoji_kind, code=result, name=client_name(result, name) if is_unicode else name
            )
    if code is None:
        raise Refused(f"No emoji named '{name[:100]}' exists.")
    raise Refused(f"'{name[:100]}' isn't the name of the emoji with this code.")


class NewEmoji(Struct, frozen=True, kw_only=True):
    name: str
    file: str
    still: str = ""


def check_new(context: CommandContext, name: str) -> Decision[None]:
    """Raise Refused if the actor can't add an emoji with this name."""
    state, actor = context.state, context.actor
    permissions.require(
        permissions.holds_as_member(state, actor, state.realm.can_add_custom_emoji_group),
        "You don't have permission to add custom emoji.",
    )
    check_name(name)
    if name in state.custom_emoji.by_name:
        raise Refused(f"A custom emoji named '{name}' already exists.")
    if name in codes_by_name():
        permissions.require(
            permissions.is_administrator(state, actor),
            "Only administrators can replace a Unicode emoji.",
        )
    if not permissions.is_administrator(state, actor):
        accounts = state.users.accounts_of(state.users.person_of(actor))
        if sum(map(state.custom_emoji.of_author.count, accounts)) >= MAX_OF_PERSON:
            raise Refused(
                f"One person can add at most {MAX_OF_PERSON} emoji, including deactivated ones."
                " Ask an administrator to add more."
            )
    return Decision(None)


def check_name(name: str) -> None:
    """Raise Refused if no custom emoji can have this name."""
    if len(name) > MAX_NAME or not _NAME.fullmatch(name):
        raise Refused(
            f"An emoji's name can have up to {MAX_NAME} lowercase letters, digits,"
            " underscores, and hyphens, and must end with a letter or a digit."
        )
    if name in EXTRA_NAMES:
        raise Refused(f"'{name}' is a built-in emoji and can't be replaced.")


def add(context: CommandContext, new: NewEmoji) -> Decision[int]:
    """Add the emoji and return its ID. Raise as `check_new`."""
    check_new(context, new.name)
    emoji = CustomEmoji(
        id=context.state.custom_emoji.next_id(),
        name=new.name,
        file=new.file,
        still=new.still,
        author_id=context.actor.id,
    )
    return Decision(emoji.id, (CustomEmojiAdded(emoji=emoji),))


def deactivate(context: CommandContext, name: str) -> Decision[None]:
    """Deactivate the emoji with this name; reactions with it stay.

    Raise NoSuchItem; Refused for people other than administrators and its author.
    """
    state, actor = context.state, context.actor
    emoji_id = state.custom_emoji.by_name.get(name)
    if emoji_id is None:
        raise NoSuchItem("emoji")
    emoji = state.custom_emoji[emoji_id]
    permissions.require(
        permissions.is_administrator(state, actor) or emoji.author_id == actor.id,
        "Only administrators and the person who added a custom emoji can deactivate it.",
    )
    return Decision(None, (CustomEmojiDeactivated(emoji_id=emoji_id),))
