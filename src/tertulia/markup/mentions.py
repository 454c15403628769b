"""Mentions of users and groups, and links to channels and topics."""

import re
from typing import Final

from markdown_it.rules_inline import StateInline
from msgspec.structs import replace

from tertulia.markup import addresses
from tertulia.markup.context import RenderContext, add_html, context_of
from tertulia.markup.elements import element, escaped
from tertulia.markup.former_names import FormerNames
from tertulia.model.channels import Channel
from tertulia.model.groups import SystemGroup, UserGroup

_CHANNEL_WILDCARDS: Final = frozenset({"all", "everyone", "channel", "stream"})
_TOPIC_WILDCARD: Final = "topic"
_BEFORE: Final = frozenset("'\"({[/<")
"""Characters that may precede a mention, in addition to white space."""
_MENTION: Final = re.compile(r"@(_?)(?:\*\*([^*\n]+)\*\*|\*([^*\n]+)\*(?!\*))")
_LABELS: Final = {
    SystemGroup.NOBODY: "Nobody",
    SystemGroup.OWNERS: "Owners",
    SystemGroup.ADMINISTRATORS: "Administrators",
    SystemGroup.MODERATORS: "Moderators",
    SystemGroup.FULL_MEMBERS: "Full members",
    SystemGroup.MEMBERS: "Members",
    SystemGroup.EVERYONE: "Everyone",
    SystemGroup.INTERNET: "Everyone on the internet",
}
"""Display names of the groups of roles."""


def mention(state: StateInline, silent: bool) -> bool:
    """Parse `@**name**`, `@**name|17**`, or `@*group*`. An underscore after the `@` makes it
    silent."""
    if state.src[state.pos] != "@":
        return False
    if state.pos and not _may_precede(state.src[state.pos - 1]):
        return False
    match = _MENTION.match(state.src, state.pos, state.posMax)
    if match is None:
        return False
    context = context_of(state)
    quiet = bool(match[1]) or context.in_quotation
    html = (
        _person(context, match[2].strip(), quiet)
        if match[2] is not None
        else _group(context, match[3].strip(), quiet)
    )
    if html is None:
        return False
    if not silent:
        add_html(state, html)
    state.pos = match.end()
    return True


def _may_precede(character: str) -> bool:
    return character.isspace() or character in _BEFORE


def _person(context: RenderContext, name: str, quiet: bool) -> str | None:
    if name in _CHANNEL_WILDCARDS:
        context.mentions_all = context.mentions_all or not quiet
        kind = "user-mention channel-wildcard-mention"
        return _shown(name, quiet, kind, {"data-user-id": "*"})
    if name == _TOPIC_WILDCARD:
        context.mentions_topic = context.mentions_topic or not quiet
        return _shown(name, quiet, "topic-mention", {})
    result = _named(context, name) if context.names is None else _named_then(context.names, name)
    if result is None:
        return None
    user_id, full_name = result
    if not quiet:
        context.mentioned_users.add(user_id)
    return _shown(full_name, quiet, "user-mention", {"data-user-id": str(user_id)})


def _named(context: RenderContext, name: str) -> tuple[int, str] | None:
    """Return the ID and name of the user in `Name`, `Name|17`, or `|17` if the author can see
    them."""
    state = context.state
    full_name, bar, number = name.rpartition("|")
    if bar and number.isascii() and number.isdigit() and len(number) < 16:
        user = state.users.get(int(number))
        if (
            user is not None
            and (not full_name or user.full_name == full_name)
            and context.may_name(user)
        ):
            return user.id, user.full_name
    called = sorted(state.users.by_name.keys(name))
    known = (state.users[user_id] for user_id in called)
    return next(((user.id, user.full_name) for user in known if context.may_name(user)), None)


def _named_then(names: FormerNames, name: str) -> tuple[int, str] | None:
    full_name, bar, number = name.rpartition("|")
    for called in dict.fromkeys((full_name if bar else name, name)):
        ids = names.users.get(called, ())
        if ids:
            return next((value for value in ids if str(value) == number), ids[0]), called
    return next(
        (
            (value, called)
            for called, ids in names.users.items()
            for value in ids
            if str(value) == number
        ),
        None,
    )


