"""Which bots' services are called about a message."""

import re
from collections.abc import Iterator
from typing import Final

from tertulia.model.messages import Message
from tertulia.model.users import User
from tertulia.model.webhooks import ServiceCall
from tertulia.state.state import State

_NAMED: Final = re.compile(r'class="user-mention" data-user-id="(\d{1,15})"')
_COMMAND: Final = re.compile(r"/([a-z][a-z0-9_-]{0,29})(?:\s|$)")


def calls_for(state: State, message: Message) -> list[ServiceCall]:
    """Return the calls for a message that was just sent: to bots that it's sent to directly, that
    it mentions by name, or whose command it is. None for bots' messages, so that bots don't talk to
    each other forever. The bot's access is checked later."""
    if not state.users.services.ids:
        return []
    sender = state.users.get(message.sender_id)
    if sender is None or sender.is_bot:
        return []
    return list(_calls(state, message))


def _calls(state: State, message: Message) -> Iterator[ServiceCall]:
    called: set[int] = set()
    found = _COMMAND.match(message.content)
    bot = _with_command(state, found[1]) if found else None
    if bot is not None and found is not None:
        called.add(bot.id)
        yield ServiceCall(bot_id=bot.id, message_id=message.id, trigger="command", command=found[1])
    if message.direct_id is not None:
        members = state.directs[message.direct_id].members
        for bot_id in members:
            if bot_id in state.users.services and bot_id not in called:
                yield ServiceCall(bot_id=bot_id, message_id=message.id, trigger="direct_message")
        return
    named = {int(user_id) for user_id in _NAMED.findall(message.rendered)}
    for bot_id in sorted(named - called):
        if bot_id in state.users.services:
            yield ServiceCall(bot_id=bot_id, message_id=message.id, trigger="mention")


def _with_command(state: State, name: str) -> User | None:
    for bot_id in state.users.services:
        user = state.users[bot_id]
        service = user.bot.service if user.bot else None
        if service is not None and name in service.commands:
            return user
    return None
