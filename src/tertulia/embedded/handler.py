"""The handler that a bot of `zulip_bots` uses."""

import json
from collections.abc import Callable, Mapping
from typing import Any, Final, NoReturn

from tertulia.embedded.frames import StartBot

MOST_ASKED: Final = 100
"""The most operations per message."""

Asking = Callable[[str, Mapping[str, Any]], dict[str, Any]]
"""Makes the node perform an operation as the bot, and returns the API's response."""


class RequestLimitReached(Exception):
    """The bot requested too many operations for one message."""


class BotHandler:
    """Implements `zulip_bots.lib.AbstractBotHandler`."""

    def __init__(self, begin: StartBot, ask: Asking) -> None:
        self.user_id = begin.user_id
        self.email = begin.email
        self.full_name = begin.full_name
        self._begin = begin
        self._ask = ask
        self._asked = 0
        self.storage = BotStorage(self.asked)

    def begin_message(self) -> None:
        self._asked = 0

    def asked(self, operation: str, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Perform an operation. Raises RequestLimitReached."""
        self._asked += 1
        if self._asked > MOST_ASKED:
            raise RequestLimitReached(f"it made more than {MOST_ASKED} requests for one message")
        return self._ask(operation, fields)

    def identity(self) -> Any:
        from zulip_bots.lib import BotIdentity

        return BotIdentity(self.full_name, self.email)

    def react(self, message: Mapping[str, Any], emoji_name: str) -> dict[str, Any]:
        fields = {"message_id": message["id"], "emoji_name": emoji_name}
        return self.asked("react", fields)

    def send_message(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """Send a message with the fields of `POST /messages`."""
        return self.asked("send_message", message)

    def send_reply(
        self, message: Mapping[str, Any], response: str, widget_content: str | None = None
    ) -> dict[str, Any]:
        """Reply to the message's conversation."""
        if message["type"] == "private":
            people = [person["id"] for person in message["display_recipient"]]
            to = {
                "type": "direct",
                "to": [person for person in people if person != self.user_id] or people,
            }
        else:
            to = {
                "type": "channel",
                "to": [message["stream_id"]],
                "topic": message["subject"],
            }
        return self.send_message({**to, "content": response, "widget_content": widget_content})

    def update_message(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """Edit a message with the fields of `PATCH /messages/{message_id}`."""
        return self.asked("update_message", message)

    def get_config_info(self, bot_name: str, optional: bool = False) -> dict[str, str]:
        """Return the bot's settings. Raises NoBotConfigError if it needs settings and has none."""
        from zulip_bots.lib import NoBotConfigError

        if not self._begin.settings and not optional:
            raise NoBotConfigError(bot_name)
        return dict(self._begin.settings)

    def quit(self, message: str = "") -> NoReturn:
        raise SystemExit(message)


class BotStorage:
    """The bot's storage on the server, as JSON. Nothing is cached, because another node may
    handle the next message."""

    def __init__(self, ask: Asking) -> None:
        self._ask = ask

    def put(self, key: str, value: Any) -> None:
        """Store a value. Raises StateHandlerError."""
        from zulip_bots.lib import StateHandlerError

        said = self._ask("put_storage", {"storage": {key: json.dumps(value)}})
        if said.get("result") != "success":
            raise StateHandlerError(f"Error updating state: {said.get('msg')}")

    def get(self, key: str) -> Any:
        """Return a stored value. Raises KeyError."""
        said = self._ask("get_storage", {"keys": [key]})
        if said.get("result") != "success":
            raise KeyError(f"key not found: {key}")
        return json.loads(said["storage"][key])

    def contains(self, key: str) -> bool:
        return self._ask("get_storage", {"keys": [key]}).get("result") == "success"