def _group(context: RenderContext, name: str, quiet: bool) -> str | None:
    group_id = context.state.groups.by_name.get(name.casefold())
    group = None if group_id is None else context.state.groups[group_id]
    if context.names is not None:
        result = _group_then(context.names, name, group)
    elif group is None or not (quiet or context.may_mention(group)):
        result = None
    else:
        result = group.id, group_label(group)
    if result is None:
        return None
    if not quiet:
        context.mentioned_groups.add(result[0])
    attributes = {"data-user-group-id": str(result[0])}
    return _shown(result[1], quiet, "user-group-mention", attributes)


def _group_then(names: FormerNames, name: str, group: UserGroup | None) -> tuple[int, str] | None:
    if group is not None and group.is_system:
        label = group_label(group)
        return (group.id, label) if label.casefold() in names.groups else None
    result = names.groups.get(name.casefold())
    return result if result and result[0] else None


def group_label(group: UserGroup) -> str:
    return _LABELS[SystemGroup(group.id)] if group.is_system else group.name


def _shown(name: str, quiet: bool, kind: str, attributes: dict[str, str]) -> str:
    sign, extra = ("", " silent") if quiet else ("@", "")
    return element("span", {"class": kind + extra, **attributes}, escaped(sign + name))


GENERAL_CHAT: Final = "general chat"
"""The display name of the empty topic."""
_LINK: Final = re.compile(r"#\*\*([^*\n]+)\*\*")
_AT_MESSAGE: Final = re.compile(r"(.*)@([0-9]{1,15})", re.DOTALL)


def channel_link(state: StateInline, silent: bool) -> bool:
    """Parse `#**channel**`, `#**channel>topic**`, or `#**channel>topic@17**`, for channels that the
    author can see."""
    if state.src[state.pos] != "#":
        return False
    match = _LINK.match(state.src, state.pos, state.posMax)
    if match is None:
        return False
    context = context_of(state)
    channel, topic = _channel_named(context, match[1]), None
    if channel is None:
        name, sign, topic = match[1].partition(">")
        channel = _channel_named(context, name) if sign else None
    if channel is None:
        return False
    if not silent:
        add_html(state, _channel(channel) if topic is None else _topic(context, channel, topic))
    state.pos = match.end()
    return True


def _channel_named(context: RenderContext, name: str) -> Channel | None:
    """Return the channel, with the name that the text has for it, if the author can see it."""
    if context.names is not None:
        channel_id, called = context.names.channels.get(name.casefold(), (0, ""))
        known = context.state.channels.get(channel_id)
        return None if known is None else replace(known, name=called)
    channel = context.state.channel_named(name)
    return channel if channel is not None and context.may_link(channel) else None


def _channel(channel: Channel) -> str:
    attributes = {
        "class": "stream",
        "data-stream-id": str(channel.id),
        "href": addresses.channel_address(channel),
    }
    return element("a", attributes, escaped(f"#{channel.name}"))


def _topic(context: RenderContext, channel: Channel, name: str) -> str:
    message = _AT_MESSAGE.fullmatch(name)
    if message:
        topic = message[1].strip()
        href = addresses.message_address(channel, topic, int(message[2]))
        return element(
            "a", {"class": "message-link", "href": href}, f"{_label(channel, topic)} @ 💬"
        )
    topic = name.strip()
    href = addresses.topic_address(channel, topic)
    newest = addresses.newest_message(context.state, channel, topic)
    if newest is not None and context.may_read(channel, newest):
        href = f"{href}/with/{newest}"
    attributes = {
        "class": "stream-topic",
        "data-stream-id": str(channel.id),
        "href": href,
    }
    return element("a", attributes, _label(channel, topic))


def _label(channel: Channel, topic: str) -> str:
    shown = escaped(topic) if topic else f"<em>{GENERAL_CHAT}</em>"
    return f"{escaped(f'#{channel.name}')} &gt; {shown}"
